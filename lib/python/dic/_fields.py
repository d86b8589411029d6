"""Datasets as fields of the library: arrays in px by name."""

import json
import os

import numpy as np
import xarray as xr

from . import _dic, _options
from ._dataset import VARIABLES, Status
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
    factor = _number(dataset, "scale_mm_per_px") if "scale_mm_per_px" in dataset.attrs else 0
    if factor < 0:
        raise _dic.UsageError(f"The attribute scale_mm_per_px is a number of mm per px, got {factor:g}.")
    return factor or 1.0


def _number(dataset, name):
    try:
        value = float(dataset.attrs[name])
    except (TypeError, ValueError):
        value = np.nan
    if not np.isfinite(value):
        raise _dic.UsageError(f"The attribute {name} of the dataset is a number, got {dataset.attrs[name]!r}.")
    return value


def whole_number(dataset, name):
    """A positive attribute."""
    value = _number(dataset, name)
    if not 1 <= value < 2**31 or value != int(value):
        raise _dic.UsageError(f"The attribute {name} of the dataset is a whole number above 0, got {dataset.attrs[name]!r}.")
    return int(value)


class Nodes:
    """The grid of a dataset that was perhaps selected from, transposed or reversed, and the dataset in the order of the
    library: [frame,] y, x, both axes ascending."""

    def __init__(self, dataset, what):
        self._given = dataset["u"].dims
        if set(self._given) - {"frame"} != {"y", "x"}:
            raise _dic.UsageError(f"{what} needs a result with the dimensions y and x, and perhaps frame, but this one has "
                                  f"{', '.join(map(str, self._given)) or 'none'}.")
        missing = [axis for axis in "yx" if axis not in dataset.coords]
        if missing:
            raise _dic.UsageError(f"{what} needs the positions of the points, but this result lacks the coordinate {missing[0]}.")
        self._reversed = {axis: slice(None, None, -1) for axis in "yx"
                          if dataset.sizes[axis] > 1 and dataset[axis].values[0] > dataset[axis].values[-1]}
        self.dims = tuple(name for name in ("frame", "y", "x") if name in self._given)
        self.dataset = dataset.isel(self._reversed).transpose(*self.dims, ..., missing_dims="ignore")
        self.step = self._step(what)
        self.x0, self.y0 = (self._pixels(axis)[0] if dataset.sizes[axis] else 0 for axis in "xy")
        self.inside = np.ascontiguousarray(np.nan_to_num(self.dataset["inside"].values.astype(float)) != 0).astype(np.uint8)

    def _pixels(self, axis):
        """Positions of the nodes, whole px."""
        positions = self.dataset[axis].values.astype(float) / scale(self.dataset)
        whole = np.round(positions)
        size = {"x": "image_width", "y": "image_height"}[axis]
        limit = whole_number(self.dataset, size) if size in self.dataset.attrs else 2**31
        if not (np.abs(positions - whole) < 0.01).all():
            raise _dic.UsageError(f"The points of a result lie on whole pixels, but the coordinate {axis} of this one says "
                                  f"otherwise: keep the coordinates in the unit in which dic.track gave them, and do not average.")
        if not ((whole >= 0) & (whole < limit)).all():
            raise _dic.UsageError(f"The coordinate {axis} has positions outside the reference image: keep the coordinates in "
                                  f"the unit in which dic.track gave them.")
        return whole.astype(int).tolist()

    def _step(self, what):
        """Px between neighbours, which selecting every n-th point multiplies."""
        stored = whole_number(self.dataset, "step")
        steps = sorted({step for axis in "yx" for step in np.diff(self._pixels(axis)).tolist()})
        if len(steps) > 1:
            raise _dic.UsageError(f"{what} needs a grid with one step in x and y, but between the points of this result lie "
                                  f"{', '.join(map(str, steps[:4]))} px: select every n-th point in both.")
        if steps and (steps[0] <= 0 or steps[0] % stored):
            raise _dic.UsageError(f"The points of this result are {steps[0]} px apart, but its attribute step says {stored} px.")
        return steps[0] if steps else stored

    def given(self, values):
        """An array in the order of the library in that of the dataset."""
        return xr.DataArray(values, dims=self.dims).isel(self._reversed).transpose(*self._given)


def text(dataset, name):
    """An attribute."""
    value = dataset.attrs[name]
    if not isinstance(value, str):
        raise _dic.UsageError(f"The attribute {name} of the dataset is a text, got {value!r}.")
    return value


def settings(dataset):
    """The options of the measurement, a dictionary."""
    try:
        found = json.loads(text(dataset, "settings")) if "settings" in dataset.attrs else {}
    except json.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise _dic.UsageError("The attribute settings of the dataset is a JSON object, as dic.track wrote it, but this one is not.")
    return found


def measured_with(dataset):
    """The options that the errors of the points follow from."""
    stored = settings(dataset)
    options = {"global_" if name == "global" else name: stored[name] for name in _SETTINGS if stored.get(name) is not None}
    return _options.values({"subset": whole_number(dataset, "subset")} | options)


def _statuses(frame):
    """Points that `where` or a missing value left without a displacement are masked, whatever their status."""
    statuses = frame["status"].values
    known = np.isfinite(statuses)
    if (statuses[known] != np.round(statuses[known])).any():
        raise _dic.UsageError("A status is a whole number, but this result has others: do not average or interpolate it.")
    measured = known & np.isfinite(frame["u"].values) & np.isfinite(frame["v"].values)
    has_values = np.isin(statuses, (Status.ok, Status.outlier))
    lost = ~known | (has_values & ~measured)
    return np.where(lost, int(Status.masked), np.where(known, statuses, 0))


def arrays(frame):
    """The arrays [y, x] of one frame by name, lengths in px."""
    factor = scale(frame)

    def in_px(values):
        return values if factor == 1 else (values.astype(np.float64) / factor).astype(values.dtype)

    out = {}
    for name, (dtype, kind, _) in VARIABLES.items():
        if name in frame and name not in frame.coords:
            values = _statuses(frame) if name == "status" else frame[name].values
            values = (values if dtype.kind == "f" else np.nan_to_num(values)).astype(dtype, copy=False)
            out[name] = np.ascontiguousarray(in_px(values) if kind == "length" else values)
    for name in ("X", "Y"):
        if name in frame.coords:
            out[name] = np.ascontiguousarray(in_px(frame[name].values.astype(np.float64)))
    return out


def require(dataset, names, what):
    missing = [name for name in names if name not in dataset and name not in dataset.attrs]
    if missing:
        raise _dic.UsageError(f"{what} needs a result of dic.track or dic.open, but this one lacks {missing[0]}.")
