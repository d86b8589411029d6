"""Checks who includes whom: python check_includes.py SOURCE_FOLDER

Every file of lib/, app/ and kernels/ (.hpp, .cpp, .cuh, .cu) belongs to a layer; a layer includes those below it
(docs/architecture.md). Neither files, nor rooms, nor the folders of kernels/ include each other in a circle.
check_includes_test.py proves that violations are found.
"""

import re
import sys
from os.path import normpath
from pathlib import Path

SUFFIXES = {".hpp", ".cpp", ".h", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

# Layers that are not rooms: public headers, code shared by CPU and GPU, kernels, their launch headers, the
# program.
PUBLIC, SHARED, KERNELS, LAUNCH, APP = "public headers", "dic/shared", "kernels", "launch headers", "app"
INCLUDE_FOLDERS = {
    "lib/include": PUBLIC,
    "lib/shared/include": SHARED,
    "kernels/include": LAUNCH,
}
ROOMS = {
    "core": set(),
    "image": {"core"},
    "correlate": {"core"},
    "refine": {"core"},
    "fields": {"core"},
    "features": {"core"},
    "global": {"core"},
    "io": {"core"},
    "draw": {"core"},
    "camera": {"core", "io"},
    "calibrate": {"core", "camera"},
    "synth": {"core", "calibrate", "image", "io"},
    "analysis": {"core", "fields", "refine"},
    "track": {"core", "analysis", "camera", "correlate", "features", "fields", "global", "refine"},
    "stereo": {"core", "camera", "fields", "track"},
    "run": {"core", "image", "io", "draw", "analysis", "track", "stereo"},
    "vsg": {"core", "draw", "fields", "track"},
    "match": {"core", "refine"},
    "query": {"core", "fields", "global", "io", "draw", "run"},
    "live": {"core", "image", "io", "run"},
    "c_interface": {"core", "track", "match"},
    "export": {"core", "io", "query"},
    "bench": {"core", "io", "draw"},
    "figures": {"core", "io", "draw"},
    "validate": {"core", "io", "draw", "synth"},
}
MAY_INCLUDE = {room: below | {PUBLIC, SHARED, LAUNCH} for room, below in ROOMS.items()} | {
    SHARED: set(),
    PUBLIC: {SHARED},
    LAUNCH: {SHARED},
    KERNELS: {LAUNCH, SHARED},
    APP: {PUBLIC, SHARED, "bench", "export", "figures", "validate"},
    "python": {PUBLIC, APP},  # of the program, the report alone
}
THIRD_PARTY = re.compile(r"opencv|Eigen|hdf5|H5|hwy|nlohmann|toml|cuda|CLI/|CL/", re.IGNORECASE)
OPT_IN = {"opencv.hpp": "opencv2/core", "eigen.hpp": "Eigen/"}  # public headers for users of these libraries
MEASURING = {"correlate", "refine", "fields", "features", "global", "analysis", "track", "stereo"}  # rooms that know no files
FILES = {"filesystem", "fstream"}
FILE_HEADERS = {"io.hpp", "image_io.hpp", "draw.hpp", "result.hpp", "result_strain.hpp", "track_files.hpp"}
DECODING = re.compile(r"opencv2/(imgcodecs|videoio|highgui)")


class Tree:
    """The sources below a folder, with their layers and includes."""

    def __init__(self, root):
        self.root = root
        folders = [root / name for name in ("lib", "app", "kernels")]
        self.files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES)
        known = set(self.files)
        self.names = {}  # file -> names that it includes
        self.edges = {}  # file -> files of the project that it includes
        for path in self.files:
            self.names[path] = [name for _, name in INCLUDE.findall(path.read_text(encoding="utf-8"))]
            found = (self.resolve(path, name, known) for name in self.names[path])
            self.edges[path] = [target for target in found if target]

    def resolve(self, path, name, known):
        """The file of the project to which an included name refers; None if it is not in the project."""
        own = "kernels" if self.relative(path).parts[0] == "kernels" else "lib"
        folders = [own, "lib", "app", "kernels", *INCLUDE_FOLDERS]
        candidates = [path.parent / name, *(self.root / folder / name for folder in folders)]
        return next((file for file in map(Path, map(normpath, candidates)) if file in known), None)

    def relative(self, path):
        return path.relative_to(self.root)

    def layer(self, path):
        relative = self.relative(path)
        for folder, layer in INCLUDE_FOLDERS.items():
            if relative.is_relative_to(folder):
                return layer
        return relative.parts[1] if relative.parts[0] == "lib" else relative.parts[0]

    def folder(self, path):
        """The unit of a file that must not be in an include cycle: a room, a folder of kernels/, or a layer."""
        relative = self.relative(path)
        return "/".join(relative.parts[:2]) if self.layer(path) == KERNELS else self.layer(path)


def is_cuda(tree, path):
    return "cuda" in path.name or "cuda" in tree.relative(path).parts


def problems_of_layers(tree):
    for path in tree.files:
        layer = tree.layer(path)
        if layer not in MAY_INCLUDE:
            yield path, f'"{layer}" has no rule in check_includes.py'
            continue
        for target in tree.edges[path]:
            other = tree.layer(target)
            if other != layer and other not in MAY_INCLUDE[layer]:
                yield path, f"{layer} must not include {tree.relative(target)} ({other})"
            elif other == LAUNCH and layer in ROOMS and not is_cuda(tree, path):
                yield path, f"only CUDA files may include {tree.relative(target)}"


def problems_of_libraries(tree):
    for path in tree.files:
        layer = tree.layer(path)
        for name in tree.names[path]:
            if DECODING.match(name) and layer != "image":
                yield path, f'only the room "image" may include <{name}>'
            elif name.startswith("CL/") and "opencl" not in path.name:
                yield path, f"only OpenCL files may include <{name}>"
            elif layer == KERNELS and name.startswith("opencv"):
                yield path, f"kernels must not include <{name}>"
            elif layer == APP and name.startswith("opencv"):
                yield path, f"the program must not include <{name}>"
            elif layer in (PUBLIC, SHARED, LAUNCH) and THIRD_PARTY.match(name):
                if layer != PUBLIC or not name.startswith(OPT_IN.get(path.name, "no library")):
                    yield path, f"{layer} must not include <{name}>"


def problems_of_measuring(tree):
    """Problems where a room that measures includes what reads or writes files, directly or through other headers."""
    for path in tree.files:
        layer = tree.layer(path)
        if layer not in MEASURING:
            continue
        for name in FILES.intersection(tree.names[path]):
            yield path, f"{layer} measures, and must not include <{name}>"
        reached, waiting = {path}, [path]
        while waiting:
            new = set(tree.edges[waiting.pop()]) - reached
            reached |= new
            waiting += new
        for target in sorted(reached):
            if tree.layer(target) == PUBLIC and target.name in FILE_HEADERS:
                yield path, f"{layer} measures, and must not include <dic/{target.name}>"


def cycles(edges):
    """One cycle for each group of nodes that reach each other (Tarjan's strongly connected components)."""
    order, low, stack, found = {}, {}, [], []

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        for target in edges.get(node, ()):
            if target not in order:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], order[target])
        if low[node] == order[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1 or node in edges.get(node, ()):
                found.append(sorted(group))

    for node in edges:
        if node not in order:
            visit(node)
    return found


def problems_of_cycles(tree):
    for group in cycles(tree.edges):
        names = " -> ".join(str(tree.relative(path)) for path in group)
        yield group[0], f"files include each other in a circle: {names}"
    folders, example = {}, {}
    for path in tree.files:
        own = folders.setdefault(tree.folder(path), set())
        for target in tree.edges[path]:
            if tree.folder(target) != tree.folder(path):
                own.add(tree.folder(target))
                example.setdefault((tree.folder(path), tree.folder(target)), path)
    for group in cycles(folders):
        inside = [path for (a, b), path in example.items() if a in group and b in group]
        names = ", ".join(str(tree.relative(path)) for path in inside)
        yield inside[0], f"{' and '.join(group)} include each other in a circle: see {names}"


def problems_of_installation(tree):
    """Problems unless exactly the dic/shared headers that public ones reach are in DIC_PUBLIC_SHARED_HEADERS."""
    options = tree.root / "cmake" / "DicOptions.cmake"
    listed = re.search(r"set\(DIC_PUBLIC_SHARED_HEADERS([^)]*)\)", options.read_text(encoding="utf-8"))
    installed = set(listed.group(1).split()) if listed else set()
    reached = set()
    waiting = [path for path in tree.files if tree.layer(path) == PUBLIC]
    while waiting:
        for target in tree.edges[waiting.pop()]:
            if tree.layer(target) == SHARED and target not in reached:
                reached.add(target)
                waiting.append(target)
    for path in reached:
        if path.name not in installed:
            yield path, "public headers include it, but it is not in DIC_PUBLIC_SHARED_HEADERS"
    for name in installed - {path.name for path in reached}:
        yield options, f"DIC_PUBLIC_SHARED_HEADERS: no public header includes {name}"


def all_problems(root):
    tree = Tree(root)
    for check in (problems_of_layers, problems_of_libraries, problems_of_measuring, problems_of_cycles, problems_of_installation):
        for path, problem in check(tree):
            yield f"{tree.relative(path)}: {problem}"


def main():
    root = Path(sys.argv[1]).resolve()
    checked = len(Tree(root).files)
    found = list(all_problems(root))
    for problem in found:
        print(problem)
    print(f"{checked} files checked, {len(found)} problems")
    return 1 if found or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
