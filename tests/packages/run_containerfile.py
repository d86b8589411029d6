"""Runs a stage of a container recipe by chroot, for machines without a container engine:

    run_containerfile.py CONTAINERFILE STAGE ROOT --base SYSTEM.tar --built DIST

FROM of an image unpacks SYSTEM.tar (Debian 12) into ROOT, FROM of a stage runs that first; RUN runs there, with this machine's
resolver. COPY --from=STAGE takes the files from DIST instead of building for half an hour.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess


def instructions(path):
    text = re.sub(r"\\\n\s*", " ", path.read_text())
    return [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]


def stages(path):
    """{name: (base, instructions)}"""
    found = {}
    for word, rest in instructions(path):
        if word == "FROM":
            base, name = re.fullmatch(r"(\S+) AS (\S+)", rest).groups()
            found[name] = (base, [])
        else:
            found[name][1].append((word, rest))
    return found


class Image:
    def __init__(self, options):
        self.root, self.base, self.built = options.root, options.base, options.built
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
        self.entry = None

    def start(self, image):
        print(f"FROM {image}: {self.base}")
        self.root.mkdir()
        subprocess.run(["tar", "-xf", self.base, "-C", self.root, "--exclude=./dev"], check=True)
        (self.root / "dev").mkdir(exist_ok=True)
        subprocess.run(["mknod", "-m", "666", self.root / "dev/null", "c", "1", "3"], check=True)
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", self.root / "etc" / name)

    def run(self, command):
        subprocess.run(["chroot", self.root, "/bin/sh", "-c", command], check=True, env=self.environment)

    def copy(self, rest):
        stage, source, target = re.fullmatch(r"--from=(\S+) (\S+) (\S+)", rest).groups()
        files = list(self.built.glob(pathlib.Path(source).name))
        assert files, f"{self.built} has no {source} of stage {stage}"
        for file in files:
            shutil.copy(file, self.root / target.lstrip("/"))

    def follow(self, word, rest):
        print(word, rest)
        if word == "RUN":
            self.run(rest)
        elif word == "COPY":
            self.copy(rest)
        elif word == "ENV":
            self.environment |= dict(part.split("=", 1) for part in rest.split())
        elif word == "WORKDIR":
            (self.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif word == "ENTRYPOINT":
            self.entry = json.loads(rest)
        else:
            raise SystemExit(f"{word} is not known here")


def build(image, recipe, name):
    base, steps = recipe[name]
    build(image, recipe, base) if base in recipe else image.start(base)
    for word, rest in steps:
        image.follow(word, rest)


parser = argparse.ArgumentParser()
for argument in ("recipe", "root", "base", "built"):
    parser.add_argument(argument if argument in ("recipe", "root") else "--" + argument, type=pathlib.Path)
    if argument == "recipe":
        parser.add_argument("stage")
options = parser.parse_args()
made = Image(options)
build(made, stages(options.recipe), options.stage)
made.run(" ".join(made.entry) + " --version")
