"""Digital image correlation: displacement and strain from images, on the CPU and on NVIDIA GPUs.

    import dic
    ds = dic.track("frames/*.png", subset=21, step=5)     # an xarray.Dataset
    ds.dic.plot("exx")                                    # the last frame, in percent
"""

from . import _accessor, _cufft  # noqa: F401
from ._correlate import best_peaks, correlate
from ._dataset import Status
from ._dic import (Cancelled, DeviceError, Error, FileError, FrameResult, Grid, UsageError,
                   correlate_variants, info, read_image, version, write_image)
from ._live import LiveFrame, LiveStream, cameras, live
from ._match import match
from ._probe import Probe, probe
from ._report import report
from ._result import open_result as open
from ._stereo import stereo
from ._strain import strain
from ._synth import synth
from ._track import Tracker, TrackStream, track

__version__ = version()

for _public in (Cancelled, DeviceError, Error, FileError, FrameResult, Grid, UsageError):
    _public.__module__ = "dic"  # as tracebacks and pickles name it

__all__ = [
    "Cancelled", "DeviceError", "Error", "FileError", "FrameResult", "Grid", "LiveFrame", "LiveStream", "Probe", "Status",
    "TrackStream", "Tracker", "UsageError", "best_peaks", "cameras", "correlate", "correlate_variants", "info", "live", "match", "open",
    "probe", "read_image", "report", "stereo", "strain", "synth", "track", "write_image",
]
