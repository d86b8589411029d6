"""Strain of fields that were measured before."""

from __future__ import annotations

import os

import numpy as np
import xarray as xr

from . import _dic, _fields, _options
from ._dataset import STRAINS, variable_attributes


def strain(result: xr.Dataset | str | os.PathLike[str], strain_window: int | None = None,
           strain_measure: str | None = None, threads: int = 0) -> xr.Dataset:
    """Strain with another window or measure, from the displacement of a result, as `dic strain` computes it.

    result: of dic.track or dic.open, dimensions [frame,] y, x; or the folder or result.vtkhdf of `dic track`.
    strain_window: side of the window, points, odd; None: as in the result. strain_measure: green-lagrange,
    engineering, hencky or almansi; None: as in the result. threads: 0 = one per core.

    A part of a result, also every n-th point in x and y, transposed or reversed, has the strain of its own points: the
    step is the distance of their coordinates, px, and the attribute step of the returned dataset.

    Returns the dataset with exx, eyy, exy, e1, e2, von_mises, sigma_exx, sigma_eyy and sigma_exy replaced (float32;
    the virtual strain gauge is (strain_window - 1) * step + subset px). In px it has the bits of a measurement with
    these options; in mm the displacement was rounded once. Raises UsageError (also for a
    grid with different steps in x and y), FileError.
    """
    dataset = _fields.opened(result)
    _fields.require(dataset, ("u", "v", "sigma_u", "sigma_v", "status", "inside", "step", "subset"), "Strain")
    if "Z" in dataset:
        raise _dic.UsageError("The strain of this result is that of a surface in 3-D, which is computed with the "
                              "measurement: choose strain_window and strain_measure there.")
    window = dataset.attrs["strain_window"] if strain_window is None else strain_window
    measure = dataset.attrs["strain_measure"] if strain_measure is None else strain_measure
    wanted = _options.values({"strain_window": window, "strain_measure": measure, "threads": threads})
    nodes, measured = _fields.Nodes(dataset, "Strain"), _fields.measured_with(dataset)
    fields = [_dic.strain(_fields.arrays(frame), nodes.inside, nodes.step, measured, wanted)
              for frame in _fields.frames(nodes.dataset)]
    new = {}
    for name in STRAINS:
        values = np.stack([field[name] for field in fields]) if "frame" in nodes.dims else fields[0][name]
        new[name] = nodes.given(values).assign_attrs(variable_attributes(name, "px", measure))
    return dataset.assign(new).assign_attrs(strain_window=window, strain_measure=measure, step=nodes.step)
