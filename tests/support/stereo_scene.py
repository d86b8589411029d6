"""A scene for tests of measurements with two cameras.

Two pinhole cameras see a plane; exact rays meet a pattern of waves, so that nothing is interpolated.
"""

import numpy as np

from dic_program import ProgramTest, write_image

WIDTH, HEIGHT, FOCAL, DISTANCE, ANGLE = 220, 180, 900.0, 300.0, np.radians(20)
MIDDLE = np.array([0, 0, DISTANCE])
ROTATION = np.array([[np.cos(ANGLE), 0, np.sin(ANGLE)], [0, 1, 0], [-np.sin(ANGLE), 0, np.cos(ANGLE)]])
TRANSLATION = MIDDLE - ROTATION @ MIDDLE


def pattern(a, b):
    random = np.random.default_rng(5)
    total = np.zeros_like(a)
    for _ in range(60):
        angle, phase = random.uniform(0, 2 * np.pi, 2)
        frequency = 2 * np.pi / (random.uniform(5, 15) * DISTANCE / FOCAL)
        total += np.cos(frequency * (np.cos(angle) * a + np.sin(angle) * b) + phase)
    return 128 + 8 * total


def view(rotation, translation, shift, seed):
    """What a camera sees of the plane z = DISTANCE, moved by `shift`."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(float)
    rays = np.stack([(x - (WIDTH - 1) / 2) / FOCAL, (y - (HEIGHT - 1) / 2) / FOCAL, np.ones_like(x)], -1) @ rotation
    centre = -rotation.T @ translation
    depth = (DISTANCE + shift[2] - centre[2]) / rays[..., 2]
    at = centre + depth[..., None] * rays - shift
    noise = np.random.default_rng(seed).normal(0, 1, x.shape)
    return np.clip(pattern(at[..., 0], at[..., 1]) + noise, 0, 255)


class StereoScene(ProgramTest):
    """Tests whose folder holds the calibration rig.yml."""

    def setUp(self):
        super().setUp()
        lens = {"fx": FOCAL, "fy": FOCAL, "cx": (WIDTH - 1) / 2, "cy": (HEIGHT - 1) / 2}
        self.write_rig("rig.yml", TRANSLATION, lens)

    def write_rig(self, name, translation, lens):
        """The calibration as OpenCV writes it."""
        matrix = f"[ {lens['fx']}, 0., {lens['cx']}, 0., {lens['fy']}, {lens['cy']}, 0., 0., 1. ]"

        def entry(key, rows, columns, data):
            return f"{key}: !!opencv-matrix\n   rows: {rows}\n   cols: {columns}\n   dt: d\n   data: {data}\n"

        text = "%YAML:1.0\n---\n"
        for key in ("K1", "K2"):
            text += entry(key, 3, 3, matrix)
        for key in ("D1", "D2"):
            text += entry(key, 1, 5, "[ 0., 0., 0., 0., 0. ]")
        text += entry("R", 3, 3, [float(value) for value in ROTATION.ravel()])
        text += entry("T", 3, 1, [float(value) for value in translation])
        text += f"image_width: {WIDTH}\nimage_height: {HEIGHT}\n"
        (self.folder / name).write_text(text)

    def pairs(self, shifts):
        """Writes a pair of images for each motion (x, y, z), mm. Returns the names of the left and the right ones."""
        names = [], []
        for k, shift in enumerate(shifts):
            for side, (rotation, translation) in enumerate(((np.eye(3), np.zeros(3)), (ROTATION, TRANSLATION))):
                name = f"img-{k:04}_{side}.png"
                write_image(self.folder / name, view(rotation, translation, np.array(shift), 10 * k + side))
                names[side].append(name)
        return names
