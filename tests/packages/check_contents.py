"""Checks what an unpacked archive needs and holds, without running it: check_contents.py FOLDER VERSION"""

import json
import pathlib
import re
import subprocess
import sys

NEWEST = {"GLIBC": (2, 31), "GLIBCXX": (3, 4, 28), "CXXABI": (1, 3, 12), "GCC": (9,)}
NEEDED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
          "libstdc++.so.6", "libgcc_s.so.1",
          "libdic.so." + sys.argv[2].rpartition(".")[0]}


def check_binary(path):
    objdump = "aarch64-linux-gnu-objdump" if path.read_bytes()[18] == 0xB7 else "objdump"
    text = subprocess.run([objdump, "-p", path], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"NEEDED +(\S+)", text))
    assert needed <= NEEDED, f"{path} needs {needed - NEEDED}"
    newest = {}
    for name, version in re.findall(r"\b(GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+)", text.split("Version References")[1]):
        newest[name] = max(newest.get(name, ()), tuple(map(int, version.split("."))))
    for name, version in newest.items():
        assert version <= NEWEST[name], f"{path} needs {name}_{'.'.join(map(str, version))}"
    print(f"{path.name}: needs {', '.join(sorted(needed))}; at most "
          + ", ".join(f"{name} {'.'.join(map(str, version))}" for name, version in sorted(newest.items())))
    for _, folders in re.findall(r"R(UN)?PATH +(\S+)", text):
        assert all(folder.startswith("$ORIGIN") for folder in folders.split(":")), f"{path} looks for libraries in {folders}"


def check_ingredients(documents, version):
    sbom = json.loads((documents / "sbom.spdx.json").read_text())
    packages = {package["name"]: package for package in sbom["packages"]}
    assert packages["dic"]["versionInfo"] == version
    # What must be inside, whatever else is.
    assert {"opencv", "hdf5", "zlib", "libjpeg-turbo", "tiff", "libdeflate", "cairo", "eigen3", "cpp-httplib"} <= set(packages), sorted(packages)
    for name, package in packages.items():
        assert name == "dic" or len((documents / "licences" / name).read_text()) > 500, f"the licence of {name} is missing"
        licence = package["licenseConcluded"]
        assert "GPL" not in licence or "GCC-exception" in licence, f"{name}: {licence}"
    print("inside:", ", ".join(f"{name} {package['versionInfo']}" for name, package in sorted(packages.items())))


folder = pathlib.Path(sys.argv[1])
binaries = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF"]
assert {path.name for path in binaries} >= {"dic", f"libdic.so.{sys.argv[2]}"}, binaries
for binary in binaries:
    check_binary(binary)
check_ingredients(folder / "share/doc/dic", sys.argv[2])
