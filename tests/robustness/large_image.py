"""Memory and time of a large image with --max-memory.

    python large_image.py DIC [--width 40000] [--height 25000] [--bits 8] [--step 50] [--limit 4G] [--device cpu]

By hand: writes two BigTIFFs in tiles, of known motion, into the current folder's disk, measures the second against the first and prints
the largest resident memory, the time and the error.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import tifffile

MOTION = (3.3, -2.4)
BLOCK = 2500  # px: side of a square with its own texture


def block(seed, u, v, bits):
    """Smooth noise that is moved in the frequency domain, where motion is exact."""
    noise = np.random.default_rng(seed).standard_normal((BLOCK, BLOCK)).astype(np.float32)
    y, x = np.fft.fftfreq(BLOCK)[:, None].astype(np.float32), np.fft.rfftfreq(BLOCK)[None].astype(np.float32)
    grey = np.fft.irfft2(np.fft.rfft2(noise) * np.exp(-60 * (x * x + y * y) - 2j * np.pi * (x * u + y * v)), s=noise.shape)
    most = 2**bits - 1
    return np.clip((127 + 40 * grey / grey.std()) * most / 255, 0, most).round().astype(np.uint8 if bits == 8 else np.uint16)


def write(path, width, height, bits, u, v):
    blocks = [block(seed, u, v, bits) for seed in range(8)]
    pixels = np.memmap(path.with_suffix(".raw"), blocks[0].dtype, "w+", shape=(height, width))
    for j, y in enumerate(range(0, height, BLOCK)):
        for i, x in enumerate(range(0, width, BLOCK)):
            pixels[y:y + BLOCK, x:x + BLOCK] = blocks[(5 * i + 3 * j) % 8][:min(BLOCK, height - y), :min(BLOCK, width - x)]
    tifffile.imwrite(path, pixels, bigtiff=True, tile=(512, 512))
    path.with_suffix(".raw").unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dic")
    parser.add_argument("--width", type=int, default=40000)
    parser.add_argument("--height", type=int, default=25000)
    parser.add_argument("--bits", type=int, choices=(8, 16), default=8)
    parser.add_argument("--step", default="50")
    parser.add_argument("--limit", default="4G")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        write(folder / "a.tif", arguments.width, arguments.height, arguments.bits, 0, 0)
        write(folder / "b.tif", arguments.width, arguments.height, arguments.bits, *MOTION)
        begin, most = time.monotonic(), 0
        run = subprocess.Popen([os.path.abspath(arguments.dic), "track", "a.tif", "b.tif", "--step", arguments.step, "--no-pictures", "--quiet",
                                "--device", arguments.device, "--max-memory", arguments.limit], cwd=folder)
        while run.poll() is None:
            if found := re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{run.pid}/status").read_text()):
                most = max(most, int(found[1]) / 1024)
            time.sleep(0.05)
        seconds = time.monotonic() - begin
        summary = json.loads((folder / "dic_out/run.json").read_text())
        with h5py.File(folder / "dic_out/result.vtkhdf") as file:
            ok = file["VTKHDF/PointData/status"][0] == 0
            error = [float(np.median(np.abs(file[f"VTKHDF/PointData/{axis}"][0][ok] - moved))) for axis, moved in zip("uv", MOTION)]
    print(f"{arguments.width}x{arguments.height}, {arguments.bits} bit, {summary['points']} points, {ok.mean():.2%} ok, median error "
          f"{error[0]:.4f} and {error[1]:.4f} px: {most:.0f} MB of {arguments.limit}, {seconds:.0f} s")


if __name__ == "__main__":
    main()
