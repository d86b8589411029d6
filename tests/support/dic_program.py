"""Shared code of the Python tests: running the program, speckle with known motion, reading results."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import cv2
import h5py
import numpy as np

PROGRAM = None


def is_sanitized():
    """True if the program was built with a sanitizer, which needs additional address space and time."""
    program = Path(PROGRAM).read_bytes()
    return b"__asan_init" in program or b"__tsan_init" in program


def processor_seconds(pid):
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def processor_seconds_of_ended():
    """Processor time of all programs that this test started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def speckle(height, width, u=0.0, v=0.0, seed=1):
    """Grey levels of a pattern that was moved by (u, v) px, float64 in 0..255.

    Waves of random direction, length and phase: exact between pixels, so that the motion is.
    """
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(float)
    x, y = x - u, y - v
    total = np.zeros((height, width))
    for _ in range(40):
        angle, frequency, phase = random.uniform(0, 2 * np.pi), random.uniform(0.3, 1.1), random.uniform(0, 2 * np.pi)
        total += np.sin(frequency * (np.cos(angle) * x + np.sin(angle) * y) + phase)
    return np.clip(127 + 7 * total, 0, 255)


def write_image(path, grey, dtype=np.uint8):
    """Rounds to 8 bit, or to 16 bit with grey levels times 257."""
    factor = 257 if dtype == np.uint16 else 1
    encoded, data = cv2.imencode(Path(path).suffix, np.round(grey * factor).astype(dtype))
    assert encoded
    Path(path).write_bytes(data.tobytes())  # cv2.imwrite would lose some names


class ProgramTest(unittest.TestCase):
    """Base of tests that each have their own folder, which is also the program's working directory."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def dic(self, *arguments, **options):
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              timeout=300, **options)

    def succeed(self, *arguments, code=0):
        done = self.dic(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def refuse(self, code, words, *arguments, **options):
        """Expects the program to end with `code` and one message that contains all `words`."""
        done = self.dic(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertTrue(done.stderr.startswith("dic: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        return done

    def sequence(self, shifts, size=(120, 140), pattern="frame_{}.png", dtype=np.uint8):
        """Writes a frame per (u, v) and returns their names."""
        names = [pattern.format(i) for i in range(len(shifts))]
        for name, (u, v) in zip(names, shifts):
            write_image(self.folder / name, speckle(*size, u, v), dtype)
        return names

    def run_json(self, output="dic_out"):
        return json.loads((self.folder / output / "run.json").read_text())

    def fields(self, output="dic_out"):
        """The arrays [frame, y, x] of result.vtkhdf by name."""
        with h5py.File(self.folder / output / "result.vtkhdf") as file:
            return {name: data[()] for name, data in file["VTKHDF/PointData"].items()}

    def assert_moved(self, fields, frame, u, v, within=0.02, edge=1):
        """Expects all points but the outermost `edge` rows, whose subsets are cut, to have moved by (u, v)."""
        interior = (frame, slice(edge, -edge), slice(edge, -edge))
        self.assertTrue((fields["status"][interior] == 0).all(), fields["status"][frame])
        self.assertLess(np.abs(fields["u"][interior] - u).max(), within)
        self.assertLess(np.abs(fields["v"][interior] - v).max(), within)


def main():
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
