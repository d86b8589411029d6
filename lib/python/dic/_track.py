"""Tracking: a whole sequence, one frame after the other, or frames as they arrive."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from . import _dask, _dic, _images, _options
from ._dataset import DatasetBuilder, scale_of
from ._dic import FrameResult, Grid
from ._result import open_result

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import Options

Path = "str | os.PathLike[str]"
_FILE_OPTIONS = {name for name, option in _options.TABLE.items()
                 if option["group"] == "Output" and name not in ("scale", "output")}


def _split_roi(roi, options):
    """The mask as an array or None, and the options with the region as a file."""
    if roi is None or _images.is_path(roi):
        return None, options | {"roi": roi}
    return _images.mask(roi), options


class _Measuring:
    """Base of Tracker and TrackStream, which describe themselves by an object of the extension."""

    def __init__(self, make, reference, options):
        image = _images.image(reference)
        self._made, self._scale = make(image), scale_of(options)
        self._shape = _images.shape_of(reference, image)

    @property
    def grid(self) -> Grid:
        """The points."""
        return self._made.grid

    @property
    def device(self) -> str:
        """'cpu', or number and name of the GPU."""
        return self._made.device

    @property
    def device_reason(self) -> str:
        """Why the device was chosen, one sentence."""
        return self._made.device_reason

    @property
    def kernels(self) -> list[str]:
        """Variants of the correlation and SIMD targets that ran."""
        return self._made.kernels

    @property
    def prepare_seconds(self) -> float:
        """Seconds that preparing the reference took."""
        return self._made.prepare_seconds

    @property
    def options(self) -> dict[str, str]:
        """All options as text, with what was chosen from the reference (subset, prefilter)."""
        return {name.replace("-", "_"): value for name, value in self._made.options}

    def __repr__(self) -> str:
        options = self.options
        return (f"<dic.{type(self).__name__}: {self.grid.points} points, subset {options['subset']}, "
                f"step {options['step']}, on {self.device}>")

    def dataset(self, results: FrameResult | Iterable[FrameResult]) -> xr.Dataset:
        """The results as dic.track returns them: dimensions frame, y, x; in mm with a scale."""
        builder = DatasetBuilder(self._made, self._scale, self._shape)
        for result in [results] if isinstance(results, FrameResult) else results:
            builder.add(result)
        return builder.dataset()


class Tracker(_Measuring):
    """Tracks the points of one reference through a sequence of frames, one call after the other.

        tracker = dic.Tracker(reference, subset=21, step=5)
        result = tracker.track(frame)          # result.u: float64 [y, x], px

    reference: array [y, x] of numbers (or [y, x, 3] of R, G, B), or a file. roi: mask [y, x], inside where
    not 0, or a file. Arrays of other libraries (PyTorch, CuPy) come through DLPack without a copy, also those in the
    memory of a GPU: a reference there is measured on that GPU, and frames go from its memory to its memory. options:
    as of dic.track, without those of files. Calls from several threads wait for each other.

    Raises UsageError (options, sizes, ROI), FileError, DeviceError.
    """

    def __init__(self, reference: Any, *, roi: Any = None, **options: Unpack[Options]):
        mask, options = _split_roi(roi, options)
        _refuse_file_options(options)
        super().__init__(lambda image: _dic.Tracker(image, _options.values(options), mask), reference, options)

    def track(self, frame: Any) -> FrameResult:
        """Measures the next frame, an array [y, x] of the reference's size and type, or a file.

        Raises UsageError where size or type differ, DeviceError, KeyboardInterrupt.
        """
        return self._made.track(_images.image(frame))


class TrackStream(_Measuring):
    """Tracks frames while they arrive; copying, measuring and delivering overlap.

    Three ways to get the results, in the order of the frames:

        for result in stream.results(frames): ...         # an iterator over an iterable of frames
        stream = dic.TrackStream(reference, callback=f)   # f(result), on a thread of the stream
        stream.push(frame); result = stream.wait()        # or poll()

    reference, roi, options: as of Tracker. callback: called with every FrameResult, never twice at the same time;
    it may call cancel(), but no other method of the stream. What it raises ends the experiment: the next push or
    finish raises it. capacity: so many frames may be inside, which means pushed and their result not taken yet;
    push waits where there are more.
    """

    def __init__(self, reference: Any, *, callback: Callable[[FrameResult], object] | None = None,
                 capacity: int = 4, roi: Any = None, **options: Unpack[Options]):
        mask, options = _split_roi(roi, options)
        _refuse_file_options(options)
        self._has_callback = callback is not None
        super().__init__(lambda image: _dic.TrackStream(image, _options.values(options), mask, callback, capacity),
                         reference, options)

    def push(self, frame: Any) -> int:
        """Copies the next frame, an array [y, x], and returns its index (0, 1, ...), as soon as fewer than
        `capacity` frames are inside. A frame that cannot be measured (size, type) yields a result whose `error`
        says so."""
        return self._made.push(_images.image(frame))

    def try_push(self, frame: Any) -> int | None:
        """The same, but where `capacity` frames are inside it returns None at once, and the frame is not taken."""
        return self._made.try_push(_images.image(frame))

    def poll(self) -> FrameResult | None:
        """The next result, if it is there."""
        return self._made.poll()

    def wait(self) -> FrameResult | None:
        """Waits for the next result; None where no frame is inside."""
        return self._made.wait()

    def results(self, frames: Iterable[Any]) -> Iterator[FrameResult]:
        """Pushes the frames, and yields their results in order while the next frames are measured."""
        if self._has_callback:
            raise _dic.UsageError("The results of this stream go to its callback: push the frames instead.")
        for frame in frames:
            image = _images.image(frame)
            while self._made.try_push(image) is None:
                yield self._made.wait()
            while (result := self._made.poll()) is not None:
                yield result
        while (result := self._made.wait()) is not None:
            yield result

    def finish(self) -> None:
        """Waits until every frame was measured, and every result given to the callback."""
        self._made.finish()

    def cancel(self) -> None:
        """Drops the frames that are not measured yet: they yield no result. The next push goes on with the same
        reference."""
        self._made.cancel()

    def reset(self, reference: Any, roi: Any = None) -> None:
        """The next experiment: drops what is inside and begins with another reference and the same options.
        Without `roi` the region of interest stays."""
        self._made.reset(_images.image(reference), _images.mask(roi))

    def __enter__(self) -> TrackStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


def _refuse_file_options(options):
    for name in options:
        if name in _FILE_OPTIONS or name == "output":
            raise _dic.UsageError(f"{name} is about files, which only dic.track writes, with output.")


def _shown(progress):
    """Value of tqdm's parameter `disable`."""
    return None if progress is None else not progress


def _seconds(times):
    """One number for each of the frames, from a file as --times reads it or a sequence; None stays None."""
    if _images.is_path(times):
        return np.array(_dic.times(_options.values({"times": times})))
    return None if times is None else np.asarray(times, float)


def _time_axis(times, fps, indices, count):
    """Times of the measured frames; indices: their positions among the `count` frames."""
    if times is not None:
        if times.ndim != 1 or len(times) != count:
            raise _dic.UsageError(f"times has one time for each of the {count} frames, got {times.size}.")
        return times[np.asarray(indices, int)]
    if fps is not None:
        if not fps > 0:
            raise _dic.UsageError("fps is a number of frames per second above 0.")
        return np.asarray(indices) / fps
    return None


def _warn(text):
    warnings.warn(text, stacklevel=4)


def _track_on_workers(client, frames, reference, roi, times, fps, progress, options):
    if options.get("reference_strategy") not in (None, "first"):
        raise _dic.UsageError("Workers share a sequence only with the reference strategy first: with the others a frame "
                              "needs those before.")
    times = _seconds(times)
    roi = roi if roi is None or not _images.is_path(roi) else os.path.abspath(roi)
    dataset, count, first = _dask.in_memory(client, frames, reference, roi, _shown(progress), options, _warn)
    axis = _time_axis(times, fps, dataset.frame.values - 1 + first, count)
    if axis is not None:
        dataset["time"] = ("frame", axis, {"units": "s", "long_name": "time"})
        dataset = dataset.set_coords("time")
    return dataset


def _track_in_memory(frames, reference, roi, times, fps, progress, options, warn=_warn):
    source = _images.source_of(frames)
    images, count = _images.frames(frames, source)
    times, first = _seconds(times), 0
    name = os.fspath(reference) if _images.is_path(reference) else ""
    if reference is None:
        name, reference = next(images, (None, None))
        if reference is None:
            raise _dic.UsageError(_images.NO_FRAMES)
        if isinstance(reference, Exception):
            raise reference
        first = 1  # index of the first frame that is measured
    stream = TrackStream(reference, roi=roi, **options)
    measured = None if count is None else count - first
    builder = DatasetBuilder(stream._made, stream._scale, stream._shape, name, measured)
    names, indices, number = {}, [], 0

    def take(result):
        if result.error:
            warn(f"{names[result.index][1]} was left out: {result.error}")
        else:
            builder.add(result, *names[result.index])
            indices.append(names[result.index][0] - 1 + first)
        bar.update()

    with stream, tqdm(total=measured, unit="frame", disable=_shown(progress)) as bar:
        for number, (frame_name, frame) in enumerate(images, 1):
            if isinstance(frame, Exception):
                warn(f"{frame_name} was left out: {frame}")
                bar.update()
                continue
            while (index := stream.try_push(frame)) is None:
                take(stream.wait())
            names[index] = (number, frame_name)
        while (result := stream.wait()) is not None:
            take(result)
    if not number:
        raise _dic.UsageError(_images.NO_FRAMES if not first else _images.ONE_IMAGE)
    axis = _time_axis(times, fps, indices, number + first)
    if axis is None and source is not None:
        axis = _images.times_of(source, indices)
    return builder.dataset(axis)


def _track_into_files(client, frames, reference, roi, times, fps, progress, options):
    given = [frames] if _images.is_path(frames) else list(frames)
    if not all(map(_images.is_path, given)) or not (reference is None or _images.is_path(reference)):
        raise _dic.UsageError("With output, frames and reference are files: arrays are measured without it.")
    mask, options = _split_roi(roi, options | {"reference": reference, "fps": fps})
    seconds = _seconds(times)
    arguments = (_options.values(options), mask, "dic.track in Python", [] if seconds is None else list(seconds))
    if client is None:
        summary = _with_progress_bar([os.fspath(path) for path in given], arguments, progress)
    else:
        options = _dask.for_workers(options)
        summary = _dask.into_files(client, given, _options.values(options), *arguments[1:], _shown(progress))
    for name, error in summary["frames"] if summary else []:
        if error:
            _warn(f"{name} was left out: {error}")
    return open_result(options["output"])


def _with_progress_bar(frames, arguments, progress):
    with tqdm(unit="frame", disable=_shown(progress)) as bar:
        def show(stage, frame, count):
            bar.total = count or None
            bar.update(frame - bar.n)

        return _dic.track_files(frames, *arguments, show)


def track(frames: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Iterable[Any], *,
          reference: Any = None, roi: Any = None, output: str | os.PathLike[str] | None = None,
          times: Sequence[float] | str | os.PathLike[str] | None = None, fps: float | None = None, progress: bool | None = None,
          client: Any = None, **options: Unpack[Options]) -> xr.Dataset:
    """Displacement and strain fields of a sequence of images, as `dic track` measures them.

        ds = dic.track("frames/*.png", subset=21, step=5)
        ds.dic.plot("exx")

    Arguments:
    frames: files: a folder, a glob, a video, or a list of names; or images: an array [frame, y, x], or any iterable
        of arrays [y, x] of numbers, or [y, x, 3] of R, G, B. The first frame is the reference.
    reference: image or file, instead of the first frame.
    roi: region of interest: mask [y, x], inside where not 0, or a file.
    output: folder that gets what `dic track` writes: result.vtkhdf, run.json, pictures. Frames are files then.
    times, fps: seconds, one for each of `frames` (or a file of them), or frames per second, the first of `frames`
        at 0 s: a coordinate `time` in s. Without them, what a video or recording notes.
    progress: shows a progress bar; None = where there is a terminal.
    client: a dask.distributed.Client, whose workers then measure runs of frames that follow each other. Files have to
        be where workers see them, too. Needs the strategy `first`, the default.

    Options, as of the command line:
{options}

    Only with output:
{file_options}

    Returns an xarray.Dataset with dimensions frame, y, x: u, v, zncc, sigma_u, sigma_v, status, iterations, exx, eyy,
    exy, e1, e2, von_mises, sigma_exx, sigma_eyy, sigma_exy. Coordinates x, y in px, or in mm with a scale; frame
    (1, 2, ...), name, and time in s where it is known. Every array has its unit in the attribute `units`. What
    could not be measured is NaN, and `status` (dic.Status) says why. Frames that cannot be read or measured are left
    out, with a warning.

    Raises UsageError, FileError, DeviceError, KeyboardInterrupt.
    """
    if output is not None:
        return _track_into_files(client, frames, reference, roi, times, fps, progress, options | {"output": output})
    for name in options:
        if name in _FILE_OPTIONS:
            raise _dic.UsageError(f"{name} is about files: it needs output, the folder that they go into.")
    if client is not None:
        return _track_on_workers(client, frames, reference, roi, times, fps, progress, options)
    return _track_in_memory(frames, reference, roi, times, fps, progress, options)


track.__doc__ = (track.__doc__ or "").format(
    options=_options.describe(("Input", "Measurement", "Running"), ("reference", "roi", "times", "fps"))
    + "\n" + _options.describe(("Output",), _FILE_OPTIONS | {"output"}),
    file_options=_options.describe(("Output",), ("scale", "output")))
