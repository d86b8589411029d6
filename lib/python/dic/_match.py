"""Template matching."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from . import _dic, _images

_COLUMNS = ["x", "y", "center_x", "center_y", "score", "rotation", "scale", "width", "height"]


def _several(value):
    """A list of images from one image, a file, an array [image, y, x], or a sequence of them."""
    if _images.is_path(value) or getattr(value, "ndim", 0) == 2:
        return [value]
    return list(value)


def _opacities(templates):
    """Masks of the transparent pixels of template files; empty if there are none."""
    found = [_dic.read_opacity(one) if _images.is_path(one) else None for one in _several(templates)]
    if all(one is None or one.size == 0 for one in found):
        return []
    return [np.full(_images.image(template).shape, 255, np.uint8) if opacity is None or opacity.size == 0 else opacity
            for template, opacity in zip(_several(templates), found)]


def match(templates: Any, images: Any, *, method: Literal["zncc", "ncc", "ssd"] = "zncc", max_matches: int = 1,
          threshold: float = 0.5, max_overlap: float = 0.3, rotations: Sequence[float] = (0,),
          scales: Sequence[float] = (1,), masks: Any = None, device: str = "auto", threads: int = 0) -> pd.DataFrame:
    """Finds each template in each image, to a fraction of a pixel.

    templates: image [y, x] or file, or a sequence of them. images: an image, or what dic.track takes as frames: files,
    a glob, a folder, a video, an array [frame, y, x], an iterable of arrays. method: zncc ignores brightness and
    contrast, ncc contrast only, ssd compares grey levels as they are. max_matches: per template and image.
    threshold: least score, [-1, 1]. max_overlap: two matches of a template that overlap by more (intersection over
    union) are one. rotations: degrees, positive from x towards y. scales: of the template. masks: one per template,
    of its size; not 0 = the pixel counts; without them, transparent pixels of template files do not count.

    Returns a pandas.DataFrame, a row per match in the order of the images, the best score first: image (number),
    name, template (number), x, y (px: the centre of the template's top left pixel), center_x, center_y, score,
    rotation (degrees), scale, width, height (px). Raises UsageError, FileError, DeviceError.
    """
    matcher = _dic.Matcher(
        [_images.image(one) for one in _several(templates)],
        _opacities(templates) if masks is None else [_images.mask(one) for one in _several(masks)],
        method, max_matches, threshold, max_overlap, list(rotations), list(scales), device, threads)
    rows = []
    frames, _ = _images.frames([images] if getattr(images, "ndim", 0) == 2 else images)
    for number, (name, image) in enumerate(frames):
        if isinstance(image, Exception):
            raise image
        for found in matcher.find(image)[0]:
            rows.append([number, name, found.template_index, *(getattr(found, column) for column in _COLUMNS)])
    return pd.DataFrame(rows, columns=["image", "name", "template", *_COLUMNS])
