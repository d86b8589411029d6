"""A result as one HTML file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from . import _dic, _fields


def _file_of(result):
    """The result.vtkhdf of a name or of a dataset that was opened."""
    if isinstance(result, (str, os.PathLike)):
        path = Path(result)
        return path / "result.vtkhdf" if path.is_dir() else path
    source = result.encoding.get("source")
    if not source:
        raise _dic.UsageError("A report is made of a result in files: give dic.track an output, or name its folder.")
    return Path(source)


def _images_of(path):
    """The frames that the result was measured from, as far as they are where they were."""
    with _fields.opened(path) as dataset:
        settings = _fields.settings(dataset)
    folder = settings.get("folder", "")
    images = [os.path.join(folder, frame) for frame in settings.get("left", settings.get("frames", []))]
    try:
        _dic.open_frames(images)
    except _dic.Error:
        warnings.warn("The images of the result were not found: name them with images to have the reference shown.",
                      stacklevel=3)
        return []
    return images


def report(result: xr.Dataset | str | os.PathLike[str], output: str | os.PathLike[str] = "report.html", *,
           images: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
           frames: Sequence[int] = (), no_image: bool = False, force: bool = False, title: str = "", note: str = "",
           specimen: str = "", camera_text: str = "", lens_text: str = "", light_text: str = "",
           pattern_text: str = "", operator: str = "") -> Path:
    """A result as one HTML file that any browser opens, also without a network, as `dic report` writes it.

        ds = dic.track("frames/*.png", output="dic_out")
        dic.report(ds, "report.html", specimen="Al 2024, 3 mm", camera_text="5 MP, 12 bit")

    It has the fields of the frames, curves over time, every setting, the table of frames, and what a report of a
    test should state. result: the folder or result.vtkhdf of `dic track`, or what dic.track with output or dic.open
    returned. images: of the test, where they have moved to. frames: numbers, from 1; none: all. no_image: without
    the reference image. force: replaces the file. The others are texts for the report.

    Returns the name of the file. Raises FileError (it already exists), UsageError.
    """
    path, target = _file_of(result), Path(output)
    if target.exists() and not force:
        raise _dic.FileError(f"{target} already exists: give another name, or force=True.")
    if no_image:
        named = []
    elif images is None:
        named = _images_of(path)
    else:
        named = [os.fspath(one) for one in ([images] if isinstance(images, (str, os.PathLike)) else images)]
    texts = {"title": title, "note": note, "specimen": specimen, "camera_text": camera_text, "lens_text": lens_text,
             "light_text": light_text, "pattern_text": pattern_text, "operator": operator}
    html = _dic.report(path, named, list(frames), list(texts.items()))
    try:
        target.write_bytes(html)
    except OSError as error:
        raise _dic.FileError(f"{target} cannot be written: {error.strerror}.") from None
    return target
