"""Checks who includes whom: python check_includes.py SOURCE_FOLDER

Rooms include downward only (docs/architecture.md); public headers name no third-party library; the program uses
public headers; only the CUDA files of a room see kernels/; only lib/image decodes images.
"""

import re
import sys
from pathlib import Path

MIDDLE = {"image", "correlate", "refine", "fields", "io"}
MAY_INCLUDE = {
    "shared": set(),
    "core": set(),
    "image": {"core"},
    "correlate": {"core"},
    "refine": {"core"},
    "fields": {"core"},
    "io": {"core"},
    "synth": {"core", "image", "io"},
    "track": MIDDLE | {"core"},
    "match": MIDDLE | {"core"},
    "bench": {"core", "io"},
}
THIRD_PARTY = re.compile(r"opencv|Eigen|hdf5|H5|hwy|nlohmann|toml|cuda|CLI/", re.IGNORECASE)
DECODING = re.compile(r"opencv2/(imgcodecs|videoio|highgui)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def sources(folder):
    return (path for path in sorted(folder.rglob("*")) if path.suffix in {".hpp", ".cpp", ".h", ".cu", ".cuh"})


def includes(path):
    return [name for _, name in INCLUDE.findall(path.read_text(encoding="utf-8"))]


def problems_of_room(room, path):
    for name in includes(path):
        other = name.split("/")[0]
        if other in MAY_INCLUDE and other != room and other not in MAY_INCLUDE[room]:
            yield f'room "{room}" must not include "{name}"'
        if name.startswith("dic/kernels/") and "cuda" not in path.name and path.parent.name != "cuda":
            yield f"only CUDA files may include <{name}>"
        if DECODING.match(name) and room != "image":
            yield f"only the room \"image\" may include <{name}>"


def problems_of_public_header(path):
    for name in includes(path):
        if THIRD_PARTY.search(name) or name.split("/")[0] in MAY_INCLUDE:
            yield f"a public header must not include <{name}>"


def problems_of_program(path):
    for name in includes(path):
        if name.split("/")[0] in MAY_INCLUDE or name.startswith(("opencv", "dic/kernels/")):
            yield f'the program must not include "{name}"'


def problems_of_kernels(path):
    own = next(folder for folder in path.parents if folder.name == "kernels")
    for name in includes(path):
        of_room = name.split("/")[0] in MAY_INCLUDE and not (own / name).exists()  # kernels/refine is no room
        if of_room or name.startswith("opencv"):
            yield f'kernels must not include "{name}"'


def all_problems(root):
    rooms = sorted(folder.name for folder in (root / "lib").iterdir() if folder.is_dir())
    for room in rooms:
        for path in sources(root / "lib" / room):
            if room == "include":
                found = problems_of_public_header(path)
            elif room in MAY_INCLUDE:
                found = problems_of_room(room, path)
            else:
                found = [f'room "{room}" has no rule in check_includes.py']
            yield from ((path, problem) for problem in found)
    for folder, check in (("app", problems_of_program), ("kernels", problems_of_kernels)):
        for path in sources(root / folder):
            yield from ((path, problem) for problem in check(path))


def main():
    root = Path(sys.argv[1])
    checked = sum(1 for folder in ("lib", "app", "kernels") for _ in sources(root / folder))
    found = list(all_problems(root))
    for path, problem in found:
        print(f"{path.relative_to(root)}: {problem}")
    print(f"{checked} files checked, {len(found)} problems")
    return 1 if found or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
