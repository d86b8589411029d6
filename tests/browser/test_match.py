"""The page Match of `dic view`: templates drawn and loaded, and their matches: python test_match.py DIC"""

import csv
import json

import numpy as np
from selenium.webdriver.common.by import By

import dic_program
from browser_test import BrowserTest
from dic_program import main, speckle, write_image

PART = (40, 30)  # width and height of the part, px
PLACES = [(60, 50), (180, 90), (90, 170)]  # of its top-left pixel


def scene(part, places):
    """A faint speckle with the part at these places."""
    image = 0.1 * speckle(240, 320) + 100
    for x, y in places:
        image[y : y + part.shape[0], x : x + part.shape[1]] = part
    return image


class MatchTest(BrowserTest):
    def setUp(self):
        super().setUp()
        self.part = speckle(PART[1], PART[0])[::-1]  # mirrored, because the ground is made of the same speckle
        self.scenes = ["scene_0.png", "scene_1.png", "scene_2.png"]
        for k, name in enumerate(self.scenes):
            write_image(self.folder / name, scene(self.part, [(x + 3 * k, y + 2 * k) for x, y in PLACES]))
        write_image(self.folder / "part.png", self.part)

    def rows(self):
        return [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")]
                for row in self.browser.find_elements(By.CSS_SELECTOR, "#match-table tbody tr")]

    def search(self, button="match-search"):
        self.click(button)
        self.until(lambda: self.by_id("match-search").is_enabled())

    def load(self, name):
        self.click("match-load")
        self.choose_entry(name)
        self.until(lambda: name in self.text("match-template-name"))

    def test_drawn_template_in_all_frames(self):
        server = self.serve(*self.scenes)
        self.click("tab-match")
        self.assertFalse(self.by_id("match-search").is_enabled())
        (x, y), (width, height) = PLACES[0], PART
        self.pointer((x, y), (x + width - 1, y + height - 1), drag=True)
        self.until(lambda: "px" in self.text("match-template-name"))
        self.assertIn(f"from x {x}, y {y}: {width} × {height} px", self.text("match-template-name"))
        self.search()
        found = sorted((round(float(row[1])), round(float(row[2]))) for row in self.rows())
        self.assertEqual(found, sorted((round(x + 19.5), round(y + 14.5)) for x, y in PLACES))

        # All frames, as the command line finds them.
        self.search("match-all")
        self.assertIn("9 in 3 frames", self.text("match-summary"))
        self.click("match-save")
        rows = self.table("matches.csv")
        done = self.succeed("match", *self.scenes, "--template-rect", f"{x},{y},{width},{height}", "--max-matches", "20", "--csv")
        expected = list(csv.reader(done.stdout.splitlines()))
        self.assertEqual(rows[0], expected[0])
        self.assertEqual([row[:3] for row in rows], [row[:3] for row in expected])
        np.testing.assert_allclose(np.array([row[3:] for row in rows[1:]], float), np.array([row[3:] for row in expected[1:]], float),
                                   rtol=1e-8, atol=1e-8)

        # The matches of the frame that is shown; another setting forgets them.
        self.script("const f = document.getElementById('frame'); f.value = 2; f.dispatchEvent(new Event('input'))")
        self.until(lambda: "scene_2.png" in self.text("frame-name"))
        self.until(lambda: len(self.rows()) == 3)
        np.testing.assert_allclose(sorted(float(row[1]) for row in self.rows()), sorted(x + 6 + 19.5 for x, _ in PLACES), atol=0.05)
        self.type("match-threshold", "0.9")
        self.assertEqual(self.rows(), [])
        self.assertIn("has not been searched", self.text("match-summary"))
        self.assert_clean(server.origin)

    def test_loaded_template_at_an_angle(self):
        write_image(self.folder / "turned.png", np.rot90(scene(self.part, PLACES[:1])))  # 90 degrees against the clock
        server = self.serve("turned.png")
        self.click("tab-match")
        self.load("part.png")
        self.search()
        self.assertIn("Nothing scores 0.5 or more", self.text("match-summary"))
        self.choose("match-rotation", "any")
        self.search()
        self.assertEqual(len(self.rows()), 1)
        _, x, y, angle, score = self.rows()[0]
        column, row = PLACES[0][0] + 19.5, PLACES[0][1] + 14.5
        np.testing.assert_allclose([float(x), float(y), float(angle[:-1])], [row, 319 - column, -90], atol=0.05)
        self.assertGreater(float(score), 0.99)

        # Undo takes the settings back; a reload keeps them.
        self.click("undo")
        self.until(lambda: self.value("match-rotation") == "fixed")
        self.click("redo")
        self.until(lambda: self.value("match-rotation") == "any")
        self.open(server.address)
        self.until(lambda: "part.png" in self.text("match-template-name"))
        self.assertEqual(self.value("match-rotation"), "any")
        self.assert_clean(server.origin)

    def test_refusals(self):
        server = self.serve("scene_0.png")

        def refused(**asked):
            status, answer = server.post("api/match", {"frame": 0, "max_matches": 1, "template": {"path": "part.png"}, **asked})
            self.assertEqual(status, 400, answer)
            return json.loads(answer)["error"]

        self.assertIn("/etc/passwd", refused(template={"path": "/etc/passwd"}))
        self.assertEqual(refused(template={"frame": 0, "rect": [300, 0, 40, 40]}),
                         "The template does not lie inside the image (320x240 px).")
        self.assertEqual(refused(template={"frame": 0, "rect": [0, 0, 2**31 - 1, 2]}),
                         "The template does not lie inside the image (320x240 px).")
        self.assertEqual(refused(template=None), "The page asked without a template.")
        self.assertEqual(refused(frame=7), "There is no frame 7.")
        self.assertEqual(refused(max_matches=0), "The number of matches must be at least 1.")
        self.assertEqual(refused(max_matches=10**6), "The page shows at most 10000 matches in an image.")
        self.assertEqual(refused(rotations=[3, 1]), "A range of rotations must go from a smaller to a larger number of degrees.")
        self.assertEqual(refused(scales="all"), "The page asked for something that makes no sense.")


if __name__ == "__main__":
    main()
