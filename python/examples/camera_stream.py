"""Frames from a camera, measured while they arrive: on a GPU where there is one, else on the CPU."""

import threading
import time

import numpy as np

import dic

made = dic.synth(width=256, height=256, frames=20, motion="translation", u=3, v=-1, noise=2, seed=3)


def camera(stream, pause=0.005):
    """A thread of the camera's driver that hands over an image buffer, which it will use again."""
    buffer = np.empty(made.image.shape[1:], np.uint8)
    for image in made.image.values[1:]:
        buffer[:] = image
        stream.push(buffer)  # copies the pixels
        time.sleep(pause)
    stream.finish()


history = []


def show(result):
    """Called with every result, on a thread of the stream."""
    history.append((result.index, np.nanmean(result.u), 1e3 * result.latency))


stream = dic.TrackStream(made.image.values[0], callback=show, subset=21, step=8)
print(f"measuring {stream.grid.points} points on {stream.device}: {stream.device_reason}")
thread = threading.Thread(target=camera, args=(stream,))
thread.start()
thread.join()

for index, u, latency in history[::6]:
    print(f"frame {index}: u = {u:.3f} px, {latency:.1f} ms after it arrived")

# The same as an iterator, for images that are there already.
stream.reset(made.image.values[0])
with dic.TrackStream(made.image.values[0], subset=21, step=8) as second:
    means = [float(np.nanmean(result.u)) for result in second.results(made.image.values[1:])]
print("as an iterator:", np.round(means[-1], 3))
