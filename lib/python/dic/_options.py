"""Options of a measurement: values of Python as the text that the library reads."""

import difflib
import keyword
import os

import numpy as np

from . import _dic


def _name(option):
    """Name of an option in Python: "strain_window"; "global_", since global is a word of the language."""
    name = option.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


TABLE = {_name(option["name"]): option for option in _dic.track_options()}


def is_number(value):
    return isinstance(value, (int, float, np.integer, np.floating))


def _corners(polygon):
    return " ".join(f"{float(x)!r},{float(y)!r}" for x, y in polygon)


def _polygons(value):
    """Lists the polygons of a region: one polygon or several; a polygon is a sequence of corners (x, y)."""
    polygons = [value] if is_number(value[0][0]) else value
    return "; ".join(_corners(polygon) for polygon in polygons)


def _text(value, kind):
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, np.generic):
        return _text(value.item(), kind)
    if is_number(value):
        return repr(value)
    if kind == "rect":
        return ",".join(str(number) for number in value)
    if kind == "polygons" and len(value) > 0:
        return _polygons(value)
    return str(value)


def _unknown(name):
    close = difflib.get_close_matches(name, TABLE, 1)
    hint = f"did you mean {close[0]}?" if close else "help(dic.track) lists all"
    return TypeError(f"There is no option {name}: {hint}.")


def values(options):
    """The options as pairs of name and text; None leaves an option at its default."""
    pairs = []
    for name, value in options.items():
        if name not in TABLE:
            raise _unknown(name)
        if value is not None:
            pairs.append((TABLE[name]["name"], _text(value, TABLE[name]["kind"])))
    return pairs


def describe(groups, without=()):
    """The options as lines of a docstring."""
    lines = []
    for name, option in TABLE.items():
        if option["group"] in groups and name not in without:
            default = f" Default: {option['default']}." if option["default"] else ""
            choices = f" ({', '.join(option['choices'])})" if option["choices"] else ""
            lines.append(f"    {name}{choices}: {option['help']}.{default}")
    return "\n".join(lines)
