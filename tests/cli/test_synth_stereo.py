"""`dic synth --stereo` from the outside: python test_synth_stereo.py DIC"""

import csv
import json
import unittest

import cv2
import numpy as np

import dic_program
from dic_program import ProgramTest

SMALL = ("--stereo", "--width", 200, "--height", 160, "--focal", 500)


class SynthStereoTest(ProgramTest):
    def table(self, folder):
        with open(self.folder / folder / "truth.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}

    def grey(self, name):
        return cv2.imread(str(self.folder / name), cv2.IMREAD_UNCHANGED).astype(float)

    def test_a_plane_moves_as_told(self):
        done = self.succeed("synth", "-o", "d", *SMALL, "--move", "3,-2,4", "--frames", 3, "--truth-step", 20)
        self.assertEqual(done.stdout, "Wrote 3 pairs, stereo.json and truth.csv to d (seed 1).\n")
        names = sorted(str(path.relative_to(self.folder / "d")) for path in (self.folder / "d").rglob("*.*"))
        frames = [f"frame_{i:04}.png" for i in range(3)]
        self.assertEqual(names, sorted([*(f"left/{n}" for n in frames), *(f"right/{n}" for n in frames), "stereo.json", "truth.csv"]))
        truth = self.table("d")
        self.assertEqual(len(truth["x"]), 3 * 10 * 8)
        for i in range(3):
            rows = truth["frame"] == i
            for name, value in (("U", 3), ("V", -2), ("W", 4), ("exx", 0)):
                np.testing.assert_allclose(truth[name][rows], value * i / 2, atol=1e-9)
        rig = json.loads((self.folder / "d/stereo.json").read_text())
        self.assertAlmostEqual(np.degrees(np.arccos(np.reshape(rig["rotation"], (3, 3))[2, 2])), 25)
        # X_right = R X_left + T, and the projection by OpenCV.
        lens = np.array([[500, 0, 99.5], [0, 500, 79.5], [0, 0, 1]])
        points = np.stack([truth["X"], truth["Y"], truth["Z"]], axis=1)
        turn, _ = cv2.Rodrigues(np.reshape(rig["rotation"], (3, 3)))
        right, _ = cv2.projectPoints(points, turn, np.array(rig["translation_mm"]), lens, None)
        np.testing.assert_allclose(right.reshape(-1, 2)[:, 0], truth["right_x"], atol=1e-6)
        np.testing.assert_allclose(right.reshape(-1, 2)[:, 1], truth["right_y"], atol=1e-6)

    def test_material_looks_alike_in_all_images(self):
        self.succeed("synth", "-o", "d", *SMALL, "--surface", "cylinder", "--inflate", 0.02, "--noise", 0, "--truth-step", 1,
                     "--sigma", 3, "--distortion", "-0.1,0.02,0.001,-0.001,0")
        truth = self.table("d")
        rows = (truth["frame"] == 1) & (truth["measurable"] == 1) & (truth["incidence"] < 30) & (truth["right_incidence"] < 30)
        places = {"left/frame_0000.png": (truth["x"], truth["y"]),
                  "left/frame_0001.png": (truth["x"] + truth["u"], truth["y"] + truth["v"]),
                  "right/frame_0000.png": (truth["right_x"], truth["right_y"]),
                  "right/frame_0001.png": (truth["right_x"] + truth["right_u"], truth["right_y"] + truth["right_v"])}
        greys = []
        for name, (x, y) in places.items():
            image = self.grey("d/" + name)
            greys.append(cv2.remap(image, np.float32(x[rows]), np.float32(y[rows]), cv2.INTER_CUBIC).ravel())
        self.assertGreater(len(greys[0]), 3000)
        for other in greys[1:]:
            self.assertLess(np.std(other - greys[0]), 1.5)  # interpolation and the pixel's area
            self.assertGreater(np.corrcoef(other, greys[0])[0, 1], 0.999)

    def test_a_rig_of_a_file_is_used(self):
        self.succeed("synth", "-o", "a", *SMALL, "--camera-angle", 40, "--distance", 300)
        self.succeed("synth", "-o", "b", "--stereo", "--calibration", "a/stereo.json")
        for name in ("left/frame_0000.png", "right/frame_0001.png"):
            self.assertEqual((self.folder / "a" / name).read_bytes(), (self.folder / "b" / name).read_bytes())

    def test_views_of_a_target_are_found(self):
        self.succeed("synth", "-o", "v", *SMALL, "--board", "checkerboard", "--columns", 8, "--rows", 6, "--square", 14,
                     "--frames", 2, "--lens-blur", 0.4)
        truth = self.table("v")
        self.assertEqual(len(truth["frame"]), 2 * 8 * 6)
        for i in range(2):
            rows = truth["frame"] == i
            for side in ("left", "right"):
                image = np.uint8(self.grey(f"v/{side}/frame_{i:04}.png"))
                found, corners = cv2.findChessboardCornersSB(image, (8, 6))
                self.assertTrue(found)
                true = np.stack([truth[f"{side}_x"][rows], truth[f"{side}_y"][rows]], axis=1)
                away = np.linalg.norm(corners.reshape(-1, 1, 2) - true[None], axis=2).min(axis=1)
                self.assertLess(away.max(), 0.3)

    def test_mistakes_are_explained(self):
        self.refuse(2, ["inflated"], "synth", "-o", "d", *SMALL, "--inflate", 0.1)
        self.refuse(2, ["does not fit"], "synth", "-o", "d", *SMALL, "--board", "circles", "--square", 50)
        for arguments, words in (((*SMALL, "--u", 1), ["--u", "--stereo"]),
                                 (("--surface", "dome"), ["--surface", "--stereo"]),
                                 ((*SMALL, "--board", "circles", "--move", "1,2,3"), ["--move", "--board"]),
                                 ((*SMALL, "--rows", 5), ["--rows", "--board"]),
                                 ((*SMALL, "--move", "1,2"), ["--move"])):
            done = self.dic("synth", "-o", "d", *arguments)
            self.assertEqual(done.returncode, 2, done.stdout)
            for word in words:
                self.assertIn(word, done.stderr)
        self.assertFalse((self.folder / "d").exists())


if __name__ == "__main__":
    dic_program.main()
