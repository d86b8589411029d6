"""Where pip put cuFFT: the extra `cuda` of the wheel. The loader does not look there; the library takes it from DIC_CUFFT when a
measurement first needs it."""

import importlib.util
import os
from pathlib import Path


def find():
    """The file, or None."""
    package = importlib.util.find_spec("nvidia")
    for folder in package.submodule_search_locations or () if package else ():
        for file in sorted(Path(folder).glob("*/lib/libcufft.so.12")):
            return file
    return None


if "DIC_CUFFT" not in os.environ and (file := find()):
    os.environ["DIC_CUFFT"] = str(file)
