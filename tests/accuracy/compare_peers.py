"""Runs other open DIC programs on the images that `dic` is measured on, and prints the tables of docs/accuracy-tables.md.

    python -m venv peers && peers/bin/pip install -r tests/accuracy/peers.txt
    DIC_REAL_DATA=FOLDER peers/bin/python tests/accuracy/compare_peers.py PROGRAM
    peers/bin/python tests/accuracy/compare_peers.py PROGRAM --kinds

PROGRAM is the built `dic`. --kinds prints only the table of what prints, cameras and specimens do to images. Every program gets the same subset, step, order and threads; all else are its
defaults, except for VARIANTS. Accuracy is over points at least 40 px from every border, false ok over all points.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

import h5py
import numpy as np
from PIL import Image

BORDER = 40  # px
THREADS = 2
SUBSET = 33


def pixels(path):
    return np.asarray(Image.open(path), dtype=np.float64)


def run_dic(program, frames, rectangle, order, folder, interpolation="cubic"):
    output = folder / "dic"
    subprocess.run([program, "track", *frames, "-o", output, "--force", "--csv", "--no-pictures", "--quiet",
                    "--threads", str(THREADS), "--subset", str(SUBSET), "--order", str(order), "--interpolation",
                    interpolation, "--roi-rect", ",".join(map(str, rectangle))], check=True)
    stages = json.loads((output / "run.json").read_text())["seconds"]
    fields = []
    for frame in frames[1:]:
        rows = np.genfromtxt(output / "csv" / f"{frame.stem}.csv", delimiter=",", names=True, dtype=None,
                             encoding="utf-8")
        rows = rows[rows["status"] == "ok"]
        fields.append(np.stack([rows[name] for name in "xyuv"]))
    return fields, sum(stages[name] for name in ("prepare", "search", "refine"))


def run_pyvale(_, frames, rectangle, order, folder, **options):
    from pyvale import dic

    x, y, width, height = rectangle
    # pyvale keeps whole subsets inside the region; the region of dic holds their centres.
    radius = SUBSET // 2
    mask = np.zeros(pixels(frames[0]).shape, dtype=bool)
    mask[max(0, y - radius):y + height + radius, max(0, x - radius):x + width + radius] = True
    # The seeds are away from the middle, where the cracks and discs are.
    seeds = [x + width // 4, y + height // 4, x + 3 * width // 4, y + 3 * height // 4]
    begin = time.perf_counter()
    dic.calculate_2d(reference=frames[0], deformed=list(frames[1:]), roi_mask=mask,
                     seed=seeds, subset_size=SUBSET, subset_step=5,
                     shape_function=("RIGID", "AFFINE", "QUAD")[order], num_threads=THREADS, print_level=0,
                     output_basepath=folder, output_prefix="pyvale_", **options)
    seconds = time.perf_counter() - begin
    fields = [np.loadtxt(folder / f"pyvale_{frame.stem}.csv", delimiter=",", skiprows=1).T[:4] for frame in frames[1:]]
    return fields, seconds


def run_al_dic(_, frames, rectangle, order, folder, **options):
    import numba
    from al_dic.core.config import dicpara_default
    from al_dic.core.data_structures import GridxyROIRange
    from al_dic.core.pipeline import run_aldic

    numba.set_num_threads(THREADS)
    x, y, width, height = rectangle
    images = [pixels(frame) / 255 for frame in frames]
    masks = [np.ones_like(images[0])] * len(images)
    # winsize counts from edge pixel to edge pixel; the step must be a power of two.
    settings = dicpara_default(winsize=SUBSET - 1, winstepsize=8, reference_mode="accumulative",
                               gridxy_roi_range=GridxyROIRange(gridx=(x, x + width - 1), gridy=(y, y + height - 1)),
                               **options)
    begin = time.perf_counter()
    result = run_aldic(settings, images, masks, compute_strain=False)
    seconds = time.perf_counter() - begin
    nodes = result.dic_mesh.coordinates_fem.T
    return [np.vstack([nodes, frame.U_accum[0::2], frame.U_accum[1::2]]) for frame in result.result_disp], seconds


VARIANTS = {
    "dic, order 1": (run_dic, 1, {}),
    "dic, order 1, quintic": (run_dic, 1, {"interpolation": "quintic"}),
    "dic, order 2": (run_dic, 2, {}),
    "pyvale, order 1": (run_pyvale, 1, {}),
    "pyvale, order 1, no prefilter": (run_pyvale, 1, {"image_filter_kernel": 1}),
    "pyvale, order 2": (run_pyvale, 2, {}),
    "al-dic, order 1, local": (run_al_dic, 1, {"use_global_step": False}),
    "al-dic, order 1, local, tol 1e-4": (run_al_dic, 1, {"use_global_step": False, "tol": 1e-4}),
    "al-dic, order 1, ADMM": (run_al_dic, 1, {}),
}


def interior(field, shape):
    x, y = field[:2]
    return field[:, (x >= BORDER) & (y >= BORDER) & (x <= shape[1] - 1 - BORDER) & (y <= shape[0] - 1 - BORDER)
                 & np.isfinite(field).all(axis=0)]


def whole(path):
    height, width = pixels(path).shape
    return (0, 0, width, height)


def challenge(program, run, order, options, folder):
    """RMSE of u over interior points of L1, L3, L5."""
    data = Path(os.environ["DIC_REAL_DATA"]) / "challenge14"
    truth = np.genfromtxt(data / "truth.csv", delimiter=",", comments="#")
    truth = truth[~np.isnan(truth).any(axis=1)]
    frames = [data / f"{name}.tif" for name in ("reference", "L1", "L3", "L5")]
    fields, _ = run(program, frames, whole(frames[0]), order, folder, **options)
    out = []
    for k, field in enumerate(fields):
        field = interior(field, pixels(frames[0]).shape)
        error = field[2] - np.interp(field[0], truth[:, 0], truth[:, 1 + 2 * k])
        out.append(f"{np.sqrt(np.mean(error**2)):.4f}")
    return " / ".join(out), str(field.shape[1])


def translation(program, run, order, options, folder, sigma):
    """Largest bias at shifts of 0.25, 0.5 and 0.75 px."""
    frames = sorted((folder / f"shift_{sigma}").glob("*.tif"))[:4]
    fields, _ = run(program, frames, whole(frames[0]), order, folder, **options)
    biases = [interior(field, (1024, 1024))[2].mean() - 0.25 * (k + 1) for k, field in enumerate(fields)]
    return f"{max(map(abs, biases)) * 1e4:.1f}e-4"


def speed(program, run, order, options, folder):
    """Points per second, best of three; points at least 40 px from the borders, noise 2."""
    frames = sorted((folder / "noise").glob("*.tif"))
    best = 0
    for _ in range(3):
        fields, seconds = run(program, frames, (40, 40, 941, 941), order, folder, **options)
        best = max(best, fields[0].shape[1] / seconds)
    return f"{best:,.0f}"


STAR_AMPLITUDE = 0.5  # px
KEPT = 0.9            # share of the amplitude at the spatial resolution
LONG = 150            # px: waves that no subset flattens


def star(program, run, order, options, folder):
    """The star of the DIC Challenge 2.0, which pyvale contains: spatial resolution (the period that loses 10 %, px), noise
    (scatter of u, which is 0 there, px) and their product, the metrological efficiency indicator, px^2."""
    from pyvale import data

    frames = [Path(data.dic_chal_2d_ref()), Path(data.dic_chal_2d_def())]
    (field,), _ = run(program, frames, whole(frames[0]), order, folder, **options)
    x, y, u, v = interior(field, pixels(frames[0]).shape)
    period = 10 + 290 * x / 4000
    wave = STAR_AMPLITUDE * np.cos(2 * np.pi * (y - 250) / period)
    resolution = period_of_loss(period, wave, v)
    noise = u[period > LONG].std()
    return f"{resolution:.0f}", f"{noise:.4f}", f"{resolution * noise:.2f}"


def period_of_loss(period, truth, measured):
    """As `dic validate` finds it: shares of neighbouring periods, from long to short, interpolated."""
    above = None
    for middle in 285 * 0.96 ** np.arange(100):
        near = abs(period - middle) < 0.05 * middle
        share = (truth[near] * measured[near]).sum() / (truth[near] ** 2).sum()
        if share < KEPT:
            return above[0] + (above[1] - KEPT) / (above[1] - share) * (middle - above[0]) if above else np.inf
        above = (middle, share)


# Difficult images, 512x512, noise 2, seed 90210: those of `dic validate --quick`.
HARD = {
    "crack opens by 3 px": "--motion crack --amplitude 1.5",
    "a disc turns by 8 degrees": "--motion bodies --body 250,250,102,0,0,8",
    "a disc passes in front": "--motion bodies --body 250,250,75,60,20,0",
    "rows of dots": "--u 2.3 --v 1.2 --texture lattice --sigma 2",
    "rotation by 20 degrees": "--motion rotation --angle 20",
    "rotation by 90 degrees": "--motion rotation --angle 90",
    "unrelated images": "--sigma 3.5 --unrelated",
}
NOISY = {
    "noise 2": "--u 0.3 --v 0.2",
    "noise 8": "--u 0.3 --v 0.2 --noise 8",
    "weak contrast (30 grey levels)": "--u 0.3 --v 0.2 --grey-min 100 --grey-max 130",
    "defocus 2 px": "--u 0.3 --v 0.2 --blur 2",
    "glare saturates 5 %": "--u 2.3 --v 0.2 --glare 0.05",
    "fine speckle (blobs 1.0 px)": "--u 0.3 --v 0.2 --sigma 1.0",
}


# What prints, cameras and specimens do to images; 512x512, seed 90210, noise 2 unless given.
KINDS = {
    "texture repeats every 64 px": "--u 0.3 --v -0.4 --repeat 64",
    "the same, moved by 3.3 px": "--u 3.3 --v -0.4 --repeat 64",
    "the same, at rest": "--repeat 64",
    "texture repeats every 160 px": "--u 0.3 --v -0.4 --repeat 160",
    "0.03 % defective pixels": "--u 0.4 --v 0.2 --defective 0.0003",
    "0.3 %": "--u 0.4 --v 0.2 --defective 0.003",
    "1 %": "--u 0.4 --v 0.2 --defective 0.01",
    "rows and columns add 3 grey levels": "--u 0.4 --v 0.2 --line-pattern 3",
    "add 2 to a contrast of 40": "--u 0.4 --v 0.2 --grey-min 100 --grey-max 140 --line-pattern 2",
    "noise after a 3x3 filter": "--u 0.4 --v 0.2 --noise 2.25 --correlated-noise",
    "rows displaced by 0.3 px": "--u 0.4 --v 0.2 --noise 0 --line-jitter 0.3",
    "median filter of 3x3 px": "--u 0.4 --v 0.2 --median 3",
    "dots, fill factor 0.6": "--u 0.4 --v 0.2 --texture dots --fill-factor 0.6",
    "two values": "--u 0.4 --v 0.2 --noise 0 --two-valued",
    "12 bits in 16, glare": "--u 2.3 --v 0.2 --bits 12 --glare 0.05",
    "16 bits, offset 60000": "--u 0.4 --v 0.2 --noise 0.125 --bits 16 --pedestal 60000 --grey-min 1.25 --grey-max 15",
    "wave of 250 px": "--motion chirp --amplitude 1 --period-min 250 --period-max 250",
    "hole, strain of 2 %": "--motion hole --radius 60 --vy 0.02",
}


def judged(program, run, order, options, folder, name):
    """For one case: points with a value, false ones (hidden, or off by more than 0.5 px), RMSE of u of the others."""
    case = folder / name.replace(" ", "_")
    frames = sorted(case.glob("*.tif"))
    fields, _ = run(program, frames, whole(frames[0]), order, folder, **options)
    x, y, u, v = fields[0][:, np.isfinite(fields[0]).all(axis=0)]
    with h5py.File(case / "truth.h5") as truth:
        at = (1, y.round().astype(int), x.round().astype(int))
        error_u, error_v = u - truth["u"][:][at], v - truth["v"][:][at]
        hidden = truth["measurable"][:][at] == 0
    false = hidden | ~(np.maximum(abs(error_u), abs(error_v)) <= 0.5)
    inside = ~false & (x >= BORDER) & (y >= BORDER) & (x <= 511 - BORDER) & (y <= 511 - BORDER)
    return len(x), int(false.sum()), np.sqrt(np.mean(error_u[inside] ** 2)) if inside.any() else np.nan


def false_ok(*arguments):
    points, false, _ = judged(*arguments)
    return f"{false} of {points} ({100 * false / points:.2f} %)" if points else "0 of 0"


def noisy(*arguments):
    points, false, rmse = judged(*arguments)
    return f"{rmse:.4f}, {false} of {points}"


def synthesize_cases(program, cases, folder):
    for name, flags in cases.items():
        synthesize(program, folder / name.replace(" ", "_"), "--seed", "90210", "--truth-step", "1",
                   *flags.split(), *([] if "--noise" in flags else ["--noise", "2"]))


def print_kinds(program, selected, folder):
    synthesize_cases(program, KINDS, folder)
    print("| images | " + " | ".join(selected) + " |\n|" + "---|" * (1 + len(selected)), flush=True)
    for kind in KINDS:
        with redirect_stdout(sys.stderr):  # the peers print
            row = [guarded(noisy, program, *VARIANTS[name], folder, kind) for name in selected]
        print(f"| {kind} | " + " | ".join(row) + " |", flush=True)


def print_hard_cases(program, selected, folder):
    synthesize_cases(program, HARD | NOISY, folder)
    for cases, cell in ((HARD, false_ok), (NOISY, noisy)):
        print("\n| program | " + " | ".join(cases) + " |\n|" + "---|" * (1 + len(cases)), flush=True)
        for name in selected:
            run, order, options = VARIANTS[name]
            with redirect_stdout(sys.stderr):
                row = [guarded(cell, program, run, order, options, folder, case) for case in cases]
            print(f"| {name} | " + " | ".join(row) + " |", flush=True)


def guarded(cell, *arguments):
    """If a program fails, its cell of the table says so."""
    try:
        return cell(*arguments)
    except Exception as error:  # a peer may throw anything
        print(f"{arguments[-1]}: {error}", file=sys.stderr)
        return "failed"


def synthesize(program, folder, *flags):
    subprocess.run([program, "synth", "-o", folder, *flags], check=True, stdout=sys.stderr)
    for png in folder.glob("*.png"):  # pyvale reads no PNG
        Image.open(png).save(png.with_suffix(".tif"))


def main():
    program = Path(sys.argv[1]).resolve()
    only_kinds = "--kinds" in sys.argv
    selected = [name for name in sys.argv[2:] if name != "--kinds"] or [*VARIANTS]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if only_kinds:
            os.chdir(folder)
            print_kinds(program, selected, folder)
            return
        os.environ["DIC_REAL_DATA"] = str(Path(os.environ["DIC_REAL_DATA"]).resolve())
        os.chdir(folder)  # the peers leave log files
        size = ["--width", "1024", "--height", "1024"]
        for name, flags in (("shift_1.7", ["--sigma", "1.7", "--frames", "5", "--u", "1"]),
                            ("shift_1.0", ["--sigma", "1.0", "--frames", "5", "--u", "1"]),
                            ("noise", ["--u", "0.3", "--v", "0.2", "--noise", "2"])):
            synthesize(program, folder / name, *size, *flags)
        print("| program | challenge14 RMSE of u L1 / L3 / L5, px | points | bias, blobs 1.7, px | bias, blobs 1.0, px "
              "| points/s |\n|---|---|---|---|---|---|", flush=True)
        for name in selected:
            run, order, options = VARIANTS[name]
            with redirect_stdout(sys.stderr):  # the peers print
                rmse, points = challenge(program, run, order, options, folder)
                row = [rmse, points, translation(program, run, order, options, folder, 1.7),
                       translation(program, run, order, options, folder, 1.0),
                       speed(program, run, order, options, folder)]
            print(f"| {name} | " + " | ".join(row) + " |", flush=True)
        print("\n| program | star: 10 % lost at, px | noise, px | product, px^2 |\n|---|---|---|---|", flush=True)
        for name in selected:
            run, order, options = VARIANTS[name]
            with redirect_stdout(sys.stderr):
                row = star(program, run, order, options, folder)
            print(f"| {name} | " + " | ".join(row) + " |", flush=True)
        print_hard_cases(program, selected, folder)


if __name__ == "__main__":
    main()
