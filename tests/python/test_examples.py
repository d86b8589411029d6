"""The gallery runs, in an empty folder."""

import json
import re
import subprocess
import sys

import pytest

from conftest import ROOT

EXAMPLES = sorted((ROOT / "lib/python/examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_runs(script, tmp_path):
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_there_are_six():
    assert len(EXAMPLES) == 6


def test_discs_tell_the_strain(tmp_path):
    script = ROOT / "lib/python/examples/strain_4dstem.py"
    text = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    counts = re.search(r"discs per pattern: (\d+) to (\d+) of (\d+)", text)
    assert counts[1] == counts[2] == counts[3]
    errors = json.loads(re.search(r"rms error of exx, eyy: (.*)", text)[1])
    assert all(error < 0.001 for error in errors)  # the scan's strain goes up to 0.018
