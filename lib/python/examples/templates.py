"""Template tracking: where a mark is in every frame, to a fraction of a pixel."""

import numpy as np

import dic

made = dic.synth(width=256, height=200, frames=6, motion="rotation", angle=6, noise=2, seed=4)
images = made.image.values
marks = {"left": (50, 80), "right": (180, 90)}  # x, y of the top left corner
size = 31
templates = [images[0, y:y + size, x:x + size] for x, y in marks.values()]

found = dic.match(templates, images, rotations=np.arange(-8, 9, 2), threshold=0.6)
found["mark"] = [list(marks)[template] for template in found.template]
table = found.pivot(index="image", columns="mark", values=["center_x", "center_y", "score"])
print(table.round(3))

# The distance between the marks stays, since the motion is a rotation.
dx = table["center_x"]["right"] - table["center_x"]["left"]
dy = table["center_y"]["right"] - table["center_y"]["left"]
print("distance:", np.hypot(dx, dy).round(2).tolist())
print("angle:", np.degrees(np.arctan2(dy, dx) - np.arctan2(dy[0], dx[0])).round(2).tolist())
table.to_csv("marks.csv")
