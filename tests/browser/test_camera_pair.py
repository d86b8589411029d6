"""The page Camera of `dic view` with the cameras `fake-left` and `fake-right`, which see a specimen move in space: python test_camera_pair.py DIC"""

import json
import re
import subprocess

import numpy as np

import dic_program
from browser_test import BrowserTest
from dic_program import main

# The whole motion of the specimen, to both sides of the reference.
MOST = {"U": 1, "V": 0.5, "W": 2}  # mm
MOST_STRAIN = 0.01


class CameraPairTest(BrowserTest):
    def setUp(self):
        super().setUp()
        listed = subprocess.run([dic_program.PROGRAM, "live", "--list"], capture_output=True, text=True)
        if "Aravis" in listed.stderr:
            self.skipTest("there is no Aravis")
        self.succeed("synth", "--stereo", "--width", 256, "--height", 192, "--focal", 640, "--frames", 1, "-o", "rig")

    def fact(self, name):
        return self.script("return [...document.querySelectorAll('#camera-state tr')].find((row) => "
                           "row.querySelector('th').textContent === arguments[0])?.querySelector('td').textContent", name)

    def setting(self, name):
        return self.script("return [...document.querySelectorAll('#camera-settings tr')].find((row) => "
                           "row.querySelector('th').textContent === arguments[0])?.querySelector('td').textContent", name)

    def results(self):
        return int(self.fact("frame") or 0)

    def panel_state(self):
        return self.script("return document.querySelector('#panel-camera > div').dataset.state")

    def layers(self):
        return self.module("stage", "m.stage().layers.map((layer) => layer.constructor.name)")

    def has_right_picture(self):
        return self.module("stage", "m.stage().layers.some((layer) => layer.picture?.image)")

    def choose_cameras(self):
        server = self.serve()
        self.until(lambda: self.by_id("chooser-camera").is_displayed())
        self.click("chooser-camera")
        self.type("camera-name", "fake-left")
        self.script("document.getElementById('camera-right-camera').closest('details').open = true")
        self.type("camera-right-camera", "fake-right")
        self.type("camera-region", "0,0,256,192")
        self.type("camera-fps", "5")
        return server

    def test_from_two_cameras_to_motion_in_space(self):
        server = self.choose_cameras()
        # Both pictures, before there is a calibration.
        self.click("camera-look")
        self.until(lambda: self.setting("right frame rate") is not None)
        self.until(self.has_right_picture)
        self.assertEqual(self.module("stage", "m.stage().image"), {"width": 256, "height": 192})
        self.assertIn("grey", self.hover(100, 80))
        self.choose("camera-picture", "left")
        self.until(lambda: not self.has_right_picture())
        self.choose("camera-picture", "right")
        self.until(lambda: self.layers() == ["ImageLayer"])
        self.choose("camera-picture", "both")
        self.until(self.has_right_picture)

        # Measuring needs the calibration, which is chosen from the folders.
        self.click("camera-tool-scale")
        self.pointer((64, 96), (192, 96), drag=True)
        self.type("camera-option-subset", "21")
        self.type("camera-option-step", "16")
        self.click("camera-measure")
        self.until(lambda: "calibration" in self.text("message"))
        self.click("camera-choose-calibration")
        for name in ("rig", "stereo.json"):
            # Found and clicked at once: the list is made anew for each folder.
            self.until(lambda: self.script("const entry = document.querySelector(`#chooser-list [data-name='${arguments[0]}']`);"
                                           "entry?.click(); return entry !== null", name))
        self.until(lambda: self.value("camera-calibration").endswith("stereo.json"))
        self.choose("camera-axes", "plane")
        self.click("camera-keep")
        self.click("camera-measure")
        self.until(lambda: self.results() > 3)

        # The field over the left picture, and the facts.
        self.choose("camera-quantity", "W")
        shown = self.until(lambda: re.search(r" W (-?[\d.e-]+) mm", self.hover(128, 96)))
        self.assertLessEqual(abs(float(shown[1])), 1.2 * MOST["W"])
        self.choose("camera-quantity", "Z")
        shown = self.until(lambda: re.search(r" Z (-?[\d.e-]+) mm", self.hover(128, 96)))
        self.assertLess(abs(float(shown[1])), 1)  # in the plane of the specimen
        self.assertRegex(self.fact("mean W"), r"^-?[\d.]+ mm$")
        self.assertLess(float(self.fact("from the epipolar lines").split()[0]), 0.5)
        self.assertIsNotNone(self.fact("lost"))
        self.until(lambda: self.results() > 12)
        self.click("camera-stop")
        self.until(lambda: self.panel_state() == "ended")
        self.until(lambda: "Done" in self.text("message"))

        # The curve is that of the result.
        results = self.results()
        self.click("save-camera")
        rows = self.table("camera.csv")
        strains = np.array([float(row[2]) for row in rows[1:]])
        self.assertEqual(len(strains), results)
        fields = self.fields()
        self.assertEqual(len(fields["W"]), results)
        self.assertLessEqual(np.nanmax(np.abs(strains)), 1.2 * MOST_STRAIN)
        np.testing.assert_allclose(strains, np.nanmean(fields["exx"], axis=(1, 2)), atol=1e-3)
        settings = self.run_json()["settings"]
        self.assertEqual(settings["axes"], "plane")
        self.assertTrue((self.folder / "dic_out/surface.vtkhdf").exists())
        self.browser.get_log("browser")  # the answer that asked for the calibration
        self.assert_clean(server.origin)
        self.click("camera-open")
        self.until(lambda: self.script("return document.body.dataset.tab === 'results' && document.body.dataset.ready"))
        self.until(lambda: f"/ {results}" in self.text("frame-name"))

    def test_what_the_page_may_not_read_is_refused(self):
        server = self.serve()
        error = lambda asked: json.loads(server.post("api/camera-measure", asked)[1])["error"]
        pair = {"camera": "fake-left", "right-camera": "fake-right"}
        self.assertIn("The calibration", error({"camera": {**pair, "calibration": "/etc/passwd"}}))
        self.assertIn("calibration", error({"camera": pair}))
        self.assertIn("no right camera", error({"camera": {"camera": "fake", "axes": "plane"}}))
        self.assertIn("the same one", error({"camera": {**pair, "right-camera": "fake-left", "calibration": "rig/stereo.json"}}))


if __name__ == "__main__":
    main()
