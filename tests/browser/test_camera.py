"""The page Camera of `dic view` with the camera `fake`, whose speckle is stretched along x and back: python test_camera.py DIC"""

import json
import re
import subprocess

import numpy as np
from selenium.webdriver.common.by import By

import dic_program
from browser_test import BrowserTest
from dic_program import main

MOST_STRAIN = 0.01  # of the fake camera, to both sides of the reference


class CameraTest(BrowserTest):
    def setUp(self):
        super().setUp()
        listed = subprocess.run([dic_program.PROGRAM, "live", "--list"], capture_output=True, text=True)
        if "Aravis" in listed.stderr:
            self.skipTest("there is no Aravis")

    def results(self):
        return int(self.script("return document.querySelector('#camera-state td')?.textContent ?? '0'"))

    def setting(self, name):
        return self.script("return [...document.querySelectorAll('#camera-settings tr')].find((row) => "
                           "row.querySelector('th').textContent === arguments[0])?.querySelector('td').textContent", name)

    def shows_picture(self):
        return self.module("stage", "m.stage().image.width > 1")

    def panel_state(self):
        return self.script("return document.querySelector('#panel-camera > div').dataset.state")

    def test_from_the_camera_to_strain_by_mouse(self):
        server = self.serve()
        self.until(lambda: self.by_id("chooser-camera").is_displayed())
        self.click("chooser-camera")
        self.click("camera-find")
        self.until(lambda: self.browser.find_elements(By.CSS_SELECTOR, "[data-camera=fake]"))
        self.browser.find_element(By.CSS_SELECTOR, "[data-camera=fake]").click()
        self.assertEqual(self.value("camera-name"), "fake")

        # Its picture, before anything is measured; a setting that it does not take is told as read back.
        self.type("camera-fps", "20")
        self.click("camera-look")
        self.until(lambda: self.setting("frame rate") is not None)
        self.assertEqual(float(self.setting("frame rate")), 20)
        self.until(self.shows_picture)
        self.assertIn("grey", self.hover(100, 80))

        # A part of the sensor, as drawn.
        self.click("camera-tool-rectangle")
        self.pointer((100, 100), (355, 355), drag=True)
        self.click("camera-use-region")
        region = self.value("camera-region")
        self.until(lambda: self.setting("region") == region)
        x, y, width, height = map(int, region.split(","))
        np.testing.assert_allclose([x, y, width, height], [100, 100, 256, 256], atol=4)
        self.until(lambda: self.module("stage", "m.stage().image") == {"width": width, "height": height})

        # An extensometer, the field, and the reference by a button.
        self.click("camera-tool-scale")
        self.pointer((60, 120), (200, 120), drag=True)
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "#camera-gauges input")), 1)
        self.type("camera-option-subset", "21")
        self.type("camera-option-step", "16")
        self.click("camera-measure")
        self.until(lambda: self.results() > 10)
        strain = self.until(lambda: re.search(r" exx (-?[\d.e-]+) %", self.hover(100, 80)))
        self.assertLessEqual(abs(float(strain[1])), 1.1 * 100 * MOST_STRAIN)
        # The list of quantities is not made anew with every field, which would close it under the mouse.
        self.script("document.querySelector('#camera-quantity option').dataset.seen = 'yes'")
        measured = self.results()
        self.until(lambda: self.results() > measured + 3)
        self.assertEqual(self.script("return document.querySelector('#camera-quantity option').dataset.seen"), "yes")
        self.choose("camera-quantity", "u")
        self.until(lambda: " u " in self.hover(100, 80))

        # A new reference begins anew.
        self.assertEqual(self.text("camera-measure"), "Take a new reference")
        self.click("camera-keep")
        self.click("camera-measure")
        self.until(lambda: self.by_id("camera-measure").is_enabled())
        self.until(lambda: self.results() > 30)
        self.click("camera-stop")
        self.until(lambda: self.panel_state() == "ended")
        self.until(lambda: "Done" in self.text("message"))
        results = self.results()

        # The curve is that of the result: extensometer and field agree.
        self.click("save-camera")
        rows = self.table("camera.csv")
        self.assertEqual(rows[0], ["frame", "time [s]", "extensometer 1 strain"])
        self.assertEqual([int(row[0]) for row in rows[1:]], list(range(1, results + 1)))
        strains = np.array([float(row[2]) for row in rows[1:]])
        self.assertGreater(np.ptp(strains), 0.5 * MOST_STRAIN)
        fields = self.fields()
        np.testing.assert_allclose(strains, np.nanmean(fields["exx"], axis=(1, 2)), atol=6e-4)

        self.assert_clean(server.origin)
        self.click("camera-open")
        self.until(lambda: self.script("return document.body.dataset.tab === 'results' && document.body.dataset.ready"))
        self.until(lambda: f"/ {results}" in self.text("frame-name"))

    def test_reload_and_errors(self):
        server = self.serve()
        self.until(lambda: self.by_id("chooser-camera").is_displayed())
        self.click("chooser-camera")
        self.type("camera-exposure", "long")
        self.click("camera-look")
        self.until(lambda: self.by_id("message").get_attribute("data-kind") == "error")
        self.assertIn('exposure needs a number of us, got "long"', self.text("message"))
        self.type("camera-exposure", "1000")
        self.type("camera-name", "192.0.2.1")
        self.type("camera-name", "fake")
        self.click("camera-look")
        self.until(self.shows_picture)
        self.click("camera-tool-scale")
        self.pointer((100, 120), (300, 120), drag=True)
        self.click("camera-field")
        self.click("camera-measure")
        self.until(lambda: self.results() > 3)
        self.open(server.address)  # loaded again: the camera is still measured
        self.until(lambda: self.results() > 8)
        self.assertEqual(self.value("camera-exposure"), "1000")
        self.click("camera-stop")
        self.until(lambda: self.panel_state() == "ended")
        self.browser.get_log("browser")  # the answer that refused "long"
        self.assert_clean(server.origin)
        self.assertEqual(json.loads(server.post("api/camera-measure", {"camera": {"camera": "fake", "tcp": "0"}})[1])["error"],
                         'A camera has no setting "tcp" that the page may change.')


if __name__ == "__main__":
    main()
