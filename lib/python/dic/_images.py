"""Images and sequences of them, from files and from arrays."""

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import _dic


NO_FRAMES = "There are no frames to measure."
ONE_IMAGE = ("There is only one image, which is the reference: give at least two, or the reference by itself with the "
             "argument reference.")


def is_path(value):
    return isinstance(value, (str, os.PathLike))


class _OnGpu:
    """An array in the memory of a GPU whose DLPack waits, in the default stream, for who writes it. The library waits
    for that stream."""

    _DEFAULT_STREAM = 1  # CUDA's legacy default stream, by the DLPack protocol

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(stream=self._DEFAULT_STREAM, **options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


_CUDA = 2  # device type of DLPack


def _is_on_gpu(value):
    return not isinstance(value, np.ndarray) and hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] == _CUDA


def _whole_numbers(array):
    """Whole numbers of a type that the library does not have, as int32."""
    if array.size and (array.min() < -2**31 or array.max() >= 2**31):
        raise _dic.UsageError(f"The image of {array.dtype} has values beyond 32 bits: scale them, or pass float64.")
    return array.astype(np.int32)


_OTHER_TYPES = {"int8": _whole_numbers, "int16": _whole_numbers, "int64": _whole_numbers, "uint32": _whole_numbers,
                "uint64": _whole_numbers, "float16": lambda array: array.astype(np.float32),
                "longdouble": lambda array: array.astype(np.float64)}


def _grey(array):
    """The luma (ITU-R BT.601) of an image [y, x, channel] of R, G, B and perhaps opacity, in its type, as files are
    read."""
    if array.dtype not in (np.uint8, np.uint16):
        weighted = array[..., :3].astype(np.float64) @ [0.299, 0.587, 0.114]
        return weighted.astype(array.dtype if array.dtype.kind == "f" else np.float64)
    red, green, blue = (array[..., channel].astype(np.uint32) for channel in range(3))
    return ((299 * red + 587 * green + 114 * blue + 500) // 1000).astype(array.dtype)


def image(value, *, may_be_colour=True):
    """An array [y, x] that the library can read: a file is read; others are handed on without a copy where rows
    lie one pixel beside the other and the library has their type. Colour [y, x, 3 or 4] becomes grey."""
    if is_path(value):
        return _dic.read_image(value)
    if _is_on_gpu(value):
        return _OnGpu(value)
    if not isinstance(value, np.ndarray) and not hasattr(value, "__dlpack__"):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        if not value.dtype.isnative:
            value = value.astype(value.dtype.newbyteorder("="))
        if may_be_colour and value.ndim == 3 and value.shape[-1] in (3, 4):
            value = _grey(value)
        if (convert := _OTHER_TYPES.get(value.dtype.name)) is not None:
            value = convert(value)
        if value.ndim >= 2 and value.shape[-1] > 1 and value.strides[-1] != value.itemsize:
            value = np.ascontiguousarray(value)
    return value


def shape_of(given, image):
    """Shape [y, x] of an image as the caller gave it; of `image`, which was made of it, if that has none."""
    for value in (image, given):
        if hasattr(value, "shape"):
            return tuple(value.shape[:2])
    return np.from_dlpack(image).shape


def mask(value):
    """A mask as uint8 [y, x]; None stays None."""
    if value is None:
        return None
    if is_path(value):
        return _dic.read_mask(value)
    found = image(value, may_be_colour=False)
    return found.view(np.uint8) if isinstance(found, np.ndarray) and found.dtype == bool else found


def _read_ahead(source):
    """Pairs of name and image, or of name and the FileError of a frame that cannot be read, in order."""
    workers = min(8, os.cpu_count() or 1) if source.reads_in_parallel() else 1
    with ThreadPoolExecutor(workers) as pool:
        pending = deque()
        count = source.count()
        number = 0
        while True:
            while len(pending) < 2 * workers and (count is None or number < count):
                pending.append((source.name(number), pool.submit(source.read, number)))
                number += 1
            if not pending:
                return
            name, future = pending.popleft()
            try:
                yield name, future.result()
            except _dic.FileError as error:
                yield name, error
            except IndexError:  # the end of a video that did not say its length
                return


def source_of(value):
    """The FrameSource of files; None of images."""
    if is_path(value):
        value = [value]
    if isinstance(value, (list, tuple)) and value and all(map(is_path, value)):
        return _dic.open_frames([os.fspath(path) for path in value])
    return None


def frames(value, source=None):
    """An iterator over pairs of name and image, and their number or None. source: what source_of(value) returned."""
    source = source or source_of(value)
    if source is not None:
        return _read_ahead(source), source.count()
    count = len(value) if hasattr(value, "__len__") else None
    return ((f"frame_{i:04d}", image(one)) for i, one in enumerate(value)), count


def times_of(source, indices):
    """Times of frames that were read, s, as the file notes them or by its frame rate; None if it says neither."""
    noted = [source.time(int(index)) for index in indices]
    if noted and None not in noted:
        return np.array(noted)
    rate = source.frames_per_second()
    return np.asarray(indices) / rate if rate and all(time is None for time in noted) else None
