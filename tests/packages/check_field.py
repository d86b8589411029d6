"""Compares results of data/speckle_small with the motion that its images were made with (data/README.md):

    python check_field.py RESULT.vtkhdf [OTHER.vtkhdf]

With OTHER, both must agree, too: values within 1e-4 px, statuses at 99.99 % of the points.
"""

import sys

import h5py
import numpy as np


def read(path):
    with h5py.File(path) as file:
        data = file["VTKHDF/PointData"]
        return {name: data[name][()] for name in ("u", "v", "exx", "eyy", "exy", "status", "sigma_u", "sigma_v")} | {
            "x": file["dic/x"][()], "y": file["dic/y"][()]}


def check_truth(field):
    x, y = np.meshgrid(field["x"], field["y"])
    frames = field["u"].shape[0]
    assert frames == 5, f"{frames} frames instead of 5"
    part = (np.arange(1, 6) / 5)[:, None, None]
    truth = {"u": part * (1.50 + 0.020 * (x - 127.5) + 0.005 * (y - 127.5)), "v": part * (-0.75 - 0.006 * (y - 127.5))}
    ok = field["status"] == 0
    assert ok.mean() > 0.95, f"only {ok.mean():.1%} of the points are ok"
    for name in ("u", "v"):
        error = np.abs(field[name] - truth[name])[ok]
        assert error.max() < 0.1, f"{name} is off by {error.max():.4f} px"
        assert (error > 5 * field["sigma_" + name][ok]).sum() <= max(1, error.size // 10000), f"{name} is beyond 5 sigma"
        print(f"{name}: {error.size} points, rms error {np.sqrt((error ** 2).mean()):.5f} px, largest {error.max():.4f} px")
    for name, value in (("exx", 0.0202), ("eyy", -0.0059695), ("exy", 0.00255)):
        mean = np.nanmean(field[name][-1])
        assert abs(mean - value) < 2e-4, f"{name} is {mean:.6f} on average instead of {value}"


def check_same(a, b):
    assert (a["status"] == b["status"]).mean() >= 0.9999, "the statuses differ"
    for name in ("u", "v"):
        largest = np.nanmax(np.abs(a[name] - b[name]))
        assert largest <= 1e-4, f"{name} differs by {largest:.2e} px"
        print(f"{name}: largest difference {largest:.2e} px")


fields = [read(path) for path in sys.argv[1:]]
check_truth(fields[0])
if len(fields) > 1:
    check_same(*fields)
