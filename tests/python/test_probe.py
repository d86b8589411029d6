"""dic.probe against the definition, the command line and known motions; dic.report."""

import json
import subprocess

import numpy as np
import pytest
import xarray as xr

import dic
from conftest import FRAMES

QUICK = dict(subset=21, step=10)
AREA = [(55, 45), (145, 45), (145, 105), (55, 105)]


@pytest.fixture(scope="module")
def measured():
    return dic.track(FRAMES, **QUICK)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder of a result in mm and s."""
    folder = tmp_path_factory.mktemp("probe") / "out"
    dic.track(FRAMES, output=folder, pictures="none", scale=0.02, fps=4, order="auto", **QUICK).close()
    return folder


def test_a_point_is_bilinear(measured):
    x, y = 100.0 + 3.5, 80.0 + 2.25
    point = dic.probe(measured, point=(x, y)).points.sel(point=1)
    i, j = (int((p - float(axis[0])) // 10) for p, axis in ((x, measured.x), (y, measured.y)))
    fx, fy = (x - float(measured.x[i])) / 10, (y - float(measured.y[j])) / 10
    for name in ("u", "v", "zncc", "exx", "sigma_eyy"):
        a = measured[name].values.astype(float)[:, j:j + 2, i:i + 2]
        expected = (a[:, 0, 0] * (1 - fx) + a[:, 0, 1] * fx) * (1 - fy) + (a[:, 1, 0] * (1 - fx) + a[:, 1, 1] * fx) * fy
        assert np.allclose(point[name], expected, rtol=1e-9, atol=0), name
    assert (point.problem == "").all() and point.u.attrs["units"] == "px" and point.exx.attrs["measure"] == "green-lagrange"


def test_a_part_of_a_result_has_the_values_of_its_points(measured):
    x, y = float(measured.x[4]), float(measured.y[3])
    expected = measured.u.sel(x=x, y=y)
    for part in (measured.isel(x=slice(None, None, 2), y=slice(1, None, 2)), measured.transpose("frame", "x", "y"),
                 measured.isel(x=slice(None, None, -1)), measured.isel(x=slice(-2, None, -2), y=slice(1, None, 2)).transpose("x", "y", "frame")):
        found = dic.probe(part, point=(x, y), line=(x, y, x + 40, y)).points
        assert np.allclose(found.u.sel(point=1), expected, rtol=1e-12), part.u.dims


def test_an_extensometer_of_a_known_stretch(measured):
    found = dic.probe(measured, extensometer=[(60, 100, 200, 100), (100, 60, 100, 200)]).extensometers
    k = measured.frame.values / 5  # data/README.md: ux = 0.02, vy = -0.006 in the last frame
    assert np.allclose(found.strain.sel(extensometer=1), 0.02 * k, atol=3e-4)
    assert np.allclose(found.strain.sel(extensometer=2), -0.006 * k, atol=3e-4)
    assert (found.gauge_length == 140).all()
    assert np.allclose(found.change, found.strain * 140)
    assert (found.sigma_strain > 0).all() and (found.sigma_strain < 1e-3).all()


def test_a_line_and_an_area(measured):
    found = dic.probe(measured, line=(60, 100, 200, 100), area=AREA)
    line, = found.lines
    assert line.u.dims == ("frame", "distance")
    assert np.allclose(line.distance, line.position_x - 60) and (line.position_y == 100).all()
    row = measured.u.sel(y=100).isel(frame=-1)
    assert np.allclose(line.u.isel(frame=-1), np.interp(line.position_x, row.x, row), atol=1e-9)
    inside = measured.where((measured.x >= 55) & (measured.x <= 145) & (measured.y >= 45) & (measured.y <= 105)
                            & (measured.status == dic.Status.ok))
    area = found.areas.sel(area=1)
    for name in ("u", "exx", "sigma_v"):
        assert np.allclose(area[f"mean_{name}"], inside[name].astype(float).mean(("y", "x")), rtol=1e-6, atol=1e-9), name
        assert np.allclose(area[f"sd_{name}"], inside[name].astype(float).std(("y", "x")), rtol=1e-4, atol=1e-9), name
    assert (area.points == inside.u.notnull().sum(("y", "x"))).all()


def test_what_the_command_line_says(program, written, tmp_path):
    loads = tmp_path / "loads.csv"
    loads.write_text("time;Force [kN]\n0;0\n0,25;1,5\n2;9\n")
    subprocess.run([program, "probe", written, "--point", "103.5,82", "--extensometer", "60,100,200,110", "--line",
                    "60,100,200,100", "--area", "55,45 145,45 145,105", "--loads", loads, "--section", "20",
                    "-o", tmp_path / "probe"], check=True, capture_output=True)
    stored = json.loads((tmp_path / "probe/probe.json").read_text())
    found = dic.probe(written, point=(103.5, 82), extensometer=(60, 100, 200, 110), line=(60, 100, 200, 100),
                      area=AREA[:3], loads=loads, section=20, output=tmp_path / "again")
    assert json.loads((tmp_path / "again/probe.json").read_text()) == stored
    for name in ("history.csv", "lines.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "probe" / name).read_bytes(), name
    assert found.points.u.attrs["units"] == "mm" and found.points["load"].attrs == {"units": "N", "long_name": "Force"}
    assert np.allclose(found.points["load"], [1500 + (t - 0.25) / 1.75 * 7500 for t in found.points.time])
    assert np.allclose(found.points.stress, found.points["load"] / 20)
    table = found.to_dataframe()
    assert list(table.columns[:4]) == ["name", "time", "load", "stress"] and "P1 u" in table and "A1 mean_exx" in table
    assert np.array_equal(table["E1 strain"], found.extensometers.strain.sel(extensometer=1))


def test_loads_as_numbers(measured):
    count = measured.sizes["frame"]
    found = dic.probe(measured, point=(100, 80), loads=range(count), section=2)
    assert list(found.points.stress.values) == [k / 2 for k in range(count)] and found.points.stress.attrs["units"] == "MPa"
    one = dic.probe(measured.isel(frame=1), point=(100, 80))
    assert one.points.sizes["frame"] == 1 and int(one.points.frame[0]) == 2


@pytest.mark.parametrize("asked, words", [
    ({}, "Nothing was asked for"), (dict(point=(1, 2, 3)), "two numbers"), (dict(point=(1000, 0)), "outside the reference"),
    (dict(extensometer=(10, 10, 10, 10)), "less than 1 px apart"), (dict(area=[(0, 0), (1, 0)]), "corners"),
    (dict(area=[(1, 1), (2, 1), (2, 2)]), "No point"), (dict(point=(50, 50), loads=[1]), "one number for each"),
    (dict(point=(50, 50), section=4), "loads")])
def test_refused(measured, asked, words):
    with pytest.raises(dic.UsageError, match=words):
        dic.probe(measured, **asked)


def test_loads_that_are_not_there(measured):
    with pytest.raises(dic.FileError, match="none.csv"):
        dic.probe(measured, point=(50, 50), loads="none.csv")


def test_a_place_without_values_says_why(measured):
    masked = measured.assign(status=xr.where(measured.x == 100, int(dic.Status.flat), measured.status).transpose(*measured.u.dims))
    found = dic.probe(masked, point=(103, 80)).points
    assert found.u.isnull().all() and all("flat" in str(text) for text in found.problem.values.ravel())


def test_report(written, tmp_path):
    path = dic.report(written, tmp_path / "report.html", specimen="Al <2024>", frames=[1, 3])
    html = path.read_text(encoding="utf-8")
    assert html.lower().startswith("<!doctype html>") and "Al " in html and 'id="field-exx-1"' in html
    assert 'id="image-reference"' in html and 'id="field-exx-2"' not in html
    assert "http://" not in html.replace("http://www.w3.org", "")
    with pytest.raises(dic.FileError, match="force"):
        dic.report(written, path)
    with dic.open(written) as ds:
        dic.report(ds, path, force=True, no_image=True)
    assert 'id="image-reference"' not in path.read_text(encoding="utf-8")
    with pytest.raises(dic.UsageError, match="frame 99"):
        dic.report(written, tmp_path / "other.html", frames=[99])
    with pytest.raises(dic.UsageError, match="output"):
        dic.report(dic.track(FRAMES, **QUICK))
