#!/usr/bin/env python3
"""Checks a result.vtkhdf with the readers of h5py and of VTK: check_vtkhdf.py FILE [EXPECTED.json]

Always: the documented arrays are there with their types and shapes, both readers give the same values at every
step, the nodes are where docs/file-formats.md says, status and missing values agree.

EXPECTED.json, every key optional:
    shape         [frames, ny, nx]
    x, y          [first, step]: node positions in the image, in the file's length unit
    times         values of the time axis
    frames        names of the frames
    unit          "px" or "mm"
    measure       strain measure
    values        {array: [[frame, j, i, value, tolerance], ...]}; value null = missing
"""

import json
import sys

import h5py
import numpy as np
import vtk
from vtk.util.numpy_support import vtk_to_numpy

TYPES = {
    "u": "f8", "v": "f8", "displacement": "f8", "zncc": "f4", "sigma_u": "f4", "sigma_v": "f4",
    "status": "u1", "iterations": "i2", "exx": "f4", "eyy": "f4", "exy": "f4", "e1": "f4", "e2": "f4",
    "von_mises": "f4", "sigma_exx": "f4", "sigma_eyy": "f4", "sigma_exy": "f4",
}
STATUS = ["ok", "flat", "out_of_image", "low_correlation", "not_converged", "diverged", "masked", "outlier",
          "ambiguous", "epipolar"]
WITH_VALUES = [STATUS.index("ok"), STATUS.index("outlier")]


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def check_arrays(file):
    data, about = file["VTKHDF/PointData"], file["dic"]
    frames = file["VTKHDF/Steps"].attrs["NSteps"]
    shape = (frames, len(about["y"]), len(about["x"]))
    assert set(data) == set(TYPES), sorted(set(data) ^ set(TYPES))
    for name, dtype in TYPES.items():
        assert data[name].dtype == np.dtype(dtype), (name, data[name].dtype)
        assert data[name].shape[:3] == shape, (name, data[name].shape)
    assert data["displacement"].shape == shape + (3,)
    assert [text(name) for name in data["status"].attrs["names"]] == STATUS
    assert about["inside"].shape == shape[1:] and len(about["frames"]) == frames

    measured = np.isin(data["status"][:], WITH_VALUES)
    for name in ("u", "v", "zncc"):
        assert np.array_equal(np.isfinite(data[name][:]), measured), f"{name}: missing values against status"
    assert np.all(data["status"][:][:, about["inside"][:] == 0] == STATUS.index("masked"))
    vectors = np.stack([data["u"][:], -data["v"][:], np.where(measured, 0, np.nan)], axis=-1)
    assert np.array_equal(data["displacement"][:], vectors, equal_nan=True)
    return shape


def check_vtk(path, file, shape):
    about, data = file["dic"], file["VTKHDF/PointData"]
    reader = vtk.vtkHDFReader()
    assert reader.CanReadFile(path)
    reader.SetFileName(path)
    reader.UpdateInformation()
    times = reader.GetOutputInformation(0).Get(vtk.vtkStreamingDemandDrivenPipeline.TIME_STEPS())
    assert np.array_equal(times, file["VTKHDF/Steps/Values"][:]), times

    # Right side up over the image: the bottom left pixel at (0, 0).
    factor = about.attrs["scale_mm_per_px"] or 1.0
    top = (about.attrs["image_height"] - 1) * factor
    expected = np.array([(x, top - y, 0) for y in about["y"][:] for x in about["x"][:]])
    for frame, time in enumerate(times):
        reader.UpdateTimeStep(time)
        grid = reader.GetOutput()
        points = np.array([grid.GetPoint(k) for k in range(grid.GetNumberOfPoints())])
        assert np.allclose(points, expected, atol=1e-9), np.abs(points - expected).max()
        surface = vtk.vtkGeometryFilter()
        surface.SetInputData(grid)
        surface.Update()
        drawn = np.array([surface.GetOutput().GetPoint(k) for k in range(surface.GetOutput().GetNumberOfPoints())])
        assert np.allclose(drawn, expected, atol=1e-4)
        for name in TYPES:
            values = vtk_to_numpy(grid.GetPointData().GetArray(name)).reshape(data[name].shape[1:])
            stored = data[name][frame]
            assert np.array_equal(values, stored, equal_nan=stored.dtype.kind == "f"), (name, frame)


def check_expected(file, shape, expected):
    about, data = file["dic"], file["VTKHDF/PointData"]
    if "shape" in expected:
        assert list(shape) == expected["shape"], shape
    for axis in ("x", "y"):
        if axis in expected:
            first, step = expected[axis]
            assert np.allclose(about[axis][:], first + step * np.arange(len(about[axis]))), axis
    if "times" in expected:
        assert np.allclose(file["VTKHDF/Steps/Values"][:], expected["times"])
    if "frames" in expected:
        assert [text(name) for name in about["frames"][:]] == expected["frames"]
    if "unit" in expected:
        for name in ("u", "v", "displacement", "sigma_u", "sigma_v"):
            assert text(data[name].attrs["unit"]) == expected["unit"], name
    if "measure" in expected:
        assert text(data["exx"].attrs["measure"]) == expected["measure"]
    for name, samples in expected.get("values", {}).items():
        for frame, j, i, value, tolerance in samples:
            got = data[name][frame, j, i]
            ok = np.isnan(got) if value is None else abs(got - value) <= tolerance
            assert ok, (name, frame, j, i, got, value)


def main():
    with h5py.File(sys.argv[1], "r") as file:
        shape = check_arrays(file)
        check_vtk(sys.argv[1], file, shape)
        if len(sys.argv) > 2:
            with open(sys.argv[2], encoding="utf-8") as stream:
                check_expected(file, shape, json.load(stream))
    print(f"{sys.argv[1]}: {shape[0]} frames of {shape[1]} x {shape[2]} nodes, h5py and VTK agree")


if __name__ == "__main__":
    main()
