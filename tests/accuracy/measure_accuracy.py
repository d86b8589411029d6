"""Measures the accuracy of `dic track` and prints the tables of docs/accuracy.md.

    measure_accuracy.py PROGRAM [--only SECTION ...] [--keep FOLDER]

PROGRAM is the built `dic`. Synthetic images are made by `dic synth` in a temporary folder (--keep: in FOLDER,
with all results and images). Real images are read from the folder that the environment variable
DIC_REAL_DATA names; without it their sections are skipped, and say so.
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

BORDER = 40  # px: a point is interior when it is at least this far from every border
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
        """ "ok 48358, out_of_image 22": the statuses that occur."""
        counts = self.run["frames"][frame]["counts"]
        return ", ".join(f"{name} {n}" for name, n in counts.items() if n)


class Session:
    """Runs the program in one working folder and remembers what was typed."""

    def __init__(self, program, folder):
        self.program, self.folder, self.number = program, folder, 0

    def run(self, *arguments, shown=True):
        arguments = [str(a) for a in arguments]
        if shown:
            typed = shlex.join(arguments)
            if "DIC_REAL_DATA" in os.environ:
                typed = typed.replace(os.environ["DIC_REAL_DATA"], "$DIC_REAL_DATA")
            print(f"    dic {typed}")
        done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"dic {shlex.join(arguments)} ended with {done.returncode}: {done.stderr}")

    def synth(self, name, **options):
        if not (self.folder / name).exists():
            self.run("synth", "-o", name, *flags(options))
        return name

    def track(self, *frames, shown=True, **options):
        self.number += 1
        output = f"result_{self.number:02}"
        options.setdefault("no_pictures", True)
        self.run("track", *frames, "-o", output, *flags(options), shown=shown)
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


# ---- synthetic images ----


def translation(session):
    """Bias of translations by 0..1 px: 1024x1024, 8 bit, grey range 20..240, no noise"""
    rows = []
    for sigma in (1.7, 1.0):
        frames = session.synth(f"shift_{sigma}", width=1024, height=1024, sigma=sigma, frames=21, u=1)
        for interpolation in ("cubic", "quintic"):
            result = session.track(frames, interpolation=interpolation)
            errors = [result.u[i][result.ok[i] & result.interior] - (i + 1) / 20 for i in range(20)]
            lost = sum(int(np.sum(~ok & result.interior)) for ok in result.ok)
            biases = [abs(e.mean()) for e in errors]
            spreads = [e.std() for e in errors]
            at = (np.argmax(biases) + 1) / 20
            rows.append([f"{sigma}", interpolation, f"{max(biases) * 1e4:.2f}e-4", f"{at:.2f}",
                         f"{max(spreads) * 1e4:.1f}e-4", f"{lost}"])
    table(["blob sigma, px", "spline", "max abs(bias), px", "at shift", "max sd, px", "interior points lost"], rows)


def border(session):
    """Points whose subset the image's border cuts: translations by 0.25 and 0.5 px, no noise"""
    frames = session.synth("shift_1.7", width=1024, height=1024, sigma=1.7, frames=21, u=1)
    rows = []
    for interpolation in ("cubic", "quintic"):
        result = session.track(frames, interpolation=interpolation)
        distance = np.minimum(np.minimum(result.x, 1023 - result.x), np.minimum(result.y, 1023 - result.y))
        for frame in (4, 9):
            row = [interpolation, f"{(frame + 1) / 20:.2f}"]
            for nearest, farthest in ((0, 4), (5, 9), (10, 14), (BORDER, 1023)):
                here = result.ok[frame] & (distance >= nearest) & (distance <= farthest)
                error = result.u[frame][here] - (frame + 1) / 20
                row.append(f"{error.mean():+.4f}, {error.std():.4f}")
            rows.append(row)
    table(["spline", "shift", "0-4 px from the border", "5-9 px", "10-14 px", "interior"], rows)
    print("Figures: mean and standard deviation of the error of u, px.\n")


def noise(session):
    """Predicted and observed scatter: noise of 2 grey levels in both frames, translation (0.3, 0.2) px, 4 draws"""
    # Points of one image overlap: several images on a coarser grid say more than one on a fine grid.
    draws = [session.synth(f"noise_{seed}", width=1024, height=1024, u=0.3, v=0.2, noise=2, seed=seed)
             for seed in (1, 2, 3, 4)]
    rows = []
    for subset in (15, 21, 33, 51):
        for order in (0, 1, 2):
            errors, sigmas, noises, lost = [], [], [], 0
            for frames in draws:
                result = session.track(frames, subset=subset, order=order, step=10, shown=not rows and not errors)
                good = result.ok[0] & result.interior
                errors.append(np.stack([result.u[0][good] - 0.3, result.v[0][good] - 0.2]))
                sigmas.append(np.stack([result.sigma_u[0][good], result.sigma_v[0][good]]))
                noises.append(result.run["frames"][0]["noise"])
                lost += int(np.sum(result.interior & ~good))
            error, sigma = np.hstack(errors), np.hstack(sigmas)
            rows.append([f"{subset}", f"{order}", f"{rms(error[0]):.5f}", f"{rms(sigma[0]):.5f}",
                         f"{rms(error[0] / sigma[0]):.3f}", f"{rms(error[1] / sigma[1]):.3f}",
                         f"{np.mean(noises):.3f}", f"{lost}"])
    print("    (and so on for every draw, subset and order)")
    table(["subset", "order", "RMSE u, px", "RMS sigma_u, px", "observed / predicted u", "v", "estimated noise",
           "interior points lost"], rows)


HARD = {
    "contrast of 45 grey levels": dict(u=0.3, v=0.2, grey_min=100, grey_max=145),
    "contrast of 30 grey levels": dict(u=0.3, v=0.2, grey_min=100, grey_max=130),
    "blobs of 3.5 px": dict(u=0.3, v=0.2, sigma=3.5),
    "printed dots": dict(u=2.3, v=0.2, texture="dots", sigma=1.5, size_spread=1.5),
    "stretch of 50 %": dict(motion="affine", ux=0.5, vy=-0.15),
    "stretch of 80 %": dict(motion="affine", ux=0.8, vy=-0.2),
    "compression by 40 %": dict(motion="affine", ux=-0.4, vy=0.12),
    "shot noise, light 0.15 to 1": dict(u=0.3, v=0.2, noise=0, full_well=5000, light_min=0.15),
    "noise in the current image only": dict(u=0.3, v=0.2, reference_noise=0),
    "defocus of 1 px": dict(u=0.3, v=0.2, blur=1),
    "defocus of 2 px": dict(u=0.3, v=0.2, blur=2),
    "defocus of 3 px": dict(u=0.3, v=0.2, blur=3),
    "glare that saturates 5 %": dict(u=2.3, v=0.2, glare=0.05),
    "kinks: -3.2 px within 100 px": dict(motion="ramp", amplitude=-3.2, length=100),
    "kinks: -3.2 px within 50 px": dict(motion="ramp", amplitude=-3.2, length=50),
    "whole pixels, no noise": dict(u=2, v=1, noise=0),
}


def scatter(session):
    """Predicted and observed scatter on hard images: 1024x1024, noise 2, subset 33, all measurable points"""
    rows = []
    for number, (what, options) in enumerate(HARD.items()):
        frames = session.synth(f"hard_{number:02}", width=1024, height=1024, seed=90210, **(dict(noise=2) | options))
        result = session.track(frames, shown=not rows)
        with h5py.File(session.folder / frames / "truth.h5") as truth:
            ny, nx = result.ok[0].shape
            u, v, there = (truth[name][1][:ny, :nx] for name in ("u", "v", "measurable"))
        good = result.ok[0] & (there != 0)
        error = np.stack([result.u[0][good] - u[good], result.v[0][good] - v[good]])
        sigma = np.stack([result.sigma_u[0][good], result.sigma_v[0][good]])
        beyond = np.sum(np.any(np.abs(error) > 5 * sigma, axis=0))
        rows.append([what, f"{rms(error[0]):.4f}", f"{rms(sigma[0]):.4f}", f"{rms(error[0] / sigma[0]):.2f}",
                     f"{rms(error[1] / sigma[1]):.2f}", f"{beyond}", f"{np.sum(np.any(np.abs(error) > 0.5, axis=0))}",
                     f"{np.sum(~result.ok[0] & (there == 1))} of {np.sum(there == 1)}"])
    table(["images", "RMSE of u, px", "RMS sigma_u, px", "observed / predicted, u", "v", "beyond 5 sigma",
           "beyond 0.5 px", "lost"], rows)


def affine(session):
    """2 % stretch along x and a rotation by 1 degree, no noise"""
    angle = math.radians(1)
    gradient = {"ux": 1.02 * math.cos(angle) - 1, "uy": -math.sin(angle), "vx": 1.02 * math.sin(angle),
                "vy": math.cos(angle) - 1}
    frames = session.synth("affine", width=1024, height=1024, motion="affine", **gradient)
    result = session.track(frames)
    # A point at the border may leave the current image; its window of points then has fewer of them.
    good = result.ok[0] & result.interior
    dx, dy = result.x - 511.5, result.y - 511.5
    error_u = (result.u[0] - gradient["ux"] * dx - gradient["uy"] * dy)[good]
    error_v = (result.v[0] - gradient["vx"] * dx - gradient["vy"] * dy)[good]
    table(["", "value"], [
        ["interior points, of them ok", f"{int(result.interior.sum())}, {int(good.sum())}"],
        ["sd u, v, px", f"{error_u.std():.5f}, {error_v.std():.5f}"],
        ["mean error u, v, px", f"{error_u.mean():+.5f}, {error_v.mean():+.5f}"],
        *[[f"Green-Lagrange {name}: mean, sd (truth {truth})",
           f"{np.nanmean(values[0][good]):+.6f}, {np.nanstd(values[0][good]):.6f}"]
          for name, values, truth in (("exx", result.exx, 0.0202), ("eyy", result.eyy, 0), ("exy", result.exy, 0))]])


def rotations(session):
    """Rotations in one step: 512x512, no noise, points within 200 px of the centre"""
    rows = []
    for angle in (5, 10, 20, 25, 30):
        result = session.track(session.synth(f"rotation_{angle}", motion="rotation", angle=angle))
        dx, dy = result.x - 255.5, result.y - 255.5
        inside = np.hypot(dx, dy) <= 200
        c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        error = np.stack([result.u[0] - (c * dx - s * dy - dx), result.v[0] - (s * dx + c * dy - dy)])
        good = result.ok[0] & inside
        rows.append([f"{angle}", f"{good.sum()} of {inside.sum()}",
                     f"{rms(error[:, good]):.4f}" if good.any() else "-", result.counts(0)])
    table(["rotation, degrees", "points ok", "RMSE of u and v, px", "all points"], rows)


def star(session):
    """Spatial resolution: v = 0.5 cos(2 pi y / p) px, period p from 200 px (left) to 10 px (right), noise 2"""
    frames = session.synth("star", width=2048, height=501, motion="star", noise=2)
    rows = []
    for subset, order in ((15, 1), (33, 1), (33, 2), (51, 2)):
        result = session.track(frames, subset=subset, order=order, step=2, roi_rect="0,210,2048,81")
        row = [f"{subset}", f"{order}"]
        for period in (150, 100, 60, 40, 30, 20):
            # The period changes by 5 % over what is averaged.
            pitch = 2047 / 190
            near = (np.abs(result.x - (200 - period) * pitch) <= 0.05 * period * pitch) & (result.y == 250)
            row.append(f"{np.nanmean(result.v[0][near]) / 0.5:.3f}")
        rows.append(row)
    table(["subset", "order"] + [f"p = {p} px" for p in (150, 100, 60, 40, 30, 20)], rows)
    print("Figures: measured amplitude on the middle line, as a share of the true one.\n")


# ---- real images ----


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
        # A rigid rotation about an unknown centre, fitted to what was measured.
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
    """How far u, v lie from the mean of both neighbours in x (0 for any linear field): median, 99th percentile."""
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


SYNTHETIC = {"translation": translation, "border": border, "noise": noise, "scatter": scatter, "affine": affine, "rotations": rotations, "star": star}
REAL = {"challenge14": challenge14, "challenge5": challenge5, "patterns": patterns, "rotation": rotation,
        "utn": large_strain, "sequences": sequences}


def measure(session, sections):
    for name in sections:
        function = (SYNTHETIC | REAL)[name]
        print(f"## {function.__doc__}\n", flush=True)
        if name in REAL and "DIC_REAL_DATA" not in os.environ:
            print("Skipped: DIC_REAL_DATA is not set.\n")
            continue
        function(session)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--only", nargs="+", choices=[*SYNTHETIC, *REAL], default=[*SYNTHETIC, *REAL])
    parser.add_argument("--keep", type=Path, help="folder for images and results, instead of a temporary one")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{version}, {date.today()}, {platform.machine()}, {os.cpu_count()} CPUs\n")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        measure(Session(program, folder.resolve()), arguments.only)


if __name__ == "__main__":
    main()
