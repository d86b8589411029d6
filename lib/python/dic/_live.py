"""Measuring the frames of a camera while they arrive."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from . import _dic, _options
from ._dic import FrameResult
from ._track import _split_roi

_NAMES = {name.replace("-", "_"): name for name in _dic.live_options()}


class LiveFrame(dict):
    """The line of a result (docs/live.md): frame["latency"], frame["extensometers"][0]["strain"], ...

    result: the fields, a FrameResult.
    """

    def __init__(self, line: dict[str, Any], result: FrameResult):
        super().__init__(line)
        self.result = result


def _text(name, value):
    if name == "set" and not isinstance(value, str):
        return [f"{feature}={content}" for feature, content in dict(value).items()]
    if name == "extensometer" and not isinstance(value, str) and not _options.is_number(value[0]):
        return [_text(name, each)[0] for each in value]
    if name == "axes_points" and not isinstance(value, str):
        return [" ".join(f"{x},{y}" for x, y in value)]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, (list, tuple)):
        return [",".join(str(number) for number in value)]
    return [os.fspath(value) if isinstance(value, os.PathLike) else str(value)]


class LiveStream:
    """A measurement that runs: an iterator over its results, and a context that ends it.

    events: what else was told, dictionaries with "event" and "text". summary: the counts, after the end; else None.
    """

    def __init__(self, settings, options, roi, output):
        self.events: list[dict[str, Any]] = []
        self.summary: dict[str, Any] | None = None
        self._made = _dic.LiveStream(_options.values(options), settings, roi, output)

    @property
    def tcp_port(self) -> int:
        """Port on which other programs get every line; 0 = none."""
        return self._made.tcp_port

    def __iter__(self) -> Iterator[LiveFrame]:
        return self

    def __next__(self) -> LiveFrame:
        while (told := self._made.next()) is not None:
            line, result = json.loads(told[0]), told[1]
            if result is not None:
                return LiveFrame(line, result)
            self.events.append(line)
        self.close()
        raise StopIteration

    def stop(self) -> None:
        """Ends the measurement. A few results may follow."""
        self._made.stop()

    def close(self) -> None:
        """Ends the measurement, completes its files and sets the summary."""
        self.summary = json.loads(self._made.finish())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def cameras() -> list[dict[str, str]]:
    """Looks for cameras: GenICam cameras in the network and on the USB, and webcams.

    Returns a dictionary for each: id, address, protocol, vendor, model, serial. Raises KeyboardInterrupt; kinds of
    cameras that cannot be looked for are left out.
    """
    names = ("id", "address", "protocol", "vendor", "model", "serial")
    return [dict(zip(names, camera)) for camera in _dic.cameras()]


def live(camera: str = "fake", *, output: Any = None, roi: Any = None, **options: Any) -> LiveStream:
    """Measures the frames of a camera while they arrive.

        with dic.live("192.168.0.7", fps=50, extensometer=(100, 40, 100, 360), only_extensometers=True) as stream:
            for frame in stream:
                print(frame["time"], frame["extensometers"][0]["strain"])

    camera: name, address or serial number; "webcam:0"; "fake" is moving speckle. output: folder of the results;
    None writes none. options: those of dic.track but for times, resume and noise_floor, and those of `dic live`:
    set (a dictionary of features), region (x, y, width, height), format, fps, exposure, gain, trigger, buffers,
    drop, record, udp, tcp, lost, until (500, or "60s"), extensometer (x1, y1, x2, y2, or several of them),
    only_extensometers (True measures nothing else). lens: the file of dic calibrate. Two cameras: right_camera,
    calibration (a file), axes, axes_points (three points), correct_rig and remove_rigid_motion, as for dic.stereo;
    points and extensometers of each line are then in space, mm, and output has the fields in space.

    Returns a LiveStream. Raises UsageError for a wrong setting, DeviceError for a camera that is missing, controlled by
    another program or fails, FileError for output and record.
    """
    mask, options = _split_roi(roi, options)
    settings = [("camera", camera)]
    if "lens" in options:
        options["camera"] = options.pop("lens")
    for name in [name for name in options if name in _NAMES]:
        value = options.pop(name)
        if value is not None:
            settings += [(_NAMES[name], text) for text in _text(name, value)]
    return LiveStream(settings, options, mask, "" if output is None else os.fspath(output))
