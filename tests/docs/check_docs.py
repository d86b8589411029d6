"""Runs every code block of README.md and docs/, and checks links and paths.

    python check_docs.py DIC PREFIX [PAGE ...]

DIC is the program, PREFIX an installation of the library. The blocks of a page run in order in one temporary folder that
holds links to data/ and docs/, with `dic` on PATH:

    sh              run by bash
    cpp             compiled with -Wall -Wextra -Werror against the installation, as a complete program, and run
    cmake           configured as a project
    python          run
    toml            read by `dic track --config`
    text, matlab, mermaid   not run

A comment in the line before a block says what to do instead:

    <!-- docs-test: file NAME -->     write the block to a file, for the blocks after it
    <!-- docs-test: needs NAME -->    run it only where this environment variable is set
    <!-- docs-test: skip REASON -->   do not run it
    <!-- docs-test: arguments WORDS -->  run the compiled program with them
    <!-- docs-test: output TOLERANCE -->  the block is what the last block printed: words are equal, numbers differ by at most
                                          TOLERANCE; a line "..." stands for any lines

No block of sh or cpp may print "nan": an example shows measured values. Pages have at most as many words as WORDS says: shorten before you
add.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\S*)\s*\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)
MARK = re.compile(r"<!-- docs-test: (file|skip|needs|arguments|output) (.+?) -->\s*\n\Z")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAMED_PATH = re.compile(r"`((?:app|lib|kernels|tests|docs|cmake|data|\.ci)/[\w./-]+)`")
NAMED_SOURCE = re.compile(r"`((?:\.\./)*(?!app/|lib/|kernels/|tests/)[\w/-]+\.(?:cuh?|[ch]pp))`")
INCLUDE_FOLDERS = ("lib/include", "lib/shared/include", "kernels/include")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
NOT_A_NUMBER = re.compile(r"\bnan\b", re.IGNORECASE)
NOT_RUN = ("text", "matlab", "mermaid")
SECONDS = 120
# Words outside of code blocks, by page or pages together.
WORDS = {
    ("docs/user-guide.md",): 5000,
    ("docs/template-matching.md",): 1500,
    ("docs/python.md",): 1200,
    ("docs/embedding.md", "docs/c.md"): 2000,
    ("docs/cluster.md",): 1000,
    ("docs/file-formats.md",): 3500,
    ("docs/theory.md",): 6500,
    ("docs/accuracy.md",): 2500,
    ("docs/performance.md",): 1500,
    ("docs/architecture.md", "docs/recipes.md"): 4500,
    ("docs/contributing.md", "docs/releasing.md"): 2000,
}


class Block:
    def __init__(self, page, match):
        before = page.text[: match.start()]
        mark = MARK.search(before)
        self.language, self.code = match.group(1), match.group(2)
        self.line = before.count("\n") + 1
        self.action, self.argument = mark.groups() if mark else ("run", "")


class Page:
    def __init__(self, path):
        self.path = path
        self.name = str(path.relative_to(ROOT))
        self.text = path.read_text()
        self.prose = FENCE.sub("", self.text)
        self.blocks = [Block(self, match) for match in FENCE.finditer(self.text)]


def anchors(text):
    """The anchors that GitHub makes of the headings."""
    result = set()
    for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)).strip()
        result.add(words.lower().replace(" ", "-"))
    return result


def problems_of_links(page):
    for target in LINK.findall(page.prose):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (page.path.parent / file).resolve() if file else page.path
        if not path.exists():
            yield f"{page.name}: the link {target} leads nowhere"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text()):
            yield f"{page.name}: {target} names no heading"
    for named in NAMED_PATH.findall(page.prose):
        if not (ROOT / named.rstrip("./")).exists():
            yield f"{page.name}: there is no {named}"
    for named in NAMED_SOURCE.findall(page.prose):  # beside the page, or as it is included
        folders = (page.path.parent, *(ROOT / folder for folder in INCLUDE_FOLDERS))
        if named != "main.cpp" and not any((folder / named).exists() for folder in folders):
            yield f"{page.name}: there is no {named}"


def problems_of_form(page):
    for number, line in enumerate(page.prose.splitlines(), 1):
        if re.match(r" {4,}(dic|cmake|ctest|python|\.ci/\S+) ", line):
            yield f"{page.name}: a command in an indented block is not run: {line.strip()}"
    for block in page.blocks:
        if not block.language:
            yield f"{page.name}:{block.line}: the block names no language"


def words_of(page):
    return sum(1 for word in re.sub(r"<!--.*?-->", "", page.prose, flags=re.DOTALL).split() if re.search(r"\w", word))


def problems_of_length(pages):
    """The pages of WORDS that are among these, and longer."""
    lengths = {page.name: words_of(page) for page in pages}
    for names, limit in WORDS.items():
        words = sum(lengths.get(name, 0) for name in names)
        if words > limit:
            yield f"{', '.join(names)}: {words} words instead of at most {limit}"


def is_line_like(expected, line, tolerance):
    """Whether the words of two lines are equal, and their numbers differ by at most the tolerance."""
    words = [NUMBER.sub("#", text).split() for text in (expected, line)]
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (expected, line)]
    return words[0] == words[1] and all(abs(a - b) <= tolerance for a, b in zip(*numbers))


def are_lines_like(expected, lines, tolerance):
    if not expected:
        return not lines
    if expected[0].strip() == "...":
        return any(are_lines_like(expected[1:], lines[k:], tolerance) for k in range(len(lines) + 1))
    return bool(lines) and is_line_like(expected[0], lines[0], tolerance) and are_lines_like(expected[1:], lines[1:], tolerance)


class Runner:
    def __init__(self, page, program, prefix, folder):
        self.page, self.folder, self.printed = page, folder, ""
        self.environment = dict(
            os.environ,
            PATH=os.pathsep.join([str(folder / "bin"), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]),
            CMAKE_PREFIX_PATH=str(prefix),
            CXXFLAGS="-Wall -Wextra -Werror",
            LD_LIBRARY_PATH=str(prefix / "lib"),
            PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"),
        )
        (folder / "bin").mkdir()
        (folder / "bin" / "dic").symlink_to(program)
        for name in ("data", "docs"):
            (folder / name).symlink_to(ROOT / name)

    def run(self, command):
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, text=True, timeout=SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        self.printed = done.stdout
        if done.returncode != 0:
            return f"code {done.returncode} of {shlex.join(command)[:200]}\n{done.stdout}"
        return ""

    def compare_output(self, block):
        """Compares a block with what the block before it printed."""
        expected, lines = (text.strip().splitlines() for text in (block.code, self.printed))
        same = are_lines_like(expected, lines, float(block.argument))
        return "" if same else f"The last block printed something else:\n{self.printed}"

    def configure_programs(self):
        """One project for the C++ of a page: what takes most of the time of a small one is to configure it."""
        project = self.folder / "programs"
        if project.exists():
            return ""
        project.mkdir()
        for block in self.page.blocks:
            if block.language == "cpp":
                (project / f"block_{block.line}.cpp").write_text(block.code)
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(blocks LANGUAGES CXX)\nfind_package(dic REQUIRED)\n"
            "find_package(OpenCV QUIET COMPONENTS core)\nfind_package(Eigen3 QUIET)\nlink_libraries(dic::dic)\n"
            "if(OpenCV_FOUND)\n  link_libraries(${OpenCV_LIBS})\nendif()\n"
            "if(Eigen3_FOUND)\n  link_libraries(Eigen3::Eigen)\nendif()\n"
            "file(GLOB files *.cpp)\nforeach(file IN LISTS files)\n  cmake_path(GET file STEM name)\n"
            "  add_executable(${name} ${file})\nendforeach()\n"
        )
        return self.run(["cmake", "-S", "programs", "-B", "programs/build"])

    def run_block(self, block):
        """Problems found, one sentence each; empty = none."""
        problem = self.run_code(block)
        if not problem and block.language in ("sh", "cpp") and NOT_A_NUMBER.search(self.printed):
            return f"prints nan:\n{self.printed}"
        return problem

    def run_code(self, block):
        if block.language in ("sh", "console"):
            return self.run(["bash", "-euo", "pipefail", "-c", block.code])
        name = f"block_{block.line}"
        if block.language == "cpp":
            arguments = block.argument.split() if block.action == "arguments" else []
            return (self.configure_programs() or self.run(["cmake", "--build", "programs/build", "--target", name])
                    or self.run([f"programs/build/{name}", *arguments]))
        if block.language == "cmake":
            (self.folder / name).mkdir()
            (self.folder / name / "CMakeLists.txt").write_text(block.code)
            return self.run(["cmake", "-S", name, "-B", f"{name}/build"])
        if block.language == "python":
            return self.run([sys.executable, "-c", block.code])
        if block.language == "toml":
            (self.folder / f"{name}.toml").write_text(block.code)
            return self.run(["dic", "track", "--config", f"{name}.toml", "--save-config", f"{name}.out.toml"])
        return f'The language "{block.language}" is unknown.'


def check_blocks(page, program, prefix, counts):
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(page, program, prefix, pathlib.Path(folder))
        for block in page.blocks:
            where = f"{page.name}:{block.line}"
            reason = block.argument if block.action == "skip" else ""
            if block.action == "needs" and block.argument not in os.environ:
                reason = f"{block.argument} is not set"
            if reason:
                print(f"{where}: {block.language} not run: {reason}")
                counts["not run, with a reason"] = counts.get("not run, with a reason", 0) + 1
            elif block.action == "file":
                (pathlib.Path(folder) / block.argument).write_text(block.code)
                counts["file"] = counts.get("file", 0) + 1
            elif block.action == "output":
                problem = runner.compare_output(block)
                counts["output"] = counts.get("output", 0) + 1
                if problem:
                    yield f"{where}: {problem}"
            elif block.language not in NOT_RUN:
                begin = time.monotonic()
                problem = runner.run_block(block)
                counts[block.language] = counts.get(block.language, 0) + 1
                print(f"{where}: {block.language} {'failed' if problem else 'ok'}, {time.monotonic() - begin:.1f} s")
                if problem:
                    yield f"{where}: {problem}"


def main():
    program, prefix = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    paths = [pathlib.Path(argument).resolve() for argument in sys.argv[3:]] or [
        ROOT / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "kernels").rglob("README.md")),
        ROOT / "CHANGELOG.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        ROOT / "data" / "README.md",
    ]
    counts, pages = {}, [Page(path) for path in paths]
    problems = list(problems_of_length(pages))
    for page in pages:
        problems += [*problems_of_links(page), *problems_of_form(page), *check_blocks(page, program, prefix, counts)]
    print("Blocks:", ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    for problem in problems:
        print("PROBLEM:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
