"""Makes the pictures of the README from data/plate_with_hole: python docs/pictures/readme.py (needs dic, matplotlib, Pillow)."""

import io
import pathlib

import dic
import matplotlib
import numpy as np
from PIL import Image

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

HERE = pathlib.Path(__file__).parent
DATA = HERE.parents[1] / "data" / "plate_with_hole"
SECTION = 24  # mm^2
GAUGE = [160, 30, 160, 370]  # x1, y1, x2, y2 in px
COLOURS = {"cmap": "viridis", "vmin": 0, "vmax": 2.4, "alpha": 0.8, "shading": "nearest"}

plt.rcParams.update({"font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold"})


def draw_field(axes, image, frame):
    """Draws eyy in percent over an image, each node where it is in that image."""
    axes.imshow(image, cmap="gray", vmin=0, vmax=255)
    percent = (100 * frame.eyy).where(frame.status == 0)
    mesh = axes.pcolormesh(frame.x, frame.y, percent, **COLOURS)
    axes.set_axis_off()
    return mesh


def figure(images, result, history):
    drawing, (left, middle, right) = plt.subplots(1, 3, figsize=(9.6, 3.9), width_ratios=(1, 1.24, 1.25), layout="constrained")
    left.imshow(images[0], cmap="gray", vmin=0, vmax=255)
    left.set_title("speckled plate")
    left.set_axis_off()
    mesh = draw_field(middle, images[-1], result.isel(frame=-1))
    middle.plot(GAUGE[0::2], GAUGE[1::2], "-", color="white", marker="o", markersize=4, linewidth=1.5)
    middle.set_title("strain along y, %")
    drawing.colorbar(mesh, ax=middle, shrink=0.9)
    strain = 100 * history.strain.isel(extensometer=0).values
    sigma = 100 * history.sigma_strain.isel(extensometer=0).values
    right.errorbar(np.append(0, strain), np.append(0, history.stress.values), xerr=3 * np.append(0, sigma), fmt="o-", capsize=2)
    right.set(title="stress and strain", xlabel="strain of the extensometer, %", ylabel="stress, MPa")
    right.grid(alpha=0.3)
    drawing.savefig(HERE / "readme.png", dpi=110)


def animation(images, result):
    pictures = []
    for k in range(result.sizes["frame"]):
        drawing, axes = plt.subplots(figsize=(3.2, 3.6), layout="constrained")
        mesh = draw_field(axes, images[k + 1], result.isel(frame=k))
        axes.set_title(f"strain along y, %: frame {k + 1}")
        drawing.colorbar(mesh, ax=axes, shrink=0.9)
        stored = io.BytesIO()
        drawing.savefig(stored, dpi=80)
        plt.close(drawing)
        pictures.append(Image.open(stored).convert("P", palette=Image.Palette.ADAPTIVE, colors=128))
    pictures[0].save(HERE / "readme.gif", save_all=True, append_images=pictures[1:], duration=[400] * (len(pictures) - 1) + [1200], loop=0)


def main():
    images = [np.asarray(Image.open(path)) for path in sorted(DATA.glob("*.png"))]
    result = dic.track(str(DATA), subset=21, step=4, strain_window=7)
    probes = dic.probe(result, extensometer=GAUGE, loads=str(DATA / "loads.csv"), section=SECTION)
    figure(images, result, probes.extensometers)
    animation(images, result)


main()
