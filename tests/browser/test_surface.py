"""A result of two cameras in the page of `dic view`: python test_surface.py DIC"""

import csv
import re
import time

import numpy as np

from browser_test import BrowserTest
from dic_program import main

INFLATED = 0.02  # of the radius: any chord across the axis grows by it


class SurfaceTest(BrowserTest):
    def number(self, name, words):
        return float(re.search(rf"(?:^| ){name} (-?[\d.e-]+)", words)[1])

    def truth(self, x, y, name):
        with (self.folder / "d/truth.csv").open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if int(row["frame"]) == 1]
        nearest = min(rows, key=lambda row: (float(row["x"]) - x) ** 2 + (float(row["y"]) - y) ** 2)
        return float(nearest[name])

    def measure_cylinder(self):
        self.succeed("synth", "-o", "d", "--stereo", "--width", 320, "--height", 256, "--focal", 800, "--surface", "cylinder",
                     "--inflate", INFLATED, "--frames", 2, "--truth-step", 4)
        self.succeed("stereo", "--left", "d/left/*.png", "--right", "d/right/*.png", "--calibration", "d/stereo.json", "--subset", 21,
                     "--step", 8, "--device", "cpu", "-o", "out", "--pictures", "none")

    def surface(self, code):
        """The value of an expression in which `s` is the first layer of the stage."""
        return self.browser.execute_async_script(
            "const done = arguments[0]; import('dic/stage.js').then(({stage}) => { const s = stage().layers[0]; "
            f"done({code}); }});")

    def test_fields_probes_and_the_surface(self):
        self.measure_cylinder()
        server = self.serve("out")
        self.show_last()

        # Fields over the left image, in mm.
        words = self.hover(160, 128)
        self.assertIn(" mm", words)
        self.assertAlmostEqual(self.number("W", words), self.truth(160, 128, "W"), delta=0.05)
        for name in ("Z", "U", "X"):
            self.choose("quantity", name)
            self.until(lambda: f" {name} " in self.hover(160, 128))
            self.assertAlmostEqual(self.number(name, self.hover(160, 128)), self.truth(160, 128, name), delta=0.6)
        for name in ("sigma_Z", "epipolar", "incidence", "exx", "status"):
            self.choose("quantity", name)
            time.sleep(0.1)

        # A probe in space: a chord across the axis, which image and camera see shortened.
        self.choose("quantity", "W")
        self.click("probe-extensometer")
        self.pointer((120, 128), (196, 128), drag=True)
        self.click("probe-point")
        self.pointer((160, 100))
        self.click("probe-line")
        self.pointer((120, 150), (196, 150), drag=True)
        self.until(lambda: "point" in self.script("return JSON.stringify(Chart.getChart('plot-history').data.datasets.map((d) => d.label))"))
        time.sleep(0.5)
        self.click("save-history")
        rows = self.table("history.csv")
        values = dict(zip(rows[0], rows[-1]))
        strain = next(float(value) for name, value in values.items() if "extensometer" in name)
        self.assertAlmostEqual(strain, INFLATED, delta=1e-3)
        point = next(float(value) for name, value in values.items() if name.startswith("point"))
        self.assertAlmostEqual(point, self.truth(160, 100, "W"), delta=0.05)
        self.click("save-profile")
        self.assertTrue(np.isfinite([float(row[2]) for row in self.table("profile.csv")[5:-5]]).all())

        # The surface is drawn, turned by dragging, and read.
        self.choose("view-mode", "surface")
        self.until(lambda: self.surface("!!s.arrays") is True)
        x, y, node = self.surface("(() => { const p = s.project(), k = s.grid.nx * (s.grid.ny >> 1) + (s.grid.nx >> 1), "
                                  "i = stage().toImage(p.x[k], p.y[k]); return [i.x, i.y, k]; })()")
        words = self.hover(x, y)
        grid = self.surface("s.grid")
        at = (grid["x0"] + node % grid["nx"] * grid["step"], grid["y0"] + node // grid["nx"] * grid["step"])
        self.assertAlmostEqual(self.number("Z", words), self.truth(*at, "Z"), delta=1)
        self.assertAlmostEqual(self.number("W", words), self.truth(*at, "W"), delta=0.1)
        before, turned = self.surface("s.turn"), self.drawn()
        self.pointer((x, y), (x + 40, y + 10), drag=True)
        after = self.surface("s.turn")
        self.assertLess(after["yaw"], before["yaw"] - 0.1)
        self.assertGreater(after["pitch"], before["pitch"] + 0.02)
        self.assertNotEqual(self.drawn(), turned)
        # Seen from the side, the cylinder bulges as the result says: the rotation is a rigid one.
        self.assertTrue(self.surface("(() => { const r = s.rotation(); return [0, 1, 2].every((i) => [0, 1, 2].every((j) => "
                                     "Math.abs(r[i].reduce((sum, a, k) => sum + a * r[j][k], 0) - (i === j)) < 1e-12)); })()"))
        # It moves with the frame, and more if asked.
        still = self.drawn()
        self.choose("motion", "10")
        self.until(lambda: self.drawn() != still)
        self.click("undo")
        self.until(lambda: self.value("motion") == "1")
        self.open(server.address)
        self.until(lambda: self.surface("!!s.arrays") is True)  # kept over a reload
        self.choose("view-mode", "image")
        self.until(lambda: "grey" in self.hover(160, 128))
        self.click("tab-report")
        self.assert_clean(server.origin)

    def show_last(self):
        self.until(lambda: "frame_0001" in self.text("frame-name"))

    def drawn(self):
        time.sleep(0.1)
        return self.script("return document.getElementById('canvas').toDataURL()")

    def test_the_report_has_the_surface(self):
        self.measure_cylinder()
        self.succeed("report", "out")
        self.open((self.folder / "report.html").as_uri())
        self.show_last()
        self.assertAlmostEqual(self.number("W", self.hover(160, 128)), self.truth(160, 128, "W"), delta=0.05)
        self.choose("view-mode", "surface")
        self.until(lambda: self.surface("!!s.arrays") is True)
        self.assert_clean("file:")


if __name__ == "__main__":
    main()
