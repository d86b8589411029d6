"""result.vtkhdf as xarray.Dataset."""

import os
import threading

import h5py
import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from . import _dataset, _dic


class _StoredArray(BackendArray):
    """An array of the file that is read when it is asked for."""

    def __init__(self, dataset, lock):
        self._dataset, self._lock = dataset, lock
        self.shape, self.dtype = dataset.shape, dataset.dtype

    def __getitem__(self, key):
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER_1VECTOR, self._read)

    def _read(self, key):
        with self._lock:
            return self._dataset[key]


def _attribute(group, name):
    value = group.attrs[name]
    return value.decode() if isinstance(value, bytes) else value


def _text(value):
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _path_of(path):
    path = os.fspath(path)
    if os.path.isdir(path):
        path = os.path.join(path, "result.vtkhdf")
    if not os.path.exists(path):
        raise _dic.FileError(f"{path} does not exist; check the name.")
    return path


def _dataset_of(file):
    about, data = file["dic"], file["VTKHDF"].get("PointData", {})
    unit, measure = _attribute(about, "length_unit"), _attribute(about, "strain_measure")
    lock = threading.Lock()
    variables = {
        name: (("frame", "y", "x"), indexing.LazilyIndexedArray(_StoredArray(data[name], lock)),
               _dataset.variable_attributes(name, unit, measure))
        for name in _dataset.VARIABLES if name in data
    }
    coordinates = _dataset.position_coordinates(
        about["x"][()], about["y"][()], about["inside"][()].astype(bool), unit)
    if "X" in about:
        coordinates.update(_dataset.corrected_coordinates(about["X"][()], about["Y"][()], unit))
    if variables:
        values = file["VTKHDF/Steps/Values"]
        names = [_text(name) for name in about["frames"][()]]
        in_seconds = _text(values.attrs.get("unit", values.attrs.get("units", ""))) == "s"
        numbers = file["frame"][()] if "frame" in file else np.arange(len(names)) + 1 if in_seconds else values[()]
        coordinates.update(_dataset.frame_coordinates(numbers, names, values[()] if in_seconds else None))
    attributes = {name: _attribute(about, name) for name in about.attrs}
    attributes = {name: value.item() if isinstance(value, np.generic) else value
                  for name, value in attributes.items()}
    attributes.update({name: _text(about[name][()]) for name in ("reference", "command", "settings")})
    return xr.Dataset(variables, coordinates, attributes)


def open_result(path: "str | os.PathLike[str]") -> xr.Dataset:
    """Opens a result of `dic track`: a result.vtkhdf, or the folder that it is in.

    Returns an xarray.Dataset as dic.track does, with dimensions frame, y, x. Arrays are read when they are asked
    for; close() closes the file, and load() reads everything. Raises FileError.
    """
    name = _path_of(path)
    try:
        file = h5py.File(name, "r")
    except OSError as error:
        raise _dic.FileError(f"{name} cannot be read as HDF5: {error}.") from None
    try:
        dataset = _dataset_of(file)
    except (KeyError, AttributeError) as error:
        file.close()
        raise _dic.FileError(f"{name} is not a result of dic track: {error.args[0]}.") from None
    dataset.set_close(file.close)
    dataset.encoding["source"] = name
    return dataset
