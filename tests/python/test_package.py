"""Types, error texts, progress: what the functions of the package share."""

import ast
import inspect
import os
import pickle
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import dic
from conftest import FRAMES
from dic import _dic

PACKAGE = Path(dic.__file__).parent


def members(tree):
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))} | {
        node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}


def test_the_stub_has_what_the_extension_has():
    stub = ast.parse((PACKAGE / "_dic.pyi").read_text())
    assert (PACKAGE / "py.typed").exists()
    names = {name for name in dir(_dic) if not name.startswith("_")}
    assert names <= members(stub)
    for node in stub.body:
        if isinstance(node, ast.ClassDef) and inspect.isclass(getattr(_dic, node.name)):
            own = {name for name in vars(getattr(_dic, node.name)) if not name.startswith("_")}
            assert own <= members(node), node.name
        if isinstance(node, ast.FunctionDef):
            assert node.returns is not None, node.name


@pytest.mark.parametrize("name", [name for name in dic.__all__ if inspect.isfunction(getattr(dic, name))])
def test_functions_are_typed_and_described(name):
    function = getattr(dic, name)
    signature = inspect.signature(function)
    untyped = [p.name for p in signature.parameters.values() if p.annotation is p.empty]
    assert not untyped and signature.return_annotation is not signature.empty
    assert "Returns" in function.__doc__ and "Raises" in function.__doc__


@pytest.mark.parametrize("flags, options", [
    (["--subset", "20"], dict(subset=20)), (["--strain-window", "4"], dict(strain_window=4)),
    (["--search", "-3"], dict(search=-3)), (["--order", "auto", "--global"], dict(order="auto", global_=True)),
    (["--roi", "none.png"], dict(roi="none.png")), (["--device", "cuda:99"], dict(device="cuda:99"))])
def test_errors_have_the_sentence_of_the_command_line(program, tmp_path, flags, options):
    with pytest.raises(dic.Error) as error:
        dic.track(FRAMES, **options)
    done = subprocess.run([program, "track", FRAMES, "-o", tmp_path / "out", *flags], capture_output=True, text=True)
    assert done.returncode != 0
    flag, name = flags[-2].lstrip("-"), list(options)[-1]
    sentence = str(error.value).replace(name + " ", flag + " ").rstrip(".")
    assert sentence in " ".join(done.stderr.split()).replace("--", ""), (sentence, done.stderr)


def test_messages_have_the_words_of_python(tmp_path):
    options = dict(output=tmp_path / "out", step=20, pictures="none")
    dic.track(FRAMES, **options)
    with pytest.raises(dic.FileError, match="choose another folder with output, or replace it with force=True") as error:
        dic.track(FRAMES, **options)
    assert type(error.value).__module__ == "dic"
    assert "\ndic.FileError: " in "\n" + "".join(traceback.format_exception_only(error.value))
    again = pickle.loads(pickle.dumps(error.value))
    assert (type(again), str(again)) == (dic.FileError, str(error.value))


def test_objects_describe_themselves_and_can_be_pickled(moved):
    images = moved.image.values
    tracker = dic.Tracker(images[0], subset=21, step=10, global_=True)
    result = tracker.track(images[1])
    points = int(result.grid.inside.sum())
    assert f"{points} points" in repr(tracker) and "subset 21" in repr(tracker)
    assert repr(result) == f"<dic.FrameResult 0: {result.counts['ok']} ok of {repr(result.grid)[11:-1]}>"
    assert f"<td>{result.counts['ok']}</td>" in result._repr_html_()
    again = pickle.loads(pickle.dumps(result))
    for name in _dataset_arrays():
        one, other = getattr(result, name), getattr(again, name)
        assert (one is None) == (other is None)
        assert one is None or (one.dtype == other.dtype and one.tobytes() == other.tobytes()), name
    assert (again.index, again.seconds, again.noise) == (result.index, result.seconds, result.noise)
    assert tracker.dataset([again]).equals(tracker.dataset([result]))
    found = dic.probe(tracker.dataset([result]), point=[(60, 60), (70, 70)], line=(40, 60, 90, 60))
    assert repr(found) == "<dic.Probe: 2 points, 1 line; 1 frames>"
    assert "P2 u" in found._repr_html_()
    assert pickle.loads(pickle.dumps(found)).points.equals(found.points)


def _dataset_arrays():
    return [array["name"] for array in _dic.field_arrays() if array["made_by"] != "two cameras"]


SCRIPT = '''
import numpy as np
import xarray as xr

import dic


def measured(folder: str) -> xr.Dataset:
    ds = dic.track(folder, subset=21, step=10, scale=0.05, fps=2, roi_rect=(0, 0, 100, 100))
    return dic.strain(ds, strain_window=9)


def online(images: "list[np.typing.NDArray[np.uint8]]") -> list[float]:
    tracker = dic.Tracker(images[0], subset=21)
    with dic.TrackStream(images[0], callback=lambda r: print(r.index, r.counts), subset=21) as live:
        live.push(images[1])
    return [float(np.nanmean(tracker.track(image).u)) for image in images[1:]]


found = dic.probe(measured("frames"), point=(10, 20), extensometer=(1, 2, 3, 4))
print(found.to_dataframe().columns, found.points.u.values, dic.Status.ok.value)
print(dic.match("template.png", "frames"), dic.correlate(np.zeros((2, 2)), np.zeros((4, 4))).shape)
try:
    with dic.open("dic_out") as opened:
        opened.dic.plot("exx")
except dic.FileError as error:
    print(error)
dic.write_image("b.png", dic.read_image("a.png"))
dic.track("frames", subsets=21)  # expected error
'''


def test_a_script_passes_mypy_strict(tmp_path):
    """Errors in the package itself do not count: those of an installed one are not shown."""
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir",
                           str(tmp_path / "cache"), "script.py"], cwd=tmp_path, capture_output=True, text=True,
                          env=dict(os.environ, MYPYPATH=str(PACKAGE.parent)))
    errors = [line for line in done.stdout.splitlines() if line.startswith("script.py:") and " error: " in line]
    assert len(errors) == 1 and '"subsets"' in errors[0], done.stdout + done.stderr


@pytest.mark.parametrize("into_files", [False, True], ids=["memory", "files"])
def test_progress(moved, tmp_path, capsys, into_files):
    frames, options = moved.image.values, dict(subset=21, step=10)
    if into_files:
        frames = sorted(FRAMES.glob("*.png"))[:3]
        options |= dict(output=tmp_path / "out", pictures="none")
    dic.track(frames, progress=True, **options)
    shown = capsys.readouterr().err
    assert "2/2" in shown and "frame/s" in shown
    options |= dict(force=True) if into_files else {}
    for quiet in (False, None):  # there is no terminal here
        dic.track(frames, progress=quiet, **options)
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("installed, named, expected", [
    (True, None, "nvidia/cu13/lib/libcufft.so.12"), (True, "mine.so", "mine.so"), (False, None, "None")])
def test_cufft_of_pip_is_named(tmp_path, installed, named, expected):
    library = tmp_path / "nvidia/cu13/lib/libcufft.so.12"
    if installed:
        library.parent.mkdir(parents=True)
        library.touch()
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    environment.pop("DIC_CUFFT", None)
    if named:
        environment["DIC_CUFFT"] = named
    code = "import dic, os; print(os.environ.get('DIC_CUFFT'))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip().removeprefix(f"{tmp_path}/") == expected
