"""dic.track against the command line, and against known motions."""

import subprocess

import numpy as np
import pytest

import dic
from conftest import FRAMES, same_bits

QUICK = dict(subset=21, step=10)


@pytest.mark.parametrize("options", [
    {}, {"scale": 0.02}, {"order": 2, "strain_measure": "hencky", "strain_window": 7}, {"no_split": True}, {"global_": True},
    {"roi_polygon": [(20, 30), (220, 30.5), (200, 210)], "roi_hole": [[(90, 90), (130, 90), (130, 140)]]}],
    ids=["defaults", "scale", "order-2", "no-split", "global", "polygons"])
def test_bits_of_the_command_line(program, tmp_path, options):
    texts = {"roi_polygon": "20,30 220,30.5 200,210", "roi_hole": "90,90 130,90 130,140"}
    flags = []
    for name, value in (QUICK | options).items():
        flags.append("--" + name.rstrip("_").replace("_", "-"))
        if value is not True:
            flags.append(texts.get(name, str(value)))
    subprocess.run([program, "track", FRAMES, "-o", tmp_path / "out", "--no-pictures", "--device", "cpu", *flags],
                   check=True, capture_output=True)
    stored = dic.open(tmp_path / "out")
    measured = dic.track(FRAMES, device="cpu", **QUICK, **options)
    assert set(stored) == set(measured)
    for name in measured:
        assert same_bits(measured[name], stored[name].load()), name
        assert measured[name].attrs["units"] == stored[name].attrs["units"]
    for name in ("x", "y", "inside", "frame", "name"):
        assert np.array_equal(measured[name], stored[name]), name
    for name in ("subset", "step", "strain_window", "strain_measure", "scale_mm_per_px", "length_unit"):
        assert measured.attrs[name] == stored.attrs[name], name
    stored.close()


def test_truth():
    ds = dic.track(FRAMES, **QUICK)
    k = ds.frame / 5
    good = (ds.status == dic.Status.ok) & ds.exx.notnull()  # the subsets of the border are cut
    u = k * (1.5 + 0.02 * (ds.x - 127.5) + 0.005 * (ds.y - 127.5))
    v = k * (-0.75 - 0.006 * (ds.y - 127.5))
    assert good.mean() > 0.8
    assert float(np.sqrt((((ds.u - u) ** 2).where(good)).mean())) < 0.01
    assert float(np.sqrt((((ds.v - v) ** 2).where(good)).mean())) < 0.01
    assert float(ds.exx.isel(frame=-1).mean()) == pytest.approx(0.02 + 0.02**2 / 2, abs=2e-4)


def test_into_files(tmp_path):
    files = sorted(FRAMES.glob("*.png"))[:3]
    ds = dic.track(files, output=tmp_path / "out", csv=True, pictures="none", fps=10, **QUICK)
    assert (tmp_path / "out/csv/frame_0001.csv").exists()
    assert list(ds.time.values) == [0.1, 0.2] and ds.time.attrs["units"] == "s"
    memory = dic.track(files, times=[0, 0.1, 0.2], **QUICK)
    assert np.array_equal(memory.time, ds.time) and memory.time.attrs == ds.time.attrs
    assert same_bits(ds.u.load(), memory.u)
    ds.close()
    with pytest.raises(dic.UsageError, match="files"):
        dic.track(np.zeros((2, 64, 64), np.uint8), output=tmp_path / "other")
    with pytest.raises(dic.FileError, match="force"):
        dic.track(files, output=tmp_path / "out", **QUICK)


def test_inputs(moved, tmp_path):
    images = moved.image.values
    expected = dic.track(images, **QUICK)
    for i, image in enumerate(images):
        dic.write_image(tmp_path / f"f{i}.png", image)
    wide = np.zeros((3, 128, 320), np.uint8)
    wide[:, :, ::2] = images
    for frames in (list(images), iter(images), moved.image, wide[:, :, ::2], str(tmp_path), tmp_path / "*.png"):
        assert same_bits(dic.track(frames, **QUICK).u, expected.u)
    assert same_bits(dic.track(images[1:], reference=images[0], **QUICK).u, expected.u)
    assert same_bits(dic.track(images[1:], reference=tmp_path / "f0.png", **QUICK).u, expected.u)
    other = dic.track(images.astype(">u2"), **QUICK)
    assert float(abs(other.u - expected.u).max()) < 1e-3
    mask = np.zeros(images[0].shape, bool)
    mask[40:90, 30:120] = True
    dic.write_image(tmp_path / "mask.bmp", mask.astype(np.uint8))
    roi = dic.track(images, roi=mask, **QUICK)
    assert roi.sizes == {"frame": 2, "y": 5, "x": 9}
    assert same_bits(dic.track(images, roi=tmp_path / "mask.bmp", **QUICK).u, roi.u)
    assert same_bits(dic.track(images, roi_rect=(30, 40, 90, 50), **QUICK).u, roi.u)


def test_times(moved):
    ds = dic.track(moved.image.values, times=[0, 0.5, 2], **QUICK)
    assert list(ds.time.values) == [0.5, 2] and ds.time.attrs["units"] == "s"
    images = moved.image.values
    assert list(dic.track(images[1:], reference=images[0], fps=4, **QUICK).time.values) == [0, 0.25]
    with pytest.raises(dic.UsageError, match="times"):
        dic.track(moved.image.values, times=[0.5], **QUICK)


def test_frames_that_cannot_be_measured(moved, tmp_path):
    images = list(moved.image.values)
    with pytest.warns(UserWarning, match="frame_0001 was left out"):
        ds = dic.track([images[0], images[1][:50], images[2]], **QUICK)
    assert list(ds.frame.values) == [2] and list(ds.name.values) == ["frame_0002"]
    for i, image in enumerate(images):
        dic.write_image(tmp_path / f"f{i}.png", image)
    (tmp_path / "f1.png").write_bytes(b"no image")
    with pytest.warns(UserWarning, match="f1.png was left out"):
        ds = dic.track(tmp_path, **QUICK)
    assert list(ds.name.values) == ["f2.png"]


@pytest.mark.parametrize("options, error, words", [
    (dict(subset=20), dic.UsageError, "odd"),
    (dict(subset=20), ValueError, "odd"),
    (dict(subsett=21), TypeError, "did you mean subset"),
    (dict(strain_window=2.5), dic.UsageError, "strain_window needs a whole number"),
    (dict(strain_measure="cauchy"), dic.UsageError, "green-lagrange"),
    (dict(roi_rect=(1, 2, 3)), dic.UsageError, "x,y,width,height"),
    (dict(csv=True), dic.UsageError, "output"),
    (dict(device="cuda:99"), dic.DeviceError, "GPU|CUDA"),
    (dict(roi="none.png"), OSError, "none.png"),
    (dict(roi=np.zeros((5, 5))), dic.UsageError, "ROI|mask|size"),
])
def test_errors(moved, options, error, words):
    with pytest.raises(error, match=words):
        dic.track(moved.image.values, **options)


def test_one_image_is_no_sequence(moved, tmp_path):
    image = moved.image.values[0]
    dic.write_image(tmp_path / "one.png", image)
    for frames in ([image], image[np.newaxis], iter([image]), tmp_path, [tmp_path / "one.png"]):
        with pytest.raises(dic.UsageError, match="only one image"):
            dic.track(frames, **QUICK)
    for frames, reference in (([], None), (iter([]), None), ([], image), (image[:0], image)):
        with pytest.raises(dic.UsageError, match="no frames"):
            dic.track(frames, reference=reference, **QUICK)


def test_no_frames():
    with pytest.raises(dic.FileError, match="none"):
        dic.track("none/*.png")
    with pytest.raises(dic.UsageError, match="no frames"):
        dic.track([])


def test_every_option_is_described():
    types = dic.track.__globals__["_options"].TABLE
    for name in types:
        assert name in dic.track.__doc__
    from dic._option_types import Options

    assert set(Options.__annotations__) == set(types) - {"reference", "roi", "output", "times", "fps"}


def test_open_refuses(tmp_path):
    import h5py

    for name, content in (("none", None), ("text.vtkhdf", b"no HDF5")):
        if content:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(dic.FileError, match=name):
            dic.open(tmp_path / name)
    with h5py.File(tmp_path / "other.vtkhdf", "w") as file:
        file["a"] = 1
    with pytest.raises(dic.FileError, match="not a result"):
        dic.open(tmp_path / "other.vtkhdf")
