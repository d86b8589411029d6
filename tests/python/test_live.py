"""dic.live with the fake camera of Aravis."""

import subprocess

import numpy as np
import pytest

import dic

QUICK = dict(subset=21, step=16, threads=1, device="cpu", region=(0, 0, 128, 128), fps=20)


def test_an_iterator_over_results(tmp_path):
    with dic.live("fake", until=5, output=tmp_path / "out", extensometer=(32, 64, 96, 64), **QUICK) as stream:
        frames = list(stream)
    assert [frame["frame"] for frame in frames] == [1, 2, 3, 4, 5]
    assert stream.events[0]["event"] == "start"
    summary = stream.summary
    drops = summary["drops"]
    assert summary["results"] == 5
    assert summary["produced"] == 5 + drops["camera"] + drops["network"] + drops["no_buffer"] + drops["measuring"]
    for frame in frames:
        assert np.nanmean(frame.result.u) == pytest.approx(frame["mean_u"], abs=1e-6)
        assert frame["extensometers"][0]["gauge_length"] == 64
    assert dic.open(tmp_path / "out").sizes["frame"] == 5


def test_gauges_alone_and_an_early_end():
    gauges = [(32, 64, 96, 64), (48, 32, 48, 96)]
    with dic.live("fake", extensometer=gauges, only_extensometers=True, drop="newest", **QUICK) as stream:
        frame = next(stream)
        assert stream.events[0]["points"] == 4
        assert len(frame["extensometers"]) == 2
        assert sum(frame.result.counts.values()) == 4
    assert stream.summary["results"] >= 1


def test_two_cameras(program, tmp_path):
    subprocess.run([program, "synth", "--stereo", "--width", "128", "--height", "128", "--focal", "320", "--frames", "1", "-o", tmp_path / "rig"],
                   check=True, capture_output=True)
    with dic.live("fake-left", right_camera="fake-right", calibration=tmp_path / "rig/stereo.json", axes="points",
                  axes_points=[(32, 32), (96, 32), (32, 96)], extensometer=(32, 64, 96, 64), until=2, output=tmp_path / "out",
                  **{**QUICK, "fps": 5}) as stream:
        frames = list(stream)
    assert stream.events[0]["axes"] == "points"
    assert frames[-1]["extensometers"][0]["sigma_strain"] > 0
    origin = dic.open(tmp_path / "out").sel(x=32, y=32)
    for name in "XYZ":
        np.testing.assert_allclose(origin[name], 0, atol=1e-9)


def test_wrong_settings():
    with pytest.raises(dic.UsageError, match="drop needs"):
        dic.live("fake", drop="some")
    with pytest.raises(TypeError, match="There is no option sharpness"):
        dic.live("fake", sharpness=3)
    with pytest.raises(dic.DeviceError, match="no camera"):
        dic.live("127.0.0.9")


def test_cameras():
    assert "fake" in [camera["id"] for camera in dic.cameras()]
