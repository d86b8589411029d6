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

    def files_measured(self, lines):
        measured = []
        while not lines.empty():
            line = lines.get()
            self.assertIsNone(line["error"])
            self.assertAlmostEqual(line["mean_u"], 0.12 * int(line["file"].split("_")[1].split(".")[0]), delta=0.02)
            measured.append(line["file"])
        return measured

    def content(self, k):
        return (self.ready / self.names[k]).read_bytes()

    def write_and_rename(self, k, temporary, before_it_is_closed, pause):
        with open(self.camera / temporary, "wb") as file:
            file.write(self.content(k))
            file.flush()
            if before_it_is_closed:
                time.sleep(pause)
                os.rename(self.camera / temporary, self.camera / self.names[k])
                time.sleep(pause)
        if not before_it_is_closed:
            time.sleep(pause)
            os.rename(self.camera / temporary, self.camera / self.names[k])

    def test_files_that_are_renamed(self):
        """Writers use temporary names, also ones like those of images; the frames have the final names."""
        for temporary in ("frame_{}.part.tif", "frame_{}_tmp.tif", "tmp.tif", ".frame_{}.tif", "frame_{}.tif.tmp"):
            for before_it_is_closed in (True, False):
                with self.subTest(temporary=temporary, before_it_is_closed=before_it_is_closed):
                    program, lines = self.watch("--until", "3", "--force")
                    for k in range(4):
                        self.write_and_rename(k, temporary.format(k), before_it_is_closed, 0.15 * before_it_is_closed)
                        time.sleep(0.1)
                    self.end(program)
                    self.assertEqual(self.files_measured(lines), self.names[1:4])
                    self.assertEqual(self.run_json()["reference"], self.names[0])
                    self.succeed("watch", "camera", *self.options, "--idle", "0.3", "--resume")
                    shutil.rmtree(self.camera)
                    self.camera.mkdir()

    def test_candidates_that_vanish(self):
        """A file that is gone before it is whole does not keep later ones from being measured."""
        program, lines = self.watch("--until", "3")
        self.put(0)
        self.put(1)
        for k, leave in ((2, lambda path: path.unlink()), (3, lambda path: path.rename(self.folder / "away.tif")),
                         (4, lambda path: path.rename(self.camera / "frame_4.old"))):
            with open(self.camera / self.names[k], "wb") as file:
                file.write(self.content(k)[:1000])
                file.flush()
                time.sleep(0.1)
                leave(self.camera / self.names[k])
        for k in (5, 6):
            self.put(k)
        self.end(program)
        self.assertEqual(self.files_measured(lines), [self.names[k] for k in (1, 5, 6)])

    def test_preallocated_files_are_read_when_they_are_closed(self):
        """A file that has its final size early, with pauses between its parts; also where it was begun before."""
        def begin(k):
            file = open(self.camera / self.names[k], "wb", buffering=0)
            file.truncate(len(self.content(k)))
            file.write(self.content(k)[:9000])
            return file

        def finish(file, k):
            file.write(self.content(k)[9000:])
            file.close()

        self.put(0)
        self.put(1)
        earlier = begin(2)
        time.sleep(0.7)
        program, lines = self.watch("--until", "4", "--patience", "5")
        time.sleep(0.8)
        finish(earlier, 2)
        later = begin(3)
        time.sleep(0.8)
        finish(later, 3)
        self.put(4)
        self.end(program)
        self.assertEqual(self.files_measured(lines), self.names[1:5])

    def test_a_file_that_stays_open_is_not_measured_half(self):
        program, lines = self.watch("--until", "2", "--patience", "0.6")
        self.put(0)
        with open(self.camera / self.names[1], "wb", buffering=0) as file:
            file.truncate(len(self.content(1)))
            file.write(self.content(1)[:9000])
            self.put(2)
            self.assertIn("still open", lines.get(timeout=60)["error"])
            self.assertIsNone(lines.get(timeout=60)["error"])
            self.end(program, 3)

    def test_links_to_whole_files(self):
        program, lines = self.watch("--until", "3", "--patience", "30")
        self.put(0)
        os.link(self.ready / self.names[1], self.camera / self.names[1])
        os.symlink(self.ready / self.names[2], self.camera / self.names[2])
        self.put(3)
        for k in (1, 2, 3):
            self.assertEqual(lines.get(timeout=15)["file"], self.names[k])
        self.end(program)

    def test_the_folder_is_replaced(self):
        program, lines = self.watch("--until", "2")
        self.put(0)
        self.put(1)
        lines.get(timeout=60)
        self.camera.rename(self.folder / "earlier")
        self.camera.mkdir()
        (self.folder / "earlier/frame_1b.tif").write_bytes(b"of no interest")
        self.put(2)
        self.end(program)
        self.assertEqual(self.files_measured(lines), [self.names[2]])

    def test_more_files_than_the_system_reports(self):
        """Notifications are lost while the program is stopped; every file is measured all the same."""
        limit = int(open("/proc/sys/fs/inotify/max_queued_events").read())
        files = min(limit // 3 + 200, 6000)
        content = self.folder / "small.pgm"
        write_image(content, speckle(40, 40))
        program, lines = self.watch("--until", str(files))
        (self.camera / "f_0.pgm").write_bytes(content.read_bytes())
        time.sleep(0.5)
        program.send_signal(signal.SIGSTOP)
        for k in range(1, files + 1):
            (self.camera / f"f_{k}.pgm").write_bytes(content.read_bytes())
        program.send_signal(signal.SIGCONT)
        self.end(program)
        names = []
        while not lines.empty():
            names.append(lines.get()["file"])
        self.assertEqual(names, [f"f_{k}.pgm" for k in range(1, files + 1)])

    def test_a_reader_that_ends(self):
        """Nobody reads the lines any more: the frames are measured, and the code says that lines are lost."""
        for k in range(FRAMES + 1):
            self.put(k)
        reading, writing = os.pipe()
        watch = subprocess.Popen([dic_program.PROGRAM, "watch", "camera", *self.options, "--until", str(FRAMES),
                                  "-o", "piped"], cwd=self.folder, stdout=writing, stderr=subprocess.PIPE, text=True)
        os.close(reading)
        os.close(writing)
        error = watch.communicate(timeout=60)[1]
        self.assertEqual(watch.returncode, 1, error)
        self.assertIn("still measured", error)
        self.assertEqual(error.count("\n"), 1, error)
        self.assertEqual((self.run_json("piped")["state"], len(self.fields("piped")["u"])), ("complete", FRAMES))

    def test_nothing_comes(self):
        program, _ = self.watch("--idle", "0.3")
        program.wait(timeout=60)
        self.assertEqual(program.returncode, 130)
        self.assertIn("No image came", program.stderr.read())
        self.refuse(2, ["nowhere is not a folder"], "watch", "nowhere")
        self.refuse(2, ["No folder was given"], "watch")
        self.refuse(2, ["watched"], "watch", "camera", "-o", "camera")


if __name__ == "__main__":
    main()
