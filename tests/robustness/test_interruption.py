"""Ctrl-C and SIGTERM at any moment, and long sequences: python test_interruption.py DIC"""

import json
import os
import signal
import subprocess
import time

import h5py

import dic_program
from dic_program import ProgramTest, main, processor_seconds, processor_seconds_of_ended, speckle, write_image

FRAMES = 60


class InterruptionTest(ProgramTest):
    def setUp(self):
        super().setUp()
        write_image(self.folder / "frame_0.png", speckle(300, 300))
        write_image(self.folder / "moved.png", speckle(300, 300, 0.4, 0.2))
        self.frames = ["frame_0.png"] + [f"frame_{i}.png" for i in range(1, FRAMES + 1)]
        for name in self.frames[1:]:
            os.link(self.folder / "moved.png", self.folder / name)

    def start(self):
        return subprocess.Popen([dic_program.PROGRAM, "track", *self.frames, "--csv", "--step", "3", "--subset", "31"],
                                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for(self, condition, program):
        while program.poll() is None and not condition():
            time.sleep(0.005)

    def check_saved(self):
        run = json.loads((self.folder / "dic_out/run.json").read_text())
        self.assertTrue(run["interrupted"])
        done = len(run["frames"])
        self.assertGreater(done, 0)
        self.assertLess(done, FRAMES)
        with h5py.File(self.folder / "dic_out/result.vtkhdf") as file:
            self.assertEqual(len(file["VTKHDF/PointData/u"]), done)
        tables = sorted((self.folder / "dic_out/csv").iterdir())
        self.assertEqual(len(tables), done)
        rows = {len(table.read_text().splitlines()) for table in tables}
        self.assertEqual(rows, {run["points"] + 1})
        self.assertFalse(list((self.folder / "dic_out").rglob("*.part")))

    def test_what_is_done_is_saved(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for tables in (1, 5):
                with self.subTest(signal=number, tables=tables), self.start() as program:
                    csv = self.folder / "dic_out/csv"
                    self.wait_for(lambda: csv.exists() and len(list(csv.iterdir())) >= tables, program)
                    program.send_signal(number)
                    _, errors = program.communicate(timeout=60)
                    self.assertEqual(program.returncode, 130, errors)
                    self.check_saved()
                self.remove_output()

    def remove_output(self):
        for path in sorted((self.folder / "dic_out").rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()

    def test_at_any_moment(self):
        """At any moment, the program exits with 130 (or ended before), and no incomplete file has a final name."""
        for milliseconds in (0, 5, 10, 20, 40, 80, 160, 320):
            with self.subTest(milliseconds), self.start() as program:
                time.sleep(milliseconds / 1000)
                program.send_signal(signal.SIGTERM)
                _, errors = program.communicate(timeout=60)
                # -SIGTERM: the program was killed before it installed its handler.
                self.assertIn(program.returncode, (130, -signal.SIGTERM), errors)
                if (self.folder / "dic_out/run.json").exists():
                    self.check_saved()
                else:
                    self.assertFalse((self.folder / "dic_out/result.vtkhdf").exists())
            self.remove_output()

    def test_second_signal_ends_at_once(self):
        earlier = processor_seconds_of_ended()
        with self.start() as program:
            self.wait_for((self.folder / "dic_out/csv").exists, program)
            before = processor_seconds(program.pid)
            for _ in range(20):
                program.send_signal(signal.SIGINT)
                time.sleep(0.002)
                if program.poll() is not None:
                    break
            program.communicate(timeout=60)
            self.assertEqual(program.returncode, 130)
            self.assertLess(processor_seconds_of_ended() - earlier - before, 2)

    def test_killed_run_can_be_replaced(self):
        with self.start() as program:
            csv = self.folder / "dic_out/csv"
            self.wait_for(lambda: csv.exists() and len(list(csv.iterdir())) >= 2, program)
            program.kill()
            program.communicate(timeout=60)
        self.refuse(1, ["--resume", "--force"], "track", *self.frames[:2])
        self.succeed("track", *self.frames[:2], "--csv", "--force", "--no-pictures")
        self.assertEqual([path.name for path in (self.folder / "dic_out/csv").iterdir()], ["frame_1.csv"])


class MemoryTest(ProgramTest):
    def peak_megabytes(self, *arguments):
        """Largest resident memory of a run, MB."""
        program = subprocess.Popen([dic_program.PROGRAM, "track", *arguments], cwd=self.folder,
                                   stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(program.returncode, 0)
        return usage.ru_maxrss / 1024

    def test_a_pair_of_one_megapixel(self):
        if dic_program.is_sanitized():
            self.skipTest("sanitizers take memory of their own")
        write_image(self.folder / "a.png", speckle(1024, 1024))
        write_image(self.folder / "b.png", speckle(1024, 1024, 0.3, 0.2))
        self.assertLess(self.peak_megabytes("a.png", "b.png"), 120)

    def test_long_sequences_take_no_more(self):
        if dic_program.is_sanitized():
            self.skipTest("sanitizers take memory of their own")
        names = self.sequence([(0, 0), (0.4, 0.2)], (300, 300))
        for i in range(2, 121):
            os.link(self.folder / names[1], self.folder / f"frame_{i}.png")
        frames = [f"frame_{i}.png" for i in range(121)]
        short = self.peak_megabytes(*frames[:11], "--csv", "-o", "short")
        long = self.peak_megabytes(*frames, "--csv", "-o", "long")
        self.assertLess(long, short + 8)

    def test_what_a_frame_leaves_is_small(self):
        """A frame leaves its entry in the summary and in run.json, but not its part of the result's index."""
        if dic_program.is_sanitized():
            self.skipTest("sanitizers take memory of their own")
        self.sequence([(0, 0), (0.4, 0.2)], (64, 64), "{}.png")
        for count in (300, 1800):
            (self.folder / str(count)).mkdir()
            for i in range(count):
                os.link(self.folder / f"{i % 2}.png", self.folder / f"{count}/frame_{i:05}.png")
        options = ("--subset", "15", "--step", "10", "--no-pictures", "--threads", "1")
        few, many = (self.peak_megabytes(str(count), "-o", f"out_{count}", *options) for count in (300, 1800))
        self.assertLess(many - few, 7)


if __name__ == "__main__":
    main()
