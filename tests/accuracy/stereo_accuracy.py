"""Measures `dic stereo` on images of `dic synth --stereo` and compares shape, displacement and strain with the truth.

    stereo_accuracy.py PROGRAM [--only CASE ...] [--small] [--seed N] [--keep FOLDER] [--options "OPTIONS OF DIC STEREO"]

PROGRAM is the built `dic`. Prints a table per case: bias, standard deviation, and observed over predicted sigma of X, Y, Z, U, V,
W, um, and of the strains, microstrain; points found and wrong. Ends with 1 if a bound does not hold. With --small the images have half the side and half the focal length,
so that a pixel is twice as long in mm, and so are the bounds of lengths. With a quarter of the points and gauges of twice the
length on the same curvature, means, strains and sigma are judged more loosely.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

SUBSET, STEP = 21, 8
OK = 0
STEEP = 60  # degrees: points that a camera sees more obliquely need not be found
GROSS_MM = 0.1  # an ok point off by more, and by more than 5 sigma, is wrong
LENGTHS = ("X", "Y", "Z", "U", "V", "W")
STRAINS = ("exx", "eyy", "exy")

# Options of dic synth, largest |bias| and sd (um, microstrain), least share of points found.
PLANE = {"bias": {"Z": 0.3, "U": 0.2, "V": 0.2, "W": 0.2}, "sd": {"Z": 2.3, "U": 0.9, "V": 0.75, "W": 2.6}, "strain sd": 130, "found": 0.999}
CURVED = {"bias": {"Z": 0.3, "U": 0.3, "V": 0.3, "W": 0.3}, "sd": {"Z": 4, "U": 1.2, "V": 1.2, "W": 4.5}, "strain sd": 170, "found": 0.97}
CASES = {
    "plane": ("--move 3,-2,4", PLANE),
    "plane, left camera faces it": ("--move 3,-2,4 --facing-left", PLANE),
    "plane, stretched": ("--stretch 0.01,0.004,-0.002,-0.006 --distortion -0.1,0.05,0.001,-0.001,0", PLANE),
    "cylinder": ("--surface cylinder --surface-radius 60 --inflate 0.01 --camera-angle 30", CURVED),
    "dome": ("--surface dome --surface-radius 120 --turn 2,3,5 --camera-angle 30", CURVED),
    "wave": ("--surface wave --wave 2,60 --bulge 1,20 --camera-angle 25", CURVED),
}
STRAIN_BIAS = 10
RATIO, RATIO_SMALL = (0.9, 1.1), (0.8, 1.15)
SMALL = "--width 500 --height 400 --focal 1250"


class Truth:
    """The truth of the last frame on the nodes of the measurement, [y, x]."""

    def __init__(self, path, frame, shape):
        with open(path) as file:
            names = file.readline().strip().split(",")
        rows = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
        rows = rows[rows[:, 0] == frame]
        x, y = (np.rint(rows[:, names.index(axis)] / STEP).astype(int) for axis in "xy")
        for k, name in enumerate(names):
            field = np.full(shape, np.nan)
            field[y, x] = rows[:, k]
            setattr(self, name, field)
        self.hidden = np.nan_to_num(self.measurable) == 0  # also beside the specimen
        self.measurable = np.nan_to_num(self.measurable) == 1
        steep = np.maximum(np.nan_to_num(self.incidence, nan=90), np.nan_to_num(self.right_incidence, nan=90))
        self.expected = whole_subsets(self.measurable) & (steep < STEEP)


def whole_subsets(seen):
    """Nodes whose whole subset is seen: all nodes up to the next one beyond its edge are."""
    reach = -(-(SUBSET // 2) // STEP)
    padded = np.pad(seen, reach)
    whole = np.ones_like(seen)
    for dy in range(2 * reach + 1):
        for dx in range(2 * reach + 1):
            whole &= padded[dy : dy + seen.shape[0], dx : dx + seen.shape[1]]
    return whole


def run(program, folder, line):
    done = subprocess.run([program, *shlex.split(line)], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"dic {line} ended with {done.returncode}: {done.stderr}")


def read_result(path):
    with h5py.File(path / "result.vtkhdf") as file:
        return {name: data[-1].astype(float) for name, data in file["VTKHDF/PointData"].items()}


def statistics(error, sigma):
    """Mean, standard deviation, and root mean square of error over predicted sigma."""
    good = np.isfinite(error) & np.isfinite(sigma) & (sigma > 0)
    if not good.any():
        return np.nan, np.nan, np.nan
    return error[good].mean(), error[good].std(), np.sqrt(np.mean((error[good] / sigma[good]) ** 2))


def judge(measured, truth, bounds, small):
    """Prints the figures of a case and returns a sentence per broken bound."""
    broken = []

    def check(what, value, least, most):
        if not least <= value <= most:
            broken.append(f"{what} is {value:.4g}, not between {least:g} and {most:g}")

    ok = measured["status"] == OK
    judged = ok & truth.expected
    print(f"    {'':8}{'bias':>10}{'sd':>10}{'observed / predicted':>24}")
    for name in LENGTHS + STRAINS:
        scale = 1e6 if name in STRAINS else 1e3
        error = np.where(judged, measured[name] - getattr(truth, name), np.nan)
        bias, sd, ratio = statistics(error, measured["sigma_" + name])
        print(f"    {name:8}{bias * scale:10.2f}{sd * scale:10.2f}{ratio:24.3f}")
        length, slack = (2, 1.6) if small else (1, 1)
        bias_bound = slack * (STRAIN_BIAS if name in STRAINS else length * bounds["bias"].get(name, np.inf))
        sd_bound = slack * bounds["strain sd"] if name in STRAINS else length * bounds["sd"].get(name, np.inf)
        check(f"bias of {name}", bias * scale, -bias_bound, bias_bound)
        check(f"sd of {name}", sd * scale, 0, sd_bound)
        check(f"observed / predicted sigma of {name}", ratio, *(RATIO_SMALL if small else RATIO))
    trace = np.where(judged, measured["exx"] + measured["eyy"] - truth.exx - truth.eyy, np.nan)
    check("bias of the trace of the strain", np.nanmean(trace) * 1e6, -2 * slack * STRAIN_BIAS, 2 * slack * STRAIN_BIAS)
    found = np.count_nonzero(judged) / max(1, np.count_nonzero(truth.expected))
    wrong = ok & truth.hidden
    for name in LENGTHS:
        error = np.abs(measured[name] - getattr(truth, name))
        wrong |= ok & (error > GROSS_MM) & (error > 5 * measured["sigma_" + name])
        wrong |= ok & ~(measured["sigma_" + name] > 0)  # no measurement is exact
    print(f"    found {100 * found:.2f} % of {np.count_nonzero(truth.expected)}, wrong {np.count_nonzero(wrong)} of {np.count_nonzero(ok)} ok")
    check("share of points found", found, bounds["found"], 1)
    check("number of wrong points", np.count_nonzero(wrong), 0, 0)
    return broken


def measure(program, folder, name, arguments):
    synth, bounds = CASES[name]
    synth += f" {SMALL}" if arguments.small else ""
    folder.mkdir()
    print(f"{name}: dic synth --stereo {synth} --seed {arguments.seed}")
    run(program, folder, f"synth -o images --stereo {synth} --seed {arguments.seed} --truth-step {STEP}")
    run(program, folder, "stereo --left images/left --right images/right --calibration images/stereo.json "
        f"--subset {SUBSET} --step {STEP} -o out --quiet {arguments.options}")
    measured = read_result(folder / "out")
    broken = judge(measured, Truth(folder / "images/truth.csv", 1, measured["status"].shape), bounds, arguments.small)
    for sentence in broken:
        print(f"    BROKEN {sentence}")
    return len(broken)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda text: Path(text).resolve())
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=list(CASES), metavar="CASE")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--options", default="")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        broken = sum(measure(arguments.program, folder / f"case_{k}", name, arguments) for k, name in enumerate(arguments.only))
    print(f"{broken} bounds do not hold.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
