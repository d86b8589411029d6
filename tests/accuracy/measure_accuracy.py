"""Measures `dic track` on real images and prints the tables of docs/accuracy-tables.md that `dic validate` does not write.

    DIC_REAL_DATA=FOLDER measure_accuracy.py PROGRAM [--only SECTION ...] [--keep FOLDER]

PROGRAM is the built `dic`. Results are written to a temporary folder (--keep: to FOLDER).
"""

import argparse
import json
import math
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import h5py
import numpy as np

BORDER = 40  # px: interior points are at least this far from every border
OK, OUTLIER = 0, 7


class Result:
    """The arrays of a result.vtkhdf, [frame, y, x]."""

    def __init__(self, folder):
        with h5py.File(folder / "result.vtkhdf") as file:
            for name, data in file["VTKHDF/PointData"].items():
                setattr(self, name, data[:])
            group = file["dic"]
            self.x, self.y = np.meshgrid(group["x"][:], group["y"][:])
            width, height = group.attrs["image_width"], group.attrs["image_height"]
        self.run = json.loads((folder / "run.json").read_text())
        self.interior = ((self.x >= BORDER) & (self.x <= width - 1 - BORDER)
                         & (self.y >= BORDER) & (self.y <= height - 1 - BORDER))
        self.ok = self.status == OK

    def counts(self, frame):
        """The statuses that occur: "ok 48358, out_of_image 22"."""
        counts = self.run["frames"][frame]["counts"]
        return ", ".join(f"{name} {n}" for name, n in counts.items() if n)


class Session:
    """Runs the program in one working folder and records the command lines."""

    def __init__(self, program, folder):
        self.program, self.folder, self.number = program, folder, 0

    def run(self, *arguments):
        arguments = [str(a) for a in arguments]
        typed = shlex.join(arguments).replace(os.environ["DIC_REAL_DATA"], "$DIC_REAL_DATA")
        print(f"    dic {typed}")
        done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"dic {shlex.join(arguments)} ended with {done.returncode}: {done.stderr}")

    def synth(self, name, **options):
        self.run("synth", "-o", name, *flags(options))
        return name

    def track(self, *frames, **options):
        self.number += 1
        output = f"result_{self.number:02}"
        options.setdefault("no_pictures", True)
        self.run("track", *frames, "-o", output, *flags(options))
        return Result(self.folder / output)


def flags(options):
    out = []
    for name, value in options.items():
        out.append("--" + name.replace("_", "-"))
        if value is not True:
            out.append(str(value))
    return out


def table(header, rows):
    print("\n| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def rms(values):
    return math.sqrt(np.mean(np.square(values)))


def real_data():
    return Path(os.environ["DIC_REAL_DATA"])


def challenge14(session):
    """DIC Challenge 1.0, sample 14: known u(x) of growing frequency, noise of 5 grey levels"""
    folder = real_data() / "challenge14"
    truth = np.genfromtxt(folder / "truth.csv", delimiter=",", comments="#")
    truth = truth[~np.isnan(truth).any(axis=1)]
    rows = []
    for subset, order in ((33, 1), (51, 2)):
        result = session.track(*(folder / f"{name}.tif" for name in ("reference", "L1", "L3", "L5")), subset=subset,
                               order=order)
        for frame, name in enumerate(("L1", "L3", "L5")):
            good = result.ok[frame] & result.interior
            expected = np.interp(result.x, truth[:, 0], truth[:, 1 + 2 * frame])
            error = np.where(good, result.u[frame] - expected, np.nan)
            columns = np.nanmean(error[:, (result.interior & good).any(axis=0)], axis=0)
            rows.append([name, f"{subset}", f"{order}", f"{np.sqrt(np.nanmean(error**2)):.5f}",
                         f"{rms(result.v[frame][good]):.5f}", f"{rms(columns):.5f}",
                         f"{rms(error[good] / result.sigma_u[frame][good]):.3f}",
                         f"{int(np.sum(result.interior & ~good))} of {int(result.interior.sum())}"])
    table(["frame", "subset", "order", "RMSE u, px", "RMSE v, px", "RMS of column means of u, px",
           "observed / predicted u", "interior points lost"], rows)


def challenge5(session):
    """DIC Challenge, sample 5: 0 and 0.10 px with a change of lighting"""
    folder = real_data() / "challenge5"
    result = session.track(*(folder / f"{name}.tif" for name in ("reference", "shift_0.00", "shift_0.10")))
    rows = []
    for frame, shift in enumerate((0.0, 0.1)):
        good = result.ok[frame] & result.interior
        u, v = result.u[frame][good], result.v[frame][good]
        rows.append([f"{shift:.2f}", f"{u.mean():+.5f}", f"{v.mean():+.5f}", f"{u.std():.5f}", f"{v.std():.5f}",
                     f"{rms(result.sigma_u[frame][good]):.5f}", f"{result.zncc[frame][good].mean():.4f}",
                     result.counts(frame)])
    table(["u = v = , px", "mean u", "mean v", "sd u", "sd v", "RMS sigma_u", "mean zncc", "statuses"], rows)


def patterns(session):
    """Two patterns, each with a translation, a tension and a shear"""
    folder = real_data() / "patterns"
    fields = {"Translation": lambda x, y: (7.085 + 0 * x, 7.085 + 0 * x),
              "Tension": lambda x, y: (0.02 * x, -0.01 * (y - 250)),
              "Shear": lambda x, y: (0.01 * (y - 250), 0.01 * (x - 250))}
    rows = []
    for pattern in ("Pattern_1", "Pattern_2"):
        result = session.track(*(folder / f"{name}.bmp" for name in (pattern, *(f"{pattern}_{f}" for f in fields))))
        for frame, (name, field) in enumerate(fields.items()):
            good = result.ok[frame] & result.interior
            u, v = field(result.x, result.y)
            strain = [f"{np.nanmedian(getattr(result, e)[frame][good]):+.5f}" for e in ("exx", "eyy", "exy")]
            rows.append([f"{pattern}_{name}", f"{rms((result.u[frame] - u)[good]):.4f}",
                         f"{rms((result.v[frame] - v)[good]):.4f}", *strain,
                         f"{int(good.sum())} of {int(result.interior.sum())}", result.counts(frame)])
    table(["pictures", "RMSE u, px", "RMSE v, px", "median exx", "eyy", "exy", "interior ok", "all points"], rows)


def rotation(session):
    """A rotation by 170 degrees"""
    folder = real_data() / "rotation"
    result = session.track(folder / "rotation_000.tif", folder / "rotation_170.tif")
    kept = result.ok[0] | (result.status[0] == OUTLIER)
    row = [result.counts(0)]
    if kept.any():
        # A rigid rotation about an unknown centre, fitted to the measurement.
        angle = math.radians(170)
        gradient = np.array([[math.cos(angle) - 1, -math.sin(angle)], [math.sin(angle), math.cos(angle) - 1]])
        turned = np.einsum("ij,jyx->iyx", gradient, np.stack([result.x, result.y]))
        residual = np.stack([result.u[0], result.v[0]]) - turned
        residual -= np.nanmedian(residual[:, kept], axis=1)[:, None, None]
        row.append(f"{np.median(np.hypot(*residual)[kept]):.3f}")
    else:
        row.append("no point kept values")
    table(["statuses", "median distance from a rotation by 170 degrees (fitted translation), px"], [row])


def large_strain(session):
    """utn: 30 and 40 % strain in one step, and as a sequence with the reference moving along"""
    # The true field, recovered from the images: u = e x, v = -0.3 e (y - 250).
    folder = real_data() / "utn"
    rows = []
    for strategy in ("first", "previous"):
        result = session.track(*(folder / f"utn_{strain}.bmp" for strain in ("00", "30", "40")),
                               reference_strategy=strategy)
        for frame, strain in enumerate((0.3, 0.4)):
            ok = result.ok[frame]
            error = np.hypot(result.u[frame] - strain * result.x, result.v[frame] + 0.3 * strain * (result.y - 250))[ok]
            stretch = np.sqrt(1 + 2 * np.nanmedian(result.exx[frame][ok])) - 1
            rows.append([f"{100 * strain:.0f}", strategy, result.counts(frame), f"{np.median(error):.4f}",
                         f"{100 * np.mean(error > 1):.2f}", f"{100 * stretch:.2f}"])
    table(["strain, %", "strategy", "statuses", "median error of ok points, px", "of them off by more than 1 px, %",
           "median stretch along the bar, %"], rows)


def smoothness(result, frame):
    """Distance of u, v from the mean of both neighbours in x (0 for any linear field): median, 99th percentile."""
    u, v = (np.where(result.ok[frame], a[frame], np.nan) for a in (result.u, result.v))
    jumps = np.hypot(*(a[:, 1:-1] - 0.5 * (a[:, :-2] + a[:, 2:]) for a in (u, v)))
    return f"{np.nanmedian(jumps):.3f}", f"{np.nanpercentile(jumps, 99):.3f}"


def sequences(session):
    """Sequences without exact truth: what was measured where, and how smooth it is"""
    data = real_data()
    rows = []
    for name, arguments in (("oht", [data / "oht"]), ("oht_sequence", [data / "oht_sequence"]),
                            ("frac16", sorted((data / "frac16").glob("*.png")))):
        result = session.track(*arguments)
        for frame in sorted({0, len(result.ok) // 2, len(result.ok) - 1}):
            rows.append([name, result.run["frames"][frame]["file"], result.counts(frame),
                         *smoothness(result, frame), f"{result.run['frames'][frame]['noise']:.2f}",
                         f"{result.run['frames'][frame]['mean_zncc']:.4f}"])
    table(["set", "frame", "statuses", "median abs. jump, px", "99th percentile, px", "noise, grey levels", "mean zncc"],
          rows)


def plane_of(tilt_x, tilt_y, focal, centre, distance):
    """Homography from mm in a tilted plane to ideal pixels."""
    a, b = math.radians(tilt_x), math.radians(tilt_y)
    about_x = np.array([[1, 0, 0], [0, math.cos(a), -math.sin(a)], [0, math.sin(a), math.cos(a)]])
    about_y = np.array([[math.cos(b), 0, math.sin(b)], [0, 1, 0], [-math.sin(b), 0, math.cos(b)]])
    turn = about_y @ about_x
    matrix = np.array([[focal, 0, centre[0]], [0, focal, centre[1]], [0, 0, 1]])
    return {"px_from_mm": (matrix @ np.column_stack([turn[:, 0], turn[:, 1], [0, 0, distance]])).tolist()}


def camera(session):
    """False strain by lens distortion and perspective, with and without --camera"""
    lens = {"fx": 2000, "fy": 2000, "cx": 515, "cy": 507, "k1": -0.25, "k2": 0.12, "p1": 0.0008, "p2": -0.0005}
    cameras = {"lens": {"lens": lens}, "tilt": {"plane": plane_of(0, 10, 2000, (511.5, 511.5), 200)},
               "both": {"lens": lens, "plane": plane_of(6, 8, 2000, (515, 507), 200)}}
    motions = {"shift": ({"u": 20, "v": -12}, (0, 0)), "rotation": ({"motion": "rotation", "angle": 5}, (0, 0)),
               "stretch": ({"motion": "affine", "ux": 0.01, "vy": -0.003},
                           (0.01 + 0.01**2 / 2, -0.003 + 0.003**2 / 2))}
    rows = []
    for name, parts in cameras.items():
        file = session.folder / f"{name}.json"
        file.write_text(json.dumps({"dic_camera": 1, "image_width": 1024, "image_height": 1024} | parts))
        for motion, (options, (exx, eyy)) in motions.items():
            frames = session.synth(f"{name}_{motion}", width=1024, height=1024, noise=2, seed=90210, camera=file.name,
                                   **options)
            row = [name, motion]
            for corrected in (False, True):
                result = session.track(frames, **({"camera": file.name} if corrected else {}))
                inner = np.s_[0, 8:-8, 8:-8]
                found = np.stack([result.exx[inner] - exx, result.eyy[inner] - eyy, result.exy[inner]])
                error = found[:, result.ok[inner]]
                row += [f"{np.abs(error.mean(1)).max():.1e}", f"{np.sqrt((error**2).mean(1)).max():.1e}"]
            with h5py.File(session.folder / frames / "truth.h5") as file_of_truth:
                truth = file_of_truth["U"][1]
            scale = result.run["settings"]["scale"] or 1
            difference = (result.u[0] / scale - truth[:result.u.shape[1], :result.u.shape[2]])[8:-8, 8:-8]
            sigma = result.sigma_u[inner] / scale
            good = result.ok[inner]
            row += [f"{difference[good].mean():.1e}", f"{difference[good].std() / sigma[good].mean():.2f}"]
            rows.append(row)
    table(["camera", "motion", "mean error of strain without", "rms without", "mean with --camera", "rms with",
           "mean error of u with, px", "scatter of u / sigma_u"], rows)


SECTIONS = {"camera": camera, "challenge14": challenge14, "challenge5": challenge5, "patterns": patterns, "rotation": rotation,
            "utn": large_strain, "sequences": sequences}


def measure(session, sections):
    for name in sections:
        function = SECTIONS[name]
        print(f"## {function.__doc__}\n", flush=True)
        function(session)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--only", nargs="+", choices=[*SECTIONS], default=[*SECTIONS])
    parser.add_argument("--keep", type=Path, help="folder for results, instead of a temporary one")
    arguments = parser.parse_args()
    if "DIC_REAL_DATA" not in os.environ:
        sys.exit("Set DIC_REAL_DATA to the folder of the real images.")
    program = arguments.program.resolve()
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{version}, {date.today()}, {platform.machine()}, {os.cpu_count()} CPUs\n")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        measure(Session(program, folder.resolve()), arguments.only)


if __name__ == "__main__":
    main()
