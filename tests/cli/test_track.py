"""`dic track` from the outside: python test_track.py DIC"""

import csv
import io
import math
import re
import struct
import zlib

import cv2
import h5py
import numpy as np
import tifffile
from vtkmodules.vtkIOHDF import vtkHDFReader

from dic_program import ProgramTest, main, speckle, write_image

QUICK = ("--subset", "21", "--step", "10", "--no-pictures")
SHIFTS = [(0, 0), (0.3, -0.2), (1.6, 0.8), (2.5, 1.4)]


class TrackTest(ProgramTest):
    def test_defaults_write_every_file(self):
        frames = self.sequence(SHIFTS[:3])
        done = self.succeed("track", *frames, "--csv")
        self.assertEqual(done.stderr, "")
        self.assertIn("frame_0.png", done.stdout)
        self.assertIn("dic_out", done.stdout)
        fields = self.fields()
        self.assert_moved(fields, 0, *SHIFTS[1], edge=4)
        self.assert_moved(fields, 1, *SHIFTS[2], edge=4)
        names = {str(path.relative_to(self.folder / "dic_out")) for path in (self.folder / "dic_out").rglob("*.*")}
        images = {f"pictures/frame_{i}_{name}.png" for i in (2,) for name in ("u", "v", "exx", "eyy", "exy")}
        self.assertEqual(names, images | {"csv/frame_1.csv", "csv/frame_2.csv", "run.json", "result.vtkhdf",
                                            ".dic-files", ".dic-frames.jsonl"})
        self.assertGreater(cv2.imread(str(self.folder / "dic_out/pictures/frame_2_u.png")).shape[1], 140)

    def burned_in(self, grey, noise=0.0, seed=0):
        """The image with a date in an opaque box, as a camera's software draws it."""
        grey = grey + np.random.default_rng(seed).normal(0, noise, grey.shape) if noise else grey.copy()
        grey = np.clip(np.round(grey), 0, 255).astype(np.uint8)
        cv2.rectangle(grey, (10, 150), (130, 185), 0, -1)
        for line, text in enumerate(("2026-11-27", "10:45:03.2")):
            cv2.putText(grey, text, (12, 165 + 15 * line), cv2.FONT_HERSHEY_SIMPLEX, 0.55, 255, 1)
        return grey

    def test_what_is_drawn_into_the_images_is_named(self):
        motions = [(0, 0), (1.3, -0.4), (2.8, 0.7)]
        for noise in (0, 2):
            for k, (u, v) in enumerate(motions):
                write_image(self.folder / f"text_{k}.png", self.burned_in(speckle(200, 260, u, v), noise, k))
            done = self.succeed("track", *(f"text_{k}.png" for k in range(3)), "--subset", "15", "--step", "5",
                                "--no-pictures", "--force")
            still = [warning for warning in self.run_json()["warnings"] if "stand still" in warning]
            self.assertEqual(len(still), 1, done.stderr)
            self.assertIn(still[0], done.stderr)
            left, right, top, bottom = map(int, re.search(r"x = (\d+) to (\d+), y = (\d+) to (\d+)", still[0]).groups())
            self.assertTrue(5 <= left < right <= 135 and 145 <= top < bottom <= 190, still)
            fields = self.fields()
            unseen = (fields["status"][-1] == 0) & (np.hypot(fields["u"][-1], fields["v"][-1]) < 0.05)
            self.assertGreater(unseen.sum(), 3)

    def test_what_really_stands_still_is_not_taken_for_drawn(self):
        """A camera's noise is different in every frame; the zero lines of rotations and gradients are thin."""
        random = np.random.default_rng(7)
        y, x = np.mgrid[0:200, 0:260].astype(float)
        scenes = {"clamped": lambda k: np.where(x < 60, speckle(200, 260), speckle(200, 260, 1.4 * k, 0.3 * k)),
                  "sheared": lambda k: speckle(200, 260, 0.02 * k * (y - 100), 0),
                  "rotated": lambda k: speckle(200, 260, -0.02 * k * (y - 100), 0.02 * k * (x - 130)),
                  "at rest": lambda k: speckle(200, 260)}
        for name, scene in scenes.items():
            for k in range(3):
                write_image(self.folder / f"scene_{k}.png", np.clip(scene(k) + random.normal(0, 1.5, x.shape), 0, 255))
            done = self.succeed("track", *(f"scene_{k}.png" for k in range(3)), "--subset", "15", "--step", "5",
                                "--no-pictures", "--force")
            self.assertEqual(self.run_json()["warnings"], [], name + done.stderr)

    def test_another_orientation_is_named(self):
        frames = self.sequence(SHIFTS[:3], pattern="photo_{}.png")
        exif = b"MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\3\0\0\0\0\0\0"
        chunk = struct.pack(">I", len(exif)) + b"eXIf" + exif + struct.pack(">I", zlib.crc32(b"eXIf" + exif))
        self.succeed("track", *frames, *QUICK)
        self.assertEqual(self.run_json()["warnings"], [])
        turned = cv2.rotate(cv2.imread(str(self.folder / frames[2]), cv2.IMREAD_GRAYSCALE), cv2.ROTATE_180)
        segment = b"\xff\xe1" + struct.pack(">H", 8 + len(exif)) + b"Exif\0\0" + exif
        png, jpeg = (cv2.imencode(kind, turned, options)[1].tobytes() for kind, options in (
            (".png", []), (".jpg", [cv2.IMWRITE_JPEG_QUALITY, 100])))
        with io.BytesIO() as tiff:
            tifffile.imwrite(tiff, turned, extratags=[(274, 3, 1, 3, True)])
            files = {"png": png[:33] + chunk + png[33:], "jpg": jpeg[:2] + segment + jpeg[2:], "tif": tiff.getvalue()}
        for kind, data in files.items():
            (self.folder / f"turned.{kind}").write_bytes(data)
            done = self.succeed("track", *frames[:2], f"turned.{kind}", *QUICK, "--force")
            self.assertEqual(self.run_json()["warnings"], [done.stderr.removeprefix("dic: warning: ").strip()])
            self.assertIn(f"turned.{kind} notes the orientation 3, photo_0.png the orientation 1", done.stderr)
            self.assert_moved(self.fields(), 1, *SHIFTS[2], edge=4)

    def test_a_frame_that_equals_the_reference(self):
        frames = self.sequence([(0, 0), (0, 0)])
        done = self.succeed("track", *frames, *QUICK)
        self.assertNotIn("nan", done.stdout)

    def test_control_characters_of_names_are_printed_as_text(self):
        frames = self.sequence(SHIFTS[:2], pattern="a\n\x1b[31m{}\t.png")
        (self.folder / "bad\nname.png").write_bytes(b"no image")
        done = self.succeed("track", *frames, "bad\nname.png", *QUICK, code=3)
        for text in (done.stdout, done.stderr):
            self.assertNotIn("\x1b", text)
        self.assertIn(r"a\n\x1b[31m1\t.png", done.stdout)
        self.assertIn(r"bad\nname.png", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_pictures(self):
        frames = self.sequence([(0.1 * i, 0) for i in range(8)])
        for option, drawn in (("some", {3, 7}), ("all", set(range(1, 8))), ("none", set())):
            done = self.succeed("track", *frames, "--step", "10", "--pictures", option, "--force")
            files = {path.name for path in (self.folder / "dic_out").glob("pictures/*.png")}
            self.assertEqual(files, {f"frame_{i}_{name}.png" for i in drawn for name in ("u", "v", "exx", "eyy", "exy")})
            self.assertEqual(self.run_json()["frames_drawn"], len(drawn))
            self.assertEqual("pictures/" in done.stdout, bool(drawn))
            self.assertEqual("--pictures all" in done.stdout, option == "some")

    def test_times(self):
        frames = self.sequence(SHIFTS[:3])
        self.succeed("track", *frames, *QUICK)
        self.assertEqual([frame["time"] for frame in self.run_json()["frames"]], [None, None])
        self.succeed("track", *frames, *QUICK, "--fps", "4", "--force")
        self.assertEqual([frame["time"] for frame in self.run_json()["frames"]], [0.25, 0.5])
        (self.folder / "times.csv").write_text("time,force\n0,1\n2.5,3\n7,9\n")
        self.succeed("track", *frames, *QUICK, "--times", "times.csv", "--force")
        self.assertEqual([frame["time"] for frame in self.run_json()["frames"]], [2.5, 7])
        with h5py.File(self.folder / "dic_out/result.vtkhdf") as file:
            self.assertEqual(list(file["VTKHDF/Steps/Values"]), [2.5, 7])
        for text in ("Zeit [ms];Kraft [kN]\n0;1\n2500;3\n7000;9\n", "t [s]\n0,0\n2,5\n7,0\n", "Camera 1\ntime\n(min)\n0\n"
                     "0,041666666666666667\n0,11666666666666667\n"):
            (self.folder / "times.csv").write_text(text)
            self.succeed("track", *frames, *QUICK, "--times", "times.csv", "--force")
            for frame, time in zip(self.run_json()["frames"], (2.5, 7)):
                self.assertAlmostEqual(frame["time"], time)
        (self.folder / "times.csv").write_text("0\n1\n")
        self.refuse(2, ("2 times for 3 frames",), "track", *frames, *QUICK, "--times", "times.csv", "--force")

    def test_order_of_signs_and_decimals(self):
        for names in (("img_-0002.png", "img_-0001.png", "img_0000.png"),
                      ("load_0.25kN.png", "load_0.5kN.png", "load_1kN.png")):
            for old in self.folder.glob("*.png"):
                old.unlink()
            for name, frame in zip(names, self.sequence(SHIFTS[:3])):
                (self.folder / frame).rename(self.folder / name)
            for given in (["."], ["*.png"], sorted(names)):
                self.succeed("track", *given, *QUICK, "--force")
                run = self.run_json()
                self.assertEqual((run["reference"].split("/")[-1], [frame["file"] for frame in run["frames"]]),
                                 (names[0], list(names[1:])))

    def test_extremes_of_strain(self):
        self.succeed("track", *self.sequence(SHIFTS[:2]), *QUICK)
        with h5py.File(self.folder / "dic_out/result.vtkhdf") as file:
            exx, x, y = file["VTKHDF/PointData/exx"][0], file["dic/x"][:], file["dic/y"][:]
        j, i = np.unravel_index(np.nanargmax(exx), exx.shape)
        largest = self.run_json()["frames"][0]["max_exx"]
        self.assertAlmostEqual(largest["value"], exx[j, i], delta=1e-9)
        self.assertEqual((largest["x"], largest["y"]), (x[i], y[j]))

    def test_run_json(self):
        frames = self.sequence(SHIFTS)
        self.succeed("track", *frames, *QUICK, "--order", "2", "--roi-rect", "10,12,100,90")
        run = self.run_json()
        self.assertEqual(run["reference"], "frame_0.png")
        self.assertEqual(run["settings"]["order"], 2)
        self.assertEqual(run["settings"]["roi"]["rect"], [10, 12, 100, 90])
        self.assertIn("--roi-rect 10,12,100,90", run["command"])
        self.assertEqual(run["points"], 10 * 9)
        self.assertEqual(set(run["seconds"]), {"load", "prepare", "search", "refine", "strain", "write", "total"})
        self.assertGreater(run["seconds"]["refine"], 0)
        self.assertEqual(max(run["seconds"].values()), run["seconds"]["total"])
        self.assertTrue(run["kernels"])
        self.assertEqual([frame["file"] for frame in run["frames"]], frames[1:])
        for frame, (u, v) in zip(run["frames"], SHIFTS[1:]):
            self.assertIsNone(frame["error"])
            self.assertEqual(sum(frame["counts"].values()), 90)
            self.assertAlmostEqual(frame["mean_u"], u, delta=0.01)
            self.assertAlmostEqual(frame["mean_v"], v, delta=0.01)
            self.assertGreater(frame["mean_zncc"], 0.99)
            self.assertLess(frame["sd_u"], 0.02)
        self.assertGreater(run["noise_floor"]["sigma_u"], 0)
        self.assertGreater(run["noise_floor"]["sigma_exx"], 0)
        self.assertGreater(run["frames"][0]["sigma_exy"], 0)

    def test_csv(self):
        self.succeed("track", *self.sequence(SHIFTS[:2]), *QUICK, "--csv")
        with open(self.folder / "dic_out/csv/frame_1.csv", newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(",".join(rows[0]), "x,y,u,v,zncc,sigma_u,sigma_v,status,iterations,exx,eyy,exy,"
                                            "sigma_exx,sigma_eyy,sigma_exy")
        fields = self.fields()
        self.assertEqual(len(rows) - 1, fields["u"][0].size)
        for row in rows[1:]:
            x, y, u = float(row[0]), float(row[1]), float(row[2])
            stored = fields["u"][0][int(y) // 10, int(x) // 10]
            self.assertTrue(math.isclose(u, stored, abs_tol=1e-5) or (math.isnan(u) and math.isnan(stored)))

    def test_csv_style_alone_writes_tables(self):
        frames = self.sequence(SHIFTS[:2])
        tables = lambda name: (self.folder / name / "csv").exists()  # noqa: E731
        self.succeed("track", *frames, *QUICK, "--csv-style", "dice", "-o", "typed")
        self.assertIn("SUBSET_ID", (self.folder / "typed/csv/frame_1.csv").read_text())
        self.succeed("track", *frames, *QUICK, "--save-config", "saved.toml", "-o", "none")
        self.succeed("track", *frames, "--config", "saved.toml", "-o", "saved")
        self.assertFalse(tables("none") or tables("saved"))
        self.succeed("track", *frames, "--config", "saved.toml", "--csv-style", "vic", "-o", "both")
        (self.folder / "own.toml").write_text('csv-style = "dice"\n')
        self.succeed("track", *frames, *QUICK, "--config", "own.toml", "-o", "own")
        self.assertTrue(tables("both") and tables("own"))

    def test_scale_gives_mm(self):
        self.succeed("track", *self.sequence(SHIFTS[:3:2]), *QUICK, "--scale", "0.5", "--csv")
        self.assertAlmostEqual(self.run_json()["frames"][0]["mean_u"], 0.8, delta=0.01)
        self.assertAlmostEqual(np.nanmean(self.fields()["u"]), 0.8, delta=0.01)
        header = (self.folder / "dic_out/csv/frame_1.csv").read_text().splitlines()[0]
        self.assertTrue(header.startswith("x [mm],y [mm],u [mm]"), header)

    def test_noise_floor_of_a_specimen_at_rest(self):
        self.succeed("synth", "-o", "rest", "--width", "256", "--height", "256", "--noise", "2", "--frames", "3",
                     "--u", "0", "--v", "0")
        output = self.succeed("track", "rest", "--noise-floor").stdout
        self.assertIn("Noise floor", output)
        run = self.run_json()
        floor = run["noise_floor"]
        for name in ("u", "v", "exx", "eyy", "exy"):
            self.assertAlmostEqual(floor["measured_to_predicted"][name], 1, delta=0.35)
            self.assertGreater(floor["measured"]["sd_" + name], 0)
        for at in run["noise_curve"]:
            self.assertAlmostEqual(at["noise"], (2 ** 2 + 1 / 12) ** 0.5, delta=0.15)
            self.assertGreater(at["pixels"], 400)
        table = (self.folder / "dic_out/noise_curve.csv").read_text().splitlines()
        self.assertEqual(table[0], "grey,noise,pixels")
        self.assertEqual(len(table) - 1, len(run["noise_curve"]))
        self.assertGreater(len(table), 10)
        self.assertTrue((self.folder / "dic_out/noise_curve.png").exists())

    def test_vtk_reads_the_result(self):
        self.succeed("track", *self.sequence(SHIFTS[:3]), *QUICK)
        reader = vtkHDFReader()
        reader.SetFileName(str(self.folder / "dic_out/result.vtkhdf"))
        reader.SetStep(1)
        reader.Update()
        data = reader.GetOutput().GetPointData()
        values = [data.GetArray("u").GetValue(i) for i in range(data.GetArray("u").GetNumberOfTuples())]
        self.assertAlmostEqual(np.nanmean(values), SHIFTS[2][0], delta=0.01)

    def test_reference_option_measures_every_frame(self):
        frames = self.sequence(SHIFTS[:2])
        self.succeed("track", frames[1], "--reference", frames[0], *QUICK)
        self.assertEqual(self.run_json()["reference"], frames[0])
        self.assert_moved(self.fields(), 0, *SHIFTS[1])

    def test_frames_of_a_folder_are_sorted_naturally(self):
        (self.folder / "a folder").mkdir()
        for number, (u, v) in zip((1, 2, 10), SHIFTS):
            write_image(self.folder / f"a folder/img_{number}.png", speckle(120, 140, u, v))
        for argument in ("a folder", "a folder/*.png"):
            self.succeed("track", argument, *QUICK, "--force")
            self.assertEqual([frame["file"] for frame in self.run_json()["frames"]], ["img_2.png", "img_10.png"])

    def test_other_orders_hold(self):
        frames = self.sequence(SHIFTS[:3])
        self.succeed("track", frames[2], frames[0], frames[1], *QUICK)
        run = self.run_json()
        self.assertEqual([run["reference"]] + [frame["file"] for frame in run["frames"]],
                         [frames[2], frames[0], frames[1]])

    def test_global_step(self):
        frames = self.sequence(SHIFTS[:2])
        self.succeed("track", *frames, *QUICK, "--noise", "2", "-o", "subsets")
        self.succeed("track", *frames, *QUICK, "--noise", "2", "--global")
        self.assert_moved(self.fields(), 0, *SHIFTS[1], edge=2)
        runs = [self.run_json("subsets"), self.run_json()]
        self.assertLess(runs[1]["frames"][0]["sigma_u"], 0.7 * runs[0]["frames"][0]["sigma_u"])
        self.assertEqual([run["settings"]["global"] for run in runs], [False, True])
        self.refuse(2, ["at least"], "track", *frames, *QUICK, "--force", "--global", "--global-resolution", "20")

    def test_prefilter(self):
        frames = self.sequence(SHIFTS[:2])
        for value, setting, chosen in (("auto", "auto", 0), ("none", 0, 0), ("0.7", 0.7, 0.7)):
            self.succeed("track", *frames, *QUICK, "--force", "--prefilter", value)
            run = self.run_json()
            self.assertEqual((run["settings"]["prefilter"], run["chosen"]["prefilter"]), (setting, chosen))
            self.assert_moved(self.fields(), 0, *SHIFTS[1], edge=2)
        for bad in ("strong", "0.1", "9", "-1"):
            self.refuse(2, ["prefilter"], "track", *frames, *QUICK, "--force", "--prefilter", bad)

    def test_anti_bias(self):
        frames = self.sequence(SHIFTS[:2])
        self.succeed("track", *frames, *QUICK, "--anti-bias")
        self.assertTrue(self.run_json()["settings"]["anti_bias"])
        self.assert_moved(self.fields(), 0, *SHIFTS[1], edge=2)
        self.refuse(2, ["first"], "track", *frames, *QUICK, "--force", "--anti-bias", "--reference-strategy", "previous")

    def test_order_by_point(self):
        frames = self.sequence(SHIFTS[:2])
        self.succeed("track", *frames, *QUICK, "--order", "auto")
        self.assertEqual(self.run_json()["settings"]["order"], "auto")
        self.assert_moved(self.fields(), 0, *SHIFTS[1], edge=2)
        self.refuse(2, ["one order"], "track", *frames, *QUICK, "--force", "--order", "auto", "--global")

    def test_subset_for_a_demanded_sigma(self):
        frames = self.sequence(SHIFTS[:2])
        subsets = []
        for target in ("0.05", "0.02"):
            done = self.succeed("track", *frames, "--noise", "3", "--step", "10", "--no-pictures", "--force", "--sigma-target", target)
            run = self.run_json()
            subsets.append(run["chosen"]["subset"])
            self.assertEqual(run["settings"]["sigma_target"], float(target))
            self.assertLess(run["frames"][0]["sigma_u"], float(target))
            self.assertIn(f"{subsets[-1]} px", done.stdout)
        self.assertLess(subsets[0], subsets[1])
        for bad in ("small", "0"):
            self.refuse(2, ["igma"], "track", *frames, "--force", "--sigma-target", bad)

    def test_polygon_and_hole(self):
        frames = self.sequence(SHIFTS[:2])
        self.succeed("track", *frames, "--subset", "15", "--step", "5", "--no-pictures",
                     "--roi-polygon", "20,20 100,20 100,100 20,100", "--roi-hole", "50,50 70,50 70,70 50,70")
        nodes = 17 * 17 - 5 * 5
        self.assertEqual(self.run_json()["points"], nodes)
        # At each corner the subset of the corner node and those of its two neighbours on the edge (13 x 8 of
        # 15 x 15 px) are inside by less than half.
        counts = self.run_json()["frames"][0]["counts"]
        self.assertEqual((counts["ok"], counts["masked"]), (nodes - 12, 12))

    def test_mask_image(self):
        frames = self.sequence(SHIFTS[:2])
        mask = np.zeros((120, 140))
        mask[30:91, 40:81] = 255
        write_image(self.folder / "mask.png", mask)
        self.succeed("track", *frames, *QUICK, "--roi", "mask.png")
        self.assertEqual(self.run_json()["points"], 7 * 5)

    def test_16_bits_stay_16_bits(self):
        self.succeed("track", *self.sequence(SHIFTS[:2], dtype=np.uint16), *QUICK)
        fields = self.fields()
        self.assert_moved(fields, 0, *SHIFTS[1], within=0.01)
        # Noise of the rounding, 0.29 of 65535 levels: a conversion to 8 bit would leave 75.
        self.assertLess(self.run_json()["frames"][0]["noise"], 30)

    def test_names_with_spaces_and_other_letters(self):
        frames = self.sequence(SHIFTS[:2], pattern="Größe Δ 測定 {}.png")
        self.succeed("track", *frames, "-o", "Ergebnis ü", *QUICK, "--csv")
        self.assert_moved(self.fields("Ergebnis ü"), 0, *SHIFTS[1])
        self.assertEqual(self.run_json("Ergebnis ü")["frames"][0]["file"], frames[1])
        self.assertTrue((self.folder / "Ergebnis ü/csv/Größe Δ 測定 1.csv").exists())

    def test_colliding_stems_are_numbered(self):
        for name in ("a", "b"):
            (self.folder / name).mkdir()
        write_image(self.folder / "r.png", speckle(120, 140))
        for name in ("a/x.png", "b/x.png"):
            write_image(self.folder / name, speckle(120, 140, 1))
        self.succeed("track", "r.png", "a/x.png", "b/x.png", *QUICK, "--csv")
        self.assertEqual(sorted(path.name for path in (self.folder / "dic_out/csv").iterdir()), ["x.csv", "x_2.csv"])

    def test_video(self):
        video = cv2.VideoWriter(str(self.folder / "clip.avi"), cv2.VideoWriter_fourcc(*"MJPG"), 25, (140, 120))
        video.set(cv2.VIDEOWRITER_PROP_QUALITY, 100)
        self.assertTrue(video.isOpened())
        for u, v in SHIFTS:
            grey = np.round(speckle(120, 140, u, v)).astype(np.uint8)
            video.write(cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR))
        video.release()
        self.succeed("track", "clip.avi", *QUICK)
        self.assertEqual(len(self.run_json()["frames"]), 3)
        for frame in range(3):
            self.assert_moved(self.fields(), frame, *SHIFTS[frame + 1], within=0.1)

    def test_reference_strategies(self):
        frames = self.sequence(SHIFTS)
        for strategy in ("first", "previous", "auto"):
            self.succeed("track", *frames, *QUICK, "--reference-strategy", strategy, "--force")
            self.assert_moved(self.fields(), 2, *SHIFTS[3], within=0.04)


class ConfigTest(ProgramTest):
    def test_saved_settings_give_the_same_run(self):
        frames = self.sequence(SHIFTS[:2])
        typed = ("--subset", "25", "--step", "7", "--order", "2", "--interpolation", "quintic", "--search", "12",
                 "--roi-polygon", "10,10 130,10 130,110 10,110", "--roi-hole", "50,50 60,50 60,60",
                 "--roi-hole", "80,50 90,50 90,60", "--strain-measure", "hencky", "--strain-window", "7", "--csv",
                 "--no-pictures", "--prefilter", "0.5", "--anti-bias", "--weights", "gaussian")
        self.succeed("track", *frames, *typed, "--save-config", "run.toml", "-o", "typed")
        self.succeed("track", *frames, "--config", "run.toml", "-o", "read")
        typed, read = self.run_json("typed"), self.run_json("read")
        self.assertEqual(read["settings"], typed["settings"])
        self.assertEqual(read["settings"]["weights"], "gaussian")
        self.assertEqual(read["frames"][0]["counts"], typed["frames"][0]["counts"])
        self.assertTrue((self.folder / "read/csv").exists())

    def test_choices_are_saved(self):
        frames = self.sequence(SHIFTS[:2])
        for k, typed in enumerate((("--order", "auto", "--sigma-target", "0.02"), ("--prefilter", "none"))):
            self.succeed("track", *frames, *typed, "--no-pictures", "--save-config", "run.toml", "-o", f"typed{k}")
            self.succeed("track", *frames, "--config", "run.toml", "-o", f"read{k}")
            typed, read = self.run_json(f"typed{k}"), self.run_json(f"read{k}")
            self.assertEqual((read["settings"], read["chosen"]), (typed["settings"], typed["chosen"]))

    def test_pictures_are_saved_under_one_name(self):
        frames = self.sequence(SHIFTS[:2])
        for typed in (("--no-pictures",), ("--pictures", "none")):
            self.succeed("track", *typed, "--save-config", "run.toml")
            saved = (self.folder / "run.toml").read_text()
            self.assertIn('pictures="none"', saved)
            self.assertNotIn("no-pictures", saved)
            self.succeed("track", *frames, *QUICK[:4], "--config", "run.toml", "--force", "-o", "out")
            self.assertEqual(self.run_json("out")["settings"]["pictures"], "none")

    def test_what_is_typed_wins(self):
        (self.folder / "my.toml").write_text("subset = 41\nstep = 20\n")
        self.succeed("track", *self.sequence(SHIFTS[:2]), "--config", "my.toml", "--subset", "21", "--no-pictures")
        settings = self.run_json()["settings"]
        self.assertEqual((settings["subset"], settings["step"]), (21, 20))

    def test_unknown_key(self):
        (self.folder / "my.toml").write_text("subset = 21\nsubsett = 41\n")
        self.refuse(2, ["subsett", "my.toml"], "track", *self.sequence(SHIFTS[:2]), "--config", "my.toml")
        self.assertFalse((self.folder / "dic_out").exists())

    def test_bad_value(self):
        for name, value in (("strain-measure", "cauchy"), ("no-pictures", "maybe"), ("subset", "")):
            (self.folder / "my.toml").write_text(f'reference = ""\nroi = ""\n{name} = "{value}"\n')
            self.refuse(2, [name, "my.toml", value], "track", "a.png", "b.png", "--config", "my.toml")

    def test_missing_file(self):
        self.refuse(1, ["none.toml"], "track", "a.png", "b.png", "--config", "none.toml")

    def test_save_only(self):
        self.succeed("track", "--step", "9", "--save-config", "new.toml")
        self.assertIn("step=9", (self.folder / "new.toml").read_text())


class ProgramLineTest(ProgramTest):
    def test_version(self):
        self.assertRegex(self.succeed("--version").stdout, r"^dic \d+\.\d+\.\d+\n$")

    def test_help_names_the_commands(self):
        text = self.succeed("--help").stdout
        for word in ("track", "match", "synth", "info", "dic track frames/*.png"):
            self.assertIn(word, text)
        self.assertIn("--strain-window", self.succeed("track", "--help").stdout)

    def test_info(self):
        text = self.succeed("info").stdout
        for word in ("OpenCV", "HDF5", "cuda:", "opencl:", "simd:"):
            self.assertIn(word, text)

    def test_wrong_usage(self):
        for arguments in ((), ("nothing",), ("track", "--no-such-option"), ("track", "--order", "3"),
                          ("track", "--report")):
            with self.subTest(arguments):
                self.refuse(2, ["--help" if arguments[:1] == ("track",) else "choose one of track, stereo, watch"], *arguments)

    def test_quiet_prints_nothing(self):
        done = self.succeed("track", *self.sequence(SHIFTS[:2]), *QUICK, "--quiet")
        self.assertEqual(done.stdout + done.stderr, "")

    def test_verbose_prints_every_frame(self):
        done = self.succeed("track", *self.sequence([(0.1 * i, 0) for i in range(14)], (60, 60)), *QUICK, "--verbose")
        self.assertIn("frame_13.png", done.stdout)


if __name__ == "__main__":
    main()
