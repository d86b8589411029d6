"""Strain of fields that were measured before."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

from . import _dic
from ._dataset import STRAINS, variable_attributes


def _order(dataset):
    """Of the shape function; None where points have different ones, or errors are not those of single subsets."""
    settings = json.loads(dataset.attrs.get("settings", "{}"))
    if str(settings.get("global", False)).lower() == "true" or settings.get("order") == "auto":
        return None
    return int(settings.get("order", 1))


def strain(dataset: xr.Dataset, strain_window: int = 5, strain_measure: str = "green-lagrange",
           threads: int = 0) -> xr.Dataset:
    """Strain with another window or measure, from the displacement of a result.

    dataset: of dic.track or dic.open, dimensions [frame,] y, x. strain_window: side of the window, points, odd.
    strain_measure: green-lagrange, engineering, hencky or almansi. threads: 0 = one per core.

    Returns the dataset with exx, eyy, exy, e1, e2, von_mises, sigma_exx, sigma_eyy and sigma_exy replaced (float32;
    the virtual strain gauge is (strain_window - 1) * step + subset px). In px it has the bits of a measurement with
    these options; in mm the displacement was rounded once. The standard deviations are NaN after order="auto" and
    global=True, whose errors the displacement alone does not tell. Raises UsageError.
    """
    scale = dataset.attrs.get("scale_mm_per_px", 0) or 1.0
    order = _order(dataset)
    inside = dataset["inside"].values.astype(np.uint8)
    corrected = [np.ascontiguousarray(dataset[name].values / scale) for name in ("X", "Y") if name in dataset.coords]

    def lengths(frame, name):
        values = frame[name].values
        values = values if scale == 1 else values / np.asarray(scale, values.dtype)
        return np.ascontiguousarray(values)

    def of(frame):
        return _dic.strain(
            *(lengths(frame, name) for name in ("u", "v")), np.ascontiguousarray(frame["status"].values),
            *(lengths(frame, name) for name in ("sigma_u", "sigma_v")), inside, int(dataset.attrs["step"]),
            str(strain_window), strain_measure, 0 if order is None else int(dataset.attrs["subset"]), order or 1,
            *(corrected or (None, None)), threads)

    has_frames = "frame" in dataset.dims
    frames = [dataset.isel(frame=i) for i in range(dataset.sizes["frame"])] if has_frames else [dataset]
    fields = [of(frame) for frame in frames]
    new = {}
    for name in STRAINS:
        values = np.stack([field[name] for field in fields]) if has_frames else fields[0][name]
        attributes = variable_attributes(name, "px", strain_measure)
        new[name] = (("frame", "y", "x") if has_frames else ("y", "x"), values, attributes)
    return dataset.assign(new).assign_attrs(strain_window=strain_window, strain_measure=strain_measure)
