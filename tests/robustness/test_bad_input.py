"""Bad input gets one clear sentence, the right exit code, and nothing is lost: python test_bad_input.py DIC"""

import os
import resource
import shutil
import subprocess

import numpy as np
import tifffile

import dic_program
from dic_program import ProgramTest, main, speckle, write_image

SHIFTS = [(0, 0), (0.3, -0.2), (1.6, 0.8), (2.5, 1.4)]
QUICK = ("--subset", "21", "--step", "10", "--no-pictures")
NOBODY = 65534


def snapshot(folder):
    """Every file below the folder with its content."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class ReferenceTest(ProgramTest):
    """A problem with the first frame ends the run."""

    def refuse_reference(self, name, words, code=1):
        write_image(self.folder / "good.png", speckle(120, 140))
        self.refuse(code, words, "track", name, "good.png", *QUICK)
        self.assertFalse((self.folder / "dic_out").exists())

    def test_missing(self):
        self.refuse_reference("no such.png", ["no such.png"])

    def test_not_a_image(self):
        (self.folder / "a.png").write_text("not an image")
        self.refuse_reference("a.png", ["a.png"])

    def test_truncated(self):
        for ending in ("png", "tif", "jpg"):
            with self.subTest(ending):
                write_image(self.folder / f"a.{ending}", speckle(120, 140))
                data = (self.folder / f"a.{ending}").read_bytes()
                (self.folder / f"a.{ending}").write_bytes(data[: len(data) * 2 // 3])
                self.refuse_reference(f"a.{ending}", [f"a.{ending}"])

    def test_nan(self):
        grey = speckle(120, 140).astype(np.float32)
        grey[50, 60] = np.nan
        tifffile.imwrite(self.folder / "a.tif", grey)
        self.refuse_reference("a.tif", ["a.tif", "finite"])

    def test_no_rights(self):
        self.folder.chmod(0o777)
        write_image(self.folder / "a.png", speckle(120, 140))
        write_image(self.folder / "b.png", speckle(120, 140))
        (self.folder / "a.png").chmod(0)
        self.refuse(1, ["a.png"], "track", "a.png", "b.png", **as_other_user(self))


class OptionsTest(ProgramTest):
    """Invalid values are usage errors whose message names valid ones."""

    def refuse_options(self, words, *options, size=(120, 140)):
        self.refuse(2, words, "track", *self.sequence(SHIFTS[:2], size), *options)
        self.assertFalse((self.folder / "dic_out").exists())

    def test_only_one_frame(self):
        self.refuse(2, ["frame_0.png", "--reference"], "track", *self.sequence(SHIFTS[:1]))

    def test_no_frame(self):
        self.refuse(2, ["frames"], "track")

    def test_even_subset(self):
        self.refuse_options(["ubset", "odd"], "--subset", "20")

    def test_subset_out_of_range(self):
        self.refuse_options(["ubset"], "--subset", "5")
        self.refuse_options(["ubset"], "--subset", "257")

    def test_subset_larger_than_the_image(self):
        self.refuse_options(["ubset", "61", "40"], "--subset", "61", size=(40, 50))

    def test_empty_roi(self):
        self.refuse_options(["region of interest", "empty"], "--roi-polygon", "500,500 600,500 600,600")
        write_image(self.folder / "mask.png", np.zeros((120, 140)))
        self.refuse_options(["region of interest", "empty"], "--roi", "mask.png")

    def test_roi_outside_the_image(self):
        self.refuse_options(["100,100,100,100", "140x120"], "--roi-rect", "100,100,100,100")

    def test_mask_of_another_size(self):
        write_image(self.folder / "mask.png", np.full((50, 50), 255))
        self.refuse_options(["50x50", "140x120"], "--roi", "mask.png")

    def test_bad_step_scale_and_window(self):
        self.refuse_options(["tep"], "--step", "0")
        self.refuse_options(["cale"], "--scale", "-1")
        self.refuse_options(["indow"], "--strain-window", "4")

    def test_unknown_device(self):
        self.refuse_options(["toaster"], "--device", "toaster")

    def test_words_that_are_no_numbers(self):
        for options in (("--roi-rect", "1,2,3"), ("--roi-polygon", "1,2 3"), ("--search", "far"), ("--noise", "some"),
                        ("--subset", "big")):
            done = self.dic("track", *self.sequence(SHIFTS[:2]), *options)
            self.assertEqual(done.returncode, 2)
            self.assertIn(options[0], done.stderr)

    def test_template_larger_than_the_image(self):
        write_image(self.folder / "large.png", speckle(120, 140))
        write_image(self.folder / "small.png", speckle(60, 140))
        self.refuse(2, ["does not fit"], "match", "large.png", "small.png")

    def test_missing_gpu_says_why(self):
        if "cuda:0" in self.succeed("info").stdout:
            self.skipTest("this machine has a GPU")
        self.refuse(1, ["--device cpu"], "track", *self.sequence(SHIFTS[:2]), "--device", "cuda")


    def test_opencl_does_not_track(self):
        for device in ("opencl", "opencl:1"):
            self.refuse(2, [device, "use cpu or cuda"], "track", *self.sequence(SHIFTS[:2]), "--device", device)
        self.refuse(2, ["use --device cpu or cuda"], "bench", "ceilings", "--device", "opencl")


class FramesTest(ProgramTest):
    """A frame that cannot be processed is named, and the others are measured."""

    def lose_one_frame(self, name, words):
        frames = self.sequence(SHIFTS)
        frames[2] = name
        done = self.succeed("track", *frames, *QUICK, "--csv", code=3)
        self.assertIn("skipped", done.stderr)
        run = self.run_json()
        self.assertEqual([frame["file"] for frame in run["frames"]], frames[1:])
        self.assertEqual([frame["error"] is None for frame in run["frames"]], [True, False, True])
        for word in words:
            self.assertIn(word, run["frames"][1]["error"])
            self.assertIn(word, done.stderr)
        fields = self.fields()
        self.assertEqual(len(fields["u"]), 2)
        self.assert_moved(fields, 0, *SHIFTS[1])
        self.assert_moved(fields, 1, *SHIFTS[3])

    def test_damaged(self):
        for ending in ("png", "tif", "jpg"):
            with self.subTest(ending):
                write_image(self.folder / f"bad.{ending}", speckle(120, 140))
                data = (self.folder / f"bad.{ending}").read_bytes()
                (self.folder / f"bad.{ending}").write_bytes(data[: len(data) * 2 // 3])
                self.lose_one_frame(f"bad.{ending}", [f"bad.{ending}"])
                (self.folder / "dic_out").rename(self.folder / f"out_{ending}")

    def test_other_size(self):
        write_image(self.folder / "bad.png", speckle(120, 150))
        self.lose_one_frame("bad.png", ["bad.png", "150x120", "140x120"])

    def test_other_depth(self):
        write_image(self.folder / "bad.png", speckle(120, 140), np.uint16)
        self.lose_one_frame("bad.png", ["bad.png", "u16", "u8"])

    def test_nan(self):
        frames = ["a.tif", "b.tif", "c.tif"]
        for name, (u, v) in zip(frames, SHIFTS):
            grey = speckle(120, 140, u, v).astype(np.float32)
            grey[3, 4] = np.inf if name == "b.tif" else grey[3, 4]
            tifffile.imwrite(self.folder / name, grey)
        self.succeed("track", *frames, *QUICK, code=3)
        self.assertIn("finite", self.run_json()["frames"][0]["error"])
        self.assert_moved(self.fields(), 0, *SHIFTS[2])

    def test_other_number_of_channels_is_fine(self):
        frames = self.sequence(SHIFTS[:2])
        grey = np.round(speckle(120, 140, *SHIFTS[1])).astype(np.uint8)
        write_image(self.folder / frames[1], np.repeat(grey[:, :, None], 3, axis=2))
        self.succeed("track", *frames, *QUICK)
        self.assert_moved(self.fields(), 0, *SHIFTS[1])

    def test_constant_images(self):
        for name in ("a.png", "b.png"):
            write_image(self.folder / name, np.full((120, 140), 90))
        done = self.succeed("track", "a.png", "b.png", *QUICK)
        self.assertIn("warning", done.stderr)
        counts = self.run_json()["frames"][0]["counts"]
        self.assertEqual(counts["flat"] + counts["out_of_image"], sum(counts.values()))
        self.assertIsNone(self.run_json()["frames"][0]["mean_u"])
        self.assertTrue(np.isnan(self.fields()["u"]).all())

    def test_constant_current_image(self):
        write_image(self.folder / "a.png", speckle(120, 140))
        write_image(self.folder / "b.png", np.full((120, 140), 90))
        done = self.succeed("track", "a.png", "b.png", *QUICK)
        self.assertIn("warning", done.stderr)
        self.assertEqual(self.run_json()["frames"][0]["counts"]["ok"], 0)

    def test_saturated_images_give_no_wrong_numbers(self):
        for name, (u, v) in zip(("a.png", "b.png"), SHIFTS):
            grey = np.clip(3 * (speckle(120, 140, u, v) - 60), 0, 255)  # about half of the pixels at 255
            grey[:, 70:] = 255
            write_image(self.folder / name, grey)
        self.succeed("track", "a.png", "b.png", *QUICK)
        fields = self.fields()
        ok = fields["status"][0] == 0
        self.assertTrue((fields["status"][0][:, 9:] == 1)[1:-1, :-1].all(), "flat where nothing but white is seen")
        self.assertGreater(ok[1:-1, 1:6].mean(), 0.95)
        self.assertLess(np.abs(fields["u"][0][1:-1, 1:6] - SHIFTS[1][0])[ok[1:-1, 1:6]].max(), 0.1)


def as_other_user(test):
    """Options that run the program as a user without rights, because root may write anywhere."""
    if os.geteuid() != 0:
        return {}
    options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    try:
        subprocess.run([dic_program.PROGRAM, "--version"], check=True, capture_output=True, **options)
    except (PermissionError, subprocess.CalledProcessError):
        test.skipTest("another user cannot run the program where it is")
    return options


class OutputTest(ProgramTest):
    """Earlier results and foreign files stay unchanged."""

    def setUp(self):
        super().setUp()
        self.frames = self.sequence(SHIFTS[:3])
        self.succeed("track", *self.frames, *QUICK, "--csv")
        self.out = self.folder / "dic_out"
        self.before = snapshot(self.out)

    def assert_untouched(self):
        self.assertEqual(snapshot(self.out), self.before)

    def test_existing_result_is_refused(self):
        self.refuse(1, ["dic_out", "--force"], "track", *self.frames, *QUICK)
        self.assert_untouched()

    def test_force_replaces_only_what_dic_wrote(self):
        for name in ("notes.txt", "csv/mine.csv"):
            (self.out / name).write_text("mine")
        self.succeed("track", self.frames[0], self.frames[2], *QUICK, "--csv", "--force")
        self.assertEqual([frame["file"] for frame in self.run_json()["frames"]], [self.frames[2]])
        names = {str(path.relative_to(self.out)) for path in self.out.rglob("*") if path.is_file()}
        self.assertEqual(names, {"notes.txt", "csv/mine.csv", "csv/frame_2.csv", "run.json", "result.vtkhdf",
                                 ".dic-files", ".dic-frames.jsonl"})

    def test_files_of_others_are_never_replaced(self):
        (self.folder / "other").mkdir()
        (self.folder / "other/result.vtkhdf").write_text("mine")
        self.refuse(1, ["other/result.vtkhdf", "not written by dic"], "track", *self.frames, "-o", "other", "--force")
        self.assertEqual((self.folder / "other/result.vtkhdf").read_text(), "mine")
        (self.out / "csv/x.csv").write_text("mine")
        write_image(self.folder / "x.png", speckle(120, 140, 1))
        self.before = snapshot(self.out)
        self.refuse(1, ["csv/x.csv", "not written by dic"], "track", self.frames[0], "x.png", *QUICK, "--csv", "--force")
        self.assert_untouched()

    def test_failure_with_force_keeps_the_earlier_result(self):
        (self.folder / "bad.png").write_text("not an image")
        self.refuse(1, ["bad.png"], "track", "bad.png", *self.frames, *QUICK, "--force")
        self.refuse(2, ["odd"], "track", *self.frames, "--subset", "10", "--force")
        self.assert_untouched()

    def test_output_is_a_file(self):
        (self.folder / "taken").write_text("mine")
        for output in ("taken", "taken/below"):
            self.refuse(1, ["taken", "-o"], "track", *self.frames, "-o", output)
        self.assertEqual((self.folder / "taken").read_text(), "mine")

    def test_no_rights(self):
        other_user = as_other_user(self)
        self.folder.chmod(0o555)
        self.addCleanup(self.folder.chmod, 0o755)
        self.refuse(1, ["new", "-o"], "track", *self.frames, "-o", "new", **other_user)
        self.out.chmod(0o555)
        self.refuse(1, ["dic_out", "-o"], "track", *self.frames, *QUICK, "--force", **other_user)
        self.assert_untouched()

    def test_full_disk(self):
        """A limit on file sizes stops writing at any byte, as a full disk does."""
        def limited(limit):
            return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))}

        whole = (self.out / "result.vtkhdf").stat().st_size
        for limit in (0, 100, 4000, whole // 2, whole - 1):
            with self.subTest(limit):
                self.refuse(1, ["space"], "track", *self.frames, *QUICK, "--csv", "--force", **limited(limit))
                for unfinished in self.out.glob(".dic-*.new"):  # kept for --resume
                    shutil.rmtree(unfinished)
                self.assert_untouched()
                done = self.refuse(1, ["space"], "track", *self.frames, *QUICK, "-o", "new", **limited(limit))
                left = {path.name for path in (self.folder / "new").rglob("*") if path.is_file()}
                if "--resume" not in done.stderr:
                    self.assertFalse(left & {"result.vtkhdf", "run.json", "result.vtkhdf.part"}, left)
                shutil.rmtree(self.folder / "new", ignore_errors=True)

    def test_full_file_system(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True).returncode:
            self.skipTest("this user cannot mount a small file system")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        self.refuse(1, ["space"], "track", *self.frames, "--subset", "21", "--step", "4", "-o", "disk/out")
        self.assertFalse((disk / "out/result.vtkhdf").exists())


if __name__ == "__main__":
    main()
