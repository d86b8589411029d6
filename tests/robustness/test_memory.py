"""Large images within little memory: python test_memory.py DIC"""

import os
import re
import subprocess
import time
from pathlib import Path

import numpy as np
import tifffile

import dic_program
from dic_program import ProgramTest, main

HEIGHT, WIDTH = 3000, 4000
LIMIT = 200  # MB; the image in one piece takes twice as much


def texture(u, v, seed=3):
    """Smooth noise of known motion, float in 0..255, moved in the frequency domain, where motion is exact."""
    noise = np.random.default_rng(seed).standard_normal((HEIGHT, WIDTH))
    y, x = np.fft.fftfreq(HEIGHT)[:, None], np.fft.rfftfreq(WIDTH)[None]
    spectrum = np.fft.rfft2(noise) * np.exp(-60 * (x**2 + y**2) - 2j * np.pi * (x * u + y * v))
    grey = np.fft.irfft2(spectrum, s=noise.shape)
    return np.clip(127 + 40 * grey / grey.std(), 0, 255)


class MemoryTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.images = [texture(0, 0), texture(2.25, -1.6)]

    def peak(self, *arguments):
        """Largest resident memory, MB."""
        most = 0
        with subprocess.Popen([dic_program.PROGRAM, *arguments], cwd=self.folder, stderr=subprocess.PIPE, text=True) as run:
            while run.poll() is None:
                status = Path(f"/proc/{run.pid}/status").read_text()
                if found := re.search(r"VmHWM:\s*(\d+) kB", status):
                    most = max(most, int(found[1]) / 1024)
                time.sleep(0.005)
            self.assertEqual(run.returncode, 0, run.stderr.read())
        return most

    def check(self, ending, write):
        for name, grey in zip(("reference", "current"), self.images):
            write(self.folder / f"{name}{ending}", grey)
        command = ["track", f"reference{ending}", f"current{ending}", "--step", "40", "--no-pictures", "--device", "cpu", "--quiet"]
        free = self.peak(*command, "-o", "whole")
        kept = self.peak(*command, "-o", "kept", "--max-memory", f"{LIMIT}M")
        self.assertGreater(free, 1.3 * LIMIT)
        if not dic_program.is_sanitized():
            self.assertLess(kept, LIMIT)
        whole, fields = self.fields("whole"), self.fields("kept")
        for name, values in whole.items():
            np.testing.assert_array_equal(fields[name], values, name)
        self.assert_moved(fields, 0, 2.25, -1.6)
        self.assertEqual([path.name for path in self.folder.iterdir() if "memory" in path.name], [])

    def test_strips_of_8_bit(self):
        self.check(".tif", lambda path, grey: tifffile.imwrite(path, np.round(grey).astype(np.uint8), rowsperstrip=64))

    def test_big_tiff_of_16_bit_in_tiles(self):
        self.check(".tif", lambda path, grey: tifffile.imwrite(path, np.round(257 * grey).astype(np.uint16), bigtiff=True,
                                                               tile=(256, 256), compression="zlib"))

    def test_no_room_on_the_disk(self):
        if os.geteuid() != 0:
            self.skipTest("only root can mount a small disk")
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(disk)], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"no small disk can be mounted here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(disk)], check=True)
        for name, grey in zip(("a.tif", "b.tif"), self.images):
            tifffile.imwrite(self.folder / name, np.round(grey).astype(np.uint8))
        self.refuse(1, ["disk", "--max-memory"], "track", "a.tif", "b.tif", "-o", "disk/out", "--max-memory", "200M")

    def test_too_many_points(self):
        for name, grey in zip(("a.tif", "b.tif"), self.images):
            tifffile.imwrite(self.folder / name, np.round(grey[:800, :1200]).astype(np.uint8))
        self.refuse(2, ["points alone", "--step"], "track", "a.tif", "b.tif", "--step", "2", "--device", "cpu", "--max-memory", "100M")

    def test_what_is_no_size(self):
        for size in ("12", "-1G", "1.5G", "many"):
            self.refuse(2, ["max-memory"], "track", "a.tif", "b.tif", f"--max-memory={size}")


if __name__ == "__main__":
    main()
