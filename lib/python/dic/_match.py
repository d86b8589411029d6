"""Template matching."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from . import _dic, _images

_COLUMNS = ["x", "y", "center_x", "center_y", "score", "rotation", "scale", "width", "height"]
_POSE_COLUMNS = ["sigma_x", "sigma_y", "sigma_rotation", "sigma_scale", "visible"]


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
          scales: Sequence[float] = (1,), masks: Any = None, device: str = "auto", threads: int = 0,
          rotation_range: tuple[float, float] | None = None, scale_range: tuple[float, float] | None = None,
          affine: bool = False, ignore_polarity: bool = False, timeout_ms: int = 0,
          image_mask: Any = None) -> pd.DataFrame:
    """Finds each template in each image, to a fraction of a pixel.

    templates: image [y, x] or file, or a sequence of them. images: an image, or what dic.track takes as frames: files,
    a glob, a folder, a video, an array [frame, y, x], an iterable of arrays. method: zncc ignores brightness and
    contrast, ncc contrast only, ssd compares grey levels as they are. max_matches: per template and image.
    threshold: least score, [-1, 1]. max_overlap: two matches of a template that overlap by more (intersection over
    union) are one. rotations: degrees, positive from x towards y. scales: of the template. masks: one per template,
    of its size; not 0 = the pixel counts; without them, transparent pixels of template files do not count.

    rotation_range, scale_range: (least, largest) angle in degrees and scale; the pose within them is searched and
    measured, instead of rotations and scales, with method zncc, on the CPU. (-180, 180) is any angle. affine: also
    fits shear and aspect ratio. ignore_polarity: also finds dark on bright for bright on dark. timeout_ms: a search
    of one template in one image ends after this time with what it has found; 0 = never. image_mask: of the images'
    size; not 0 = the pixel counts. The last four need a range.

    Returns a pandas.DataFrame, a row per match in the order of the images, the best score first: image (number),
    name, template (number), x, y (px: the centre of the template's top left pixel), center_x, center_y, score,
    rotation (degrees), scale, width, height (px). With a range also sigma_x, sigma_y (standard deviations of the
    centre, px), sigma_rotation (degrees), sigma_scale, visible (share of the template's pixels that lie inside the
    image and fit). Raises UsageError, FileError, DeviceError.
    """
    matcher = _dic.Matcher(
        [_images.image(one) for one in _several(templates)],
        _opacities(templates) if masks is None else [_images.mask(one) for one in _several(masks)],
        method, max_matches, threshold, max_overlap, list(rotations), list(scales), device, threads,
        rotation_range, scale_range, affine, ignore_polarity, timeout_ms)
    mask = None if image_mask is None else _images.mask(image_mask)
    columns = _COLUMNS + (_POSE_COLUMNS if rotation_range or scale_range else [])
    rows = []
    frames, _ = _images.frames([images] if getattr(images, "ndim", 0) == 2 else images)
    for number, (name, image) in enumerate(frames):
        if isinstance(image, Exception):
            raise image
        matches, _, timed_out = matcher.find(image, mask)
        if timed_out:
            warnings.warn(f"The search of {name} was ended by timeout_ms; it returns what was found so far.",
                          stacklevel=2)
        for found in matches:
            rows.append([number, name, found.template_index, *(getattr(found, column) for column in columns)])
    return pd.DataFrame(rows, columns=["image", "name", "template", *columns])
