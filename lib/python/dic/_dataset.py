"""Results as xarray.Dataset."""

import enum
import json

import numpy as np
import xarray as xr

from . import _dic, _options


class Status(enum.IntEnum):
    """How the measurement of a point ended. `ok` and `outlier` have values, the others are NaN."""

    ok = 0
    flat = 1
    out_of_image = 2
    low_correlation = 3
    not_converged = 4
    diverged = 5
    masked = 6
    outlier = 7
    ambiguous = 8
    epipolar = 9


if {status.name: status.value for status in Status} != dict(_dic.status_names()):
    raise ImportError("The extension of this package is of another version: install dic again.")

_ARRAYS = _dic.field_arrays()
# Name: type, kind of the unit (length, strain, none, or a unit itself), description.
VARIABLES = {a["name"]: (np.dtype(a["type"]), a["unit"], a["description"]) for a in _ARRAYS}
_STEREO = {a["name"] for a in _ARRAYS if a["made_by"] == "two cameras"}  # a tracker of one camera has X, Y too: positions
STRAINS = [name for name, (_, kind, _) in VARIABLES.items() if kind == "strain"]
_ALWAYS = [a["name"] for a in _ARRAYS if not a["optional"]]


def variable_attributes(name, unit, measure):
    _, kind, description = VARIABLES[name]
    units = {"length": unit, "strain": "1", "none": "1"}.get(kind, kind)
    attributes = {"units": units, "long_name": description}
    if kind == "strain":
        attributes["measure"] = measure
    if name == "status":
        attributes["flag_values"] = np.array([int(status) for status in Status], np.uint8)
        attributes["flag_meanings"] = " ".join(status.name for status in Status)
    return attributes


def position_coordinates(x, y, inside, unit):
    return {
        "x": ("x", x, {"units": unit, "long_name": "position in the reference image, right"}),
        "y": ("y", y, {"units": unit, "long_name": "position in the reference image, down"}),
        "inside": (("y", "x"), inside, {"long_name": "inside the region of interest"}),
    }


def corrected_coordinates(X, Y, unit):
    return {
        "X": (("y", "x"), X, {"units": unit, "long_name": "x on the specimen, without distortion and perspective"}),
        "Y": (("y", "x"), Y, {"units": unit, "long_name": "y on the specimen, without distortion and perspective"}),
    }


def frame_coordinates(numbers, names, times=None):
    coordinates = {
        "frame": ("frame", np.asarray(numbers, np.int64), {"long_name": "number after the reference"}),
        "name": ("frame", np.asarray(names, object).astype(str)),
    }
    if times is not None:
        coordinates["time"] = ("frame", np.asarray(times, float), {"units": "s", "long_name": "time"})
    return coordinates


def scaled(values, factor):
    """The values times the factor in their own type, rounded once, as in result.vtkhdf."""
    return values if factor == 1 else (values.astype(np.float64) * factor).astype(values.dtype)


class DatasetBuilder:
    """Collects the results of a sequence. `source` has grid, options and device; scale: mm per px, 0 = px; shape: of
    the reference image."""

    def __init__(self, source, scale, shape, reference="", capacity=None):
        self._grid, self._scale, self._shape, self._reference = source.grid, scale, shape, reference
        self._options, self._device = dict(source.options), source.device
        self._arrays, self._capacity, self._filled = {}, capacity or 16, 0
        self._numbers, self._names = [], []
        self._X = self._Y = None

    def __len__(self):
        return self._filled

    def add(self, result, number=None, name=""):
        if not self._arrays:
            self._grow([name for name in VARIABLES if name not in _STEREO and getattr(result, name) is not None])
        elif self._filled == self._capacity:
            self._grow(self._arrays)
        factor = self._scale or 1.0
        for variable in self._arrays:
            values = getattr(result, variable)
            if values is not None:
                is_length = VARIABLES[variable][1] == "length"
                self._arrays[variable][self._filled] = scaled(values, factor if is_length else 1)
        if self._X is None and result.X is not None:
            self._X, self._Y = scaled(result.X, factor), scaled(result.Y, factor)
        self._filled += 1
        self._numbers.append(result.index + 1 if number is None else number)
        self._names.append(name)

    def _grow(self, names):
        if self._filled:
            self._capacity *= 2
        shape = (self._capacity, self._grid.ny, self._grid.nx)
        for variable in names:
            dtype = VARIABLES[variable][0]
            larger = np.full(shape, np.nan if dtype.kind == "f" else 0, dtype)
            if self._filled:
                larger[: self._filled] = self._arrays[variable][: self._filled]
            self._arrays[variable] = larger

    def dataset(self, times=None):
        if not self._arrays:
            self._grow(_ALWAYS)
        unit, factor = ("mm", self._scale) if self._scale else ("px", 1.0)
        measure = self._options["strain-measure"]
        variables = {
            name: (("frame", "y", "x"), self._arrays[name][: self._filled], variable_attributes(name, unit, measure))
            for name in self._arrays
        }
        grid = self._grid
        coordinates = position_coordinates(grid.x * factor, grid.y * factor, grid.inside.copy(), unit)
        if self._X is not None:
            coordinates.update(corrected_coordinates(self._X, self._Y, unit))
        coordinates.update(frame_coordinates(self._numbers, self._names, times))
        return xr.Dataset(variables, coordinates, self._attributes(unit))

    def _attributes(self, unit):
        settings = {name.replace("-", "_"): value for name, value in self._options.items()}
        return {
            "version": _dic.version(),
            "reference": self._reference,
            "device": self._device,
            "length_unit": unit,
            "scale_mm_per_px": float(self._scale),
            "subset": int(self._options["subset"]),
            "step": self._grid.step,
            "image_width": int(self._shape[1]),
            "image_height": int(self._shape[0]),
            "strain_window": int(self._options["strain-window"]),
            "strain_measure": self._options["strain-measure"],
            "settings": json.dumps(settings),
        }


def scale_of(options):
    return _dic.scale(_options.values({k: v for k, v in options.items() if k in ("scale", "camera")}))
