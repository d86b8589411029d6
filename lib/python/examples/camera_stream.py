"""Frames from a camera, measured while they arrive: on a GPU where there is one, else on the CPU."""

import threading
import time

import numpy as np

import dic

made = dic.synth(width=256, height=256, frames=20, motion="translation", u=3, v=-1, noise=2, seed=3)
has_gpu = bool(dic.info()["devices"])


class Camera(threading.Thread):
    """The thread of a camera's driver: it hands over an image buffer, which it will use again."""

    def __init__(self, stream, pause=0.005):
        super().__init__()
        self.stream, self.pause = stream, pause

    def run(self):
        buffer = np.empty(made.image.shape[1:], np.uint8)
        for image in made.image.values[1:]:
            buffer[:] = image
            self.stream.push(buffer)  # copies the pixels
            time.sleep(self.pause)
        self.stream.finish()


history = []


def show(result):
    """Called with every result, on a thread of the stream."""
    history.append((result.index, np.nanmean(result.u), 1e3 * result.latency))


# A small image is faster on the CPU, which "auto" would choose; cameras with more pixels need no device.
stream = dic.TrackStream(made.image.values[0], callback=show, subset=21, step=8, device="cuda" if has_gpu else "cpu")
print(f"measuring {stream.grid.points} points on {stream.device}: {stream.device_reason}")
camera = Camera(stream)
camera.start()
camera.join()
for index, u, latency in history[::6]:
    print(f"frame {index}: u = {u:.3f} px, {latency:.1f} ms after it arrived")

# The same as an iterator, for images that are there already. Those in the memory of the GPU stay there.
images = made.image.values
if has_gpu:
    try:
        import cupy

        images = cupy.asarray(images)
    except ImportError:
        print("without CuPy, images come from the memory of the host")
with dic.TrackStream(images[0], subset=21, step=8) as second:
    means = [float(np.nanmean(result.u)) for result in second.results(images[1:])]
print("as an iterator:", np.round(means[-1], 3))
