"""Runs that are killed, or that fill the disk, and are resumed with --resume: python test_resume.py DIC

DIC_KILLS is the number of kills, by default 4."""

import json
import os
import random
import shutil
import subprocess
import time

import cv2
import h5py
import numpy as np
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOHDF import vtkHDFReader

import dic_program
from dic_program import ProgramTest, main, speckle, write_image

KILLS = int(os.environ.get("DIC_KILLS", "4"))
FRAMES = 30


def turned(height, width, angle):
    """A pattern that is rotated about the middle."""
    y, x = np.mgrid[0:height, 0:width].astype(float)
    x, y = x - width / 2, y - height / 2
    c, s = np.cos(angle), np.sin(angle)
    return speckle(height, width, x - (c * x + s * y), y - (c * y - s * x))


class ResumeTest(ProgramTest):
    def setUp(self):
        super().setUp()
        steps = [0.11 * k for k in range(6)]
        for k, step in enumerate(steps):
            write_image(self.folder / f"image_{k}.png", speckle(200, 220, step, -0.7 * step))
        self.frames = [f"frame_{k:02d}.png" for k in range(FRAMES + 1)]
        for k, name in enumerate(self.frames):
            os.link(self.folder / f"image_{k % len(steps)}.png", self.folder / name)
        self.options = ["--subset", "21", "--step", "6", "--csv"]

    def track(self, output, *more):
        return ["track", *self.frames, *self.options, "-o", output, *more]

    def start(self, *arguments):
        return subprocess.Popen([dic_program.PROGRAM, *arguments], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def lines(self, output):
        """The entries of the log about frames."""
        log = self.folder / output / ".dic-frames.jsonl"
        whole = [line for line in log.read_bytes().split(b"\n")[:-1]] if log.exists() else []
        return [line for line in map(json.loads, whole) if "frame" in line]

    def check_readable(self, output, whole, at_least):
        """h5py and VTK read all frames reported as done, equal to those of a run that was not killed."""
        path = self.folder / output / "result.vtkhdf"
        if at_least == 0:
            return {}
        places = {}
        for options in ({}, {"swmr": True}):
            with h5py.File(path, "r", **options) as file:
                frames = int(file["VTKHDF/Steps"].attrs["NSteps"])
                self.assertGreaterEqual(frames, at_least)
                self.assertGreaterEqual(len(file["dic/frames"]), frames)
                # With more values than frames, VTK writes beyond its memory.
                self.assertLessEqual(len(file["VTKHDF/Steps/Values"]), frames)
                for name, data in file["VTKHDF/PointData"].items():
                    self.assertGreaterEqual(len(data), frames)
                    np.testing.assert_array_equal(data[:frames], whole[name][:frames], name)
                    places[name] = [data.id.get_chunk_info(k).byte_offset for k in range(frames)]
        if at_least == 1:  # VTK 9.7 treats one step as none
            return places
        reader = vtkHDFReader()
        reader.SetFileName(str(path))
        reader.UpdateInformation()
        self.assertGreaterEqual(reader.GetNumberOfSteps(), at_least)
        reader.SetStep(at_least - 1)
        reader.Update()
        u = vtk_to_numpy(reader.GetOutput().GetPointData().GetArray("u"))
        np.testing.assert_array_equal(u, whole["u"][at_least - 1].ravel())
        return places

    def check_equal(self, output, whole="whole"):
        """Expects the same bits, the same tables, and the same run.json except for times and dates."""
        one, other = self.fields(output), self.fields(whole)
        self.assertEqual(one.keys(), other.keys())
        for name, values in one.items():
            np.testing.assert_array_equal(values, other[name], name)
        tables = sorted(path.name for path in (self.folder / whole / "csv").iterdir())
        self.assertEqual(sorted(path.name for path in (self.folder / output / "csv").iterdir()), tables)
        for name in tables:
            self.assertEqual((self.folder / output / "csv" / name).read_bytes(),
                             (self.folder / whole / "csv" / name).read_bytes())
        pictures = sorted(path.name for path in (self.folder / whole / "pictures").iterdir())
        for name in pictures:
            self.assertEqual((self.folder / output / "pictures" / name).read_bytes(),
                             (self.folder / whole / "pictures" / name).read_bytes(), name)
        runs = [self.run_json(folder) for folder in (output, whole)]
        for run in runs:
            self.assertEqual((run["state"], run["interrupted"]), ("complete", False))
            for frame in run["frames"]:
                frame.pop("seconds", None)
        self.assertEqual(runs[0]["frames"], runs[1]["frames"])
        self.assertEqual(runs[0]["noise_floor"], runs[1]["noise_floor"])

    def test_kills_at_any_moment(self):
        self.succeed(*self.track("whole"))
        whole = self.fields("whole")
        moments = random.Random(int(os.environ.get("DIC_SEED", "1")))
        done, places, kills, moments_of_kills = 0, {}, 0, []
        while kills < KILLS:
            last = done + moments.randint(0, 6)
            with self.start(*self.track("out", "--resume")) as program:
                while program.poll() is None and len(self.lines("out")) < last:
                    time.sleep(0.002)
                time.sleep(moments.uniform(0, 0.05))
                program.kill()
                program.communicate(timeout=60)
            if len(self.lines("out")) == FRAMES:
                self.succeed(*self.track("out", "--resume"))
                self.check_equal("out")
                shutil.rmtree(self.folder / "out")
                done, places = 0, {}
                continue
            kills += 1
            now = len(self.lines("out"))
            self.assertGreaterEqual(now, done, "what was done is lost")
            before, places = places, self.check_readable("out", whole, now)
            for name, offsets in before.items():
                self.assertEqual(places[name][:done], offsets[:done], "a frame was measured again")
            done = now
            moments_of_kills.append(done)
        self.succeed(*self.track("out", "--resume"))
        self.check_equal("out")
        again = self.succeed(*self.track("out", "--resume"))
        self.assertIn(f"holds all {FRAMES} frames", again.stdout)
        print(f"{kills} kills; frames of {FRAMES} that were done at each:", *moments_of_kills)

    def kill_after(self, frames, *arguments, output="out"):
        with self.start(*arguments) as program:
            while program.poll() is None and len(self.lines(output)) < frames:
                time.sleep(0.002)
            program.kill()
            program.communicate(timeout=60)
        self.assertGreaterEqual(len(self.lines(output)), frames)

    def test_run_json_says_how_far(self):
        self.kill_after(5, *self.track("out"))
        run = self.run_json("out")
        self.assertEqual((run["state"], run["frames_given"], run["frames"]), ("running", FRAMES, []))
        self.assertGreaterEqual(run["frames_done"], 1)
        self.refuse(1, ["--resume", "--force"], *self.track("out"))

    def test_interrupted_run_goes_on(self):
        self.succeed(*self.track("whole"))
        with self.start(*self.track("out")) as program:
            while program.poll() is None and len(self.lines("out")) < 4:
                time.sleep(0.002)
            program.terminate()
            program.communicate(timeout=60)
        self.assertEqual(program.returncode, 130)
        self.assertEqual(self.run_json("out")["state"], "interrupted")
        self.succeed(*self.track("out", "--resume"))
        self.check_equal("out")

    def test_other_frames_settings_or_version_are_refused(self):
        self.kill_after(3, *self.track("out"))
        refuse = lambda words, *arguments: self.refuse(2, ["Cannot continue", *words], *arguments, "--resume")
        refuse(["step"], "track", *self.frames, "--subset", "21", "--step", "7", "--csv", "-o", "out")
        refuse(["frame_01.png"], "track", "frame_00.png", *self.frames[2:], *self.options, "-o", "out")
        refuse(["not among"], *self.track("out")[:3], *self.options, "-o", "out")
        with self.subTest("a frame has changed"):
            changed = self.folder / self.frames[2]
            content = changed.read_bytes()
            changed.unlink()
            changed.write_bytes(content)
            refuse([self.frames[2], "has changed"], *self.track("out"))
        with self.subTest("version"):
            log = self.folder / "out/.dic-frames.jsonl"
            first, rest = log.read_text().split("\n", 1)
            log.write_text(json.dumps({**json.loads(first), "version": "0.0.1"}) + "\n" + rest)
            refuse(["0.0.1"], *self.track("out"))

    def test_another_mask_with_the_same_points_is_refused(self):
        mask = np.zeros((200, 220), np.uint8)
        mask[40:160, 40:180] = 255
        edited = mask.copy()
        edited[101:104, 41:180] = 0  # between the rows of points
        cv2.imwrite(str(self.folder / "mask.png"), mask)
        options = ["--roi", "mask.png"]
        self.kill_after(3, *self.track("out", *options))
        cv2.imwrite(str(self.folder / "mask.png"), edited)
        self.refuse(2, ["Cannot continue", "roi"], *self.track("out", *options), "--resume")
        cv2.imwrite(str(self.folder / "mask.png"), mask // 2)  # selects the same pixels
        self.succeed(*self.track("out", *options), "--resume")
        self.succeed(*self.track("whole", *options))
        self.check_equal("out")

    def test_other_times_are_refused(self):
        def write_times(times):
            (self.folder / "times.csv").write_text("\n".join(map(str, times)) + "\n")

        times = [0.1 * k for k in range(FRAMES + 1)]
        write_times(times)
        options = ["--times", "times.csv"]
        self.kill_after(3, *self.track("out", *options))
        for changed in ([1000 + 7 * time for time in times], [0, 0.15, *times[2:]], [time - 5 for time in times]):
            write_times(changed)
            self.refuse(2, ["Cannot continue", "the time of"], *self.track("out", *options), "--resume")
        write_times([*times[:-1], 99])  # of a frame that is not measured yet
        self.succeed(*self.track("out", *options), "--resume")
        self.assertAlmostEqual(self.run_json("out")["frames"][-1]["time"], 99)

    def test_a_frame_that_is_replaced_after_it_was_read(self):
        """The stamp is that of the file that was read, not of the one that is there when the frame is done."""
        options = ["--subset", "41", "--step", "3", "--threads", "1", "--no-pictures", "-o", "out"]
        frames = self.frames[:7]
        with self.start("track", *frames, *options) as program:
            while program.poll() is None and not self.lines("out"):
                time.sleep(0.002)
            for name in frames[1:]:
                write_image(self.folder / "beside.png", speckle(200, 220, seed=5))
                os.replace(self.folder / "beside.png", self.folder / name)
            program.communicate(timeout=60)
        # Each frame shows one of two patterns; its entry has the stamp of the file with this pattern.
        stamps = [line["stamp"] for line in self.lines("out")]
        now = [f"{path.stat().st_size} {path.stat().st_mtime_ns // 10**9}.{path.stat().st_mtime_ns % 10**9:09d}"
               for path in (self.folder / name for name in frames[1:])]
        found = [(status == 0).mean() > 0.5 for status in self.fields("out")["status"]]
        self.assertIn(True, found)
        self.assertEqual([stamp != there for stamp, there in zip(stamps, now)], found)
        self.refuse(2, ["has changed"], "track", *frames, *options, "--resume")

    def test_pictures_of_a_complete_result(self):
        self.succeed(*self.track("whole", "--pictures", "all"))
        self.succeed(*self.track("out", "--pictures", "none"))
        for pictures, count in (("some", None), ("all", FRAMES)):
            done = self.succeed(*self.track("out", "--pictures", pictures, "--resume"))
            self.assertIn("were drawn", done.stdout)
            run = self.run_json("out")
            self.assertEqual((run["state"], run["settings"]["pictures"]), ("complete", pictures))
            for path in (self.folder / "out/pictures").iterdir():
                self.assertEqual(path.read_bytes(), (self.folder / "whole/pictures" / path.name).read_bytes(), path.name)
        self.assertEqual(run["frames_drawn"], FRAMES)
        self.check_equal("out")
        for pictures in ("all", "some", "none"):
            done = self.succeed(*self.track("out", "--pictures", pictures, "--resume"))
            self.assertIn("nothing is left to do", done.stdout)
        self.succeed(*self.track("out", "--force", "--pictures", "none"))
        self.assertFalse((self.folder / "out/pictures").exists(), "the pictures are in the list of files")

    def test_skipped_frames_stay_skipped(self):
        (self.folder / self.frames[3]).unlink()
        (self.folder / self.frames[3]).write_bytes(b"no image")
        self.succeed(*self.track("whole"), code=3)
        self.kill_after(6, *self.track("out"))
        self.succeed(*self.track("out", "--resume"), code=3)
        self.check_equal("out")

    def test_after_a_power_failure(self):
        """After a restart of the machine, only frames marked as on the disk count; the rest is measured again."""
        self.succeed(*self.track("whole"))
        self.kill_after(8, *self.track("out"))
        log = self.folder / "out/.dic-frames.jsonl"
        lines = log.read_text().splitlines()
        lines = [json.dumps({"machine": "another"}) if '"machine"' in line else line for line in lines]
        log.write_text("\n".join([*lines[:-1], json.dumps({"on_disk": 4}), lines[-1]]) + "\n")
        path = self.folder / "out/result.vtkhdf"
        with h5py.File(path) as file:
            chunks = [file["u"].id.get_chunk_info(k) for k in range(4, len(file["u"]))]
        with path.open("r+b") as file:  # data that did not reach the disk
            for chunk in chunks:
                file.seek(chunk.byte_offset)
                file.write(bytes(chunk.size))
        self.succeed(*self.track("out", "--resume"))
        # The state of frame 4 no longer exists, so the next frame starts elsewhere.
        one, other = self.fields("out"), self.fields("whole")
        np.testing.assert_array_equal(one["status"], other["status"])
        for name in ("u", "v"):
            np.testing.assert_array_equal(one[name][:4], other[name][:4])
            np.testing.assert_allclose(one[name], other[name], rtol=0, atol=1e-4)
        self.assertEqual(len(self.run_json("out")["frames"]), FRAMES)

    def test_other_reference_strategies(self):
        """If frames depend on earlier ones, nothing is measured twice, and values are within 1e-4 px of a whole run."""
        for k in range(FRAMES + 1):  # rotates too far for the first reference
            (self.folder / self.frames[k]).unlink()
            write_image(self.folder / self.frames[k], turned(200, 220, 0.03 * k))
        for strategy in ("previous", "auto"):
            options = ["--reference-strategy", strategy, "--device", "cpu"]
            self.succeed(*self.track(f"whole_{strategy}", *options))
            whole = self.fields(f"whole_{strategy}")
            for frames in (4, FRAMES - 8):
                self.kill_after(frames, *self.track(strategy, "--resume", *options), output=strategy)
            before = self.fields(strategy)
            done = len(self.lines(strategy))
            self.succeed(*self.track(strategy, "--resume", *options))
            fields = self.fields(strategy)
            np.testing.assert_array_equal(fields["u"][:done], before["u"][:done])
            self.assertEqual(len(fields["u"]), FRAMES)
            same = fields["status"] == whole["status"]
            self.assertGreater(same.mean(), 0.9995)
            self.assertGreater((whole["status"] == 0).mean(), 0.5)
            for name in ("u", "v"):
                self.assertLess(np.nanmax(np.abs(fields[name] - whole[name])[same]), 1e-4, (strategy, name))

    def test_replacing_run_goes_on(self):
        """A killed run with --force leaves the earlier result unchanged, and can be resumed."""
        self.succeed("track", *self.frames[:3], "-o", "out", "--no-pictures")
        before = (self.folder / "out/result.vtkhdf").read_bytes()
        self.succeed(*self.track("whole"))
        with self.start(*self.track("out", "--force")) as program:
            def collected():
                logs = list((self.folder / "out").glob(".dic-*.new/.dic-frames.jsonl"))
                return logs and logs[0].read_text().count("\n") > 6
            while program.poll() is None and not collected():
                time.sleep(0.002)
            program.kill()
            program.communicate(timeout=60)
        self.assertEqual((self.folder / "out/result.vtkhdf").read_bytes(), before)
        self.succeed(*self.track("out", "--resume"))
        self.check_equal("out")
        self.assertFalse(list((self.folder / "out").glob(".dic-*.new")))

    def test_full_disk(self):
        """Frames measured before the disk was full are kept, and the run resumes when there is space."""
        if os.geteuid() != 0:
            self.skipTest("only root can mount a small disk")
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(disk)], capture_output=True,
                                 text=True)
        if mounted.returncode != 0:
            self.skipTest(f"no small disk can be mounted here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(disk)], check=True)
        self.succeed(*self.track("whole"))
        self.refuse(1, ["disk/out", "No space left", "--resume"], *self.track("disk/out"))
        done = len(self.lines("disk/out"))
        self.assertGreater(done, 2)
        self.assertLess(done, FRAMES)
        self.check_readable("disk/out", self.fields("whole"), done)
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        self.succeed(*self.track("disk/out", "--resume"))
        self.check_equal("disk/out")


if __name__ == "__main__":
    main()
