"""Checks the names of local functions in files that are compiled joined: python check_joined_names.py SOURCE_FOLDER

With DIC_UNITY_ROOMS several files of a room are one for the compiler. A call of a local function template can then
choose a function of the same name in another file: without a message, other code runs. So no two joined files of a
room have local functions of one name.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

SINGLE = {"python", "view", "mpi"}  # folders whose files are compiled one by one
ALONE = re.compile(r"set\(DIC_ALONE_(\w+) ([^)]*)\)")
LOCAL = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
# The first line of a definition: a type, a name and "(", without indentation.
FUNCTION = re.compile(r"^(?!class|struct|enum|using|template|static_assert|return|constexpr \w+ k)\w[^\n=;(]*?\b(\w+)\(",
                      re.MULTILINE)


def local_functions(text):
    return {name for part in LOCAL.findall(text) for name in FUNCTION.findall(part)}


def problems_of(room, alone):
    owners = defaultdict(list)
    for path in sorted(room.rglob("*.cpp")):
        text = path.read_text(encoding="utf-8")
        if path.name in alone or not SINGLE.isdisjoint(path.relative_to(room.parent).parts) or "#define HWY_TARGET_INCLUDE" in text:
            continue
        for name in local_functions(text):
            owners[name].append(path.name)
    for name, files in sorted(owners.items()):
        if len(files) > 1:
            yield f"{room.name}: {name}() is a local function of {', '.join(files)}"


def check_the_check():
    text = "namespace {\n\ntemplate <typename T>\nvoid append(std::string& bytes, T value) {\n  call(1);\n}\n\n}  // namespace\n\nint open() {\n"
    assert local_functions(text) == {"append"}, local_functions(text)


def main():
    check_the_check()
    root = Path(sys.argv[1]).resolve()
    unity = (root / "cmake/DicUnity.cmake").read_text(encoding="utf-8")
    alone = {room: names.split() for room, names in ALONE.findall(unity)}
    apart = re.search(r"set\(DIC_ROOMS_APART ([^)]*)\)", unity)[1].split()
    rooms = [path for path in (*sorted((root / "lib").iterdir()), root / "app") if path.is_dir() and path.name not in apart]
    found = [problem for room in rooms for problem in problems_of(room, alone.get(room.name, []))]
    for problem in found:
        print(problem)
    print(f"{len(rooms)} rooms, {len(found)} names in two files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
