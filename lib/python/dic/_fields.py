"""Datasets as fields of the library: arrays in px by name."""

import json
import os

import numpy as np

from . import _dic, _options
from ._dataset import VARIABLES
from ._result import open_result

_SETTINGS = ("order", "weights", "global", "global_resolution")  # settings on which the predicted errors depend


def opened(result):
    """Returns a dataset unchanged, and opens the dataset of a result that is given by its name."""
    return open_result(result) if isinstance(result, (str, os.PathLike)) else result


def frames(dataset):
    """One dataset for each frame."""
    if "frame" not in dataset.dims:
        return [dataset]
    return [dataset.isel(frame=i) for i in range(dataset.sizes["frame"])]


def scale(dataset):
    """mm per px, or 1."""
    return dataset.attrs.get("scale_mm_per_px", 0) or 1.0


def inside(dataset):
    return np.ascontiguousarray(dataset["inside"].values.astype(np.uint8))


def origin(dataset):
    """First node of the grid, (x0, y0), px; 0 along an axis without nodes."""
    return [int(round(float(dataset[axis].values[0]) / scale(dataset))) if dataset.sizes[axis] else 0 for axis in "xy"]


def settings(dataset):
    return json.loads(dataset.attrs.get("settings", "{}"))


def measured_with(dataset):
    """The options that the errors of the points follow from."""
    stored = settings(dataset)
    options = {"global_" if name == "global" else name: stored[name] for name in _SETTINGS if stored.get(name) is not None}
    return _options.values({"subset": int(dataset.attrs["subset"])} | options)


def arrays(frame):
    """The arrays [y, x] of one frame by name, lengths in px."""
    factor = scale(frame)

    def in_px(values):
        return values if factor == 1 else (values.astype(np.float64) / factor).astype(values.dtype)

    out = {}
    for name, (dtype, kind, _) in VARIABLES.items():
        if name in frame:
            values = frame[name].values.astype(dtype, copy=False)
            out[name] = np.ascontiguousarray(in_px(values) if kind == "length" else values)
    for name in ("X", "Y"):
        if name in frame.coords:
            out[name] = np.ascontiguousarray(in_px(frame[name].values.astype(np.float64)))
    return out


def require(dataset, names, what):
    missing = [name for name in names if name not in dataset and name not in dataset.attrs]
    if missing:
        raise _dic.UsageError(f"{what} needs a result of dic.track or dic.open, but this one lacks {missing[0]}.")
