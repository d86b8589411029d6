"""A long run: memory, descriptors and throughput at the beginning and at the end.

    python soak.py DIC [--frames 20000] [--size 64] [--device cpu] [--check]

Frames are links to a few images of known motion. --check fails where something grows; CTest runs that on few frames.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from dic_program import processor_seconds, speckle, write_image  # noqa: E402

IMAGES = 8


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dic")
    parser.add_argument("--frames", type=int, default=20000)
    parser.add_argument("--size", type=int, default=64, help="px of the side of an image")
    parser.add_argument("--step", type=int, default=15)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


def write_frames(folder, frames, size):
    for k in range(IMAGES):
        write_image(folder / f"image_{k}.tif", speckle(size, size, 0.1 * k, -0.05 * k))
    (folder / "frames").mkdir()
    for k in range(frames + 1):
        os.link(folder / f"image_{k % IMAGES}.tif", folder / f"frames/frame_{k:06d}.tif")


def resident_megabytes(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def sample(pid, log):
    """Processor time in s (it does not depend on what else the machine does), finished frames, MB, descriptors."""
    with log.open("rb") as file:
        done = file.read().count(b'"frame"')
    return processor_seconds(pid), done, resident_megabytes(pid), len(os.listdir(f"/proc/{pid}/fd"))


def run(folder, arguments):
    command = [os.path.abspath(arguments.dic), "track", "frames", "--subset", "21", "--step", str(arguments.step),
               "--device", arguments.device, "--pictures", "none", "--quiet"]
    program = subprocess.Popen(command, cwd=folder)
    samples, log = [], folder / "dic_out/.dic-frames.jsonl"
    every = max(0.01, arguments.frames / 200000)  # a sample reads the whole log
    while program.poll() is None:
        time.sleep(every)
        try:
            taken = sample(program.pid, log)
            if taken[2] > 0 and program.poll() is None:
                samples.append(taken)
        except (FileNotFoundError, ProcessLookupError, IndexError):
            pass  # the program has not started or has just ended
    if program.returncode != 0:
        sys.exit(f"dic ended with {program.returncode}")
    return samples


def part(samples, begin, end, frames):
    """Statistics of the samples between these fractions of the run's frames."""
    inside = [s for s in samples if begin * frames <= s[1] <= end * frames]
    if len(inside) < 2 or inside[0][1] == inside[-1][1]:
        sys.exit(f"too few samples between {begin:.0%} and {end:.0%}: take more frames")
    first, last = inside[0], inside[-1]
    return {"frames": [first[1], last[1]], "frames_per_processor_second": (last[1] - first[1]) / max(last[0] - first[0], 0.01),
            "MB": last[2], "descriptors": last[3]}


def main():
    arguments = options()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_frames(folder, arguments.frames, arguments.size)
        samples = run(folder, arguments)
        done = len(json.loads((folder / "dic_out/run.json").read_text())["frames"])
    report = {"frames": done, "begin": part(samples, 0.05, 0.3, arguments.frames),
              "end": part(samples, 0.7, 0.98, arguments.frames)}
    grown = report["end"]["MB"] - report["begin"]["MB"]
    report["bytes_per_frame"] = 1e6 * grown / (0.7 * arguments.frames)
    print(json.dumps(report, indent=2))
    if not arguments.check:
        return
    problems = []
    if done != arguments.frames:
        problems.append(f"{done} of {arguments.frames} frames were done")
    if report["end"]["descriptors"] > report["begin"]["descriptors"] + 2:
        problems.append("descriptors grow")
    # The entry of a frame in run.json stays in memory; it has less than 2 KB.
    if grown > 4 + 2e-3 * arguments.frames:
        problems.append(f"memory grew by {grown:.1f} MB")
    if report["end"]["frames_per_processor_second"] < 0.2 * report["begin"]["frames_per_processor_second"]:
        problems.append("it became slower")
    if problems:
        sys.exit("; ".join(problems))


if __name__ == "__main__":
    main()
