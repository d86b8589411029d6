"""Fixtures that the tests of the package share. They run with PYTHONPATH=BUILD/python and DIC_PROGRAM=BUILD/dic."""

import os
from pathlib import Path

import numpy as np
import pytest

import dic

ROOT = Path(__file__).resolve().parents[2]
FRAMES = ROOT / "data" / "speckle_small"


@pytest.fixture(scope="session")
def program():
    return os.environ["DIC_PROGRAM"]


@pytest.fixture(scope="session")
def moved():
    """Three frames of a stretch, with the truth."""
    return dic.synth(width=160, height=128, frames=3, motion="affine", u=0.8, v=-0.4, ux=0.01, noise=1, seed=3)


def same_bits(a, b):
    return a.dtype == b.dtype and np.array_equal(a.values, b.values, equal_nan=a.dtype.kind == "f")
