"""Figures of a result: `ds.dic`, an accessor of xarray."""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np
import xarray as xr

from . import _dic
from ._dataset import VARIABLES, Status
from ._probe import Probe, probe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STRAIN_UNITS = {"1": 1.0, "%": 100.0, "µm/m": 1e6}


def _pyplot():
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise _dic.UsageError("Figures need matplotlib: pip install matplotlib.") from error
    return matplotlib.pyplot


class _Values:
    """Values of one field that have a colour, in the unit of the figure."""

    def __init__(self, dataset, field, strain_unit):
        if field not in VARIABLES or field not in dataset:
            known = ", ".join(name for name in VARIABLES if name in dataset)
            raise _dic.UsageError(f'There is no field "{field}" in this result: it has {known}.')
        if strain_unit not in _STRAIN_UNITS:
            raise _dic.UsageError(f'"{strain_unit}" is no unit of strain: use 1, % or µm/m.')
        kind, description = VARIABLES[field][1:]
        is_strain = kind == "strain"
        self.unit = {"length": dataset.attrs["length_unit"], "strain": strain_unit}.get(kind, "1")
        self.label = description if self.unit == "1" else f"{description}, {self.unit}"
        self._values = dataset[field] * (_STRAIN_UNITS[strain_unit] if is_strain else 1)
        if "status" in dataset:
            self._values = self._values.where(dataset.status.isin([int(Status.ok), int(Status.outlier)]))

    def of(self, frame):
        values = self._values
        return values.isel(frame=frame) if "frame" in values.dims else values

    def range(self):
        """The 0.5th and 99.5th percentile of all frames; symmetric to 0 if the values are on both sides of it."""
        finite = self._values.values[np.isfinite(self._values.values)]
        if finite.size == 0:
            return 0.0, 1.0
        low, high = np.percentile(finite, [0.5, 99.5])
        if low < 0 < high and min(-low, high) > 0.1 * max(-low, high):
            return -max(-low, high), max(-low, high)
        return float(low), float(high)


@xr.register_dataset_accessor("dic")
class Figures:
    """`ds.dic` of a result of dic.track or dic.open: figures with image axes (x to the right, y down, equal scales).

        ds.dic.plot("eyy")                       # the last frame, strain in percent
        ds.dic.movie("eyy.gif", "eyy")
        ds.dic.probe(extensometer=(160, 30, 160, 370)).extensometers.strain.plot()
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def plot(self, field: str = "exx", frame: int = -1, *, image: Any = None, strain_unit: str = "%",
             limits: Sequence[float] | None = None, cmap: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws a field of one frame.

        field: an array of the result. frame: index of the frame, from 0; -1 is the last. image: reference image
        [y, x] to draw underneath, or its file. strain_unit: "1", "%" or "µm/m". limits: (least, most) of the
        colours; default: the 0.5th to 99.5th percentile of all frames. cmap: colour map of matplotlib; default:
        "RdBu_r" for values on both sides of zero, otherwise "viridis". ax: axes to draw into; default: new ones.

        Returns the axes of matplotlib. Raises UsageError.
        """
        values = _Values(self._dataset, field, strain_unit)
        return self._draw(values, frame, image, limits or values.range(), cmap, ax)

    def movie(self, path: str | os.PathLike[str], field: str = "exx", *, fps: float = 5, image: Any = None,
              strain_unit: str = "%", limits: Sequence[float] | None = None, cmap: str | None = None,
              dpi: float = 100) -> pathlib.Path:
        """Writes an animation of a field over all frames, with one range of colours: a GIF, or what ffmpeg writes.

        path: file; its ending chooses the format, ".gif" needs Pillow and others ffmpeg. fps: frames per second.
        Other parameters: as of `plot`. Returns the path. Raises UsageError.
        """
        pyplot = _pyplot()
        from matplotlib.animation import FFMpegWriter, PillowWriter

        values = _Values(self._dataset, field, strain_unit)
        limits = limits or values.range()
        writer = (PillowWriter if str(path).lower().endswith(".gif") else FFMpegWriter)(fps=fps)
        figure, axes = pyplot.subplots(layout="constrained")
        try:
            with writer.saving(figure, str(path), dpi):
                for frame in range(self._dataset.sizes.get("frame", 1)):
                    figure.clear()
                    self._draw(values, frame, image, limits, cmap, figure.add_subplot())
                    writer.grab_frame()
        except FileNotFoundError as error:
            raise _dic.UsageError(f"The movie {path} cannot be written: is ffmpeg installed, and the folder there?") from error
        finally:
            pyplot.close(figure)
        return pathlib.Path(path)

    def probe(self, **places: Any) -> Probe:
        """Values at points, extensometers, lines and areas: dic.probe of this result."""
        return probe(self._dataset, **places)

    def _draw(self, values, frame, image, limits, cmap, ax):
        ax = ax or _pyplot().subplots(layout="constrained")[1]
        low, high = limits
        cmap = cmap or ("RdBu_r" if low < 0 < high else "viridis")
        shown = values.of(frame)
        if image is not None:
            pixels = _dic.read_image(os.fspath(image)) if isinstance(image, (str, os.PathLike)) else np.asarray(image)
            scale = self._dataset.attrs["scale_mm_per_px"] or 1.0
            height, width = pixels.shape[:2]
            ax.imshow(pixels, cmap="gray", extent=[-0.5 * scale, (width - 0.5) * scale, (height - 0.5) * scale, -0.5 * scale])
        mesh = ax.pcolormesh(shown.x, shown.y, shown.transpose("y", "x"), vmin=low, vmax=high, cmap=cmap, shading="nearest",
                             alpha=None if image is None else 0.85)
        ax.figure.colorbar(mesh, ax=ax, label=values.label)
        ax.set_aspect("equal")
        if not ax.yaxis_inverted():
            ax.invert_yaxis()
        unit = self._dataset.attrs["length_unit"]
        ax.set(xlabel=f"x, {unit}", ylabel=f"y, {unit}", title=shown.coords["name"].item() if "name" in shown.coords else "")
        return ax
