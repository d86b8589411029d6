"""Checks who creates thread pools: python check_thread_pools.py SOURCE_FOLDER

A pool belongs to an object that users create, to a job, or to a call of a public function. Everything else gets it
from its owner, so that a program has no more threads than its option `threads` says. Whoever adds an owner adds its
file to OWNERS, with the reason.
"""

import re
import sys
from pathlib import Path

CREATES = re.compile(r"^(?!\s*//).*(\bThreadPool\s+\w+\s*[({;]|\b(make_unique|optional)<(core::)?ThreadPool>)", re.MULTILINE)
THREADS = re.compile(r"^(?!\s*//).*\bint threads\b", re.MULTILINE)

OWNERS = {
    # Objects that users create.
    "lib/correlate/correlator.cpp": "Correlator",
    "lib/correlate/peak_finder.cpp": "PeakFinder",
    "lib/match/match.cpp": "Matcher",
    "lib/refine/refiner.cpp": "Refiner",
    "lib/stereo/pair_tracker.hpp": "StereoTracker",
    "lib/track/sequence.hpp": "Tracker and TrackStream",
    # Jobs.
    "lib/analysis/preview.cpp": "preview()",
    "lib/bench/ceilings.cpp": "what the CPU can do at best",
    "lib/calibrate/calibrate.cpp": "calibrate()",
    "lib/calibrate/calibrate_stereo.cpp": "calibrate_stereo()",
    "lib/export/export.cpp": "export_result()",
    "lib/figures/plot.cpp": "plot()",
    "lib/query/result_strain.cpp": "write_result_strain(), field_strain()",
    "lib/run/results.hpp": "pictures of a run",
    "lib/synth/stereo_scene.cpp": "StereoScene",
    "lib/synth/synth.hpp": "frames of one sequence",
    "lib/validate/run.cpp": "run(), run_case()",
    "lib/vsg/vsg.cpp": "sweep_vsg()",
    # Public functions with a parameter `threads`.
    "lib/synth/board_image.cpp": "board_image()",
    "lib/camera/correct_field.cpp": "corrected_nodes(), correct_field()",
    "lib/io/csv.cpp": "write_csv(), write_stereo_csv()",
    "lib/fields/outliers.cpp": "mark_outliers()",
    "lib/fields/strain.cpp": "compute_strain()",
    "lib/global/global_step.cpp": "global_step(), global_errors()",
}
# Headers with numbers of threads: the public ones, and options of jobs of the program.
OPTIONS = ("lib/include/", "lib/bench/", "lib/core/parallel.hpp", "lib/figures/plot.hpp")


def problems(root):
    seen = set()
    for folder in ("lib", "app"):
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
            if CREATES.search(text):
                seen.add(name)
                if name not in OWNERS:
                    yield f"{name}: creates a ThreadPool; take one from the owner, or name the file in OWNERS"
            if path.suffix == ".hpp" and THREADS.search(text) and not name.startswith(OPTIONS):
                yield f"{name}: takes a number of threads; take a ThreadPool of the owner"
    for name in OWNERS.keys() - seen:
        yield f"{name}: creates no ThreadPool; remove it from OWNERS"


def main():
    found = list(problems(Path(sys.argv[1]).resolve()))
    for problem in found:
        print(problem)
    print(f"{len(OWNERS)} owners of thread pools, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
