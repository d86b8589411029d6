"""A GigE Vision camera on the loopback address with moving speckle, by Aravis's fake camera: python fake_camera.py [LOST]

LOST: share of packets that are lost, per thousand. Prints "ready" when it answers, and runs until it is killed.
Frame `id` is the reference moved by shift_of(id): whole pixels, so that the motion is exact.
"""

import ctypes
import sys
import time

import numpy as np

SIZE = 128
PATTERN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)


def shift_of(frame_id):
    """Displacement along x, px, back and forth between 0 and 8."""
    phase = frame_id % 16
    return phase if phase <= 8 else 16 - phase


def texture(side, seed=3):
    """Smoothed noise, u8."""
    grey = np.random.default_rng(seed).standard_normal((side, side))
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side)[None, :])
    grey = np.fft.ifft2(np.fft.fft2(grey) * np.exp(-(frequency / 0.12) ** 2)).real
    return np.clip(127 + 45 * grey / grey.std(), 0, 255).astype(np.uint8)


def serve(lost_per_thousand):
    aravis = ctypes.CDLL("libaravis-0.8.so.0")
    gobject = ctypes.CDLL("libgobject-2.0.so.0")
    for name in ("arv_gv_fake_camera_new", "arv_gv_fake_camera_get_fake_camera", "arv_buffer_get_data"):
        getattr(aravis, name).restype = ctypes.c_void_p
    aravis.arv_buffer_get_frame_id.restype = ctypes.c_uint64
    large = texture(2 * SIZE)
    frames = [np.ascontiguousarray(large[64:64 + SIZE, 64 - u:64 - u + SIZE]) for u in range(9)]

    @PATTERN
    def fill(buffer, _data, _exposure, _gain, _format):
        pixels = aravis.arv_buffer_get_data(ctypes.c_void_p(buffer), None)
        frame = frames[shift_of(aravis.arv_buffer_get_frame_id(ctypes.c_void_p(buffer)))]
        ctypes.memmove(pixels, frame.ctypes.data, frame.nbytes)

    camera = ctypes.c_void_p(aravis.arv_gv_fake_camera_new(b"127.0.0.1", b"TEST"))
    assert camera.value and aravis.arv_gv_fake_camera_is_running(camera)
    if lost_per_thousand:
        gobject.g_object_set(camera, b"gvsp-lost-ratio", ctypes.c_double(lost_per_thousand / 1000), None)
    inside = ctypes.c_void_p(aravis.arv_gv_fake_camera_get_fake_camera(camera))
    aravis.arv_fake_camera_set_fill_pattern(inside, fill, None)
    print("ready", flush=True)
    while True:
        time.sleep(1)


if __name__ == "__main__":
    serve(float(sys.argv[1]) if len(sys.argv) > 1 else 0)
