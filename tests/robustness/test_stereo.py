"""Runs with two cameras that are killed and resumed, and folders of two cameras that are watched:
python test_stereo.py DIC

DIC_KILLS is the number of kills, by default 4."""

import json
import os
import queue
import random
import shutil
import signal
import subprocess
import threading
import time

import h5py
import numpy as np

import dic_program
from dic_program import main
from stereo_scene import StereoScene

KILLS = int(os.environ.get("DIC_KILLS", "4"))
PAIRS = 13  # with the references
POSES = 5  # different images; the others are links to them


class TwoCameras(StereoScene):
    def setUp(self):
        super().setUp()
        self.left, self.right = self.pairs([(0.12 * k, -0.05 * k, 0.3 * k) for k in range(POSES)])
        self.options = ["--calibration", "rig.yml", "--subset", "21", "--device", "cpu"]

    def start(self, *arguments):
        program = subprocess.Popen([dic_program.PROGRAM, *map(str, arguments)], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.kill)
        return program


class Resume(TwoCameras):
    def setUp(self):
        super().setUp()
        for names in (self.left, self.right):
            for k in range(POSES, PAIRS):
                side = names[0][-5]
                names.append(f"img-{k:04}_{side}.png")
                os.link(self.folder / names[k % POSES], self.folder / names[k])

    def stereo(self, output, *more):
        step = [] if "--step" in more else ["--step", "8"]
        return ["stereo", "--left", *self.left, "--right", *self.right, *self.options, *step, "--csv", "-o", output, *more]

    def lines(self, output):
        """The entries of the log about pairs."""
        log = self.folder / output / ".dic-frames.jsonl"
        whole = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
        return [line for line in map(json.loads, whole) if "frame" in line]

    def kill_after(self, pairs, *arguments, output="out", how=signal.SIGKILL):
        with self.start(*arguments) as program:
            while program.poll() is None and len(self.lines(output)) < pairs:
                time.sleep(0.002)
            program.send_signal(how)
            program.communicate(timeout=60)
        self.assertGreaterEqual(len(self.lines(output)), pairs)
        return program

    def surface(self, output):
        found = {}
        with h5py.File(self.folder / output / "surface.vtkhdf") as file:
            file["VTKHDF"].visititems(lambda name, item: found.update({name: item[()]})
                                      if isinstance(item, h5py.Dataset) else None)
        return found

    def check_equal(self, output="out", whole="whole"):
        """Expects the same bits, surface, tables and pictures, and the same run.json except for times and dates."""
        for one, other in ((self.fields(output), self.fields(whole)), (self.surface(output), self.surface(whole))):
            self.assertEqual(one.keys(), other.keys())
            for name, values in one.items():
                np.testing.assert_array_equal(values, other[name], name)
        for kind in ("csv", "pictures"):
            names = sorted(path.name for path in (self.folder / whole / kind).iterdir())
            for name in names:
                self.assertEqual((self.folder / output / kind / name).read_bytes(),
                                 (self.folder / whole / kind / name).read_bytes(), name)
        runs = [self.run_json(folder) for folder in (output, whole)]
        for run in runs:
            self.assertEqual((run["state"], run["interrupted"]), ("complete", False))
            for frame in run["frames"]:
                frame.pop("seconds", None)
        self.assertEqual(runs[0]["frames"], runs[1]["frames"])
        self.assertFalse((self.folder / output / ".dic-state").exists())

    def check_readable(self, output, whole, pairs):
        """All pairs of the log are in the growing file, as a run that was not killed measures them."""
        with h5py.File(self.folder / output / "result.vtkhdf") as file:
            self.assertGreaterEqual(int(file["VTKHDF/Steps"].attrs["NSteps"]), pairs)
            for name, values in whole.items():
                np.testing.assert_array_equal(file[name][:pairs], values[:pairs], name)

    def test_kills_at_any_moment(self):
        self.succeed(*self.stereo("whole"))
        whole = self.fields("whole")
        moments = random.Random(int(os.environ.get("DIC_SEED", "1")))
        done, kills = 0, 0
        while kills < KILLS:
            last = done + moments.randint(0, 4)
            with self.start(*self.stereo("out", "--resume")) as program:
                while program.poll() is None and len(self.lines("out")) < last:
                    time.sleep(0.002)
                time.sleep(moments.uniform(0, 0.1))
                program.kill()
                program.communicate(timeout=60)
            now = len(self.lines("out"))
            self.assertGreaterEqual(now, done, "what was done is lost")
            if now > 0:
                self.check_readable("out", whole, now)
            if now == PAIRS:
                self.succeed(*self.stereo("out", "--resume"))
                self.check_equal()
                shutil.rmtree(self.folder / "out")
                now = 0
            done = now
            kills += 1
        self.succeed(*self.stereo("out", "--resume"))
        self.check_equal()
        again = self.succeed(*self.stereo("out", "--resume"))
        self.assertIn(f"holds all {PAIRS} pairs", again.stdout)

    def test_an_interrupted_run_goes_on(self):
        """With an option that matters for the state: the right images with order 2; axes; the rig corrected."""
        options = ["--axes", "plane", "--correct-rig", "--order", "2", "--remove-rigid-motion"]
        self.succeed(*self.stereo("whole", *options))
        program = self.kill_after(4, *self.stereo("out", *options), how=signal.SIGTERM)
        self.assertEqual(program.returncode, 130)
        self.assertEqual(self.run_json("out")["state"], "interrupted")
        self.refuse(1, ["--resume", "--force"], *self.stereo("out", *options))
        self.succeed(*self.stereo("out", *options, "--resume"))
        self.check_equal()

    def test_skipped_pairs_stay_skipped(self):
        """One that cannot be read, and one whose right image is smaller: it must not move the left one on."""
        (self.folder / self.left[2]).unlink()
        (self.folder / self.left[2]).write_bytes(b"no image")
        (self.folder / self.right[3]).unlink()
        dic_program.write_image(self.folder / self.right[3], np.full((100, 90), 128))
        self.succeed(*self.stereo("whole"), code=3)
        self.kill_after(5, *self.stereo("out"))
        done = self.succeed(*self.stereo("out", "--resume"), code=3)
        self.assertIn(self.left[2], done.stderr)
        self.check_equal()

    def test_a_run_that_replaces_another_is_resumed(self):
        self.succeed(*self.stereo("out", "--step", "9"))
        before = self.fields("out")
        with self.start(*self.stereo("out", "--force")) as program:
            while program.poll() is None and not list((self.folder / "out").glob(".dic-*.new/.dic-state")):
                time.sleep(0.002)
            program.kill()
            program.communicate(timeout=60)
        for name, values in self.fields("out").items():
            np.testing.assert_array_equal(values, before[name], name)
        self.succeed(*self.stereo("out", "--resume"))
        self.succeed(*self.stereo("whole"))
        self.check_equal()

    def test_other_images_settings_or_calibration_are_refused(self):
        self.kill_after(3, *self.stereo("out"))

        def refuse(words, *arguments):
            self.refuse(2, ["Cannot continue", *words], *arguments, "--resume")

        refuse(["step"], *self.stereo("out", "--step", "7"))
        refuse(["axes"], *self.stereo("out", "--axes", "plane"))
        command = self.stereo("out")
        swapped = [{self.right[1]: self.right[2], self.right[2]: self.right[1]}.get(word, word) for word in command]
        refuse([self.right[1]], *swapped)
        refuse(["time of"], *self.stereo("out", "--fps", "5"))
        rig = (self.folder / "rig.yml").read_text()
        (self.folder / "rig.yml").write_text(rig.replace("900.0", "900.5"))
        refuse(["calibration"], *command)
        (self.folder / "rig.yml").write_text(rig)
        image = self.folder / self.right[2]
        content = image.read_bytes()
        image.unlink()
        image.write_bytes(content)
        refuse([self.right[2], "has changed"], *command)

    def test_other_reference_strategies(self):
        """Where pairs depend on those before, nothing is measured twice, and values are within 1e-4 px."""
        for strategy in ("previous", "auto"):
            options = ["--reference-strategy", strategy, "--pictures", "none"]
            self.succeed(*self.stereo(f"whole_{strategy}", *options))
            self.kill_after(5, *self.stereo(strategy, *options), output=strategy)
            self.succeed(*self.stereo(strategy, "--resume", *options))
            one, other = self.fields(strategy), self.fields(f"whole_{strategy}")
            both = (one["status"] == 0) & (other["status"] == 0)
            self.assertGreater(both.sum(), 0.99 * (other["status"] == 0).sum())
            for name, within in (("u", 1e-3), ("v", 1e-3), ("W", 5e-3)):
                self.assertLess(np.abs(one[name] - other[name])[both].max(), within, (strategy, name))

    def test_pictures_of_a_complete_result(self):
        self.succeed(*self.stereo("whole", "--pictures", "all"))
        self.succeed(*self.stereo("out", "--pictures", "none"))
        for pictures in ("some", "all"):
            self.assertIn("were drawn", self.succeed(*self.stereo("out", "--pictures", pictures, "--resume")).stdout)
            self.assertEqual(self.run_json("out")["settings"]["pictures"], pictures)
        self.assertEqual(self.run_json("out")["frames_drawn"], PAIRS)
        self.check_equal()
        self.assertIn("nothing is left", self.succeed(*self.stereo("out", "--resume")).stdout)


class Watch(TwoCameras):
    def setUp(self):
        super().setUp()
        self.cameras = [self.folder / "left", self.folder / "right"]
        for camera in self.cameras:
            camera.mkdir()
        self.options += ["--step", "8"]

    def watch(self, *more):
        program = self.start("watch", "left", "right", *self.options, "--no-pictures", *more)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stderr.close)
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(json.loads(line)) for line in program.stdout], daemon=True).start()
        return program, lines

    def put(self, k, sides=(0, 1), name="img-{k:04}_{side}.png"):
        """Writes the images of a pair to other names and moves them, as some cameras do."""
        for side in sides:
            beside = self.folder / "beside"
            shutil.copyfile(self.folder / (self.left, self.right)[side][k], beside)
            beside.rename(self.cameras[side] / name.format(k=k, side=side))

    def end(self, program, code=0):
        program.wait(timeout=60)
        errors = program.stderr.read()
        self.assertEqual(program.returncode, code, errors)
        return errors

    def test_pairs_that_come_one_by_one(self):
        program, lines = self.watch("--until", str(POSES - 1), "--fps", "10", "--extensometer", "60,60,150,120", "--csv")
        for k in range(POSES):
            self.put(k, sides=(1, 0) if k % 2 else (0, 1))
            line = lines.get(timeout=60)
            self.assertEqual((line["frame"], line["file"], line["error"]), (k, self.left[k], None))
            self.assertEqual(line["right_file"], self.right[k])
            self.assertAlmostEqual(line["time"], k / 10)
            self.assertAlmostEqual(line["mean_Z"], 300, delta=0.01)
            self.assertAlmostEqual(line["mean_W"], 0.3 * k, delta=0.01)
            self.assertGreater(line["counts"]["ok"], 100)
            self.assertLess(abs(line["extensometers"][0]["strain"]), 1e-3)
            with h5py.File(self.folder / "dic_out/result.vtkhdf") as file:
                self.assertEqual(int(file["VTKHDF/Steps"].attrs["NSteps"]), k + 1)
        self.assertEqual(self.end(program), "")
        self.succeed("stereo", "--left", *self.left, "--right", *self.right, *self.options, "--no-pictures", "-o", "whole")
        for name, values in self.fields("whole").items():
            np.testing.assert_array_equal(self.fields()[name], values, name)
        self.assertTrue((self.folder / "dic_out/surface.vtkhdf").exists())

    def test_an_image_that_one_camera_lost(self):
        """Its partner is left out and said so; later images still meet their own partner."""
        program, lines = self.watch("--idle", "1.5")
        self.put(0)
        self.put(1, sides=(1,))
        self.put(2)
        self.put(3, sides=(0,))
        self.put(4)
        found = [lines.get(timeout=60) for _ in range(5)]
        self.assertIn("no image of the left camera", found[1]["error"])
        self.assertEqual((found[1]["file"], found[1]["right_file"]), ("", self.right[1]))
        self.assertIn("no image of the right camera", found[3]["error"])
        for k in (2, 4):
            self.assertEqual((found[k]["file"], found[k]["right_file"]), (self.left[k], self.right[k]))
            self.assertAlmostEqual(found[k]["mean_W"], 0.3 * k, delta=0.01)
        errors = self.end(program, 3)
        self.assertIn(self.right[1], errors)
        self.assertIn(self.left[3], errors)

    def test_a_last_image_without_partner(self):
        program, lines = self.watch("--idle", "1")
        self.put(0)
        self.put(1, sides=(0,))
        self.assertIsNone(lines.get(timeout=60)["error"])
        self.assertIn("no image of the right camera", lines.get(timeout=60)["error"])
        self.end(program, 3)

    def test_names_that_tell_nothing_pair_by_order(self):
        program, lines = self.watch("--idle", "1")
        self.put(0, name="camera{side}_first.png")
        self.put(1, name="camera{side}_second.png")
        self.assertAlmostEqual([lines.get(timeout=60) for _ in range(2)][1]["mean_W"], 0.3, delta=0.01)
        self.assertIn("no numbers in common", self.end(program))

    def test_killed_and_resumed(self):
        program, lines = self.watch()
        self.put(0)
        self.put(1, sides=(0,))
        self.put(2)
        for _ in range(3):
            lines.get(timeout=60)
        program.kill()
        program.wait(timeout=60)
        self.put(3)
        self.put(4)
        program, lines = self.watch("--resume", "--until", "4")
        self.assertEqual([lines.get(timeout=60)["frame"] for _ in range(2)], [3, 4])
        self.end(program, 3)
        kept = [0, 2, 3, 4]
        self.succeed("stereo", "--left", *(self.left[k] for k in kept), "--right", *(self.right[k] for k in kept),
                     *self.options, "--no-pictures", "-o", "whole")
        for name in ("Z", "U", "W", "status", "exx"):
            np.testing.assert_array_equal(self.fields()[name], self.fields("whole")[name], name)

    def test_misuse(self):
        self.refuse(2, ["--calibration"], "watch", "left", "right")
        self.refuse(2, ["two folders"], "watch", "left", "--calibration", "rig.yml")
        self.refuse(2, ["same folder"], "watch", "left", "left", "--calibration", "rig.yml")
        self.refuse(2, ["scale", "one camera"], "watch", "left", "right", "--calibration", "rig.yml", "--scale", "0.1")
        self.refuse(2, ["folder that is watched"], "watch", "left", "right", "--calibration", "rig.yml", "-o", "right")


if __name__ == "__main__":
    main()
