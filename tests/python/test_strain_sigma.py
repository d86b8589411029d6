"""The sigma of strain after order="auto" and after the global step: that of the measurement with the same window, and
against the scatter over many draws of noise."""

import subprocess

import numpy as np
import pytest

import dic
from conftest import FRAMES, same_bits

SIGMAS = ("sigma_exx", "sigma_eyy", "sigma_exy")
SHARED = dict(subset=21, step=5, prefilter="none")
CASES = {"order-auto": dict(order="auto"), "global": dict(global_=True),
         "global-fixed": dict(global_=True, global_resolution=90), "gaussian": dict(order=2, weights="gaussian")}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
@pytest.mark.parametrize("scale", [0, 0.5])
def test_bits_of_a_measurement(options, scale):
    frames = sorted(FRAMES.glob("*.png"))[:3]
    again = dic.strain(dic.track(frames, scale=scale, **SHARED, **options), 9, "hencky")
    measured = dic.track(frames, strain_window=9, strain_measure="hencky", scale=scale, **SHARED, **options)
    assert set(again) == set(measured)
    for name in SIGMAS:
        assert measured[name].notnull().sum() > 100
        assert same_bits(again[name], measured[name]), name


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_bits_of_the_command_line(program, tmp_path, options):
    frames = sorted(FRAMES.glob("*.png"))[:3]
    dic.track(frames, output=tmp_path / "out", pictures="none", **SHARED, **options).close()
    done = subprocess.run([program, "strain", tmp_path / "out", "--strain-window", "9", "-o", tmp_path / "other"],
                          check=True, capture_output=True, text=True)
    assert "sigma" not in done.stderr
    with dic.open(tmp_path / "other") as other:
        measured = dic.track(frames, strain_window=9, **SHARED, **options)
        for name in SIGMAS:
            assert same_bits(other[name].load(), measured[name]), name


def green_lagrange(u, v):
    """Strain of displacements at every pixel [component, y, x]."""
    (uy, ux), (vy, vx) = np.gradient(u), np.gradient(v)
    return np.stack([ux + (ux**2 + vx**2) / 2, vy + (uy**2 + vy**2) / 2, (uy + vx + ux * uy + vx * vy) / 2])


def over_seeds(motion, options, windows, seeds=24):
    """For each window, standard deviation over the seeds, predicted sigma, and root mean square error of every interior node
    [component, y, x]."""
    made = dic.synth(width=200, height=200, frames=2, seed=4, **motion)
    clean = made.image.values.astype(float)
    strains = green_lagrange(made.u[1].values, made.v[1].values)
    random = np.random.default_rng(11)
    runs = {window: [] for window in windows}
    for _ in range(seeds):
        noisy = np.clip(np.rint(clean + random.normal(0, 2, clean.shape)), 0, 255).astype(np.uint8)
        ds = dic.track(noisy, **SHARED, **options).isel(frame=0)
        for window in windows:
            strain = dic.strain(ds, window)
            runs[window].append(np.stack([strain[name].values for name in ("exx", "eyy", "exy") + SIGMAS]))
    inner = np.s_[:, 8:-8, 8:-8]
    truth = strains[:, ds.y.values.astype(int)[:, None], ds.x.values.astype(int)]
    out = {}
    for window, fields in runs.items():
        fields = np.array(fields, float)
        assert np.isfinite(fields[(slice(None), *inner)]).all()
        out[window] = (fields[:, :3].std(0, ddof=1)[inner], np.sqrt((fields[:, 3:] ** 2).mean(0))[inner],
                       np.sqrt(((fields[:, :3] - truth) ** 2).mean(0))[inner])
    return out


def ratio_of(predicted, observed):
    return np.sqrt((predicted**2).mean((1, 2)) / (observed**2).mean((1, 2)))


@pytest.mark.parametrize("motion", [dict(motion="translation", u=0.3, v=0.2), dict(motion="rotation", angle=12)],
                         ids=["translation", "rotation"])
def test_order_auto_over_many_seeds(motion):
    for window, (observed, predicted, _) in over_seeds(motion, dict(order="auto"), (5, 11)).items():
        ratio = ratio_of(predicted, observed)
        assert (0.88 < ratio).all() and (ratio < 1.15).all(), (window, ratio)


def test_waves_over_many_seeds():
    """Order 2 where it bends. Sigma tells the error, of which the larger part is the same for all seeds; it may be a
    third too large, because the largest of several estimates of it counts."""
    motion = dict(motion="star", amplitude=1.5, period_min=40, period_max=200)
    scatter, predicted, error = over_seeds(motion, dict(order="auto"), (5,), seeds=8)[5]
    ratio = ratio_of(predicted, error)
    assert (0.75 < ratio).all() and (ratio < 1.35).all(), ratio
    assert (ratio_of(error, scatter) > 2).any()


@pytest.mark.parametrize("options", [dict(), dict(global_resolution=90)], ids=["auto", "fixed"])
def test_global_over_many_seeds(options):
    motion = dict(motion="translation", u=0.3, v=0.2)
    for window, (observed, predicted, _) in over_seeds(motion, dict(global_=True) | options, (5, 11)).items():
        ratio = ratio_of(predicted, observed)
        assert (0.76 < ratio).all() and (ratio < 1.25).all(), (window, ratio)
