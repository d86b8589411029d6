"""The page Calibrate of `dic view`, with targets that a known camera sees: python test_calibration.py DIC"""

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
from browser_test import BrowserTest
from dic_program import main, write_image
from rendered_boards import HEIGHT, WIDTH, is_dark_board, render, write_targets

BOARD = {"columns": "9", "rows": "6", "square_mm": "6"}


class CalibrationTest(BrowserTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        rendered = tempfile.TemporaryDirectory()
        cls.addClassCleanup(rendered.cleanup)
        cls.rendered = Path(rendered.name)
        (cls.rendered / "boards").mkdir()
        write_targets(cls.rendered / "boards", is_dark_board, (48, 30))
        write_image(cls.rendered / "flat.png", render(is_dark_board, (0.1, -0.15, 0.02), (-25, -16, 160), 50))

    def setUp(self):
        super().setUp()
        shutil.copytree(self.rendered, self.folder, dirs_exist_ok=True)

    def choose_images(self, role, *names):
        """Goes to these entries of the chooser, one after the other; takes the folder that is listed then."""
        self.click(f"calibrate-choose-{role}")
        for name in names:
            self.choose_entry(name)
        if not names[-1].endswith(".png"):
            self.until(lambda: f"/{names[-1]}" in self.text("chooser-folder"))
            self.click("chooser-this")
        self.until(lambda: not self.script("return document.getElementById('chooser').open"))

    def calibrate(self):
        self.click("calibrate-run")
        self.until(lambda: self.by_id("calibrate-run").is_enabled())

    def fact(self, name):
        return self.script("return [...document.querySelectorAll('#calibrate-result tr')].find((row) => "
                           "row.querySelector('th').textContent === arguments[0])?.querySelector('td').textContent", name)

    def table_rows(self):
        return self.script("return [...document.querySelectorAll('#calibrate-table tbody tr')].map((row) => "
                           "[...row.querySelectorAll('td')].map((cell) => cell.textContent))")

    def test_camera_file_of_a_lens_and_a_specimen(self):
        write_image(self.folder / "boards" / "blank.png", np.full((HEIGHT, WIDTH), 90.0))
        server = self.serve(*self.names)
        self.click("tab-calibrate")
        self.assertIn("Choose a folder", self.by_id("no-image").text)
        self.choose_images("plane", "flat.png")
        self.assertEqual(self.by_id("no-image").text, "")
        self.choose_images("left", "boards")
        self.assertEqual(self.text("calibrate-left"), "boards")
        self.until(lambda: self.text("frame-name").startswith("1 / 10"))
        self.assertFalse(self.by_id("calibrate-save").is_enabled())
        self.calibrate()
        self.assertIn("3 to 200 columns and rows", self.text("message"))
        for name, value in BOARD.items():
            self.type(f"calibrate-{name}", value)
        self.browser.get_log("browser")  # the answer that refused
        self.calibrate()

        # The camera that rendered the images.
        for name, truth in (("fx", 1000), ("fy", 996), ("cx", 325), ("cy", 244)):
            value, deviation = self.fact(name).removesuffix(" px").split(" ± ")
            self.assertAlmostEqual(float(value), truth, delta=0.6)
            self.assertLess(float(deviation), 0.5)
        self.assertLess(float(self.fact("residuals, rms").split()[0]), 0.03)
        self.assertEqual(self.fact("image covered"), "31 %")
        self.assertAlmostEqual(float(self.fact("specimen, tilt")[:-1]), 10.3, delta=0.1)
        self.assertIn("cover less than half of the image", self.text("calibrate-result"))
        rows = self.table_rows()
        self.assertEqual([row[2] for row in rows], ["not used", *["54"] * 9])
        self.assertEqual(rows[-1][1], "specimen flat.png")
        self.assertIn("target was not found", self.text("calibrate-frame"))

        # Its corners over the image, and residuals enlarged.
        self.script("document.querySelectorAll('#calibrate-table tbody tr')[2].click()")
        self.until(lambda: self.text("frame-name").startswith("3 / 10"))
        layer = self.module("stage", "(({points, residuals, others, enlarged}) => [points.length, residuals.length, others.length, enlarged])"
                            "(m.stage().layers[1])")
        self.assertEqual(layer[:3], [54, 54, 8 * 54])
        self.assertGreater(layer[3], 50)

        # The file, used by the next measurement: its displacements are in mm.
        self.click("calibrate-use")
        self.until(lambda: "Measurements use camera.json" in self.text("message"))
        camera = json.loads((self.folder / "camera.json").read_text())
        self.assertEqual((camera["image_width"], camera["image_height"]), (WIDTH, HEIGHT))
        self.assertAlmostEqual(camera["calibration"]["plane"]["tilt_deg"], 10.3, delta=0.1)
        self.assertIn("--camera camera.json", self.value("command"))
        self.assert_clean(server.origin)
        self.click("calibrate-save")
        self.until(lambda: "exists already" in self.text("message"))
        self.click("calibrate-force")
        self.click("calibrate-save")
        self.until(lambda: "Wrote camera.json" in self.text("message"))

        # A reload keeps what was chosen.
        self.open(server.address)
        self.assertEqual((self.text("calibrate-left"), self.value("calibrate-columns")), ("boards", "9"))
        self.until(lambda: self.text("frame-name").startswith("1 / 10"))

    def test_two_cameras(self):
        shutil.copytree(self.folder / "boards", self.folder / "others")
        server = self.serve()
        self.click("chooser-close")
        self.click("tab-calibrate")
        self.choose_images("left", "boards")
        self.click("calibrate-choose-right")
        self.until(lambda: self.text("chooser-folder").endswith("boards"))
        self.click("chooser-up")
        self.choose_entry("others")
        self.until(lambda: "/others" in self.text("chooser-folder"))
        self.click("chooser-this")
        self.until(lambda: self.text("calibrate-right") == "others")
        for name, value in BOARD.items():
            self.type(f"calibrate-{name}", value)
        self.calibrate()
        # Both are one camera: what it saw from one place.
        self.assertLess(float(self.fact("distance of the cameras").split()[0]), 0.05)
        self.assertLess(float(self.fact("angle between them")[:-1]), 0.05)
        self.assertAlmostEqual(float(self.fact("right fx").split()[0]), 1000, delta=1)
        self.assertEqual(len(self.table_rows()), 16)
        self.assertFalse(self.by_id("calibrate-use").is_displayed())
        self.click("calibrate-save")
        self.until(lambda: "Wrote stereo.json" in self.text("message"))
        rig = json.loads((self.folder / "stereo.json").read_text())
        self.assertAlmostEqual(rig["left"]["lens"]["fx"], rig["right"]["lens"]["fx"], delta=0.1)
        self.assert_clean(server.origin)

    def test_refusals(self):
        server = self.serve(*self.names)

        def refused(path, asked):
            status, answer = server.post(path, asked)
            self.assertEqual(status, 400, answer)
            return json.loads(answer)["error"]

        target = {"pattern": "checkerboard", "columns": 9, "rows": 6, "square_mm": 6}
        self.assertEqual(refused("api/calibrate", {"target": target, "model": "brown"}), "Choose images of the target first.")
        self.assertEqual(refused("api/calibrate", {"target": {**target, "pattern": "stripes"}, "model": "brown"}),
                         'A calibration has no such pattern.')
        self.assertEqual(refused("api/keep-camera", {"path": "camera.json"}), "There is no calibration yet: calibrate first.")
        self.assertIn("/etc", refused("api/targets", {"left": "/etc"}))
        self.assertEqual(refused("api/targets", {"left": 3}), 'The page sent a "left" that is no text.')
        self.assertEqual(server.post("api/targets", {"left": "boards"})[0], 200)
        self.assertEqual(refused("api/calibrate", {"target": {**target, "square_mm": 0}, "model": "brown"}),
                         "The distance of the target's squares or circles must be given, in mm.")
        self.assertEqual(server.ask("GET", "api/target/9")[0], 400)
        self.assertEqual(server.ask("GET", "api/target/-1")[0], 400)


if __name__ == "__main__":
    main()
