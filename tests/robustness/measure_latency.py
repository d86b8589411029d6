"""How long after an image was closed dic watch prints its line.

    python measure_latency.py DIC [--size 2048] [--frames 50] [--ending tif] [--device cuda] [--every 0.2] [--step 10]

By hand: images come one by one. Prints median and largest latency in ms, of all frames but the first three.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from dic_program import speckle, write_image  # noqa: E402

WARM_UP = 3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dic")
    parser.add_argument("--size", type=int, default=2048, help="px of the side of an image")
    parser.add_argument("--frames", type=int, default=50)
    parser.add_argument("--ending", default="tif")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--step", type=int, default=10)
    parser.add_argument("--every", type=float, default=0.2, help="seconds between images")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = []
        for k in range(4):
            write_image(folder / f"image.{arguments.ending}", speckle(arguments.size, arguments.size, 0.1 * k, 0.05 * k))
            images.append((folder / f"image.{arguments.ending}").read_bytes())
        (folder / "camera").mkdir()
        program = subprocess.Popen(
            [os.path.abspath(arguments.dic), "watch", "camera", "--until", str(arguments.frames), "--pictures", "none",
             "--step", str(arguments.step), "--device", arguments.device],
            cwd=folder, stdout=subprocess.PIPE, text=True)
        latencies = []
        for k in range(arguments.frames + 1):
            with open(folder / f"camera/frame_{k:04d}.{arguments.ending}", "wb") as file:
                file.write(images[k % len(images)])
            closed = time.monotonic()
            if k > 0:
                line = json.loads(program.stdout.readline())
                latencies.append(1e3 * (time.monotonic() - closed))
                assert line["frame"] == k and line["error"] is None, line
            time.sleep(arguments.every)
        program.wait()
        run = json.loads((folder / "dic_out/run.json").read_text())
    latencies = latencies[WARM_UP:]
    print(f"{run['device']}: {arguments.size} x {arguments.size} {arguments.ending}, {run['points']} points: "
          f"median {statistics.median(latencies):.1f} ms, largest {max(latencies):.1f} ms of {len(latencies)}")


if __name__ == "__main__":
    main()
