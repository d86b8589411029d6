"""Images of exactly known motion."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import numpy as np
import xarray as xr

from . import _dic


def synth(*, width: int = 512, height: int = 512, frames: int = 2, bits: Literal[8, 12, 16] = 8,
          texture: Literal["blobs", "dots", "lattice", "gradient"] = "blobs", sigma: float = 1.7,
          size_spread: float = 1, density: float | None = None, grey_min: float = 20, grey_max: float = 240,
          noise: float = 0, reference_noise: float | None = None, full_well: float = 0, blur: float = 0,
          light_min: float = 1, glare: float = 0, unrelated: bool = False, gain: float = 1, offset: float = 0,
          repeat: float = 0, fill_factor: float = 1, line_jitter: float = 0, correlated_noise: bool = False,
          line_pattern: float = 0, defective: float = 0, median: Literal[0, 3, 5, 7, 9] = 0,
          two_valued: bool = False, pedestal: float = 0, seed: int = 1,
          motion: Literal["translation", "affine", "rotation", "star", "chirp", "ramp", "crack", "hole",
                          "bodies"] = "translation",
          u: float = 0, v: float = 0, ux: float = 0, uy: float = 0, vx: float = 0, vy: float = 0, angle: float = 0,
          cx: float | None = None, cy: float | None = None, amplitude: float = 0.5, period_min: float = 10,
          period_max: float = 200, length: float = 50, slip: float = 0, crack_y: float | None = None,
          textured_gap: bool = False, radius: float = 50, bodies: Sequence[Sequence[float]] = (),
          camera: str | os.PathLike[str] | None = None, threads: int = 0) -> xr.Dataset:
    """Textures with exactly known motion, evaluated anew for every frame: no image is interpolated.

    Arguments are the options of `dic synth`, lengths in px, grey in levels of 255; `dic synth --help` describes
    them. The motion is that of the last frame; it is reached in equal steps from the reference, frame 0.

    Returns an xarray.Dataset with dimensions frame, y, x: image (uint8 or uint16), u, v (float64, px: the true
    displacement of what the reference shows at (x, y)), measurable (0 no, 1 yes, 2 maybe). Raises UsageError.
    """
    given = dict(locals())
    count, defaults = given.pop("frames"), {"cx": (width - 1) / 2, "cy": (height - 1) / 2, "crack_y": (height - 1) / 2}
    if count < 1:
        raise _dic.UsageError("There is at least one frame, the reference.")
    options = _dic.SynthOptions()
    for name, value in given.items():
        value = defaults.get(name) if value is None else value
        if value is not None:
            setattr(options, name, value)
    options.motion_width = width
    options.amounts = [i / (count - 1) if i else 0.0 for i in range(count)]
    options.check()
    images = np.stack([options.frame(i) for i in range(count)])
    truth = [np.stack(arrays) for arrays in zip(*(options.truth(i) for i in range(count)))]
    dimensions = ("frame", "y", "x")
    return xr.Dataset(
        {"image": (dimensions, images, {"long_name": "grey"}),
         "u": (dimensions, truth[0], {"units": "px", "long_name": "true displacement along x (right)"}),
         "v": (dimensions, truth[1], {"units": "px", "long_name": "true displacement along y (down)"}),
         "measurable": (dimensions, truth[2], {"long_name": "0 no, 1 yes, 2 maybe"})},
        {"frame": np.arange(count), "y": ("y", np.arange(height), {"units": "px"}),
         "x": ("x", np.arange(width), {"units": "px"})},
        {"motion": motion, "seed": seed})
