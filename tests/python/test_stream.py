"""dic.Tracker and dic.TrackStream: memory, threads, callbacks, Ctrl-C."""

import gc
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import dic

QUICK = dict(subset=21, step=10)


class Producer:
    """An array of another library: it has DLPack and nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_tracker(moved):
    images = moved.image.values
    tracker = dic.Tracker(images[0], **QUICK)
    assert tracker.grid.points == 16 * 13 and tracker.device == "cpu"
    results = [tracker.track(image) for image in images[1:]]
    expected = dic.track(images, **QUICK)
    assert np.array_equal(results[1].u, expected.u.values[1], equal_nan=True)
    assert np.array_equal(tracker.dataset(results).u, expected.u, equal_nan=True)
    assert sum(results[0].counts.values()) == tracker.grid.points
    assert tracker.options["subset"] == "21"


def test_a_tracker_of_several_threads(moved):
    """Calls wait for each other: each has the values of a tracker of its own."""
    images = moved.image.values
    expected = [dic.Tracker(images[0], **QUICK).track(image).u for image in images]
    tracker, wrong = dic.Tracker(images[0], threads=1, **QUICK), []

    def work(number):
        for k in range(30):
            image = (number + k) % len(images)
            try:
                if not np.allclose(tracker.track(images[image]).u, expected[image], atol=0.02, equal_nan=True):
                    wrong.append(image)
                assert tracker.kernels and tracker.device == "cpu"
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_values_outlive_their_result(moved):
    u = dic.Tracker(moved.image.values[0], **QUICK).track(moved.image.values[1]).u
    before = u.copy()
    gc.collect()
    assert np.array_equal(u, before, equal_nan=True) and u.base is not None


def test_dlpack(moved):
    images = moved.image.values
    expected = dic.Tracker(images[0], **QUICK).track(images[1])
    other = dic.Tracker(Producer(images[0]), **QUICK).track(Producer(images[1]))
    assert np.array_equal(expected.u, other.u, equal_nan=True)


@pytest.mark.parametrize("image, words", [
    (np.zeros((4, 64, 64), np.uint8), "3 dimensions"), (np.full((64, 64), 2**40), "scale them"),
    (np.zeros((64, 64), complex), "astype")])
def test_refused_images(image, words):
    with pytest.raises(dic.UsageError, match=words):
        dic.Tracker(image)


def test_results(moved):
    images = [moved.image.values[i] for i in (0, 1, 2, 1, 2, 1)]
    tracker = dic.Tracker(images[0], **QUICK)
    expected = [tracker.track(image).u for image in images[1:]]
    for capacity in (1, 4):
        stream = dic.TrackStream(images[0], capacity=capacity, **QUICK)
        results = list(stream.results(iter(images[1:])))
        assert [result.index for result in results] == list(range(5))
        assert all(np.array_equal(result.u, u, equal_nan=True) for result, u in zip(results, expected))
        assert stream.poll() is None and stream.wait() is None


def test_callback(moved):
    images, results = moved.image.values, []
    with dic.TrackStream(images[0], callback=results.append, **QUICK) as stream:
        for image in images[1:]:
            stream.push(image)
        stream.finish()
        assert [result.index for result in results] == [0, 1]
        with pytest.raises(dic.UsageError, match="callback"):
            next(stream.results(images))
        stream.reset(images[1])
        stream.push(images[2])
        stream.finish()
    assert len(results) == 3 and results[2].index == 0


def test_what_the_callback_raises(moved):
    def callback(result):
        raise KeyError("mine")

    images = moved.image.values
    stream = dic.TrackStream(images[0], callback=callback, **QUICK)
    with pytest.raises(KeyError, match="mine"):
        for _ in range(50):
            stream.push(images[1])
        stream.finish()


def test_frame_that_cannot_be_measured(moved):
    stream = dic.TrackStream(moved.image.values[0], **QUICK)
    stream.push(moved.image.values[1][:50])
    assert "size" in stream.wait().error


@pytest.mark.parametrize("call", [
    lambda image: dic.Tracker(image, subset=41, step=3, threads=1).track(image),
    lambda image: dic.track([image, image], subset=41, step=3, threads=1, progress=False),
    lambda image: dic.match(image[40:200, 60:220], [image] * 3, rotations=range(-8, 9), threads=1),
    lambda image: dic.correlate(np.repeat(image[None, 100:164, 100:164], 40, 0), image, threads=1, pairing="n_to_m",
                                variant="cpu-direct")],
    ids=["Tracker", "track", "match", "correlate"])
def test_other_threads_run(moved, call):
    large = np.tile(moved.image.values[0], (4, 4))
    count, done = 0, threading.Event()

    def work():
        nonlocal count
        while not done.is_set():
            count += 1
            time.sleep(0.001)

    thread = threading.Thread(target=work)
    thread.start()
    begin = time.perf_counter()
    call(large)
    seconds = time.perf_counter() - begin
    done.set()
    thread.join()
    assert seconds > 0.05, "too short to show anything"
    assert count > 10


@pytest.mark.parametrize("call", [
    "dic.track([image] + [image] * 1000, subset=41, step=2, threads=1, progress=False)",
    "dic.track(files, output='out', pictures='none', subset=41, step=2, threads=1, progress=False)",
    "stream = dic.TrackStream(image, subset=41, step=2, threads=1); [stream.push(image) for _ in range(1000)]",
    "dic.match(image[40:240, 60:260], [image] * 1000, rotations=range(-30, 31), threads=1)"],
    ids=["memory", "files", "stream", "match"])
def test_interruption(tmp_path, call):
    script = f"""
import dic, numpy as np
image = np.random.default_rng(1).integers(0, 255, (300, 300)).astype(np.uint8)
files = ["f.png"] * 300
dic.write_image("f.png", image)
print("begin", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert child.stdout.readline() == "begin\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    assert child.stdout.read() == "interrupted\n"
    assert child.wait(60) == 0
