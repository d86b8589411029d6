"""`dic match` from the outside: python test_match.py DIC"""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

DIC = None


def speckle(height, width, seed):
    """Smooth random grey levels, 8 bit, 10..245."""
    noise = np.random.default_rng(seed).normal(size=(height, width))
    smooth = cv2.GaussianBlur(noise, None, 2.0)
    low, high = smooth.min(), smooth.max()
    return np.round(10 + 235 * (smooth - low) / (high - low)).astype(np.uint8)


class MatchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.image = speckle(240, 320, 1)
        self.image_file = self.save("image.png", self.image)
        self.template_file = self.save("template.png", self.image[90:131, 120:180])

    def save(self, name, pixels):
        path = self.folder / name
        Image.fromarray(pixels).save(path)
        return str(path)

    def dic(self, *arguments):
        return subprocess.run([DIC, "match", *map(str, arguments)], capture_output=True, text=True, timeout=120)

    def matches(self, *arguments):
        done = self.dic(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def assert_fails(self, code, words, *arguments):
        done = self.dic(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn(words, done.stderr)

    def assert_place(self, match, x, y, within=0.01):
        self.assertAlmostEqual(match["x"], x, delta=within)
        self.assertAlmostEqual(match["y"], y, delta=within)

    def test_exact_crop(self):
        for method in ("zncc", "ncc", "ssd"):
            (match,) = self.matches(self.template_file, self.image_file, "--method", method)
            self.assertEqual(
                list(match),
                ["image", "template", "x", "y", "center_x", "center_y", "score", "rotation_deg", "scale"],
            )
            self.assertEqual((match["image"], match["template"]), (self.image_file, self.template_file))
            self.assert_place(match, 120, 90)
            self.assertAlmostEqual(match["center_x"], 149.5, delta=0.01)
            self.assertAlmostEqual(match["center_y"], 110, delta=0.01)
            self.assertAlmostEqual(match["score"], 1, delta=1e-6)
            self.assertEqual((match["rotation_deg"], match["scale"]), (0, 1))

    def test_opencl_finds_what_the_cpu_finds(self):
        information = subprocess.run([DIC, "info"], capture_output=True, text=True, timeout=120).stdout
        if "opencl:0" not in information and os.environ.get("DIC_REQUIRE_OPENCL") != "1":
            self.skipTest("there is no device of OpenCL")
        for method in ("zncc", "ssd"):
            options = ("--method", method, "--rotation", "0:2:2", "--max-matches", "2")
            on_cpu = self.matches(self.template_file, self.image_file, *options, "--device", "cpu")
            self.assertEqual(self.matches(self.template_file, self.image_file, *options, "--device", "opencl"), on_cpu)

    def test_without_a_driver_opencl_says_what_to_install(self):
        done = subprocess.run([DIC, "match", self.template_file, self.image_file, "--device", "opencl"], capture_output=True,
                              text=True, timeout=120, env={**os.environ, "OCL_ICD_VENDORS": str(self.folder)})
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr, "install|without OpenCL")

    def test_score_agrees_with_opencv(self):
        noisy = np.clip(self.image + np.random.default_rng(2).normal(0, 12, self.image.shape), 0, 255)
        noisy = noisy.astype(np.uint8)
        (match,) = self.matches(self.template_file, self.save("noisy.png", noisy))
        surface = cv2.matchTemplate(noisy, cv2.imread(self.template_file, cv2.IMREAD_GRAYSCALE), cv2.TM_CCOEFF_NORMED)
        _, best, _, (x, y) = cv2.minMaxLoc(surface)
        self.assert_place(match, x, y, within=0.1)
        self.assertAlmostEqual(match["score"], best, delta=0.01)

    def test_table(self):
        done = self.dic(self.template_file, self.image_file)
        self.assertEqual(done.returncode, 0, done.stderr)
        head, row = done.stdout.splitlines()
        self.assertEqual(head.split()[:7], ["x", "y", "center_x", "center_y", "score", "rotation", "scale"])
        self.assertEqual(row.split()[:5], ["120.000", "90.000", "149.500", "110.000", "1.0000"])

    def test_several_templates_and_images(self):
        other = speckle(100, 150, 7)
        other_file = self.save("other image ä.png", other)
        second = self.save("second.png", other[20:50, 60:100])
        found = self.matches(
            "--templates", self.template_file, second, "--images", self.image_file, other_file, "--threshold", "0.9"
        )  # fmt: skip
        places = {(Path(m["template"]).name, Path(m["image"]).name): m for m in found}
        self.assertEqual(set(places), {("template.png", "image.png"), ("second.png", "other image ä.png")})
        self.assert_place(places["second.png", "other image ä.png"], 60, 20)
        for names in (
            ("--templates", self.template_file, second, "--images", self.image_file),
            (self.image_file, "--templates", self.template_file, second),
            (self.template_file, second, "--images", self.image_file),
        ):
            two = self.matches(*names, "--threshold", "0.9")
            self.assertEqual([Path(m["template"]).name for m in two], ["template.png"])
            self.assertEqual({m["image"] for m in two}, {self.image_file})

    def frames(self, count=5, size=(120, 160)):
        """Images of a scene that moves by 3 px to the right and 1 px up per frame, around a still middle."""
        scene = speckle(size[0] + 20, size[1] + 20, 5)
        return [
            self.save(f"frames/f{k}.png", scene[k : k + size[0], 15 - 3 * k : 15 - 3 * k + size[1]])
            for k in range(count)
        ]

    def test_first_is_the_template_and_all_others_are_images(self):
        (self.folder / "frames").mkdir()
        frames = self.frames()
        template = self.save("t.png", np.asarray(Image.open(frames[0]))[40:70, 50:90])
        for names in (frames, [self.folder / "frames"], [str(self.folder / "frames/*.png")]):
            found = self.matches(template, *map(str, names), "--threshold", "0.9")
            found.sort(key=lambda match: match["image"])
            self.assertEqual([m["image"] for m in found], frames)
            for k, match in enumerate(found):
                self.assert_place(match, 50 + 3 * k, 40 - k)

    def csv(self, *arguments, code=0):
        done = self.dic(*arguments, "--csv")
        self.assertEqual(done.returncode, code, done.stderr)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def test_rows_are_in_the_order_of_frames(self):
        (self.folder / "frames").mkdir()
        frames = self.frames()
        template = self.save('comma, "quote".png', np.asarray(Image.open(frames[4]))[40:70, 50:90])
        stranger = self.save("stranger.png", speckle(120, 160, 77))
        rows = self.csv(template, frames[4], stranger, frames[0], "--threshold", "0.9")
        self.assertEqual([row["image"] for row in rows], [frames[4], stranger, frames[0]])
        self.assertEqual([row["frame"] for row in rows], ["0", "1", "2"])
        self.assertEqual({row["template"] for row in rows}, {template})
        self.assertEqual([row["x"] == "nan" for row in rows], [False, True, False])
        self.assertLess(float(rows[1]["score"]), 0.9)
        self.assertAlmostEqual(float(rows[2]["x"]), 50 - 12, delta=0.01)
        table = self.dic(template, frames[4], stranger, frames[0], "--threshold", "0.9").stdout.splitlines()
        self.assertEqual(len(table), 4)
        self.assertIn("no match of " + template + " in " + stranger, table[2])

    def test_tracks_follow_one_of_two_equal_patterns(self):
        scene = speckle(120, 300, 11)
        pattern = speckle(30, 30, 12)
        (self.folder / "frames").mkdir()
        frames = []
        for k in range(8):
            image = scene.copy()
            if k != 4:  # hidden once
                image[50 + k : 80 + k, 40 + 5 * k : 70 + 5 * k] = pattern
            image[20:50, 240 - 5 * k : 270 - 5 * k] = pattern
            frames.append(self.save(f"frames/f{k}.png", image))
        rows = self.csv(self.save("t.png", pattern), *frames, "--track", "--max-matches", "2", "--threshold", "0.9")
        self.assertEqual(len(rows), 16)
        first = {round(float(row["x"])): row["track"] for row in rows[:2]}
        for track, x, dx, dy in ((first[40], 40, 5, 1), (first[240], 240, -5, 0)):
            own = [row for row in rows if row["track"] == track]
            self.assertEqual([int(row["frame"]) for row in own], list(range(8)))
            for k, row in enumerate(own):
                if x == 40 and k == 4:
                    self.assertEqual(row["x"], "nan")
                    continue
                self.assertAlmostEqual(float(row["x"]), x + k * dx, delta=0.01)
                self.assertAlmostEqual(float(row["dx"]), k * dx, delta=0.01)
                self.assertAlmostEqual(float(row["dy"]), k * dy, delta=0.01)
        listed = self.matches(self.folder / "t.png", *frames, "--track", "--threshold", "0.9")
        self.assertEqual([entry["frame"] for entry in listed], list(range(8)))

    def test_template_from_the_first_image(self):
        (self.folder / "frames").mkdir()
        frames = self.frames()
        rows = self.csv(*frames, "--template-rect", "50,40,40,30", "--track")
        self.assertEqual({row["template"] for row in rows}, {"f0.png at 50,40,40,30"})
        for k, row in enumerate(rows):
            self.assertAlmostEqual(float(row["dx"]), 3 * k, delta=0.01)
            self.assertAlmostEqual(float(row["dy"]), -k, delta=0.01)
        self.assert_fails(2, "does not lie inside", *frames, "--template-rect", "150,40,40,30")
        self.assert_fails(2, "four whole numbers", *frames, "--template-rect", "1,2,3")

    def test_frames_of_a_video(self):
        (self.folder / "frames").mkdir()
        video = cv2.VideoWriter(str(self.folder / "clip.avi"), cv2.VideoWriter_fourcc(*"MJPG"), 10, (160, 120))
        for frame in self.frames():
            video.write(cv2.imread(frame))
        video.release()
        rows = self.csv(str(self.folder / "clip.avi"), "--template-rect", "50,40,40,30", "--track")
        self.assertEqual([row["image"] for row in rows], [f"clip_{k:06}" for k in range(5)])
        self.assertAlmostEqual(float(rows[4]["dx"]), 12, delta=0.05)

    def test_a_damaged_image_is_skipped(self):
        damaged = self.folder / "damaged.png"
        damaged.write_bytes(Path(self.image_file).read_bytes()[:2000])
        rows = self.csv(self.template_file, self.image_file, damaged, self.image_file, code=3)
        self.assertEqual([row["frame"] for row in rows], ["0", "2"])
        self.assert_fails(1, "damaged.png", self.template_file, damaged)

    def test_exact_crop_at_threshold_one(self):
        for seed in range(5):
            image = speckle(90, 120, 30 + seed)
            files = self.save("t.png", image[20:61, 30:80]), self.save("i.png", image)
            (match,) = self.matches(*files, "--threshold", "1")
            self.assert_place(match, 30, 20)

    def test_a_drawing_never_replaces_what_is_read(self):
        before = Path(self.image_file).read_bytes()
        for name in (self.image_file, self.template_file):
            self.assert_fails(2, "choose another name", self.template_file, self.image_file, "--draw", name)
        self.assertEqual(Path(self.image_file).read_bytes(), before)

    def test_top_k(self):
        canvas = speckle(200, 300, 9)
        pattern = speckle(30, 40, 10)
        places = [(10, 20), (100, 90), (230, 150)]
        for x, y in places:
            canvas[y : y + 30, x : x + 40] = pattern
        arguments = (self.save("pattern.png", pattern), self.save("canvas.png", canvas))
        found = self.matches(*arguments, "--max-matches", "5")
        self.assertEqual(sorted((round(m["x"]), round(m["y"])) for m in found), places)
        self.assertEqual(len(self.matches(*arguments)), 1)

    def test_mask(self):
        mask = np.zeros((41, 60), np.uint8)
        mask[8:33, 10:50] = 255
        spoilt = np.where(mask, self.image[90:131, 120:180], speckle(41, 60, 3))
        arguments = (self.save("spoilt.png", spoilt), self.image_file)
        (match,) = self.matches("--mask", self.save("mask.png", mask), *arguments)
        self.assert_place(match, 120, 90)
        self.assertAlmostEqual(match["score"], 1, delta=1e-6)

    def test_rotation_is_positive_from_x_towards_y(self):
        # OpenCV's angle is positive against the clock; y points down, so from x towards y is with the clock.
        turn = cv2.getRotationMatrix2D((160, 120), -20, 1)
        turned = cv2.warpAffine(self.image, turn, (320, 240), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)
        (match,) = self.matches(
            self.template_file, self.save("turned.png", turned), "--rotation", "10:30:5", "--threshold", "0.9"
        )
        x, y = turn @ (120, 90, 1)
        center_x, center_y = turn @ (149.5, 110, 1)
        self.assertEqual(match["rotation_deg"], 20)
        self.assert_place(match, x, y, within=0.05)
        self.assertAlmostEqual(match["center_x"], center_x, delta=0.05)
        self.assertAlmostEqual(match["center_y"], center_y, delta=0.05)

    def test_scales(self):
        small = cv2.resize(self.image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
        (match,) = self.matches(self.template_file, self.save("small.png", small), "--scales", "0.3:0.7:0.1")
        self.assertAlmostEqual(match["scale"], 0.5)
        # Pixel q of the small image covers 2q and 2q + 1.
        self.assert_place(match, (120 - 0.5) / 2, (90 - 0.5) / 2, within=0.03)
        self.assertGreater(match["score"], 0.99)

    def test_negative_angles_are_values(self):
        (match,) = self.matches(self.template_file, self.image_file, "--rotation", "-2:2:1")
        self.assertEqual(match["rotation_deg"], 0)

    def test_depths(self):
        wide = self.save("wide.png", self.image.astype(np.uint16) * 200)
        (match,) = self.matches(self.template_file, wide)
        self.assert_place(match, 120, 90)
        self.assert_fails(2, "ssd compares grey levels", self.template_file, wide, "--method", "ssd")

    def test_drawing(self):
        drawing = self.folder / "out.png"
        self.matches(self.template_file, self.image_file, "--draw", str(drawing))
        image = np.asarray(Image.open(drawing)).astype(int)
        self.assertEqual(image.shape, (240, 320, 3))
        top, left, right, bottom = image[89:91, 150], image[110, 119:121], image[110, 179:181], image[130:132, 150]
        self.assertTrue((top[:, 1] > top[:, 0] + 50).any())  # green: which way is up
        for edge in (left, right, bottom):
            self.assertTrue((edge[:, 0] > edge[:, 2] + 50).any())
        colourless = np.ptp(image, axis=2) == 0
        self.assertTrue(colourless[:60].all() and colourless[150:].all())

    def test_drawings_of_several_images_are_numbered(self):
        self.matches(
            "--templates", self.template_file, "--images", self.image_file, self.image_file,
            "--draw", str(self.folder / "out.png"),
        )  # fmt: skip
        self.assertTrue((self.folder / "out_1.png").exists() and (self.folder / "out_2.png").exists())

    def test_no_match(self):
        stranger = self.save("stranger.png", speckle(41, 60, 99))
        self.assertEqual(self.matches(stranger, self.image_file, "--threshold", "0.9"), [])
        done = self.dic(stranger, self.image_file, "--threshold", "0.9")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout.splitlines()[-1], r"No match scores 0\.9 or more; the best score found is 0\.\d+")

    def test_flat_and_saturated_images(self):
        flat = self.save("flat.png", np.full((90, 90), 255, np.uint8))
        self.assertEqual(self.matches(self.template_file, flat), [])
        saturated = self.save("saturated.png", np.where(self.image > 140, 255, 0).astype(np.uint8))
        for match in self.matches(self.template_file, saturated, "--threshold", "-1", "--max-matches", "30"):
            self.assertTrue(-1 <= match["score"] <= 1)

    def turned(self, degrees):
        """The image, turned clockwise on the screen about its centre, and the template's centre in it."""
        middle = ((self.image.shape[1] - 1) / 2, (self.image.shape[0] - 1) / 2)
        matrix = cv2.getRotationMatrix2D(middle, -degrees, 1)
        pixels = cv2.warpAffine(self.image, matrix, self.image.shape[::-1], flags=cv2.INTER_LANCZOS4)
        return pixels, matrix @ [149.5, 110, 1]

    def test_a_range_without_step_measures_the_angle(self):
        pixels, (x, y) = self.turned(33.3)
        (match,) = self.matches(self.template_file, self.save("turned.png", pixels), "--rotation", "-180:180")
        self.assertEqual(
            list(match),
            ["image", "template", "x", "y", "center_x", "center_y", "score", "rotation_deg", "scale", "sigma_x",
             "sigma_y", "sigma_rotation_deg", "sigma_scale", "visible"],
        )
        self.assertAlmostEqual(match["center_x"], x, delta=0.05)
        self.assertAlmostEqual(match["center_y"], y, delta=0.05)
        self.assertAlmostEqual(match["rotation_deg"], 33.3, delta=0.1)
        self.assertEqual(match["scale"], 1)
        self.assertGreater(match["visible"], 0.95)
        self.assertTrue(0 < match["sigma_x"] < 0.05)

    def test_table_and_csv_of_poses(self):
        pixels, _ = self.turned(33.3)
        turned = self.save("turned.png", pixels)
        head, row = self.dic(self.template_file, turned, "--rotation", "0:90", "--scales", "0.9:1.1").stdout.splitlines()
        self.assertEqual(head.split()[7:12], ["sigma_x", "sigma_y", "sigma_r", "sigma_s", "visible"])
        self.assertEqual(len(row.split()), len(head.split()))
        (row,) = csv.DictReader(io.StringIO(self.dic(self.template_file, turned, "--rotation", "0:90", "--csv").stdout))
        self.assertAlmostEqual(float(row["rotation_deg"]), 33.3, delta=0.1)
        self.assertGreater(float(row["sigma_rotation_deg"]), 0)

    def test_wrong_usage(self):
        constant = self.save("constant.png", np.full((9, 9), 50, np.uint8))
        t, i = self.template_file, self.image_file
        self.assert_fails(2, "at least one template", t)
        self.assert_fails(2, "all others are images", t, "--images", i, "--templates", t)
        self.assert_fails(2, "several templates go to --templates", i, t, i)
        self.assert_fails(2, "not both", t, i, "--json", "--csv")
        self.assert_fails(2, "--track", t, i, "--search", "5")
        self.assert_fails(2, "does not fit into the image", i, t)
        self.assert_fails(2, "same grey level everywhere", constant, i)
        self.assert_fails(2, "MIN:MAX:STEP", t, i, "--rotation", "1:2:")
        self.assert_fails(2, "from a smaller to a larger", t, i, "--rotation", "2:1")
        self.assert_fails(2, "with zncc only", t, i, "--rotation", "1:2", "--method", "ssd")
        self.assert_fails(2, "affine", t, i, "--affine")
        self.assert_fails(2, "MIN:MAX:STEP", t, i, "--rotation", "5:1:1")
        self.assert_fails(2, "MIN:MAX:STEP", t, i, "--scales", "1:2:0")
        for scales in ("0:1:0.5", "1e-9", "1e300", "1e-9:1e9", "0.5:101"):
            self.assert_fails(2, "between 0.01 and 100", t, i, "--scales", scales)
        self.assert_fails(2, "same size", t, i, "--mask", i)
        self.assert_fails(2, "at least 1", t, i, "--max-matches", "0")
        self.assert_fails(2, "between -1 and 1", t, i, "--threshold", "1.5")
        self.assert_fails(2, "--method", t, i, "--method", "cosine")

    def test_bad_files(self):
        missing = str(self.folder / "missing.png")
        self.assert_fails(1, "missing.png", self.template_file, missing)
        self.assert_fails(1, "out.png", self.template_file, self.image_file, "--draw", str(self.folder / "no" / "out.png"))

    def test_a_signal_ends_the_reading_of_an_image(self):
        large = self.folder / "large.png"
        cv2.imwrite(str(large), np.random.default_rng(1).integers(0, 256, (6000, 6000), np.uint8))

        def seconds(wait):
            program = subprocess.Popen([DIC, "match", large, self.image_file], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if wait is not None:
                time.sleep(wait)
                program.send_signal(signal.SIGTERM)
            start = time.monotonic() - (wait or 0)
            program.communicate(timeout=60)
            return time.monotonic() - start

        whole = min(seconds(None) for _ in range(3))
        # A program that reads to the end needs the whole time; one of the tries meets no busy machine.
        self.assertLess(min(seconds(whole / 4) for _ in range(5)), 0.6 * whole)



if __name__ == "__main__":
    DIC = sys.argv.pop(1)
    unittest.main()
