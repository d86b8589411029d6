"""A sequence on two workers of Dask, against one process."""

import os

import numpy as np
import pytest

import dic
from conftest import FRAMES, same_bits

distributed = pytest.importorskip("distributed")
QUICK = dict(subset=21, step=10, device="cpu")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    os.environ["DASK_TEMPORARY_DIRECTORY"] = str(tmp_path_factory.mktemp("dask"))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as made:
            yield made


def check_same(one, other):
    assert set(one) == set(other)
    assert np.mean(one.status.values == other.status.values) >= 0.9999
    for name in ("u", "v"):
        assert np.nanmax(np.abs(one[name].values - other[name].values)) < 1e-4
    for name in ("x", "y", "inside", "frame", "name"):
        assert np.array_equal(one[name], other[name]), name


def test_files(client):
    alone = dic.track(FRAMES, fps=4, scale=0.1, **QUICK)
    shared = dic.track(FRAMES, fps=4, scale=0.1, client=client, **QUICK)
    check_same(alone, shared)
    assert np.array_equal(alone.time, shared.time)
    assert {name: value for name, value in alone.attrs.items() if name != "settings"} == \
           {name: value for name, value in shared.attrs.items() if name != "settings"}


def test_arrays(client, moved):
    images = np.concatenate([moved.image.values, moved.image.values[::-1]])
    alone = dic.track(images, **QUICK)
    check_same(alone, dic.track(images, client=client, **QUICK))
    check_same(alone, dic.track(list(images[1:]), reference=images[0], client=client, **QUICK).assign_coords(name=alone.name))


def test_into_files(client, tmp_path):
    alone = dic.track(FRAMES, **QUICK)
    shared = dic.track(FRAMES, output=tmp_path / "out", client=client, pictures="none", **QUICK)
    check_same(alone, shared.load())
    assert len(list((tmp_path / "out/parts").glob("*/result.vtkhdf"))) >= 2
    shared.close()
    again = dic.track(FRAMES, output=tmp_path / "out", client=client, pictures="none", resume=True, **QUICK)
    assert same_bits(again.u.load(), shared.u)
    again.close()


def test_a_frame_that_cannot_be_read(client, tmp_path):
    for k, image in enumerate(sorted(FRAMES.glob("*.png"))):
        (tmp_path / image.name).write_bytes(b"no image" if k == 2 else image.read_bytes())
    with pytest.warns(UserWarning, match="was left out"):
        shared = dic.track(tmp_path, client=client, **QUICK)
    assert 2 not in shared.frame and shared.sizes["frame"] >= 3


def test_what_cannot_be_shared(client):
    with pytest.raises(dic.UsageError, match="first"):
        dic.track(FRAMES, client=client, reference_strategy="previous", **QUICK)
