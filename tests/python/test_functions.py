"""dic.strain, dic.match, dic.correlate, dic.synth against independent computations."""

import os

import numpy as np
import pytest

import dic
from conftest import same_bits

STRAINS = ("exx", "eyy", "exy", "e1", "e2", "von_mises", "sigma_exx", "sigma_eyy", "sigma_exy")


@pytest.mark.parametrize("scale", [0, 0.5])
def test_strain(moved, scale):
    quick = dict(subset=21, step=10, scale=scale)
    measured = dic.track(moved.image.values, strain_window=3, strain_measure="almansi", **quick)
    again = dic.strain(dic.track(moved.image.values, **quick), 3, "almansi")
    for name in STRAINS:
        assert same_bits(again[name], measured[name]), name
        assert again[name].attrs == measured[name].attrs
    one = dic.strain(measured.isel(frame=1), 5)
    assert one.exx.dims == ("y", "x") and one.strain_window == 5
    with pytest.raises(dic.UsageError, match="odd"):
        dic.strain(measured, 4)


def stretched(scale=0, frames=2, ux=0.02):
    """The result of a stretch along x, engineering strain ux."""
    images = dic.synth(width=160, height=140, frames=frames, motion="affine", ux=ux, noise=0, seed=5).image.values
    return dic.track(images, subset=21, step=5, scale=scale, strain_measure="engineering", threads=1)


@pytest.mark.parametrize("scale", [0, 0.5])
def test_strain_of_a_part_of_a_result(scale):
    """The displacement, and so the strain, does not depend on the order of the points nor on how many are kept."""
    result, every = stretched(scale), slice(None, None, 2)
    unit = scale or 1
    for name, part in {"every second": result.isel(x=every, y=every), "transposed": result.transpose("frame", "x", "y"),
                       "transposed, x first": result.transpose("x", "frame", "y"), "x reversed": result.isel(x=slice(None, None, -1)),
                       "both reversed": result.isel(x=slice(None, None, -1), y=slice(None, None, -1)),
                       "all at once": result.isel(x=slice(None, None, -3), y=slice(1, None, 3)).transpose("y", "x", "frame"),
                       "one frame": result.isel(frame=0).transpose("x", "y"), "a corner": result.isel(x=slice(6, None), y=slice(3, 18)),
                       "some hidden": result.where(result.x > 40 * unit), "u hidden": result.assign(u=result.u.where(result.y > 40 * unit)),
                       }.items():
        again = dic.strain(part, strain_window=3)
        assert again.exx.dims == part.u.dims and again.exx.notnull().sum() > 20, name
        assert np.nanmax(abs(again.exx - 0.02)) < 3e-3 and abs(float(again.exx.mean()) - 0.02) < 2e-4, name
        assert np.nanmax(abs(again.eyy)) < 3e-3, name
        step = np.unique(abs(np.diff(part.x)) / unit).item()
        assert again.step == step, name
    turned = dic.strain(result.isel(x=slice(None, None, -1)).transpose("x", "y", "frame"))
    for name in STRAINS:
        assert same_bits(turned[name].sortby("x").transpose(*result.exx.dims), result[name]), name


def test_points_that_were_hidden_are_not_measured():
    result = stretched()
    again = dic.strain(result.where(result.x > 80))
    assert again.exx.where(result.x < 75).isnull().all()


@pytest.mark.parametrize("call", [dic.strain, lambda result: dic.probe(result, point=(80, 60))])
def test_datasets_that_are_no_grid_any_more(call):
    result = stretched()
    for words, changed in {
            "one step in x and y": result.isel(x=slice(None, None, 2)), "step in x and y, but": result.isel(y=[0, 1, 4]),
            "lie -": result.roll(x=1, roll_coords=True), "average": result.coarsen(x=2, y=2, boundary="trim").mean(),
            "attribute step says": result.assign_coords(x=result.x / 5, y=result.y / 5),
            "whole pixels": result.assign_coords(x=result.x * 0.3), "outside the reference image": result.assign_coords(x=result.x * 1000),
            "lacks the coordinate x": result.drop_vars("x"), "has frame, y.": result.isel(x=0), "has frame, y, column": result.rename(x="column"),
            "has s, frame": result.expand_dims("s"), "has frame, point": result.stack(point=("y", "x"))}.items():
        with pytest.raises(dic.UsageError, match=words):
            call(changed)


@pytest.mark.parametrize("call", [dic.strain, lambda result: dic.probe(result, point=(80, 60), area=[(40, 40), (90, 40), (90, 90)])])
def test_attributes_that_make_no_sense(call):
    result = stretched()
    wrong = 0
    for name in result.attrs:
        for value in (0, -1, 1e300, float("nan"), float("inf"), "x", None, b"", [], 2**31, 10**30, 3.5, "{", "[1]", {}):
            try:
                call(result.assign_attrs({name: value}))
            except dic.UsageError as error:
                wrong += 1
                assert str(error).endswith("."), (name, value)
    assert wrong > 60
    for value in (0, -1, None, 7):
        with pytest.raises(dic.UsageError, match="step"):
            call(result.assign_attrs(step=value))


def test_match(moved):
    images = moved.image.values
    found = dic.match(images[0, 40:80, 60:100], images)
    assert list(found.image) == [0, 1, 2] and (found.score > 0.95).all()
    u, v = moved.u.values[:, 60, 80], moved.v.values[:, 60, 80]  # of the centre, about
    assert np.allclose(found.x, 60 + u, atol=0.05) and np.allclose(found.y, 40 + v, atol=0.05)
    several = dic.match([images[0, 40:80, 60:100], images[0, 10:40, 20:60]], images[0])
    assert sorted(several.template) == [0, 1]
    assert len(dic.match(images[0, 40:80, 60:100], images[0], threshold=1.0)) <= 1
    with pytest.raises(dic.UsageError, match="method"):
        dic.match(images[0, 40:80, 60:100], images[0], method="other")


def test_match_at_any_pose(moved):
    image = moved.image.values[0]
    turned = np.rot90(image)  # (x, y) goes to (y, width - 1 - x): by -90 degrees
    ranges = dict(rotation_range=(-180, 180), scale_range=(0.9, 1.1))
    (found,) = dic.match(image[40:80, 60:100], turned, **ranges).itertuples()
    assert abs(found.center_x - 59.5) < 0.01 and abs(found.center_y - (image.shape[1] - 1 - 79.5)) < 0.01
    assert abs(found.rotation + 90) < 0.02 and abs(found.scale - 1) < 5e-4 and found.score > 0.99
    assert 0 <= found.sigma_x < 0.01 and 0 <= found.sigma_rotation < 0.02 and found.visible > 0.95
    mask = np.ones(turned.shape, np.uint8)
    mask[:, 30:90] = 0
    assert len(dic.match(image[40:80, 60:100], turned, **ranges, image_mask=mask, threshold=0.8)) == 0
    with pytest.raises(dic.UsageError, match="range"):
        dic.match(image[40:80, 60:100], turned, timeout_ms=5)


@pytest.mark.parametrize("device", ["cpu", "opencl"])
@pytest.mark.parametrize("dtype, sums", [(np.uint8, np.uint32), (np.uint16, np.uint64), (np.int32, np.int64),
                                         (np.float64, np.float64)])
def test_sums_of_products(dtype, sums, device):
    if device == "opencl" and not dic.info()["opencl_devices"] and os.environ.get("DIC_REQUIRE_OPENCL") != "1":
        pytest.skip(dic.info()["opencl_note"])
    random = np.random.default_rng(1)
    reference = random.integers(0, 200, (2, 5, 6)).astype(dtype)
    search = random.integers(0, 200, (6, 9, 11)).astype(dtype)
    got = dic.correlate(reference, search, criterion="cross_correlation", shifts="full", device=device)
    assert got.dtype == sums and got.dims == ("pair", "dy", "dx") and got.shape == (6, 13, 16)
    for pair in range(6):
        for dy in (-4, 0, 3, 8):
            for dx in (-5, 0, 2, 10):
                expected = sum(float(reference[pair // 3, i, j]) * float(search[pair, i + dy, j + dx])
                               for i in range(5) for j in range(6) if 0 <= i + dy < 9 and 0 <= j + dx < 11)
                assert float(got.sel(dy=dy, dx=dx)[pair]) == pytest.approx(expected, rel=1e-12)


def test_zncc_and_peaks():
    random = np.random.default_rng(2)
    search = random.integers(0, 255, (3, 20, 22)).astype(np.float32)
    reference = search[:, 4:13, 7:16].copy()
    for pairing, pairs in (("one_to_one", 3), ("n_to_m", 9), ("n_to_mn", 3)):
        assert dic.correlate(reference, search, pairing=pairing).shape == (pairs, 12, 14)
    surface = dic.correlate(reference, search, pairing="one_to_one")
    window = search[1, 2:11, 3:12]
    expected = np.corrcoef(window.ravel(), reference[1].ravel())[0, 1]
    assert float(surface.sel(dy=2, dx=3)[1]) == pytest.approx(expected, abs=1e-6)
    for criterion in ("zncc", "ssd"):
        peaks = dic.correlate(reference, search, pairing="one_to_one", criterion=criterion, peaks=True)
        assert (peaks.dx == 7).all() and (peaks.dy == 4).all() and peaks.found.all()
        assert (abs(peaks.subpixel_dx - 7) < 0.3).all()
    mask = np.ones((3, 9, 9), bool)
    mask[:, 0] = False
    assert float(dic.correlate(reference, search, pairing="one_to_one", mask=mask).sel(dy=4, dx=7)[2]) == \
        pytest.approx(1, abs=1e-6)
    with pytest.raises(dic.UsageError, match="pairing"):
        dic.correlate(reference, search, pairing="all")
    with pytest.raises(dic.UsageError):
        dic.correlate(reference, search, variant="none")


def test_best_peaks_of_two_copies():
    random = np.random.default_rng(3)
    reference = random.integers(0, 255, (9, 11)).astype(np.uint8)
    search = random.integers(0, 60, (2, 50, 60)).astype(np.uint8)
    search[0, 5:14, 7:18] = reference
    search[0, 30:39, 40:51] = reference // 2 + 20 * (random.random((9, 11)) > 0.5)
    found = dic.best_peaks(reference, search, 3, distance=4, least_score=0.6, pairing="one_to_many")
    assert found.dx.dims == ("pair", "rank") and found.dx.shape == (2, 3)
    assert found.found.values.tolist() == [[True, True, False], [False] * 3]
    assert found.dx.values[0, :2].tolist() == [7, 40] and found.dy.values[0, :2].tolist() == [5, 30]
    window = search[0, 30:39, 40:51]
    assert float(found.score[0, 1]) == pytest.approx(np.corrcoef(window.ravel(), reference.ravel())[0, 1], abs=1e-6)
    assert float(found.next_score[0, 0]) == float(found.score[0, 1])
    assert 0 <= float(found.sigma_dx[0, 0]) < float(found.sigma_dx[0, 1]) < 0.2
    with pytest.raises(dic.UsageError, match="number of peaks"):
        dic.best_peaks(reference, search, 0)


def test_synth(program, tmp_path):
    import subprocess

    subprocess.run([program, "synth", "-o", tmp_path / "s", "--width", "96", "--height", "64", "--frames", "3",
                    "--motion", "rotation", "--angle", "4", "--noise", "2", "--seed", "9"], check=True)
    made = dic.synth(width=96, height=64, frames=3, motion="rotation", angle=4, noise=2, seed=9)
    for i in range(3):
        assert np.array_equal(made.image.values[i], dic.read_image(tmp_path / f"s/frame_000{i}.png"))
    angle = np.radians(2)
    x, y = 90 - 47.5, 10 - 31.5
    assert float(made.u[1].sel(x=90, y=10)) == pytest.approx(np.cos(angle) * x - np.sin(angle) * y - x)
    with pytest.raises(dic.UsageError):
        dic.synth(bits=10)


def test_synth_makes_the_faults_of_prints_cameras_and_files(program, tmp_path):
    import subprocess

    faults = [{"repeat": 40.5}, {"texture": "dots", "fill_factor": 0.6}, {"line_jitter": 0.3},
              {"noise": 2, "correlated_noise": True}, {"line_pattern": 3}, {"defective": 0.01}, {"noise": 4, "median": 3},
              {"two_valued": True}, {"bits": 16, "pedestal": 30000, "grey_max": 60}, {"bits": 12}]
    for k, fault in enumerate(faults):
        flags = [part for name, value in fault.items()
                 for part in ([f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)]))]
        subprocess.run([program, "synth", "-o", tmp_path / str(k), "--width", "64", "--height", "48", *flags], check=True)
        made = dic.synth(width=64, height=48, **fault).image.values
        for i in range(2):
            assert np.array_equal(made[i], dic.read_image(tmp_path / f"{k}/frame_000{i}.png")), fault
    with pytest.raises(dic.UsageError, match="median"):
        dic.synth(median=4)


def test_info():
    assert dic.info()["version"] == dic.__version__
    assert "cpu-direct" in dic.correlate_variants()
    assert {"opencl_note", "opencl_devices"} <= dic.info().keys()
