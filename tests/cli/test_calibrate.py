"""`dic calibrate` and `--camera` from the outside: python test_calibrate.py DIC

The images of targets are those of rendered_boards.py: the camera is known.
"""

import csv
import json

import cv2
import h5py
import numpy as np

from dic_program import ProgramTest, main, write_image
from rendered_boards import DISTORTION, HEIGHT, MATRIX, WIDTH, is_dark_board, render, write_targets

BOARD = ("--columns", "9", "--rows", "6", "--square", "6")


def charuco(columns, rows):
    """Darkness of a ChArUco board of 6 mm squares and 4.5 mm markers, as OpenCV prints it."""
    dictionary = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_5X5_100)
    board = cv2.aruco.CharucoBoard((columns, rows), 6.0, 4.5, dictionary)
    printed = board.generateImage((columns * 120, rows * 120), None, 0, 1)

    def is_dark(x, y):
        column, row = np.floor(x * 20).astype(int), np.floor(y * 20).astype(int)
        inside = (column >= 0) & (row >= 0) & (column < printed.shape[1]) & (row < printed.shape[0])
        return inside & (printed[row.clip(0, printed.shape[0] - 1), column.clip(0, printed.shape[1] - 1)] < 128)

    return is_dark


class CalibrateTest(ProgramTest):
    def targets(self, is_dark, size_mm, count=8):
        return write_targets(self.folder, is_dark, size_mm, count)

    def camera(self, name="camera.json"):
        return json.loads((self.folder / name).read_text())

    def assert_lens(self, lens):
        self.assertAlmostEqual(lens["fx"], 1000, delta=0.6)
        self.assertAlmostEqual(lens["fy"], 996, delta=0.6)
        self.assertAlmostEqual(lens["cx"], 325, delta=0.6)
        self.assertAlmostEqual(lens["cy"], 244, delta=0.6)
        self.assertAlmostEqual(lens["k1"], -0.2, delta=0.01)
        self.assertAlmostEqual(lens["p2"], -0.0015, delta=2e-4)

    def test_lens_and_plane_of_a_checkerboard(self):
        names = self.targets(is_dark_board, (48, 30))
        write_image(self.folder / "blank.png", np.full((HEIGHT, WIDTH), 90.0))
        write_image(self.folder / "flat.png", render(is_dark_board, (0.1, -0.15, 0.02), (-25, -16, 160), 50))
        done = self.succeed("calibrate", *names, "blank.png", "--plane", "flat.png", *BOARD)
        self.assertIn("not used  blank.png", done.stdout)
        self.assertIn("mm per px in the middle", done.stdout)
        camera = self.camera()
        self.assertEqual((camera["image_width"], camera["image_height"]), (WIDTH, HEIGHT))
        self.assert_lens(camera["lens"])
        about = camera["calibration"]
        self.assertLess(about["rms_px"], 0.03)
        self.assertLess(about["plane"]["rms_px"], 0.03)
        self.assertEqual(about["images"][8]["problem"][:23], "The target was not foun")
        self.assertAlmostEqual(about["plane"]["tilt_deg"], 10.3, delta=0.1)
        self.assertLess(about["standard_deviations"]["fx"], 0.5)
        self.assertEqual(cv2.imread(str(self.folder / "camera.png")).shape[1], 1200)
        truth = MATRIX @ np.column_stack([cv2.Rodrigues(np.array([0.1, -0.15, 0.02]))[0][:, :2], (-25, -16, 160)])
        found = np.array(camera["plane"]["px_from_mm"])
        for mm in ((0, 0, 1), (48, 30, 1)):  # the board's two ends are the same to a board without marks
            ends = [found @ mm, found @ (48 - mm[0], 30 - mm[1], 1)]
            expected = (truth @ mm)[:2] / (truth @ mm)[2]
            self.assertLess(min(np.abs(end[:2] / end[2] - expected).max() for end in ends), 0.1)

        self.refuse(2, ["camera.json", "--force"], "calibrate", *names, *BOARD)
        # A new plane for the same lens.
        self.succeed("calibrate", "--camera", "camera.json", "--plane", "flat.png", *BOARD, "-o", "other.json")
        self.assertEqual(self.camera("other.json")["lens"], camera["lens"])
        # What the plane's image alone gives is blind to the lens, and says so.
        done = self.succeed("calibrate", "--plane", "flat.png", *BOARD, "-o", "flat.json")
        self.assertIn("the lens distorts", done.stderr)
        self.assertNotIn("lens", self.camera("flat.json"))

    def test_charuco(self):
        for columns, rows in ((9, 7), (9, 6)):  # odd and even numbers of rows are printed differently
            names = self.targets(charuco(columns, rows), (54, rows * 6))
            self.succeed("calibrate", *names, "--pattern", "charuco", "--columns", columns, "--rows", rows, "--square",
                         "6", "--marker", "4.5", "--dictionary", "5X5_100", "--force")
            camera = self.camera()
            self.assertLess(camera["calibration"]["rms_px"], 0.05)
            self.assert_lens(camera["lens"])

    def pairs(self, count, is_dark=is_dark_board, size_mm=(48, 30), hidden=0):
        """Pairs of a rig with two equal lenses, 14 degrees apart; something hides a corner of the left images."""
        random = np.random.default_rng(4)
        relative, shift = cv2.Rodrigues(np.array([0.01, 0.25, -0.02]))[0], np.array([-40.0, 1, 6])
        names = [[f"{side}_{i}.png" for i in range(count)] for side in ("left", "right")]
        for i in range(count):
            turn = random.uniform(-1, 1, 3) * [0.45, 0.4, 0.3]
            rotation = cv2.Rodrigues(turn)[0]
            place = np.array([0, 0, 165 * random.uniform(1, 1.1)]) - rotation @ np.array([size_mm[0] / 2, size_mm[1] / 2, 0])
            image = render(is_dark, turn, place, i)
            image[:hidden, :hidden] = 120
            write_image(self.folder / names[0][i], image)
            right = cv2.Rodrigues(relative @ rotation)[0].ravel()
            write_image(self.folder / names[1][i], render(is_dark, right, relative @ place + shift, 50 + i))
        return names, relative, shift

    def test_two_cameras(self):
        (left, right), relative, shift = self.pairs(5)
        done = self.succeed("calibrate", "--left", *left, "--right", *right, *BOARD, "--check-distance", "48.5")
        self.assertIn("left_0.png", done.stdout)
        self.assertIn("baseline", done.stdout)
        self.assertIn("Only 5 pairs", done.stderr)
        self.assertIn("48.5 mm as measured", done.stderr)
        stereo = self.camera("stereo.json")
        self.assertLess(np.abs(np.array(stereo["rotation"]) - relative).max(), 2e-3)
        self.assertLess(np.abs(np.array(stereo["translation_mm"]) - shift).max(), 0.4)
        self.assertLess(stereo["epipolar_px"], 0.05)
        self.assertEqual(len(stereo["calibration"]["pairs"]), 5)
        self.assertLess(stereo["calibration"]["pairs"][3]["epipolar_px"], 0.05)
        self.assertEqual(np.shape(stereo["covariance"]["matrix"]), (30, 30))
        self.assertEqual(cv2.imread(str(self.folder / "stereo.png")).shape[1], 1600)
        # A file of dic is a calibration like those of others; one camera is refused, and so is the other way round.
        self.succeed("calibrate", "--import", "stereo.json", "-o", "again.json")
        self.assertEqual(self.camera("again.json")["rotation"], stereo["rotation"])
        self.refuse(1, ["two cameras"], "track", *left, "--camera", "stereo.json")
        self.refuse(2, ["5 left images", "4 right"], "calibrate", "--left", *left, "--right", *right[1:], *BOARD, "-o", "x.json")
        self.refuse(2, ["one camera"], "calibrate", "c.png", "--left", left[0], "--right", right[0], *BOARD, "-o", "x.json")

    def test_two_cameras_and_a_board_that_is_partly_hidden(self):
        (left, right), relative, shift = self.pairs(4, charuco(9, 6), (54, 36), hidden=240)
        self.succeed("calibrate", "--left", *left, "--right", *right, "--pattern", "charuco", "--columns", 9, "--rows", 6,
                     "--square", "6", "--marker", "4.5", "--dictionary", "5X5_100")
        stereo = self.camera("stereo.json")
        for pair in stereo["calibration"]["pairs"]:
            self.assertIsNone(pair["problem"])
            self.assertGreater(pair["left"]["points"], 15)
            self.assertEqual(pair["right"]["points"], 40)
        self.assertLess(min(pair["left"]["points"] for pair in stereo["calibration"]["pairs"]), 36)
        self.assertLess(np.abs(np.array(stereo["rotation"]) - relative).max(), 4e-3)
        self.assertLess(stereo["epipolar_px"], 0.1)

    def test_import(self):
        lens = [("fx_px", 2500), ("fy_px", 2501), ("fs_px", 0.5), ("cx_px", 500), ("cy_px", 400), ("k1", -0.1)]
        lines = [f"cam{i}_{name},{value}" for i in range(2) for name, value in lens]
        lines += ["tx_mm,-200", "ty_mm,1.5", "tz_mm,50", "theta_deg,0", "phi_deg,30", "psi_deg,0"]
        (self.folder / "rig.txt").write_text("\n".join(lines))
        self.refuse(1, ["rig.txt", "size of the images"], "calibrate", "--import", "rig.txt")
        for size in ("1000", "1000x", "x800", "1000x800x3", "-1000x800"):
            self.refuse(2, ["2448x2048"], "calibrate", "--import", "rig.txt", f"--image-size={size}")
        done = self.succeed("calibrate", "--import", "rig.txt", "--image-size", "1000x800")
        self.assertIn("30.0000 degrees", done.stdout)
        stereo = self.camera("stereo.json")
        self.assertEqual(stereo["translation_mm"], [-200, 1.5, 50])
        self.assertAlmostEqual(stereo["rotation"][0][2], 0.5, delta=1e-12)
        self.assertEqual(stereo["left"]["lens"]["skew"], 0.5)
        self.assertIsNone(stereo["epipolar_px"])
        self.refuse(2, ["stereo.json", "--force"], "calibrate", "--import", "rig.txt", "--image-size", "1000x800")
        (self.folder / "camera.json").write_text(json.dumps({"dic_camera": 1, "image_width": 100, "image_height": 80}))
        self.refuse(1, ["one camera"], "calibrate", "--import", "camera.json", "-o", "x.json")
        self.refuse(1, ["none.xml"], "calibrate", "--import", "none.xml", "-o", "x.json")

    def test_wrong_usage(self):
        self.refuse(2, ["images"], "calibrate", *BOARD)
        self.refuse(2, ["--columns"], "calibrate", "a.png")
        self.refuse(2, ["same from two sides"], "calibrate", "a.png", "--columns", 6, "--rows", 6, "--square", 1)
        self.refuse(2, ["markers"], "calibrate", "a.png", *BOARD, "--pattern", "charuco")
        self.refuse(1, ["nothing.png"], "calibrate", "nothing.png", *BOARD)
        write_image(self.folder / "blank.png", np.full((HEIGHT, WIDTH), 90.0))
        self.refuse(2, ["0 different views", "not found"], "calibrate", "blank.png", *BOARD)
        self.assertFalse((self.folder / "camera.json").exists())


class CameraTest(ProgramTest):
    """Speckle seen by a lens that distorts, of a specimen that is tilted."""

    LENS = {"fx": 500, "fy": 498, "cx": 152, "cy": 118, "k1": -0.3, "k2": 0.12, "p1": 0.001, "p2": -0.002}

    def setUp(self):
        super().setUp()
        rotation = cv2.Rodrigues(np.array([0.1, 0.15, 0.3]))[0]
        matrix = np.array([[500, 0, 152], [0, 498, 118], [0, 0, 1.0]])
        plane = matrix @ np.column_stack([rotation[:, :2], (-2, 3, 250)])
        self.parameters = {"dic_camera": 1, "image_width": 300, "image_height": 240, "lens": self.LENS,
                           "plane": {"px_from_mm": plane.tolist()}}
        self.write_camera()

    def write_camera(self, **changes):
        (self.folder / "camera.json").write_text(json.dumps(self.parameters | changes))

    def synth(self, *motion):
        self.succeed("synth", "-o", "d", "--width", 300, "--height", 240, "--sigma", 1.5, "--camera", "camera.json",
                     "--truth-step", 5, *motion)

    def truth(self):
        with h5py.File(self.folder / "d/truth.h5") as file:
            return {name: data[()] for name, data in file.items()}

    def test_false_strain_of_a_shift_vanishes(self):
        self.synth("--u", 8.3, "--v", -5.2)
        self.succeed("track", "d", "-o", "plain", "--no-pictures", "--device", "cpu")
        self.succeed("track", "d", "-o", "corrected", "--camera", "camera.json", "--csv", "--device", "cpu")
        plain, corrected = self.fields("plain"), self.fields("corrected")
        ok = (corrected["status"][0] == 0) & np.isfinite(corrected["exx"][0])
        self.assertGreater(np.nanmax(np.abs(plain["exx"][0][ok])), 3e-3)
        for name in ("exx", "eyy", "exy"):
            self.assertLess(np.sqrt(np.mean(corrected[name][0][ok] ** 2)), 2e-4)
        run = self.run_json("corrected")
        scale = run["settings"]["scale"]
        self.assertAlmostEqual(scale, 0.5, delta=0.05)
        self.assertEqual(run["length_unit"], "mm")
        self.assertEqual(run["settings"]["camera"]["lens"]["fx"], 500)
        self.assertIsNone(self.run_json("plain")["settings"]["camera"])
        self.assertAlmostEqual(run["frames"][0]["mean_u"], 8.3 * scale, delta=0.005 * scale)
        self.assertAlmostEqual(run["frames"][0]["mean_v"], -5.2 * scale, delta=0.005 * scale)

        truth = self.truth()
        with h5py.File(self.folder / "corrected/result.vtkhdf") as file:
            x, y = file["dic/X"][()] / scale, file["dic/Y"][()] / scale
        nodes = np.s_[: x.shape[0], : x.shape[1]]
        self.assertLess(np.abs(x - truth["X"][nodes]).max(), 1e-6)
        self.assertLess(np.abs(y - truth["Y"][nodes]).max(), 1e-6)
        with open(self.folder / "corrected/csv/frame_0001.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertAlmostEqual(float(rows[-1]["x [mm]"]), x[-1, -1] * scale, delta=1e-6)
        # The picture shows the points where they are in the image: as without the camera.
        self.assertTrue((self.folder / "corrected/pictures/frame_0001_u.png").exists())

    def test_displacement_and_strain_in_the_plane(self):
        self.synth("--motion", "affine", "--ux", 0.01, "--vy", -0.004, "--uy", 0.006, "--noise", 1)
        for extra in ((), ("--global",), ("--reference-strategy", "previous")):
            self.succeed("track", "d", "--camera", "camera.json", "--force", "--no-pictures", "--strain-measure",
                         "engineering", "--device", "cpu", *extra)
            fields, truth = self.fields(), self.truth()
            ok = (fields["status"][0] == 0) & np.isfinite(fields["exx"][0])
            nodes = np.s_[1, : ok.shape[0], : ok.shape[1]]
            scale = self.run_json()["settings"]["scale"]
            error = (fields["u"][0] - scale * truth["U"][nodes])[ok] / fields["sigma_u"][0][ok]
            self.assertLess(np.abs(np.median(error)), 0.3)
            self.assertLess(np.percentile(np.abs(error), 68), 1.4)
            self.assertAlmostEqual(fields["exx"][0][ok].mean(), 0.01, delta=1e-4)
            if extra != ("--global",):  # what that leaves at edges is systematic
                scatter = fields["exx"][0][ok].std() / np.sqrt(np.mean(fields["sigma_exx"][0][ok] ** 2))
                self.assertTrue(0.75 < scatter < 1.35, f"{extra}: {scatter}")  # few independent windows
            self.assertAlmostEqual(fields["eyy"][0][ok].mean(), -0.004, delta=1e-4)
            self.assertAlmostEqual(fields["exy"][0][ok].mean(), 0.003, delta=1e-4)

    def test_a_lens_alone_measures_in_px(self):
        del self.parameters["plane"]
        self.write_camera()
        self.synth("--u", 3)
        self.succeed("track", "d", "--camera", "camera.json", "--no-pictures")
        self.assertEqual(self.run_json()["length_unit"], "px")
        self.assertAlmostEqual(self.run_json()["frames"][0]["mean_u"], 3, delta=0.005)
        self.succeed("track", "d", "--camera", "camera.json", "--no-pictures", "--force", "--scale", "0.1")
        self.assertAlmostEqual(self.run_json()["frames"][0]["mean_u"], 0.3, delta=0.0005)

    def test_truth_in_the_images(self):
        self.synth("--u", 3)
        self.succeed("track", "d", "--no-pictures", "--device", "cpu")
        fields, truth = self.fields(), self.truth()
        nodes = np.s_[1, : fields["u"].shape[1], : fields["u"].shape[2]]
        inside = np.s_[4:-4, 4:-4]
        self.assertLess(np.abs((fields["u"][0] - truth["u"][nodes])[inside]).max(), 0.02)
        self.assertLess(np.abs((fields["v"][0] - truth["v"][nodes])[inside]).max(), 0.02)

    def test_refused(self):
        frames = self.sequence([(0, 0), (1, 0)])
        self.refuse(2, ["300x240", "140x120"], "track", *frames, "--camera", "camera.json")
        self.refuse(2, ["leave out --scale"], "track", *frames, "--camera", "camera.json", "--scale", "0.1")
        self.refuse(1, ["none.json"], "track", *frames, "--camera", "none.json")
        self.write_camera(lens=self.LENS | {"k7": 1})
        self.refuse(1, ["\"k7\""], "track", *frames, "--camera", "camera.json")
        self.write_camera(lens=self.LENS | {"k1": -9})
        self.refuse(1, ["folds the image"], "track", *frames, "--camera", "camera.json")
        self.write_camera()
        self.refuse(2, ["another size"], "synth", "-o", "e", "--camera", "camera.json")


if __name__ == "__main__":
    main()
