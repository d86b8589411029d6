"""The gallery runs, in an empty folder."""

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


def test_there_are_five():
    assert len(EXAMPLES) == 5
