"""ds.dic: figures with image axes, in the unit that was asked for."""

import matplotlib
import numpy as np
import pytest

import dic

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def stretched():
    made = dic.synth(width=160, height=120, frames=3, motion="affine", ux=0.02, noise=1)
    return dic.track(list(made.image.values), subset=21, step=10, progress=False)


def test_plot_has_image_axes_and_percent(stretched):
    axes = stretched.dic.plot("exx")
    left, right = axes.get_xlim()
    bottom, top = axes.get_ylim()
    assert left < right and bottom > top  # y points down
    assert axes.get_aspect() == 1
    mesh = axes.collections[0]
    assert np.nanmedian(mesh.get_array().compressed()) == pytest.approx(2.02, abs=0.1)  # Green-Lagrange, percent
    assert "%" in axes.figure.axes[1].get_ylabel()


@pytest.mark.parametrize("unit, factor", [("1", 1), ("%", 100), ("µm/m", 1e6)])
def test_units_of_strain(stretched, unit, factor):
    values = stretched.dic.plot("exx", frame=0, strain_unit=unit).collections[0].get_array().compressed()
    assert np.nanmedian(values) == pytest.approx(0.01005 * factor, rel=0.05)


def test_displacement_keeps_its_unit_and_both_signs_get_a_diverging_map(stretched):
    axes = stretched.dic.plot("u")
    mesh = axes.collections[0]
    assert mesh.get_cmap().name == "RdBu_r"
    assert mesh.norm.vmin == pytest.approx(-mesh.norm.vmax)
    assert axes.figure.axes[1].get_ylabel().endswith(", px")


def test_points_without_a_value_are_left_out(stretched):
    lost = int((stretched.isel(frame=-1).status != 0).sum())
    assert lost > 0  # the stretch moves some of them out of the image
    array = stretched.dic.plot("u").collections[0].get_array()
    assert np.ma.count_masked(np.ma.masked_invalid(array)) == lost


def test_image_lies_under_the_nodes(stretched):
    axes = stretched.dic.plot("u", image=np.zeros((120, 160), np.uint8))
    assert list(axes.images[0].get_extent()) == [-0.5, 159.5, 119.5, -0.5]


def test_movie_has_a_picture_per_frame(stretched, tmp_path):
    from PIL import Image

    path = stretched.dic.movie(tmp_path / "u.gif", "u", dpi=40)
    with Image.open(path) as movie:
        assert movie.n_frames == 2


def test_probe_is_that_of_the_result(stretched):
    found = stretched.dic.probe(extensometer=(30, 60, 130, 60))
    assert float(found.extensometers.strain.isel(frame=-1).squeeze()) == pytest.approx(0.02, abs=1e-3)


def test_refusals(stretched):
    with pytest.raises(dic.UsageError, match="no field"):
        stretched.dic.plot("nothing")
    with pytest.raises(dic.UsageError, match="unit of strain"):
        stretched.dic.plot("exx", strain_unit="percent")
