"""A plate with a hole: region of interest, strain at the hole, extensometer with loads, a figure, a table, a report."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dic

# A plate under tension whose hole shows a black background. With images of your own, this part is not needed.
made = dic.synth(width=320, height=240, frames=4, motion="affine", ux=0.004, vy=-0.0012, noise=1, seed=2)
y, x = np.mgrid[0:240, 0:320]
hole = (x - 160) ** 2 + (y - 120) ** 2 < 36**2
Path("frames").mkdir()
for k, image in enumerate(made.image.values):
    dic.write_image(f"frames/test_{k:02d}.tif", np.where(hole, 5, image).astype(np.uint8))

# Inside where not 0; a polygon does the same: roi_hole=[(x, y), ...].
ds = dic.track("frames", roi=~hole, subset=21, step=5, scale=0.05, fps=2, output="dic_out", progress=False)

# Places are px of the reference, values have the unit of the result; loads: N, one for each frame, or a CSV table.
found = dic.probe(ds, extensometer=(40, 200, 280, 200), line=(160, 160, 160, 230),
                  area=[(20, 20), (100, 20), (100, 100), (20, 100)], loads=[400, 800, 1200], section=12)
print(found.to_dataframe()[["time", "load", "stress", "E1 strain", "E1 sigma_strain", "A1 mean_exx", "A1 sd_exx"]])
strain = found.extensometers.strain.sel(extensometer=1)
modulus = np.polyfit(strain, found.extensometers.stress, 1)[0]
print(f"slope of stress over strain: {modulus / 1000:.1f} GPa")
along, = found.lines
print("exx from the hole to the edge, last frame:", np.round(along.exx.isel(frame=-1).values[::4], 5))

last = ds.isel(frame=-1)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
last.exx.where(last.inside).plot(ax=left, yincrease=False, robust=True)
left.set_aspect("equal")
left.set_title("exx, last frame")
right.errorbar(strain, found.extensometers.stress, xerr=found.extensometers.sigma_strain.sel(extensometer=1), marker="o")
right.set(xlabel="strain", ylabel="stress, MPa", title="extensometer")
figure.savefig("open_hole.png", dpi=150)

found.to_dataframe().to_csv("open_hole.csv")
path = dic.report(ds, "open_hole.html", title="Open hole", specimen="synthetic plate, hole of 3.6 mm",
                  camera_text="320 x 240 px, 8 bit", pattern_text="blobs of 1.7 px")
print(path, path.stat().st_size // 1000, "kB")
