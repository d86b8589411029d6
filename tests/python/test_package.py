"""Types, error texts, progress: what the functions of the package share."""

import ast
import inspect
import os
import subprocess
import sys
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
    assert sentence in " ".join(done.stderr.split()), (sentence, done.stderr)


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
