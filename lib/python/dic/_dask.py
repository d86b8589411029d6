"""A sequence on the workers of Dask: runs of frames that follow each other, one per task."""

import os
from collections import Counter
from urllib.parse import urlsplit

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from . import _dic, _images, _options

# The first frame of a part is searched for from nothing, which costs as much as some frames more.
_FRAMES_OF_PART, _PARTS_OF_WORKER = 16, 4


def _workers(client):
    """How many tasks the workers do at once, and how many of them share a machine at most."""
    threads = client.nthreads()
    if not threads:
        raise _dic.UsageError("The client of Dask has no workers: start some, or measure without a client.")
    by_machine = Counter()
    for address, count in threads.items():
        by_machine[urlsplit(address).hostname] += count
    return sum(threads.values()), max(by_machine.values())


def _own_threads(sharers):
    return max(1, (os.cpu_count() or 1) // sharers)


def for_workers(options):
    """They may have another current folder."""
    def is_file(name):
        return name == "output" or _options.TABLE.get(name, {}).get("kind") == "file"

    return {name: os.path.abspath(value) if value and is_file(name) and _images.is_path(value) else value
            for name, value in options.items()}


def _gather(client, futures, total, progress):
    """Results in order; where one fails, the others are not begun."""
    from distributed import as_completed

    try:
        with tqdm(total=total, unit="part", disable=progress) as bar:
            for future in as_completed(futures):
                future.result()
                bar.update()
        return client.gather(futures)
    except BaseException:
        client.cancel(futures)
        raise


def _measure(frames, reference, roi, options, sharers):
    from . import _track

    said = []
    dataset = _track._track_in_memory(frames, reference, roi, None, None, False,
                                      {"threads": _own_threads(sharers)} | options, said.append)
    return dataset, said


def _listed(frames, reference):
    """Frames that workers can be sent or read themselves, and the reference; its name where it is one of them."""
    if _images.is_path(frames):
        frames = [frames]
    is_array = isinstance(frames, np.ndarray) or hasattr(frames, "dims")
    frames = np.asarray(frames) if is_array else list(frames)
    if len(frames) and not is_array and all(map(_images.is_path, frames)):
        source = _dic.open_frames([os.fspath(path) for path in frames])
        if not source.reads_in_parallel():
            raise _dic.UsageError("A video is decoded in order: workers cannot share it; extract its frames first.")
        frames = [os.path.abspath(path) for path in _dic.expand_frames([os.fspath(path) for path in frames])]
        if source.count() != len(frames):
            raise _dic.UsageError("A file holds several frames: workers cannot share it; save each as a file of its own.")
    if reference is not None:
        if not len(frames):
            raise _dic.UsageError(_images.NO_FRAMES)
        return frames, os.path.abspath(reference) if _images.is_path(reference) else reference, None
    if len(frames) < 2:
        raise _dic.UsageError(_images.ONE_IMAGE if len(frames) else _images.NO_FRAMES)
    first = frames[0]
    return frames[1:], first, os.path.basename(first) if _images.is_path(first) else "frame_0000"


def in_memory(client, frames, reference, roi, progress, options, warn):
    """The dataset without times, how many frames there are, and the number of the first that is measured."""
    frames, reference, name = _listed(frames, reference)
    first = 0 if name is None else 1
    slots, sharers = _workers(client)
    most = min(max(len(frames) // _FRAMES_OF_PART, slots), _PARTS_OF_WORKER * slots, len(frames))
    begins = [k * len(frames) // most for k in range(most + 1)]
    shared = client.scatter([reference, roi], broadcast=True, hash=False)
    futures = [client.submit(_measure, frames[begin:end], *shared, for_workers(options), sharers, pure=False)
               for begin, end in zip(begins, begins[1:])]
    parts = []
    for begin, (part, said) in zip(begins, _gather(client, futures, most, progress)):
        for text in said:
            warn(text)
        part = part.assign_coords(frame=part.frame.copy(data=part.frame.values + begin))
        if not _images.is_path(frames[0]):
            part["name"] = ("frame", np.array([f"frame_{number - 1 + first:04d}" for number in part.frame.values], str))
        parts.append(part)
    whole = xr.concat(parts, "frame", data_vars="minimal", coords="minimal", compat="override", combine_attrs="override")
    if name is not None:
        whole.attrs["reference"] = name if _images.is_path(frames[0]) else ""
    return whole, len(frames) + first, first


def _track_part(number, arguments, sharers):
    frames, values, *rest = arguments
    if "threads" not in dict(values):
        values = [*values, ("threads", str(_own_threads(sharers)))]
    _dic.track_part(number, frames, values, *rest)


def into_files(client, frames, values, mask, command, times, progress):
    """Measures like _dic.track_files; the parts are in the folder of the result, which all workers see."""
    slots, sharers = _workers(client)
    arguments = ([os.path.abspath(path) for path in frames], values, mask, command, times)
    count = _dic.plan_parts(slots, *arguments)
    shared = client.scatter([arguments], broadcast=True, hash=False)
    futures = [client.submit(_track_part, k, *shared, sharers, pure=False) for k in range(count)]
    _gather(client, futures, count, progress)
    return _dic.join_parts(*arguments) if count else None
