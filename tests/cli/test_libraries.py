"""Checks which shared libraries the program loads, and where it looks for them: python test_libraries.py DIC"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import dic_program
from dic_program import ProgramTest, main


def libraries_beside(program):
    return sorted(Path(program).parent.glob("lib/libdic*.so*"))


class LibrariesTest(ProgramTest):
    def setUp(self):
        super().setUp()
        if not any("codecs" in library.name for library in libraries_beside(dic_program.PROGRAM)):
            self.skipTest("a static libdic is linked with all that it needs")

    def loaded_by(self, *arguments):
        done = self.dic(*arguments, env={**os.environ, "LD_DEBUG": "files"})
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return set(re.findall(r"calling init: \S*/(\S+)", done.stderr))

    def test_codecs_are_loaded_when_a_file_needs_them(self):
        self.sequence([(0, 0), (0.4, -0.3)])
        self.sequence([(0, 0)], pattern="frame_{}.bmp")
        track = ("track", "frame_0.png", "frame_1.png", "--pictures", "all", "-o", "png")
        for arguments in (["--version"], track):
            loaded = self.loaded_by(*arguments)
            self.assertTrue(any(name.startswith("libdic.so") for name in loaded), loaded)
            self.assertFalse([name for name in loaded if "imgcodecs" in name or "videoio" in name])
        self.assertTrue(list((self.folder / "png/pictures").glob("*.png")))
        loaded = self.loaded_by("track", "frame_0.bmp", "frame_1.png", "-o", "bmp")
        self.assertTrue([name for name in loaded if "imgcodecs" in name])
        png, bmp = self.fields("png"), self.fields("bmp")
        self.assertEqual(png["u"].tobytes(), bmp["u"].tobytes())

    def test_codecs_that_are_missing_are_named(self):
        """A copy of the program with libdic alone."""
        (self.folder / "copy/lib").mkdir(parents=True)
        shutil.copy(dic_program.PROGRAM, self.folder / "copy/dic")
        for library in libraries_beside(dic_program.PROGRAM):
            if "codecs" not in library.name:
                shutil.copy(library, self.folder / "copy/lib")
        self.sequence([(0, 0), (0.4, -0.3)])
        self.sequence([(0, 0)], pattern="frame_{}.bmp")
        (self.folder / "film.avi").write_bytes(b"RIFF")
        original, dic_program.PROGRAM = dic_program.PROGRAM, str(self.folder / "copy/dic")
        try:
            self.succeed("track", "frame_0.png", "frame_1.png", "-o", "png")
            self.refuse(1, ["'frame_0.bmp' needs the codecs of OpenCV", "libdic_codecs", "install"],
                        "track", "frame_0.bmp", "frame_1.png", "-o", "bmp")
            self.refuse(1, ["'film.avi' needs the codecs of OpenCV"], "track", "film.avi", "-o", "avi")
        finally:
            dic_program.PROGRAM = original

    def test_the_current_folder_is_no_place_for_libraries(self):
        """An empty entry of a RUNPATH means the folder in which the program is started."""
        for file in (Path(dic_program.PROGRAM), *libraries_beside(dic_program.PROGRAM)):
            sections = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
            for entries in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", sections):
                for entry in entries.split(":"):
                    self.assertTrue(entry.startswith(("/", "$ORIGIN")), f"{file}: [{entries}]")


if __name__ == "__main__":
    main()
