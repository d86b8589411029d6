"""cmake/packages/licences.tsv says what the packages' own copyright files say, as far as they are installed here: python test_licences.py DIC"""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.argv.pop(1)


def load_write_sbom():
    loader = importlib.machinery.SourceFileLoader("write_sbom", str(ROOT / "cmake/packages/write-sbom"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("write_sbom", loader))
    loader.exec_module(module)
    return module


class Licences(unittest.TestCase):
    def test_copyright_files(self):
        sbom = load_write_sbom()
        rows = sbom.table(ROOT / "cmake/packages/licences.tsv")
        listed = subprocess.run(["dpkg-query", "-W", "-f", "${source:Package} ${Package}\n"], capture_output=True, text=True)
        texts = {}
        for source, package in (line.split() for line in listed.stdout.splitlines()):
            text = pathlib.Path("/usr/share/doc", package, "copyright")
            if text.is_file():
                texts.setdefault(source, text)
        checked = [name for name, _, words in rows if name in texts and self.assertIn(words, sbom.flat(texts[name]), name) is None]
        if not listed.stdout:
            self.skipTest("no packages of Debian")
        self.assertGreater(len(checked), 8, "compilers and libraries that the build needs are installed")

    def test_another_licence_is_noticed(self):
        sbom = load_write_sbom()
        text = ROOT / "LICENSE"
        sbom.check({"dic": "MIT"}, {"dic": "Permission is hereby granted"}, {"dic": ("1", text)})
        for licences, words in (({}, {}), ({"dic": "MIT"}, {"dic": "Apache License"}), ({"dic": "GPL-2.0-only"}, {"dic": "Permission"})):
            with self.assertRaises(SystemExit):
                sbom.check(licences, words, {"dic": ("1", text)})


unittest.main()
