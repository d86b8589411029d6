"""There is one version, in CMakeLists.txt: all that name it say the same. python test_versions.py DIC"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = sys.argv.pop(1)
VERSION = re.search(r"project\(dic VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True).stdout


class Versions(unittest.TestCase):
    def test_metadata_for_citation(self):
        self.assertEqual(re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE).group(1), VERSION)

    def test_conda_recipe(self):
        recipe = (ROOT / "cmake/packages/conda/recipe.yaml").read_text()
        self.assertEqual(re.search(r"^  version: (.+)$", recipe, re.MULTILINE).group(1), VERSION)

    def test_changelog(self):
        newest = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE).group(1)
        self.assertRegex(newest, rf"^(Unreleased \({VERSION}\)|{VERSION} )")

    def test_program_and_manual(self):
        self.assertEqual(run("--version").split()[:2], ["dic", VERSION])
        with tempfile.TemporaryDirectory() as folder:
            run("help", "--manual", folder)
            pages = list(pathlib.Path(folder).iterdir())
            self.assertGreater(len(pages), 5)
            for page in pages:
                self.assertIn(VERSION, page.read_text().splitlines()[0], page.name)

    def test_python_package_reads_it(self):
        text = (ROOT / "pyproject.toml").read_text()
        self.assertIn('dynamic = ["version"]', text)
        pattern = re.search(r"^regex = '(.+)'$", text, re.MULTILINE).group(1)
        self.assertEqual(re.search(pattern, (ROOT / "CMakeLists.txt").read_text()).group("value"), VERSION)


unittest.main()
