"""Shape, displacement and strain in 3-D, from two cameras."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import xarray as xr
from tqdm.auto import tqdm

from . import _dic, _images, _options
from ._result import open_result

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import Options

_ONE_CAMERA = {name.replace("-", "_") + ("_" if name == "global" else ""): why
               for name, why in _dic.one_camera_options().items()}


def _names(files):
    return [os.fspath(files)] if _images.is_path(files) else [os.fspath(name) for name in files]


def _warn_about(summary):
    for name, error in summary["frames"]:
        if error:
            warnings.warn(f"{name} was left out: {error}", stacklevel=4)
    if summary["pairing"]:
        warnings.warn(summary["pairing"], stacklevel=4)


def _measure(inputs, options, mask, progress):
    with tqdm(unit="pair", disable=None if progress is None else not progress) as bar:
        def show(stage, frame, count):
            bar.total = count or None
            bar.update(frame - bar.n)

        _warn_about(_dic.stereo_files(inputs, _options.values(options), mask, show))


def stereo(left: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
           right: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], calibration: str | os.PathLike[str], *,
           roi: Any = None, output: str | os.PathLike[str] | None = None, axes: str = "camera",
           axes_points: Sequence[Sequence[float]] | None = None, remove_rigid_motion: bool = False,
           correct_rig: bool = False, progress: bool | None = None, **options: Unpack[Options]) -> xr.Dataset:
    """Shape, displacement and strain of a surface in 3-D, as `dic stereo` measures them.

        ds = dic.stereo("left/*.tif", "right/*.tif", "stereo.json", subset=31, step=8)
        ds.Z.isel(frame=0)                     # the shape in the references, mm

    Arguments:
    left, right: files of both cameras: a folder, a glob, a video, or a list of names. They form pairs by their order;
        the first pair is the reference.
    calibration: file of both cameras, of `dic calibrate` or of another program.
    roi: region of interest in the left reference: mask [y, x], inside where not 0, or a file.
    output: folder that gets what `dic stereo` writes: result.vtkhdf, surface.vtkhdf, run.json, pictures.
    axes: camera (those of the left camera), plane, cylinder (of the best-fit one), points (through
        three points).
    axes_points: for axes="points": three points (x, y) of the left reference, px: the origin, a point on x, a point
        in the plane of x and y.
    remove_rigid_motion: subtracts the motion as a rigid body from the displacements.
    correct_rig: corrects the pose of the right camera from the references, if it moved since its calibration.
    progress: shows a progress bar; None = where there is a terminal.

    Options, as of the command line:
{options}

    Returns an xarray.Dataset with dimensions frame, y, x over the left reference: X, Y, Z, U, V, W and sigma_X ...
    sigma_W in mm; epipolar and reprojection in px; incidence in degrees; exx, eyy, exy, e1, e2 of the surface; u, v of
    the left image in px; zncc, status. Frame 0 is the pair of references. Pairs that cannot be read or measured are
    left out, with a warning.

    Raises UsageError, FileError, DeviceError, KeyboardInterrupt.
    """
    for name in options:
        if name in _ONE_CAMERA:
            raise _dic.UsageError(f"{name} {_ONE_CAMERA[name]}.")
    inputs = _dic.StereoInputs()
    inputs.left, inputs.right, inputs.calibration = _names(left), _names(right), os.fspath(calibration)
    inputs.axes, inputs.remove_rigid_motion, inputs.correct_rig = axes, remove_rigid_motion, correct_rig
    inputs.axes_points = None if axes_points is None else [[float(value) for value in point] for point in axes_points]
    mask = None if roi is None or _images.is_path(roi) else _images.mask(roi)
    options = options | {"roi": roi if mask is None else None}
    if output is not None:
        _measure(inputs, options | {"output": output}, mask, progress)
        return open_result(output)
    with tempfile.TemporaryDirectory() as folder:
        _measure(inputs, options | {"output": os.path.join(folder, "result"), "pictures": "none"}, mask, progress)
        with open_result(os.path.join(folder, "result")) as dataset:
            return dataset.load()


stereo.__doc__ = (stereo.__doc__ or "").format(
    options=_options.describe(("Input", "Measurement", "Output", "Running"), _ONE_CAMERA.keys() | {"roi", "output"}))
