"""A plate with a hole: region of interest, strain along a line, a figure and a table for a report."""

import matplotlib.pyplot as plt
import numpy as np

import dic

# A plate under tension whose hole shows a black background.
made = dic.synth(width=320, height=240, frames=4, motion="affine", ux=0.004, vy=-0.0012, noise=1, seed=2)
y, x = np.mgrid[0:240, 0:320]
hole = (x - 160) ** 2 + (y - 120) ** 2 < 36**2
images = np.where(hole, 5, made.image.values).astype(np.uint8)

# Inside where not 0; a polygon does the same: roi_hole=[(x, y), ...].
ds = dic.track(images, roi=~hole, subset=21, step=5, scale=0.05, fps=2, noise=1)
last = ds.isel(frame=-1)

line = last.exx.sel(y=4, method="nearest")  # mm
print("strain along x beside the hole:", np.round(float(line.mean()), 5))
length = ds.u.sel(x=14, y=10, method="nearest") - ds.u.sel(x=2, y=10, method="nearest")
print("extensometer of 12 mm, elongation by time:", dict(zip(ds.time.values, np.round(length.values, 4))))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
last.exx.where(last.inside).plot(ax=left, yincrease=False, robust=True)
left.set_aspect("equal")
left.set_title("exx, last frame")
ds.exx.mean(("y", "x")).plot(ax=right, x="time", marker="o")
right.set_title("mean of exx")
figure.savefig("open_hole.png", dpi=150)

table = ds[["u", "v", "exx", "eyy", "exy"]].mean(("y", "x")).to_dataframe()
table.to_csv("open_hole.csv")
print(table)
print({name: ds.attrs[name] for name in ("version", "device", "subset", "step", "strain_window", "strain_measure")})
