"""Files and options that are meant to break the program: python test_hostile.py DIC"""

import base64
import csv
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import zlib

import cv2
import h5py
import numpy as np
import tifffile
from PIL import Image

import dic_program
from dic_program import ProgramTest, main, speckle, write_image

QUICK = ("--subset", "21", "--step", "10", "--no-pictures")


def limited():
    """What a bomb may take of the machine."""
    if not dic_program.is_sanitized():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


class TiffTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.grey = np.round(speckle(120, 140)).astype(np.uint8)
        write_image(self.folder / "b.png", speckle(120, 140, 0.3))

    def refuse_image(self, name):
        self.refuse(1, [name, "TIFF"], "track", name, "b.png", *QUICK)

    def change_tag(self, tag, change):
        """A TIFF with strips of 8 rows in which an array of the directory is changed."""
        tifffile.imwrite(self.folder / "a.tif", self.grey, rowsperstrip=8)
        data = bytearray((self.folder / "a.tif").read_bytes())
        with tifffile.TiffFile(self.folder / "a.tif") as file:
            entry = file.pages[0].tags[tag]
            kind = {3: "<H", 4: "<I", 16: "<Q"}[int(entry.dtype)]
            values = change(list(entry.value))
            for k, value in enumerate(values):
                struct.pack_into(kind, data, entry.valueoffset + k * struct.calcsize(kind), value)
        (self.folder / "a.tif").write_bytes(data)

    def test_strips_that_are_not_there(self):
        for tag, change in (("StripOffsets", lambda v: [*v[:-1], 0]), ("StripOffsets", lambda v: [0] * len(v)),
                            ("StripOffsets", lambda v: [*v[:-1], 2**30]), ("StripByteCounts", lambda v: [*v[:-1], 0]),
                            ("StripByteCounts", lambda v: [1120, 1120, 3, *v[3:]])):
            self.change_tag(tag, change)
            self.refuse_image("a.tif")
        self.change_tag("StripOffsets", lambda v: v)
        self.succeed("track", "a.tif", "b.png", *QUICK)

    def test_tiles_that_are_not_there(self):
        for tile in (0, 5):
            tifffile.imwrite(self.folder / "a.tif", self.grey, tile=(64, 64))
            data = bytearray((self.folder / "a.tif").read_bytes())
            with tifffile.TiffFile(self.folder / "a.tif") as file:
                entry = file.pages[0].tags["TileOffsets"]
            struct.pack_into("<I", data, entry.valueoffset + 4 * tile, 0)
            (self.folder / "a.tif").write_bytes(data)
            self.refuse_image("a.tif")

    def test_tails_of_zeros(self):
        for compression in ("packbits", "tiff_lzw", "jpeg", "group4"):
            with self.subTest(compression):
                file = f"{compression}.tif"
                image = Image.fromarray(self.grey)
                (image.convert("1") if compression == "group4" else image).save(self.folder / file, compression=compression)
                with tifffile.TiffFile(self.folder / file) as opened:
                    start, count = opened.pages[0].dataoffsets[-1], opened.pages[0].databytecounts[-1]
                data = bytearray((self.folder / file).read_bytes())
                data[start + count // 2:start + count] = bytes(count - count // 2)
                (self.folder / file).write_bytes(data)
                self.refuse_image(file)


class HeaderTest(ProgramTest):
    def test_headers_that_claim_gigabytes(self):
        """The image is refused before memory is allocated; the program may use 1 GB."""
        write_image(self.folder / "b.png", speckle(120, 140))
        write_image(self.folder / "small.png", np.zeros((8, 8)))
        png = bytearray((self.folder / "small.png").read_bytes())
        png[16:24] = struct.pack(">II", 32768, 32768)
        png[29:33] = struct.pack(">I", __import__("zlib").crc32(bytes(png[12:29])))
        (self.folder / "a.png").write_bytes(png)
        jpeg = bytearray(cv2.imencode(".jpg", np.zeros((8, 8), np.uint8))[1].tobytes())
        at = jpeg.index(b"\xff\xc0")
        jpeg[at + 5:at + 9] = struct.pack(">HH", 32000, 32000)
        (self.folder / "a.jpg").write_bytes(jpeg)
        (self.folder / "a.pgm").write_bytes(b"P5 32768 32768 255\n" + bytes(50))
        tifffile.imwrite(self.folder / "a.tif", np.zeros((8, 8), np.uint8), compression="zlib")
        tiff = bytearray((self.folder / "a.tif").read_bytes())
        with tifffile.TiffFile(self.folder / "a.tif") as file:
            for tag in ("ImageWidth", "ImageLength", "RowsPerStrip"):
                entry = file.pages[0].tags[tag]
                struct.pack_into("<H" if int(entry.dtype) == 3 else "<I", tiff, entry.valueoffset, 32000)
        (self.folder / "a.tif").write_bytes(tiff)

        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

        for name in ("a.png", "a.jpg", "a.pgm", "a.tif"):
            options = {} if dic_program.is_sanitized() else {"preexec_fn": limited}
            done = self.refuse(1, [name], "track", name, "b.png", "--threads", "1", *QUICK, **options)
            self.assertNotIn("memory", done.stderr)


class OptionsTest(ProgramTest):
    def test_threads_that_cannot_start(self):
        if dic_program.is_sanitized():
            self.skipTest("sanitizers take address space of their own")
        frames = self.sequence([(0, 0), (0.3, 0.2)])
        command = f'ulimit -v 6000000; exec timeout 60 "{dic_program.PROGRAM}" "$@"'
        for arguments in (["track", *frames, *QUICK], ["match", *frames, "--template-rect", "20,20,30,30"]):
            done = subprocess.run(["bash", "-c", command, "dic", *arguments, "--threads", "1000"], cwd=self.folder,
                                  capture_output=True, text=True)
            self.assertIn(done.returncode, (0, 1), done.stderr)
            self.assertNotIn("Unexpected", done.stderr)

    def test_polygons_far_outside(self):
        frames = self.sequence([(0, 0), (0.3, 0.2)])
        for far in ("1e308", "1e10"):
            self.refuse(2, ["polygon"], "track", *frames, *QUICK, "--roi-polygon",
                        f"{far},0 -{far},{far} 0,-{far}")
        self.succeed("track", *frames, *QUICK, "--roi-polygon", "1e9,0 -1e9,1e9 0,-1e9")

    def test_angles_without_a_fraction(self):
        frames = self.sequence([(0, 0), (0.3, 0.2)])
        template = ("--template-rect", "20,20,30,31")
        for angle in ("360000000000000", "1e300"):
            self.refuse(2, ["otation"], "match", *frames, *template, "--rotation", angle)
        self.succeed("match", *frames, *template, "--rotation", "36000")

    def test_numbers(self):
        frames = self.sequence([(0, 0), (0.3, 0.2)])
        for options in (("--step", ""), ("--threads", ""), ("--min-zncc", ""), ("--step", "4294967301"), ("--step", "0x10"),
                        ("--noise", "inf"), ("--tolerance", "nan"), ("--roi-rect", "1,2,3,4294967301"),
                        ("--roi-rect", "")):
            done = self.dic("track", *frames, *options)
            self.assertEqual(done.returncode, 2, options)
            self.assertIn(options[0], done.stderr)
        for command in (("match", *frames, "--max-matches"), ("match", *frames, "--threshold"), ("synth", "-o", "s", "--noise"),
                        ("synth", "-o", "s", "--width")):
            for value in ("", "inf", "0x10", "4294967301", "1 2"):
                if value == "4294967301" and command[-1] in ("--threshold", "--noise"):
                    continue
                done = self.dic(*command, value)
                self.assertEqual(done.returncode, 2, (command, value))
                self.assertIn(command[-1], done.stderr)
        self.succeed("synth", "-o", "s", "--width", "0100", "--height", "064", "--noise", "00.50")
        self.assertEqual(cv2.imread(str(self.folder / "s/frame_0000.png")).shape[:2], (64, 100))

    def test_broken_configurations(self):
        frames = self.sequence([(0, 0), (0.3, 0.2)])
        for text, words in (("step = \n", ["line 1"]), ("step = 5\n[a.b.c]\nx = 1\n", ["Unknown key", "a"]),
                            ("a = " + "[" * 5000, ["cannot be understood"]), ("step 5\nsubset = 21\n", ["line 1"])):
            (self.folder / "c.toml").write_text(text)
            self.refuse(2, ["c.toml", *words], "track", *frames, "--config", "c.toml")

    def test_deep_keys_in_configurations(self):
        """toml++ makes a table of each part of a key, and frees them by recursion."""
        frames = self.sequence([(0, 0), (0.3, 0.2)])
        deep, quoted = "a." * 100000 + "b", '"a".' * 100000 + "b"
        for text in (f"[{deep}]\nx = 1\n", f"[[{deep}]]\nx = 1\n", f"{deep} = 1\n", f"[{quoted}]\n", f"x = {{{deep} = 1}}\n",
                     f"step = 5 # a comment\n{deep} = 1\n", f'x = \'\'\'a\'\'\'\'\n{deep} = 1\n', f"[{'a .' * 50000}b]\n",
                     f'x = ["""a"""", {{{deep} = 1}}]\n'):
            (self.folder / "c.toml").write_text(text)
            self.refuse(2, ["configuration c.toml", "parts", "line"], "track", *frames, "--config", "c.toml", preexec_fn=limited)
        (self.folder / "c.toml").write_text('roi-polygon = ["1.5,2.5 100.5,3.5 90.5,80.5 2.5,70.5"] # 1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17\n'
                                            'output = "../../../../../../../../../../../../../../../../../../a"\nstep = 10\nsubset = 21\n')
        self.succeed("track", *frames, "--config", "c.toml", "-o", "out", "--no-pictures")
        for text, key in (("[a]\nx = 1\n", "a"), ("[[a]]\nstep = 1\n", "a"), ("a.step = 1\n", "a"), ("step = {a = 1}\n", "step")):
            (self.folder / "c.toml").write_text(text)
            self.refuse(2, ["Unknown key", f'"{key}"', "c.toml"], "track", *frames, "--config", "c.toml")

    def test_frames_of_a_video_with_dots_in_its_name(self):
        video = cv2.VideoWriter(str(self.folder / "a.b.v2.avi"), cv2.VideoWriter_fourcc(*"MJPG"), 10, (140, 120))
        for u in (0, 0.3, 0.6):
            video.write(cv2.cvtColor(np.round(speckle(120, 140, u)).astype(np.uint8), cv2.COLOR_GRAY2BGR))
        video.release()
        self.succeed("track", "a.b.v2.avi", *QUICK, "--csv")
        self.assertEqual(sorted(path.name for path in (self.folder / "dic_out/csv").iterdir()),
                         ["a_b_v2_000001.csv", "a_b_v2_000002.csv"])


class ThinImageTest(ProgramTest):
    """Images that are reduced for a page to less than a pixel along one side."""

    def test_reports_of_thin_images(self):
        for height, width, dtype in ((20000, 8, np.uint8), (8, 20000, np.uint16), (33000, 9, np.uint8), (9, 4100, np.float32)):
            texture = cv2.GaussianBlur(np.random.default_rng(1).integers(0, 255, (height, width)).astype(np.float32), (3, 3), 0)
            for k in range(2):
                moved = np.roll(texture, k, 0 if height > width else 1)
                tifffile.imwrite(self.folder / f"{k}.tif", moved if dtype == np.float32 else np.round(moved).astype(dtype))
            self.succeed("track", "0.tif", "1.tif", "--subset", "7", "--step", "50", "--no-pictures", "--force")
            self.succeed("report", "dic_out", "--force")
            html = (self.folder / "report.html").read_text()
            data = json.loads(re.search(r'<script[^>]*id="report-data"[^>]*>(.*?)</script>', html, re.DOTALL)[1])
            shown = data["image"]
            self.assertEqual((shown["width"], shown["height"]), (max(1, width // shown["reduced"]), max(1, height // shown["reduced"])))
            packed = re.search(r'id="image-reference">(.*?)</script>', html, re.DOTALL)[1]
            greys = np.frombuffer(zlib.decompress(base64.b64decode(packed)), np.uint8).reshape(shown["height"], shown["width"])
            greys = np.cumsum(greys, 1, dtype=np.uint8).astype(float)
            if dtype == np.uint8:
                block = shown["reduced"]
                self.assertAlmostEqual(greys[3, 0], texture[3 * block:4 * block, :block].round().mean(), delta=0.51)


class MutatedResultTest(ProgramTest):
    """Results with damaged bytes: every command ends with a sentence. DIC_HOSTILE_INPUTS says how many are tried."""

    def test_damaged_bytes(self):
        self.succeed("track", *self.sequence([(0, 0), (0.3, 0.2), (0.6, 0.4)]), *QUICK)
        whole = (self.folder / "dic_out/result.vtkhdf").read_bytes()
        heaps = [at.start() for at in re.finditer(b"GCOL", whole)]  # texts, whose lengths HDF5 1.10 trusts
        self.assertTrue(heaps)
        random = np.random.default_rng(int(os.environ.get("DIC_HOSTILE_SEED", "1")))
        tried, commands = int(os.environ.get("DIC_HOSTILE_INPUTS", "60")), StrangersResultTest.COMMANDS
        (self.folder / "out").mkdir()
        for number in range(tried):
            damaged = bytearray(whole)
            for _ in range(random.choice([1, 1, 2, 8, 64])):
                at = heaps[0] + random.integers(300) if number % 3 == 0 else random.integers(len(whole))
                damaged[at] = random.choice([0, 1, 127, 255, damaged[at] ^ 1 << random.integers(8)])
            (self.folder / "dic_out/result.vtkhdf").write_bytes(damaged)
            name, *options = commands[number % len(commands)]
            done = self.dic(name, "dic_out", *options, preexec_fn=limited)
            self.assertIn(done.returncode, (0, 1, 2), (number, name, done.stderr))
            self.assertNotIn("Unexpected", done.stderr)
            if done.returncode != 0:
                self.assertTrue(done.stderr.startswith("dic: "), (number, name, done.stderr))
            shutil.rmtree(self.folder / "out")
            (self.folder / "out").mkdir()
        print(f"damaged results: {tried} tried, wrong: 0")


class NamesTest(ProgramTest):
    def test_terminals_obey_no_name(self):
        """Names of files have control characters: they are printed as "?"."""
        names = ["a\x1b]0;title\x07.png", "b\x1b[31m.png", "c\r\x08\x7f.png", "d\x9b31m.png"]
        for k, name in enumerate(names):
            write_image(self.folder / "x.png", speckle(120, 140, 0.1 * k))
            (self.folder / "x.png").rename(self.folder / name)
        (self.folder / "e\x1b[32m.png").write_bytes(b"no image")
        write_image(self.folder / "template.bmp", speckle(120, 140)[20:60, 30:70])
        shown = [self.succeed("track", *names, "e\x1b[32m.png", *QUICK, "--verbose", code=3),
                 self.succeed("match", "template.bmp", *names, "e\x1b[32m.png", code=3),
                 self.succeed("match", names[0], names[1], "--track"),
                 self.succeed("probe", "dic_out", "--point", "60,60", "-o", "probe"), self.dic("track", "no\x1b[31msuch.png"),
                 self.dic("report", "no\x1b[31msuch"), self.dic("track", *names, "--config", "no\x1b[31msuch"), self.dic("no\x1b[31msuch"),
                 self.dic("strain", "dic_out", "--subset\x1b", "3"), self.dic("export", "dic_out", "-o", "f\x1b[31m.csv"),
                 self.dic("plot", "dic_out", "--field", "u", "-o", "g\x1b[31m")]
        for done in shown:
            text = (done.stdout + done.stderr).replace("\r\n", "\n")
            self.assertFalse([c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160], ascii(text))
        self.assertIn(r"b\x1b[31m.png", shown[0].stdout)
        self.assertIn(r"e\x1b[32m.png", shown[0].stderr)


class StrangersResultTest(ProgramTest):
    """Malicious results: nothing is written outside, executed or passed on, and every command ends."""

    COMMANDS = (("report", "--force", "-o", "out/report.html"), ("export", "-o", "out/table.csv"),
                ("export", "--to", "npz", "-o", "out/table.npz"), ("export", "--to", "mat", "-o", "out/table.mat"),
                ("export", "--to", "netcdf", "-o", "out/table.nc"), ("plot", "--field", "u", "-o", "out/figures"),
                ("probe", "--point", "60,60", "-o", "out/probe"), ("strain", "-o", "out/strain"))

    def setUp(self):
        super().setUp()
        self.succeed("track", *self.sequence([(0, 0), (0.3, 0.2), (0.6, 0.4)]), *QUICK)
        (self.folder / "out").mkdir()
        self.made = (self.folder / "dic_out/result.vtkhdf").read_bytes()

    def around(self):
        """The files in the folder and above it, except those that the commands may write."""
        below = {path.relative_to(self.folder): path.read_bytes() for path in self.folder.rglob("*")
                 if path.is_file() and self.folder / "out" not in path.parents}
        return below, {path.name for path in self.folder.parent.iterdir() if path.name.startswith("evil")}

    def change(self, change):
        (self.folder / "dic_out/result.vtkhdf").write_bytes(self.made)
        with h5py.File(self.folder / "dic_out/result.vtkhdf", "r+") as file:
            change(file)

    def check_all(self):
        before = self.around()
        codes = []
        for name, *options in self.COMMANDS:
            done = self.dic(name, "dic_out", *options)
            self.assertIn(done.returncode, (0, 1, 2), (name, done.stderr))
            self.assertNotIn("Unexpected", done.stderr)
            if done.returncode != 0:
                self.assertTrue(done.stderr.startswith("dic: "), (name, done.stderr))
            codes.append(done.returncode)
        self.assertEqual(self.around(), before)
        shutil.rmtree(self.folder / "out")
        (self.folder / "out").mkdir()
        return codes

    def test_text_is_passed_on_as_text(self):
        evil = "</script><script>evil()</script><!--"
        names = ["../../evil.png", "/evil" + evil + ".png"]

        def change(file):
            about = file["dic"]
            for name, values in (("frames", names), ("command", [evil]), ("reference", ["../../../evil" + evil]), ("settings", [evil])):
                scalar = about[name].shape == ()
                del about[name]
                about.create_dataset(name, data=values[0] if scalar else values, dtype=h5py.string_dtype())
            about.attrs["version"] = evil
            for array in file["VTKHDF/PointData"].values():
                array.attrs["unit"] = evil
                array.attrs["description"] = evil

        self.change(change)
        before = self.around()
        self.dic("report", "dic_out", "--force", "-o", "out/report.html")
        html = (self.folder / "out/report.html").read_text()
        self.assertIn("evil()", html)
        self.assertNotIn("<script>evil", html)
        self.assertNotIn("</script><script>evil", html)
        self.succeed("plot", "dic_out", "--field", "u", "-o", "out/figures")
        self.succeed("export", "dic_out", "-o", "out/table.csv")
        with open(self.folder / "out/table.csv", newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        self.assertEqual({row["file"] for row in rows}, set(names))
        self.assertEqual(self.around(), before)
        self.check_all()

    def test_numbers_that_make_no_sense(self):
        def attribute(name, value):
            return lambda file: file["dic"].attrs.__setitem__(name, value)

        for name, value in (("subset", -1), ("subset", 2**31), ("step", 0), ("step", np.nan), ("image_width", 1e300), ("image_height", 0),
                            ("strain_window", 10**6), ("scale_mm_per_px", -1.0), ("scale_mm_per_px", np.inf), ("strain_measure", "none")):
            with self.subTest(name=name, value=value):
                self.change(attribute(name, value))
                self.assertEqual(set(self.check_all()), {1})

    def test_arrays_that_make_no_sense(self):
        def with_array(name, **options):
            def change(file):
                arrays = file["VTKHDF/PointData"]
                del arrays[name]
                arrays.create_dataset(name, **options)
            return change

        shape = h5py.File(self.folder / "dic_out/result.vtkhdf")["VTKHDF/PointData/u"].shape
        huge = {"shape": (2, 1 << 30, 1 << 30), "dtype": "f8", "chunks": (1, 64, 64)}
        for change in (with_array("u", **huge), with_array("u", data=np.zeros((2, 3))), with_array("status", data=np.full(shape, 200, np.uint8)),
                       with_array("u", shape=shape, dtype=h5py.string_dtype()),
                       with_array("u", shape=shape, dtype="f8", external=[("/etc/passwd", 0, 8 * int(np.prod(shape)))])):
            self.change(change)
            self.assertIn(1, self.check_all())
        self.change(with_array("u", data=np.full(shape, np.inf)))
        self.check_all()
        self.change(with_array("exx", data=np.full(shape, 1e308)))
        self.check_all()

    def test_other_files_are_not_opened(self):
        secret = self.folder.parent / f"evil_{self.folder.name}.h5"
        self.addCleanup(secret.unlink)
        with h5py.File(self.folder / "dic_out/result.vtkhdf") as file, h5py.File(secret, "w") as other:
            file.copy("VTKHDF/PointData/u", other, "u")

        def link(file):
            del file["VTKHDF/PointData/u"]
            file["VTKHDF/PointData/u"] = h5py.ExternalLink(str(secret), "/u")

        def part(file):
            shape = file["VTKHDF/PointData/u"].shape
            del file["VTKHDF/PointData/u"]
            layout = h5py.VirtualLayout(shape, "f8")
            layout[:] = h5py.VirtualSource(str(secret), "u", shape)
            file["VTKHDF/PointData"].create_virtual_dataset("u", layout)

        for change in (link, part):
            self.change(change)
            self.assertIn(1, self.check_all())


if __name__ == "__main__":
    main()
