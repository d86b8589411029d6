"""Values of a result over its frames: points, extensometers, lines, areas."""

from __future__ import annotations

import html
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from . import _dic, _fields, _options
from ._dataset import VARIABLES

_LENGTHS = {"gauge_length", "change", "sigma_change", "distance"}  # values of extensometers and lines that are lengths
_COUNTS = {"nodes", "points", "strain_points"}


@dataclass(repr=False)
class Probe:
    """Values that dic.probe found. Every dataset has a coordinate `frame`, and `name`, `time`, `load` and `stress` where they
    are known; the attribute `units` of every array says px or mm. NaN where nothing was measured; `problem` says why.
    """

    points: xr.Dataset
    """[frame, point]: u, v, sigma_u, sigma_v, zncc, exx, eyy, exy, e1, e2, von_mises, sigma_exx, sigma_eyy, sigma_exy; with
    two cameras also X ... W, their sigmas, epipolar, reprojection, incidence."""
    extensometers: xr.Dataset
    """[frame, extensometer]: gauge_length, change, strain (engineering), sigma_change, sigma_strain; with two cameras in
    space, mm."""
    lines: list[xr.Dataset]
    """Values along each line [frame, distance]: those of points, and position_x, position_y in px. With two cameras also
    offset from the straight line through its ends, and [frame] length, change, deflection, bending, sigma_bending,
    flatness, curvature."""
    areas: xr.Dataset
    """[frame, area]: mean_u, sd_u, ... of the `ok` points inside; nodes, points, strain_points: how many there are."""

    def __repr__(self) -> str:
        places = [(len(places[str(places.attrs["place"])]), name) for name, places in (
            ("points", self.points), ("extensometers", self.extensometers), ("areas", self.areas))]
        places.insert(2, (len(self.lines), "lines"))
        named = ", ".join(f"{count} {name if count > 1 else name[:-1]}" for count, name in places if count)
        return f"<dic.Probe: {named}; {self.points.sizes['frame']} frames>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{self.to_dataframe().to_html(max_rows=10)}"

    def to_dataframe(self) -> pd.DataFrame:
        """A row for each frame; columns P1 u, ..., E1 strain, ..., A1 mean_exx, ... by the order of the places."""
        frame = self.points.coords
        table = pd.DataFrame({name: frame[name].values for name in ("name", "time", "load", "stress") if name in frame},
                             index=pd.Index(frame["frame"].values, name="frame"))
        columns = {}
        for letter, places in (("P", self.points), ("E", self.extensometers), ("A", self.areas)):
            place = str(places.attrs["place"])
            for number in places[place].values:
                for name in places.data_vars:
                    columns[f"{letter}{number} {name}"] = places[name].sel({place: number}).values
        return pd.concat([table, pd.DataFrame(columns, index=table.index)], axis=1)


def _several(value, is_one):
    """A list of places from none, one or several."""
    if value is None:
        return []
    return [value] if is_one(value) else list(value)


def _numbers(value, count, option, what):
    numbers = np.asarray(value, float).ravel()
    if numbers.size != count or not np.isfinite(numbers).all():
        raise _dic.UsageError(f"{option} needs {what}, got {value!r}.")
    return tuple(numbers.tolist())


def _points(value, option="point"):
    places = _several(value, lambda v: _options.is_number(v[0]))
    return [_numbers(place, 2, option, "two numbers x, y") for place in places]


def _ends(value, option):
    places = _several(value, lambda v: _options.is_number(v[0]))
    return [_numbers(place, 4, option, "four numbers x1, y1, x2, y2") for place in places]


def _areas(value):
    return [_points(corners, "area") for corners in _several(value, lambda v: _options.is_number(v[0][0]))]


def _attributes(name, unit, measure):
    quantity = name.removeprefix("mean_").removeprefix("sd_")
    kind = VARIABLES[quantity][1] if quantity in VARIABLES else "length" if quantity in _LENGTHS else "none"
    attributes = {"units": {"length": unit, "strain": "1", "none": "1"}.get(kind, kind)}
    if kind == "strain":
        attributes["measure"] = measure
    return attributes


def _frame_coordinates(dataset, answers):
    coordinates = {"frame": ("frame", np.atleast_1d(dataset["frame"].values))} if "frame" in dataset.coords else {
        "frame": ("frame", np.array([1]))}
    for name in ("name", "time"):
        if name in dataset.coords:
            coordinates[name] = ("frame", np.atleast_1d(dataset[name].values), dataset[name].attrs)
    if answers["loads"]:
        coordinates["load"] = ("frame", answers["loads"],
                               {"units": answers["load_unit"], "long_name": answers["load_name"]})
    if answers["stresses"]:
        coordinates["stress"] = ("frame", answers["stresses"], {"units": "MPa"})
    return coordinates


def _places(arrays, place, coordinates, unit, measure, positions=None):
    """Variables of a dataset, by name, from arrays [frame, place]."""
    variables = {}
    for name, values in arrays.items():
        if name == "problem":
            values = np.array(values, dtype=object).reshape(arrays[next(iter(arrays))].shape).astype(str)
            variables[name] = (("frame", place), values)
        else:
            values = values.astype(np.int64) if name in _COUNTS else values
            variables[name] = (("frame", place), values, _attributes(name, unit, measure))
    count = next(iter(arrays.values())).shape[1]
    return xr.Dataset(variables, coordinates | (positions or {place: (place, np.arange(1, count + 1))}),
                      {"place": place})


def _line(arrays, coordinates, unit, measure):
    offset, shape = arrays.pop("offset", None), arrays.pop("shape", {})
    positions = {"distance": ("distance", arrays.pop("distance"), {"units": unit})}
    for name in ("position_x", "position_y"):
        positions[name] = ("distance", arrays.pop(name), {"units": "px"})
    dataset = _places(arrays, "distance", coordinates, unit, measure, positions)
    if offset is not None:
        dataset["offset"] = (("frame", "distance"), offset, {"units": "mm"})
    return dataset.assign({name: ("frame", values, {"units": units}) for name, (values, units) in shape.items()})


def _add_loads(fields, loads, load_column, section, count):
    if loads is None:
        if section:
            raise _dic.UsageError("section makes stress of loads: give their table with loads.")
    elif isinstance(loads, (str, os.PathLike)):
        fields.add_loads_of_file(loads, load_column or "", section)
    else:
        values = [float(value) for value in loads]
        if len(values) != count:
            raise _dic.UsageError(f"loads has one number for each of the {count} frames, got {len(values)}.")
        fields.add_loads(values, section)


def _image_size(dataset):
    return _fields.whole_number(dataset, "image_width"), _fields.whole_number(dataset, "image_height")


def probe(result: xr.Dataset | str | os.PathLike[str], *, point: Sequence[Any] | None = None,
          extensometer: Sequence[Any] | None = None, line: Sequence[Any] | None = None,
          area: Sequence[Any] | None = None, loads: str | os.PathLike[str] | Sequence[float] | None = None,
          load_column: str | None = None, section: float = 0,
          output: str | os.PathLike[str] | None = None) -> Probe:
    """Values of a result over its frames, as `dic probe` finds them.

        found = dic.probe(ds, point=(120, 80), extensometer=(100, 40, 100, 360), loads="machine.csv", section=24.5)
        found.extensometers.strain.plot(x="stress")
        found.to_dataframe().to_csv("history.csv")

    result: of dic.track or dic.open, dimensions [frame,] y, x; or the folder or result.vtkhdf of `dic track`.
    Places are px of the reference image, whatever the unit of the result; each may be one or a list of several:
    point: (x, y), between four points of the grid that are all measured. extensometer: (x1, y1, x2, y2), the change
    of the distance. line: (x1, y1, x2, y2), points a step of the grid apart. area: [(x, y), ...], the corners of a
    polygon: means and standard deviations.
    loads: CSV table with a column frame or time, or in order of the frames; or one number, N, for each frame.
    load_column: name of the loads' column; None: the only one that is a force by its name or unit. section: cross
    section, mm2: a coordinate `stress` in MPa. output: folder that gets the files of `dic probe`: history.csv,
    lines.csv, history.png, probe.json.

    Returns a Probe: datasets points, extensometers, areas, a list of datasets lines, and to_dataframe(). Raises
    UsageError (a place outside of the image, an area without points), FileError.
    """
    dataset = _fields.opened(result)
    _fields.require(dataset, ("u", "v", "status", "inside", "step", "image_width", "image_height"), "A probe")
    has_seconds = "time" in dataset.coords
    unit, measure = _fields.text(dataset, "length_unit"), _fields.text(dataset, "strain_measure")
    nodes = _fields.Nodes(dataset, "A probe")
    fields = _dic.FieldProbe(
        nodes.inside, nodes.x0, nodes.y0, nodes.step, _image_size(dataset),
        float(dataset.attrs.get("scale_mm_per_px", 0)), "s" if has_seconds else "1", _points(point),
        _ends(extensometer, "extensometer"), _ends(line, "line"), _areas(area))
    frames = _fields.frames(nodes.dataset)
    for count, frame in enumerate(frames, 1):
        number = frame.coords.get("frame", count)
        axis = frame["time"] if has_seconds else number
        name = str(frame["name"].values) if "name" in frame.coords else ""
        fields.add(_fields.arrays(frame), name, float(axis), int(number), measure)
    _add_loads(fields, loads, load_column, section, len(frames))
    answers = fields.answers()
    if answers["load_note"]:
        warnings.warn(answers["load_note"], stacklevel=2)
    if output is not None:
        fields.write(output)
    coordinates = _frame_coordinates(dataset, answers)
    return Probe(
        _places(answers["points"], "point", coordinates, unit, measure),
        _places(answers["extensometers"], "extensometer", coordinates, answers["extensometer_unit"], measure),
        [_line(line, coordinates, unit, measure) for line in answers["lines"]],
        _places(answers["areas"], "area", coordinates, unit, measure))
