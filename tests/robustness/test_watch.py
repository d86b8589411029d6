"""dic watch with images that arrive while it runs: python test_watch.py DIC"""

import json
import os
import queue
import shutil
import signal
import subprocess
import threading
import time

import h5py
import numpy as np

import dic_program
from dic_program import ProgramTest, main, speckle, write_image

FRAMES = 8


class WatchTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.ready = self.folder / "ready"
        self.ready.mkdir()
        self.names = [f"frame_{k}.tif" for k in range(FRAMES + 1)]
        for k, name in enumerate(self.names):
            write_image(self.ready / name, speckle(160, 180, 0.12 * k, -0.05 * k))
        self.camera = self.folder / "camera"
        self.camera.mkdir()
        self.options = ["--subset", "21", "--step", "8", "--no-pictures"]

    def watch(self, *more):
        program = subprocess.Popen([dic_program.PROGRAM, "watch", "camera", *self.options, *more], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.kill)
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(json.loads(line)) for line in program.stdout], daemon=True).start()
        return program, lines

    def put(self, k, name=None):
        """Writes an image to another name and moves it, as some cameras do."""
        beside = self.folder / "beside"
        shutil.copyfile(self.ready / self.names[k], beside)
        beside.rename(self.camera / (name or self.names[k]))

    def end(self, program, code=0):
        program.wait(timeout=60)
        self.assertEqual(program.returncode, code, program.stderr.read())

    def check_equal_to_track(self, frames=FRAMES, within=0):
        """within: tolerance, px, for frames that started elsewhere."""
        self.succeed("track", *[f"ready/{name}" for name in self.names[:frames + 1]], *self.options, "-o", "whole")
        for name, values in self.fields("whole").items():
            if name in ("u", "v") or within == 0:
                np.testing.assert_allclose(self.fields()[name], values, rtol=0, atol=within, err_msg=name)
        self.assertEqual(self.run_json()["state"], "complete")

    def test_frames_that_come_one_by_one(self):
        program, lines = self.watch("--until", FRAMES.__str__(), "--extensometer", "40,80,140,80", "--fps", "10")
        self.put(0)
        for k in range(1, FRAMES + 1):
            self.put(k)
            line = lines.get(timeout=60)
            self.assertEqual((line["frame"], line["file"], line["error"]), (k, self.names[k], None))
            self.assertAlmostEqual(line["time"], k / 10)
            self.assertAlmostEqual(line["mean_u"], 0.12 * k, delta=0.01)
            self.assertEqual(line["extensometers"][0]["gauge_length"], 100)
            self.assertLess(abs(line["extensometers"][0]["strain"]), 2e-3)
            self.assertLess(line["latency"], 20)
            # The reported frames can be read from the file while it grows.
            for options in ({}, {"swmr": True}):
                with h5py.File(self.folder / "dic_out/result.vtkhdf", **options) as file:
                    self.assertEqual(int(file["VTKHDF/Steps"].attrs["NSteps"]), k)
                    self.assertAlmostEqual(float(np.nanmedian(file["u"][k - 1])), 0.12 * k, delta=0.01)
        self.end(program)
        self.check_equal_to_track()

    def test_a_reader_follows(self):
        program, lines = self.watch("--until", "4")
        for k in range(2):
            self.put(k)
        lines.get(timeout=60)
        with h5py.File(self.folder / "dic_out/result.vtkhdf", swmr=True) as file:
            u = file["u"]
            self.assertEqual(len(u), 1)
            for k in range(2, 5):
                self.put(k)
                lines.get(timeout=60)
                u.refresh()
                self.assertEqual(len(u), k)
                self.assertAlmostEqual(float(np.nanmedian(u[k - 1])), 0.12 * k, delta=0.01)
        self.end(program)

    def test_half_written_files_are_waited_for(self):
        program, lines = self.watch("--until", "3")
        self.put(0)
        self.put(1)
        lines.get(timeout=60)
        content = (self.ready / self.names[2]).read_bytes()
        with open(self.camera / self.names[2], "wb") as file:
            file.write(content[:len(content) // 2])
            file.flush()
            self.put(3)  # the next image is complete earlier
            time.sleep(0.8)
            self.assertTrue(lines.empty(), "a frame that is not whole was taken")
            file.write(content[len(content) // 2:])
        self.assertEqual(lines.get(timeout=60)["file"], self.names[2])
        self.assertEqual(lines.get(timeout=60)["file"], self.names[3])
        self.end(program)
        self.check_equal_to_track(3)

    def test_closed_before_it_was_whole(self):
        """The image arrives as a copy that is interrupted and continued."""
        program, lines = self.watch("--until", "2")
        self.put(0)
        self.put(1)
        lines.get(timeout=60)
        content = (self.ready / self.names[2]).read_bytes()
        path = self.camera / self.names[2]
        path.write_bytes(content[:len(content) // 3])
        time.sleep(0.5)
        with open(path, "ab") as file:
            file.write(content[len(content) // 3:])
        self.assertIsNone(lines.get(timeout=60)["error"])
        self.end(program)
        self.check_equal_to_track(2)

    def test_a_file_that_never_becomes_whole_is_skipped(self):
        program, lines = self.watch("--until", "2", "--patience", "0.3")
        self.put(0)
        (self.camera / self.names[1]).write_bytes((self.ready / self.names[1]).read_bytes()[:5000])
        self.put(2)
        self.assertIn(self.names[1], lines.get(timeout=60)["error"])
        self.assertIsNone(lines.get(timeout=60)["error"])
        self.end(program, 3)
        self.assertEqual(len(self.fields()["u"]), 1)

    def test_order_by_time(self):
        program, lines = self.watch("--until", "3", "--sort", "time")
        self.put(0, "z.tif")
        self.put(1, "y.tif")
        self.assertEqual(lines.get(timeout=60)["file"], "y.tif")
        self.put(2, "x.tif")
        self.assertEqual(lines.get(timeout=60)["file"], "x.tif")
        self.put(3, "zz.tif")
        self.assertEqual(lines.get(timeout=60)["file"], "zz.tif")
        self.end(program)

    def test_idle_and_frames_that_are_there(self):
        for k in range(FRAMES + 1):
            self.put(k)
        program, lines = self.watch("--idle", "1")
        self.end(program)
        self.assertEqual([lines.get(timeout=5)["file"] for _ in range(FRAMES)], self.names[1:])
        self.check_equal_to_track()

    def test_a_signal_ends_it_and_resume_goes_on(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                program, lines = self.watch("--force")
                for k in range(4):
                    self.put(k)
                for _ in range(3):
                    lines.get(timeout=60)
                program.send_signal(number)
                self.end(program)
                run = self.run_json()
                self.assertEqual((run["state"], run["frames_done"], run["interrupted"]), ("complete", 3, False))
                shutil.rmtree(self.camera) if number == signal.SIGINT else None
                self.camera.mkdir(exist_ok=True)
        for k in range(4, FRAMES + 1):
            self.put(k)
        program, lines = self.watch("--resume", "--until", str(FRAMES))
        self.assertEqual(lines.get(timeout=60)["frame"], 4)
        self.end(program)
        self.check_equal_to_track(within=1e-4)

    def test_killed_and_gone_on(self):
        for k in range(FRAMES + 1):
            self.put(k)
        program, lines = self.watch()
        for _ in range(2):
            lines.get(timeout=60)
        program.kill()
        program.wait()
        program, _ = self.watch("--resume", "--until", str(FRAMES))
        self.end(program)
        self.check_equal_to_track()

    def test_nothing_comes(self):
        program, _ = self.watch("--idle", "0.3")
        program.wait(timeout=60)
        self.assertEqual(program.returncode, 130)
        self.assertIn("No image came", program.stderr.read())
        self.refuse(2, ["is not a folder"], "watch", "nowhere")
        self.refuse(2, ["watched"], "watch", "camera", "-o", "camera")


if __name__ == "__main__":
    main()
