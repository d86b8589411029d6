"""Images in the memory of a GPU, by CuPy and PyTorch, whichever is there:

    PYTHONPATH=BUILD/python python tests/python/gpu_arrays.py      # or with the wheel, unpacked or installed

Needs numpy and the extension; packages that dic imports for its results may be missing."""

import importlib.util
import sys
import time
from unittest import mock

import numpy as np

packages = {"xarray": ("xarray.backends", "xarray.core"), "pandas": (), "h5py": (), "tqdm": ("tqdm.auto",)}
for package, modules in packages.items():
    if importlib.util.find_spec(package) is None:
        sys.modules.update({name: mock.MagicMock(BackendArray=object) for name in (package, *modules)})

import dic  # noqa: E402
from dic import _dic  # noqa: E402

WIDTH, HEIGHT, FRAMES = 701, 480, 8
OPTIONS = dict(subset=21, step=7)


def images(noise):
    options = _dic.SynthOptions()
    options.width, options.height, options.noise, options.seed = WIDTH, HEIGHT, noise, 3
    options.motion, options.u, options.v = "translation", 1.5, -0.7
    options.amounts = [k / (FRAMES - 1) for k in range(FRAMES)]
    return [options.frame(k) for k in range(FRAMES)]


def libraries():
    """Ways to bring an array to the GPU, by name, each with a function that keeps the GPU busy for a while."""
    found = {}
    if importlib.util.find_spec("torch"):
        import torch

        def torch_padded(image):
            wide = torch.zeros((image.shape[0], image.shape[1] + 19), dtype=torch.from_numpy(image).dtype, device="cuda")
            wide[:, :image.shape[1]] = torch.from_numpy(image).cuda()
            return wide[:, :image.shape[1]]

        def torch_late(image):
            """Written by the current stream, which is not the default one, after much other work."""
            stream, target = torch.cuda.Stream(), torch.zeros(image.shape, dtype=torch.uint8, device="cuda")
            source = torch.from_numpy(image).cuda()
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                torch.cuda._sleep(200_000_000)  # a tenth of a second
                target.copy_(source)
                return target, stream

        found["torch"] = (lambda image: torch.from_numpy(image).cuda(), torch_padded, torch_late, torch.cuda.stream)
    if importlib.util.find_spec("cupy"):
        import cupy

        def cupy_padded(image):
            wide = cupy.zeros((image.shape[0], image.shape[1] + 19), image.dtype)
            wide[:, :image.shape[1]] = cupy.asarray(image)
            return wide[:, :image.shape[1]]

        found["cupy"] = (cupy.asarray, cupy_padded, None, None)
    return found


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True)
               for name in ("u", "v", "zncc", "sigma_u", "status", "exx"))


def close(a, b):
    ok = (a.status == 0) & (b.status == 0)
    assert ok.mean() > 0.9
    return np.abs(a.u - b.u)[ok].max() < 1e-3 and (a.status != b.status).mean() < 0.01


def check(name, to_gpu, padded, late, current_stream):
    frames = images(1)

    def alone(frame):
        """Later frames of a sequence begin where the frame before ended: equal to 1e-5 px, not to the bit."""
        return dic.Tracker(frames[0], device="cuda", **OPTIONS).track(frame)

    sequence = dic.Tracker(frames[0], device="cuda", **OPTIONS)
    expected = [sequence.track(frame) for frame in frames]
    tracker = dic.Tracker(to_gpu(frames[0]), **OPTIONS)
    assert tracker.device.startswith("cuda"), tracker.device  # chosen by where the image is
    assert all(same(tracker.track(to_gpu(frame)), want) for frame, want in zip(frames, expected)), name
    tracker = dic.Tracker(frames[0], device="cuda", **OPTIONS)
    assert all(same(tracker.track(padded(frame)), want) for frame, want in zip(frames, expected)), "padded rows"
    with dic.TrackStream(to_gpu(frames[0]), **OPTIONS) as stream:
        results = list(stream.results(to_gpu(frame) for frame in frames))
        assert all(same(got, want) for got, want in zip(results, expected)), "stream"
        stream.reset(to_gpu(frames[0]))
        stream.push(to_gpu(frames[1]))
        assert same(stream.wait(), alone(frames[1])), "reset"
    for dtype in (np.uint16, np.int32, np.float32, np.float64):
        a, b = frames[0].astype(dtype), frames[2].astype(dtype)
        try:
            want = dic.Tracker(a, device="cuda", **OPTIONS).track(b)
        except dic.Error as error:
            print(f"  {dtype.__name__}: {error}")
            continue
        if dtype == np.uint16 and name == "torch" and not hasattr(__import__("torch"), "uint16"):
            continue
        assert same(dic.Tracker(to_gpu(a), **OPTIONS).track(to_gpu(b)), want), dtype
    # The low-pass runs on the GPU: rounding differs.
    want = dic.Tracker(frames[0], device="cuda", prefilter=1, **OPTIONS).track(frames[2])
    assert close(dic.Tracker(to_gpu(frames[0]), prefilter=1, **OPTIONS).track(to_gpu(frames[2])), want), "prefilter"
    # A frame out of focus is measured again, as it is from the host.
    blurred = blur(frames[2])
    want = alone(blurred)
    assert same(dic.Tracker(to_gpu(frames[0]), **OPTIONS).track(to_gpu(blurred)), want), "focus"
    plain = dic.Tracker(frames[0], device="cuda", reference_strategy="previous", **OPTIONS).track(blurred)
    assert not same(want, plain), "the focus was not matched: the case above shows nothing"
    if late:
        target, writer = late(frames[3])
        with current_stream(writer):
            assert same(dic.Tracker(frames[0], device="cuda", **OPTIONS).track(target), alone(frames[3])), "order of streams"
    refuse(to_gpu(frames[0]), frames[0])
    measure_time(name, frames, to_gpu)


def blur(image):
    taps = np.exp(-0.5 * np.arange(-6, 7) ** 2 / 1.5**2)
    taps /= taps.sum()
    rows = np.apply_along_axis(lambda line: np.convolve(np.pad(line, 6, "edge"), taps, "valid"), 1, image.astype(float))
    both = np.apply_along_axis(lambda line: np.convolve(np.pad(line, 6, "edge"), taps, "valid"), 0, rows)
    return np.ascontiguousarray(np.rint(both).astype(np.uint8))


def refuse(on_gpu, on_host):
    for call in (lambda: dic.Tracker(on_gpu, device="cpu", **OPTIONS),
                 lambda: dic.Tracker(on_host, device="cpu", **OPTIONS).track(on_gpu),
                 lambda: dic.TrackStream(on_host, device="cpu", **OPTIONS).push(on_gpu),
                 lambda: _dic.write_image("never.png", on_gpu)):
        try:
            call()
        except dic.UsageError as error:
            assert "memory of a GPU" in str(error), error
        else:
            raise AssertionError("an array in the memory of a GPU was taken for one of the host")


def measure_time(name, frames, to_gpu):
    """Taking frames of 4096 x 4096 px alone."""
    large = np.tile(frames[0], (9, 6))[:4096, :4096].copy()
    for where, image in (("host", large), (name, to_gpu(large))):
        stream = dic.TrackStream(image, device="cuda", subset=31, step=40, capacity=2)
        for _ in range(5):
            stream.push(image), stream.wait()
        begin = time.perf_counter()
        for _ in range(20):
            stream.push(image)
            stream.wait()
        print(f"  {where}: {1e3 * (time.perf_counter() - begin) / 20:.2f} ms per frame of 4096 x 4096 px")


def check_cufft():
    """cuFFT of the PyPI package nvidia-cufft or of the system correlates integers exactly, like the CPU."""
    from dic import _cufft
    print(f"cuFFT: {_cufft.find() or 'by the loader'}")
    windows = np.random.default_rng(1).integers(0, 255, (6, 90, 80), np.uint8)
    references = np.ascontiguousarray(windows[::3, 8:72, 12:60])

    def sums(device, variant):
        correlator = _dic.Correlator(device, 0)
        return correlator.surfaces(references, windows, "n_to_mn", "cross_correlation", [0, 32, 0, 26], None, variant)

    assert np.array_equal(sums("cuda", "cuda-fft"), sums("cpu", "")), "cuFFT"


def main():
    check_cufft()
    found = libraries()
    assert found, "neither torch nor cupy is installed"
    for name, functions in found.items():
        print(name)
        check(name, *functions)
    print(f"{len(found)} libraries: all is well")


if __name__ == "__main__":
    main()
