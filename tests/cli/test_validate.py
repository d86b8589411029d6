"""`dic validate` from the outside: python test_validate.py DIC"""

import csv
import json
import shlex
import unittest

import cv2
import h5py

import dic_program
from dic_program import ProgramTest

FAST = ("--device", "cpu", "--subset", "21")


class ValidateTest(ProgramTest):
    def sequence_with_truth(self, name="mine"):
        self.succeed("synth", "-o", name, "--width", 160, "--height", 140, "--u", "0.3", "--noise", 2)
        return name

    def test_list_names_every_suite_with_its_bounds(self):
        lines = self.succeed("validate", "--list").stdout.splitlines()
        self.assertEqual(len(lines) % 2, 0)
        names = [line.split()[0] for line in lines[::2]]
        for name in ("translation", "rotation", "star", "chirp", "crack", "bodies", "periodic", "unrelated"):
            self.assertIn(name, names)
        for bounds in lines[1::2]:
            self.assertIn("<=", bounds)

    def test_two_cameras_keep_their_bounds(self):
        """Small pairs of a plane, a cylinder, a dome and a wave."""
        done = self.succeed("validate", "stereo", "--quick", "--json", "out.json", "--device", "cpu")
        self.assertIn("Z bias, sd, um", done.stdout)
        cases = json.loads((self.folder / "out.json").read_text())["suites"][0]["cases"]
        self.assertEqual(len(cases), 6)
        for case in cases:
            self.assertEqual(case["total"]["false_ok"], 0)
            self.assertGreater(case["total"]["measurable"], 1000, case["name"])
            self.assertLess(abs(case["stereo"]["Z"]["bias"]), 1, case["name"])
            self.assertGreater(case["stereo"]["W"]["sd"], 1, "no noise: what is compared?")

    def test_right_measurements_end_with_0_and_are_reported(self):
        folder = self.sequence_with_truth()
        done = self.succeed("validate", folder, "--json", "out.json", "--csv", "out.csv", *FAST)
        self.assertEqual(done.stderr, "")
        self.assertIn("0 of 1 cases break a bound. Seed 90210;", done.stdout)
        report = json.loads((self.folder / "out.json").read_text())
        case = report["suites"][0]["cases"][0]
        self.assertEqual(case["total"]["points"], 32 * 28)
        self.assertEqual(case["total"]["false_ok"], 0)
        self.assertEqual(case["options"]["subset"], 21)
        self.assertLess(max(case["total"]["rmse"]), 0.05)
        with open(self.folder / "out.csv", newline="") as file:
            (row,) = csv.DictReader(file)
        self.assertEqual(row["case"], "mine")
        self.assertEqual(int(row["ok"]), case["total"]["ok"])
        self.assertEqual(int(row["broken"]), 0)

    def test_a_broken_bound_ends_with_1(self):
        folder = self.sequence_with_truth()
        with h5py.File(self.folder / folder / "truth.h5", "r+") as truth:
            truth["u"][1] += 1.0
        done = self.dic("validate", folder, "--json", "out.json", *FAST)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("BROKEN false ok: 100 %, at most 0.01 %", done.stdout)
        self.assertEqual(json.loads((self.folder / "out.json").read_text())["broken"], 1)

    def test_options_of_track_are_passed_on(self):
        folder = self.sequence_with_truth()
        self.succeed("validate", folder, "--json", "out.json", *FAST, "--step", 10, "--order", 2, "--interpolation", "quintic")
        case = json.loads((self.folder / "out.json").read_text())["suites"][0]["cases"][0]
        self.assertEqual(case["options"], {"subset": 21, "step": 10, "order": 2, "interpolation": "quintic",
                                           "reference_strategy": "first"})
        self.assertEqual(case["total"]["points"], 16 * 14)

    def test_a_suite_draws_its_curve_and_names_its_images(self):
        done = self.dic("validate", "noise", "--quick", "--json", "out.json", "--plots", "curves", "--step", 20, "--device", "cpu")
        self.assertIn(done.returncode, (0, 1), done.stderr)  # what the bounds say is not tested here
        self.assertIsNotNone(cv2.imread(str(self.folder / "curves/noise.png")))
        case = json.loads((self.folder / "out.json").read_text())["suites"][0]["cases"][1]
        typed = shlex.split(case["images"].replace("DIR", "same"))
        self.succeed(*typed[1:])
        self.dic("validate", "same", "--json", "same.json", "--step", 20, "--device", "cpu")
        same = json.loads((self.folder / "same.json").read_text())["suites"][0]["cases"][0]
        self.assertEqual(same["total"]["ok"], case["total"]["ok"])
        self.assertAlmostEqual(same["total"]["rmse"][0], case["total"]["rmse"][0], places=9)

    def test_tables_go_into_a_document(self):
        folder = self.sequence_with_truth()
        document = self.folder / "page.md"
        document.write_text(f"# Title\n<!-- report: {folder} -->\n<!-- end of report -->\n")
        self.succeed("validate", folder, "--into", "page.md", *FAST)
        self.assertIn("| mine | ", document.read_text())
        document.write_text("# Title\n")
        self.refuse(2, ["<!-- report: mine -->"], "validate", folder, "--into", "page.md", *FAST)

    def test_wrong_usage(self):
        self.refuse(2, ["nothing", "--list"], "validate", "nothing")
        self.refuse(2, ["subset"], "validate", "noise", "--subset", 20)
        (self.folder / "empty").mkdir()
        self.refuse(1, ["empty", "truth.h5"], "validate", "empty")


if __name__ == "__main__":
    dic_program.main()
