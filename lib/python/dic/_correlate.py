"""Cross-correlation of many images with many others."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import xarray as xr

from . import _dic, _images

_TIE = 4 * np.finfo(np.float32).eps  # difference of scores that rounding may cause

_DESCRIPTIONS = {
    "dx": ("px", "best shift to the right"),
    "dy": ("px", "best shift downwards"),
    "subpixel_dx": ("px", "the same by a quadratic surface through the nine scores around it"),
    "subpixel_dy": ("px", "the same by a quadratic surface through the nine scores around it"),
    "score": ("1", "value at the best shift"),
    "second_score": ("1", "best value more than 2 px away from it"),
    "found": ("1", "whether any shift is defined and has contrast"),
    "at_border": ("1", "whether it is on the edge of the shifts"),
}


def _stack(value):
    """One array [image, y, x] or [y, x]."""
    if isinstance(value, (list, tuple)):
        value = np.stack([np.asarray(one) for one in value])
    return _images.image(value, may_be_colour=False)


def _rectangle(shifts, reference, search):
    (h, w), (H, W) = reference.shape[-2:], search.shape[-2:]
    if isinstance(shifts, str):
        if shifts == "valid":
            return [0, W - w, 0, H - h]
        if shifts == "full":
            return [-(w - 1), W - 1, -(h - 1), H - 1]
        raise _dic.UsageError(f'The shifts are "valid", "full" or (dx_min, dx_max, dy_min, dy_max), got "{shifts}".')
    return [int(shift) for shift in shifts]


def _warn_of_ties(best, second):
    """Warns where float32 cannot tell the best shift from others, as with a faint pattern on a pedestal."""
    tied = (np.asarray(best) > 0.999) & (np.asarray(best) - np.asarray(second) < _TIE)
    if tied.any():
        warnings.warn(f"In {tied.sum()} of {tied.size} pairs the best ncc differs from others by less than its rounding "
                      'error, because the contrast is small against the grey levels: use criterion "zncc".', stacklevel=3)


def correlate(reference: Any, search: Any, *,
              pairing: Literal["one_to_one", "one_to_many", "n_to_mn", "n_to_m"] = "n_to_mn",
              criterion: Literal["cross_correlation", "zncc", "ncc", "ssd"] = "zncc",
              shifts: Literal["valid", "full"] | tuple[int, int, int, int] = "valid", mask: Any = None,
              peaks: bool = False, device: str = "cpu", variant: str = "",
              threads: int = 0) -> xr.DataArray | xr.Dataset:
    """Correlates reference images with search windows: c[dy, dx] = sum reference[i, j] * window[i + dy, j + dx].

    reference: [n, h, w] (or [h, w]), search: [m, H, W], of one type: uint8, uint16, int32, float32 or float64.
    pairing: n_to_mn: n references, n * m windows, reference i meets windows i * m .. i * m + m - 1; one_to_one: pair
    k = (k, k); one_to_many: 1 reference, m windows; n_to_m: all n * m pairs. criterion: cross_correlation, the sum c
    itself; zncc and ncc, [-1, 1]; ssd. On images whose contrast is small against their grey levels only zncc finds the
    shift: ncc has its best value at many, which a warning says with peaks. shifts: "valid", where the reference is wholly inside the window; "full", any
    overlap; or (dx_min, dx_max, dy_min, dy_max). mask: [n, h, w], not 0 = the element counts. device: cpu, cuda,
    cuda:N, cuda:N,M, cuda:all, opencl, opencl:N. variant: a name of dic.correlate_variants(); empty = chosen by shape
    and device.

    Returns an xarray.DataArray [pair, dy, dx] (float32; sums of uint8 are uint32, of uint16 uint64, of int32 int64);
    with peaks an xarray.Dataset of arrays [pair]: dx, dy (px), subpixel_dx, subpixel_dy (px), score, second_score,
    found, at_border. Raises UsageError, DeviceError.
    """
    reference, search = _stack(reference), _stack(search)
    rectangle = _rectangle(shifts, reference, search)
    correlator = _dic.Correlator(device, threads)
    arguments = (reference, search, pairing, criterion, rectangle, None if mask is None else _images.mask(_stack(mask)),
                 variant)
    if peaks:
        found = correlator.peaks(*arguments)
        if criterion == "ncc":
            _warn_of_ties(found["score"], found["second_score"])
        arrays = {name: ("pair", found[name].astype(bool) if name in ("found", "at_border") else found[name],
                         {"units": unit, "long_name": text}) for name, (unit, text) in _DESCRIPTIONS.items()}
        return xr.Dataset(arrays, attrs={"criterion": criterion, "variant": correlator.variant})
    values = correlator.surfaces(*arguments)
    coordinates = {"dy": np.arange(rectangle[2], rectangle[3] + 1), "dx": np.arange(rectangle[0], rectangle[1] + 1)}
    return xr.DataArray(values, coordinates, ("pair", "dy", "dx"), criterion,
                        {"criterion": criterion, "variant": correlator.variant})


_RANKED = {
    "found": ("1", "whether the pair has so many peaks"),
    "at_border": ("1", "whether the true peak may lie beyond the shifts"),
    "dx": ("px", "whole shift to the right"),
    "dy": ("px", "whole shift downwards"),
    "subpixel_dx": ("px", "the same by a quadratic surface through the nine scores around it"),
    "subpixel_dy": ("px", "the same by a quadratic surface through the nine scores around it"),
    "score": ("1", "value at the whole shift"),
    "next_score": ("1", "value of the next best peak; 0 = there is none"),
    "sigma_dx": ("px", "standard deviation of subpixel_dx if the residuals are white noise"),
    "sigma_dy": ("px", "standard deviation of subpixel_dy if the residuals are white noise"),
}


def best_peaks(reference: Any, search: Any, count: int, *, distance: int = 2, least_score: float | None = None,
               pairing: Literal["one_to_one", "one_to_many", "n_to_mn", "n_to_m"] = "n_to_mn",
               criterion: Literal["zncc", "ncc", "ssd"] = "zncc",
               shifts: Literal["valid", "full"] | tuple[int, int, int, int] = "valid", mask: Any = None,
               device: str = "cpu", threads: int = 0) -> xr.Dataset:
    """Finds the best peaks of the correlation of reference images with search windows, several per pair.

    A peak is a shift whose score is the best among its eight neighbours. distance: peaks at most so far (px, in x and
    y) from a better one do not count. least_score: peaks below it (ssd: above it) do not count; None: zncc and ncc
    demand more than 0. The other arguments are those of `correlate`.

    Returns an xarray.Dataset of arrays [pair, rank], best first: found, at_border, dx, dy (px), subpixel_dx, subpixel_dy
    (px), score, next_score, sigma_dx, sigma_dy (px). Where a pair has fewer than `count` peaks, found is False. Raises
    UsageError, DeviceError.
    """
    reference, search = _stack(reference), _stack(search)
    finder = _dic.PeakFinder(device, threads)
    peaks = finder.find(reference, search, pairing, criterion, _rectangle(shifts, reference, search),
                        (int(count), int(distance), least_score), None if mask is None else _images.mask(_stack(mask)))
    arrays = {name: (("pair", "rank"), peaks[name].astype(bool) if name in ("found", "at_border") else peaks[name],
                     {"units": unit, "long_name": text}) for name, (unit, text) in _RANKED.items()}
    return xr.Dataset(arrays, attrs={"criterion": criterion, "variant": finder.variant})
