"""Images of calibration targets, rendered with OpenCV's camera model, area-sampled, as a known camera sees them."""

import functools

import cv2
import numpy as np

from dic_program import write_image

WIDTH, HEIGHT = 640, 500
MATRIX = np.array([[1000, 0, 325], [0, 996, 244], [0, 0, 1.0]])
DISTORTION = np.array([-0.2, 0.08, 0.001, -0.0015, 0])
PRECISE = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 50, 1e-10)


def is_dark_board(x, y):
    i, j = np.floor(x / 6), np.floor(y / 6)
    return (i >= -1) & (j >= -1) & (i < 9) & (j < 6) & ((i + j) % 2 == 0)


@functools.cache
def rays(distortion):
    """Direction of every pixel, and its derivatives along x and along y."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(float)

    def directions(x, y):
        seen = np.stack([x.ravel(), y.ravel()], 1)[:, None]
        return cv2.undistortPoints(seen, MATRIX, np.array(distortion), criteria=PRECISE).reshape(HEIGHT, WIDTH, 2)

    return directions(x, y), directions(x + 0.5, y) - directions(x - 0.5, y), directions(x, y + 0.5) - directions(x, y - 0.5)


def render(is_dark, turn, shift, seed, distortion=DISTORTION):
    rotation = cv2.Rodrigues(np.array(turn, float))[0]
    to_plane = np.linalg.inv(np.column_stack([rotation[:, 0], rotation[:, 1], shift]))
    middle, along_x, along_y = rays(tuple(distortion))
    dark = np.zeros((HEIGHT, WIDTH))
    for dx in (-0.4, -0.2, 0, 0.2, 0.4):
        for dy in (-0.4, -0.2, 0, 0.2, 0.4):
            place = middle + dx * along_x + dy * along_y
            mm = np.concatenate([place, np.ones((HEIGHT, WIDTH, 1))], 2) @ to_plane.T
            dark += is_dark(mm[..., 0] / mm[..., 2], mm[..., 1] / mm[..., 2])
    return np.clip(220 - 190 * dark / 25 + np.random.default_rng(seed).normal(0, 1, dark.shape), 0, 255)


def write_targets(folder, is_dark, size_mm, count=8):
    """The names of images of a target that was tilted and moved about."""
    random = np.random.default_rng(2)
    names = [f"target_{i}.png" for i in range(count)]
    for i, name in enumerate(names):
        turn = random.uniform(-1, 1, 3) * [0.5, 0.5, 0.3]
        distance = 155 * random.uniform(1, 1.2)
        middle = np.array([*(random.uniform(-1, 1, 2) * [14, 10]), distance])
        shift = middle - cv2.Rodrigues(turn)[0] @ np.array([size_mm[0] / 2, size_mm[1] / 2, 0])
        write_image(folder / name, render(is_dark, turn, shift, i))
    return names
