"""dic.stereo: shape and motion of a plane that two pinhole cameras see."""

import numpy as np
import pytest

import dic

WIDTH, HEIGHT, FOCAL, DISTANCE, ANGLE = 160, 140, 700.0, 300.0, np.radians(20)
MIDDLE = np.array([0, 0, DISTANCE])
ROTATION = np.array([[np.cos(ANGLE), 0, np.sin(ANGLE)], [0, 1, 0], [-np.sin(ANGLE), 0, np.cos(ANGLE)]])
SHIFT = np.array([0.6, -0.4, 0.9])


def view(rotation, translation, shift, seed):
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(float)
    rays = np.stack([(x - (WIDTH - 1) / 2) / FOCAL, (y - (HEIGHT - 1) / 2) / FOCAL, np.ones_like(x)], -1) @ rotation
    centre = -rotation.T @ translation
    at = centre + ((DISTANCE + shift[2] - centre[2]) / rays[..., 2])[..., None] * rays - shift
    random, total = np.random.default_rng(5), np.zeros_like(x)
    for _ in range(60):
        angle, phase = random.uniform(0, 2 * np.pi, 2)
        frequency = 2 * np.pi / (random.uniform(5, 15) * DISTANCE / FOCAL)
        total += np.cos(frequency * (np.cos(angle) * at[..., 0] + np.sin(angle) * at[..., 1]) + phase)
    grey = 128 + 8 * total + np.random.default_rng(seed).normal(0, 1, x.shape)
    return np.clip(np.round(grey), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stereo")
    translation = MIDDLE - ROTATION @ MIDDLE
    names = [], []
    for k, shift in enumerate((0 * SHIFT, SHIFT)):
        for side, (r, t) in enumerate(((np.eye(3), np.zeros(3)), (ROTATION, translation))):
            names[side].append(str(folder / f"{'LR'[side]}_{k}.png"))
            dic.write_image(names[side][-1], view(r, t, shift, 10 * k + side))

    def entry(key, rows, columns, data):
        values = ", ".join(repr(float(value)) for value in np.ravel(data))
        return f"{key}: !!opencv-matrix\n   rows: {rows}\n   cols: {columns}\n   dt: d\n   data: [ {values} ]\n"

    matrix = [FOCAL, 0, (WIDTH - 1) / 2, 0, FOCAL, (HEIGHT - 1) / 2, 0, 0, 1]
    text = "%YAML:1.0\n---\n" + "".join(entry(key, 3, 3, matrix) for key in ("K1", "K2"))
    text += "".join(entry(key, 1, 5, np.zeros(5)) for key in ("D1", "D2"))
    text += entry("R", 3, 3, ROTATION) + entry("T", 3, 1, translation)
    calibration = folder / "rig.yml"
    calibration.write_text(text + f"image_width: {WIDTH}\nimage_height: {HEIGHT}\n")
    return *names, calibration


def test_positions_and_displacements_have_their_units(scene):
    left, right, calibration = scene
    ds = dic.stereo(left, right, calibration, subset=21, step=8, device="cpu", progress=False)
    assert ds.sizes["frame"] == 2
    for name, truth, unit in (("Z", DISTANCE, "mm"), ("U", SHIFT[0], "mm"), ("V", SHIFT[1], "mm"), ("W", SHIFT[2], "mm")):
        values = ds[name].isel(frame=1).where(ds.status.isel(frame=1) == dic.Status.ok)
        assert abs(float(values.mean()) - truth) < 0.005, name
        assert ds[name].attrs["units"] == unit
    assert ds.epipolar.attrs["units"] == "px" and ds.incidence.attrs["units"] == "degrees"
    assert float(np.abs(ds.U.isel(frame=0)).max()) == 0


def test_output_and_axes(scene, tmp_path):
    left, right, calibration = scene
    ds = dic.stereo(left, right, calibration, subset=21, step=8, device="cpu", progress=False, axes="points",
                    axes_points=[(40, 40), (100, 40), (40, 100)], remove_rigid_motion=True, correct_rig=True, output=tmp_path / "out",
                    pictures="none")
    with ds:
        assert abs(float(ds.Z.isel(frame=1).mean())) < 0.02
        assert abs(float(ds.W.isel(frame=1).mean())) < 1e-6
    assert (tmp_path / "out" / "surface.vtkhdf").exists() and (tmp_path / "out" / "stereo.json").exists()


def test_probes_measure_in_space(scene):
    left, right, calibration = scene
    ds = dic.stereo(left, right, calibration, subset=21, step=8, device="cpu", progress=False)
    found = dic.probe(ds, point=(80, 70), extensometer=(40, 60, 120, 90), line=(40, 60, 120, 60), area=[(40, 40), (110, 40), (80, 90)])
    point, gauge, line = found.points.sel(point=1, frame=1), found.extensometers.sel(extensometer=1, frame=1), found.lines[0].sel(frame=1)
    assert abs(float(point.W) - SHIFT[2]) < 6 * float(point.sigma_W) and point.W.attrs["units"] == "mm"
    assert abs(float(gauge.gauge_length) - np.hypot(80, 30) * DISTANCE / FOCAL) < 0.05 and gauge.gauge_length.attrs["units"] == "mm"
    assert abs(float(gauge.change)) < 5 * float(gauge.sigma_change)
    assert abs(float(line.length) - 80 * DISTANCE / FOCAL) < 0.05 and line.curvature.attrs["units"] == "1/mm"
    assert abs(float(line.bending)) < 6 * float(line.sigma_bending) and float(line.flatness) < 0.1
    assert float(np.abs(line.offset).max()) < 0.1
    assert abs(float(found.areas.mean_Z.sel(frame=1, area=1)) - DISTANCE) < 0.01


def test_misuse(scene):
    left, right, calibration = scene
    with pytest.raises(dic.UsageError, match="one camera"):
        dic.stereo(left, right, calibration, scale=0.1)
    with pytest.raises(dic.UsageError, match="camera, plane, cylinder or points"):
        dic.stereo(left, right, calibration, axes="world")
    with pytest.raises(dic.UsageError, match="2 left and 1 right"):
        dic.stereo(left, right[:1], calibration, progress=False)


def test_the_strain_of_a_surface_is_not_recomputed_from_one_image(scene, tmp_path):
    left, right, calibration = scene
    dic.stereo(left, right, calibration, subset=21, step=8, device="cpu", progress=False, output=tmp_path / "out",
               pictures="none").close()
    with pytest.raises(dic.UsageError, match="surface"):
        dic.strain(tmp_path / "out", strain_window=7)
