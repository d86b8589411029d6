"""Writes the files that the fuzzers begin with: python make_corpus.py DIC [FOLDER]

They are small, of every kind that the readers know, and made by dic and by the libraries of tests/requirements.txt.
"""

import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import cv2
import h5py
import numpy as np
import tifffile
from PIL import Image

PROGRAM = Path(sys.argv[1]).resolve()
CORPUS = Path(sys.argv[2] if len(sys.argv) > 2 else Path(__file__).parent / "corpus").resolve()


def write(kind, name, content):
    path = CORPUS / kind / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def dic(folder, *arguments):
    subprocess.run([PROGRAM, *map(str, arguments)], cwd=folder, check=True, capture_output=True)


def images(folder):
    random = np.random.default_rng(1)
    grey = random.integers(0, 256, (12, 14)).astype(np.uint8)
    deep, real = grey.astype(np.uint16) * 257, grey.astype(np.float32) / 3
    colour = random.integers(0, 256, (12, 14, 3)).astype(np.uint8)
    for name, image in (("grey", grey), ("deep", deep), ("colour", colour)):
        for ending in ("png", "bmp", "pgm" if image.ndim == 2 else "ppm", "webp"):
            if image.dtype == np.uint8 or ending in ("png", "pgm"):
                write("image", f"{name}.{ending}", cv2.imencode("." + ending, image)[1].tobytes())
    write("image", "plain.pgm", "P2 3 2 255\n1 2 3\n4 5 6\n")
    for ending, image in (("hdr", colour.astype(np.float32)), ("pfm", real), ("sr", colour), ("pbm", (grey > 99).astype(np.uint8))):
        encoded, data = cv2.imencode("." + ending, image)
        if encoded:
            write("image", f"other.{ending}", data.tobytes())
    picture = Image.fromarray(colour)
    for name, made in (("palette.png", picture.quantize(16)), ("alpha.png", picture.convert("LA")), ("bits.png", picture.convert("1")),
                       ("grey.jpg", Image.fromarray(grey)), ("colour.jpg", picture), ("cmyk.jpg", picture.convert("CMYK")),
                       ("group4.tif", picture.convert("1")), ("cmyk.tif", picture.convert("CMYK")), ("opaque.png", picture.convert("RGBA")),
                       ("colour.gif", picture)):
        options = {"compression": "group4"} if name == "group4.tif" else {}
        made.save(folder / name, **options)
        write("image", name, (folder / name).read_bytes())
    exif = Image.Exif()
    exif[0x112] = 6
    for name in ("turned.jpg", "turned.png", "turned.webp"):
        picture.save(folder / name, exif=exif)
        write("image", name, (folder / name).read_bytes())
    with tifffile.TiffWriter(folder / "raw.dng") as file:
        file.write(np.zeros((3, 4, 3), np.uint8), photometric="rgb", subfiletype=1, subifds=1, metadata=None)
        file.write(deep, photometric="cfa", subfiletype=0, metadata=None,
                   extratags=[(33421, 3, 2, (2, 2), True), (33422, 1, 4, bytes([0, 1, 1, 2]), True)])
    write("image", "raw.dng", (folder / "raw.dng").read_bytes())
    picture.save(folder / "progressive.jpg", progressive=True)
    write("image", "progressive.jpg", (folder / "progressive.jpg").read_bytes())
    tiffs = {"grey": (grey, {}), "strips": (grey, {"rowsperstrip": 5}), "tiles": (grey, {"tile": (16, 16)}), "deep": (deep, {}),
             "real": (real, {}), "double": (real.astype(float), {}), "signed": (grey.astype(np.int16), {}),
             "big": (grey, {"bigtiff": True}), "motorola": (deep, {"byteorder": ">"}), "colour": (colour, {"photometric": "rgb"}),
             "planar": (np.moveaxis(colour, 2, 0), {"photometric": "rgb", "planarconfig": "separate"}),
             "white": (grey, {"photometric": "miniswhite"}), "zlib": (grey, {"compression": "zlib"}),
             "predictor": (deep, {"compression": "zlib", "predictor": 2}),
             "stack": (np.stack([grey, grey]), {"photometric": "minisblack"}), "imagej": (np.stack([deep, deep]), {"imagej": True}),
             "shared": (np.stack([grey, grey]), {"photometric": "minisblack", "truncate": True}),
             "half": (real.astype(np.float16), {}), "whole": (grey.astype(np.uint32), {}), "bool": (grey > 99, {})}
    for name, (image, options) in tiffs.items():
        tifffile.imwrite(folder / "a.tif", image, **options)
        write("image", f"{name}.tif", (folder / "a.tif").read_bytes())
    for compression in ("packbits", "tiff_lzw", "jpeg"):
        Image.fromarray(grey).save(folder / "a.tif", compression=compression)
        write("image", f"{compression}.tif", (folder / "a.tif").read_bytes())


def cine(packing, bits, times):
    """A recording of two frames of 4x3 px; each of the frames has an annotation of 4 bytes."""
    width, height, count = 4, 3, 2
    pixel = {256: 10, 1024: 12}.get(packing, bits)
    pixels = bytes(range(width * height * pixel // 8))
    bitmap = struct.pack("<IiiHHI20x", 40, width, height, 1, bits, packing)
    setup = bytearray(900)
    setup[140:144] = b"ST" + struct.pack("<H", len(setup))
    setup[768:772], setup[896:900] = struct.pack("<I", 1000), struct.pack("<I", min(pixel, 16))
    block = struct.pack("<IHH", 8 + 8 * count, 1002, 0) + struct.pack("<2Q", 1 << 32, 3 << 31) if times else b""
    table = 44 + len(bitmap) + len(setup) + len(block)
    frame = struct.pack("<I4sI", 12, b"note", len(pixels)) + pixels
    offsets = struct.pack("<2Q", table + 16, table + 16 + len(frame))
    head = struct.pack("<2sHHHiIiIIIIQ", b"CI", 44, 0, 1, 0, count, 0, count, 44, 44 + len(bitmap), table, 0)
    return head + bitmap + bytes(setup) + block + offsets + frame * count


def recordings(folder):
    for name, packing, bits, times in (("bytes", 0, 8, True), ("words", 0, 16, False), ("ten", 256, 16, True), ("twelve", 1024, 16, True),
                                       ("colour", 0, 24, False)):
        write("recording", f"{name}.cine", b"\0" + cine(packing, bits, times))
    for bits in (8, 12, 16):
        text = (f"#Camera Information Header\nRecord Rate(fps) : 60\nTotal Frame : 2\nImage Width : 4\nImage Height : 3\n"
                f"Color Bit : {bits}\nFile Format : MRaw\nEffectiveBit Depth : 12\nEffectiveBit Side : Lower")
        write("recording", f"{bits}.cih", b"\1" + text.encode() + b"\n\n" + bytes(range(24 * bits // 8)))
    text = ("<cih><frameInfo><totalFrame>1</totalFrame></frameInfo><recordInfo><recordRate>60</recordRate></recordInfo><imageDataInfo>"
            "<resolution><width>4</width><height>3</height></resolution><colorInfo><bit>8</bit></colorInfo></imageDataInfo></cih>")
    write("recording", "new.cihx", b"\1" + text.encode() + b"\n\n" + bytes(range(12)))
    for name, coder in (("film.avi", "MJPG"), ("film.mp4", "mp4v"), ("film.mkv", "MJPG")):
        writer = cv2.VideoWriter(str(folder / name), cv2.VideoWriter.fourcc(*coder), 10, (16, 16))
        writer.write(np.zeros((16, 16, 3), np.uint8))
        writer.release()
        write("recording", name, b"\2" + (folder / name).read_bytes())


def settings(folder):
    dic(folder, "track", "--save-config", "all.toml")
    text = (folder / "all.toml").read_text()
    write("settings", "all.toml", "\n".join(line for line in text.splitlines() if line and not line.startswith("#")) + "\n")
    write("settings", "some.toml", 'subset = 21\nstep = 5\nroi-polygon = ["1,1 60,1 60,60", "1,1 2,2 3,1"]\ncsv = true\n'
                                   'strain-measure = "hencky"\nnoise = 1.5 # grey\n')
    write("settings", "list.toml", 'csv = ["a", "b"]\n')
    write("settings", "deep.toml", "a." * 14 + "b = 1\n" + "[" + '"a".' * 40 + "b]\nx = {a.b.c = 1}\ny = \'\'\'a\'\'\'\' # a.b\n")
    write("settings", "refused.toml", "step = [1, 2]\n[table]\nsubset = '21'\n")


def regions():
    sizes = bytes((63, 47, 0, 0, 4))
    write("region", "rectangle", sizes + b"3,4,20,30\n")
    write("region", "polygons", sizes + b"\n1,1 50,2 30.5,40;5,5 9,5 7,9\n10,10 20,10 15,20\n")
    write("region", "mask", bytes((63, 47, 64, 47, 0)) + b"\n-1e9,0 1e9,0 0,1e9\n")


def cameras():
    lens = {"fx": 900.5, "fy": 901, "cx": 31, "cy": 24, "k1": -0.1, "k2": 0.01, "p1": 0.001, "p2": -0.001, "k3": 0.0, "k4": 0.01}
    plane = {"px_from_mm": [[20, 0.1, 5], [-0.1, 20, 6], [1e-4, 0, 1]]}
    for name, more in (("lens", {"lens": lens}), ("plane", {"plane": plane}),
                       ("both", {"lens": lens, "plane": plane, "calibration": {"rms": 0.1}})):
        write("camera", f"{name}.json", json.dumps({"dic_camera": 1, "image_width": 64, "image_height": 48, **more}))


def rigs():
    """One rig in the format of each program, as small as the format allows."""
    lens = {"fx": 90.5, "fy": 91, "cx": 31, "cy": 24, "k1": -0.1}
    one = {"image_width": 64, "image_height": 48, "lens": lens}
    turn = [[0.8, 0, 0.6], [0, 1, 0], [-0.6, 0, 0.8]]
    write("rig", "stereo.json", json.dumps({"dic_stereo": 1, "left": one, "right": one, "rotation": turn,
                                            "translation_mm": [-60, 0.5, 9], "epipolar_px": 0.01}))
    flat = [number for row in turn for number in row]
    matrix = "{}: !!opencv-matrix\n   rows: {}\n   cols: {}\n   dt: d\n   data: {}\n".format
    camera = [90.5, 0, 31, 0, 91, 24, 0, 0, 1]
    write("rig", "opencv.yml", "%YAML:1.0\n---\n" + matrix("M1", 3, 3, camera) + matrix("D1", 1, 5, [-0.1, 0, 0, 0, 0]) +
          matrix("M2", 3, 3, camera) + matrix("D2", 1, 4, [0.0] * 4) + matrix("R", 3, 3, flat) + matrix("T", 3, 1, [-60, 0, 9]))
    vic = '<camera id="{}">31 24 90.5 91 0.1 -0.1 0 0<orientation>{}</orientation></camera>'.format
    write("rig", "vic.xml", "<project><!-- a --><calibration>" + vic(0, "180 -12 0 106 0 -27") + vic(1, "-179 12 1 -127 8 -15") +
          "</calibration></project>")
    parameter = '<Parameter name="{}" value="{}"/>'.format
    for name, pose in (("matrix", '<ParameterList name="rotation_3x3_matrix">' +
                        "".join(parameter(f"ROW {i}", "{" + str(row)[1:-1] + "}") for i, row in enumerate(turn)) + "</ParameterList>"),
                       ("angles", parameter("BETA", 36))):
        lists = [f'<ParameterList name="CAMERA {i}">' + "".join(map(parameter, ("FX", "FY", "CX", "CY", "K1", "TX"), (90, 91, 31, 24, -0.1, -60 * i))) +
                 pose * i + "</ParameterList>" for i in range(2)]
        write("rig", f"dice_{name}.xml", "<ParameterList>" + "".join(lists) + "</ParameterList>")
    write("rig", "dice.txt", "\n".join(map(str, [31, 24, 90, 91, 0, -0.1, 0, 0] * 2 + [1, 36, 0, -60, 0, 9])) + " # tz\n")
    named = [("fx", 90), ("fy", 91), ("fs", 0), ("cx", 31), ("cy", 24), ("k1", -0.1), ("p1", 0)]
    pose = [("tx", -60), ("ty", 0), ("tz", 9), ("theta", 1), ("phi", 36), ("psi", 0)]
    write("rig", "pyvale.txt", "".join(f"cam{i}_{name},{value}\n" for i in range(2) for name, value in named) +
          "".join(f"{name}_mm,{value}\n" for name, value in pose))
    write("rig", "matchid.caldat", "".join(f"Cam{i}_{name.title()} [pixels];{value}\n" for i in range(2) for name, value in named) +
          "".join(f"{name.title()} [deg];{value}\n" for name, value in pose))
    write("rig", "opencorr.csv", "name,left,right\n" + "".join(f"{name.title()},{value},{value}\n" for name, value in named) +
          "Tx,0,-60\nTy,0,0\nTz,0,9\nRx,0,0\nRy,0,0.6\nRz,0,0\n")
    matlab = {"RadialDistortion": [-0.1, 0], "TangentialDistortion": [0, 0], "K": [[90, 0, 31], [0, 91, 24], [0, 0, 1]]}
    write("rig", "matlab.json", json.dumps({"CameraParameters1": matlab, "CameraParameters2": matlab,
                                            "RotationOfCamera2": turn, "TranslationOfCamera2": [-60, 0, 9]}))


def loads():
    write("loads", "rows.csv", "force\n1\n2.5\n-3e2\n")
    write("loads", "frames.csv", "frame,Force [kN],other\n1,0.5,1\n2,1.5,1\n")
    write("loads", "times.csv", '\ufefftime;"Force (N)"\n0,5;1,25\n1,5;+2\n')
    write("loads", "tabs.tsv", "time\tforce\n0\t1\n1\t2\n")
    write("loads", "machine.csv", "Specimen;A12\nWidth;12,5;mm\n\nTime;Extension;Load\n(ms);(mm);(kN)\n0;0;0\n3;0,25;1.001,5\n")
    write("loads", "spaces.txt", "# Time (s)   Force (lbf)\n0.0   0\n3.0   1 500\n")
    write("loads", "quoted.csv", '"Time (hh:mm:ss)","Force, kN"\r\n"00:00:01","1,234.5"\r\n')


def runs(folder):
    """Makes logs, and results with everything that a report shows."""
    dic(folder, "synth", "-o", "frames", "--width", "64", "--height", "64", "--frames", "3", "--u", "0.4")
    frames = sorted(str(path) for path in (folder / "frames").glob("*.png"))
    options = ("--subset", "15", "--step", "12", "--no-pictures", "--threads", "1", "--quiet")
    dic(folder, "track", *frames, *options, "-o", "out")
    write("../results", "plain.vtkhdf", (folder / "out/result.vtkhdf").read_bytes())
    camera = CORPUS / "camera/both.json"
    text = json.loads(camera.read_text())
    text["image_height"] = 64
    (folder / "camera.json").write_text(json.dumps(text))
    dic(folder, "track", *frames, *options, "--camera", "camera.json", "--fps", "10", "--order", "auto", "-o", "out2")
    write("../results", "camera.vtkhdf", (folder / "out2/result.vtkhdf").read_bytes())
    for kind, name in enumerate(("attribute", "text", "dataset", "element", "link")):
        write("result", name, bytes([kind % 2]) + bytes([kind, 7]) + bytes((3, 2, 5, 7, 0, 0, 0, 64)))
    write("state", "log", b"\0" + (folder / "out/.dic-frames.jsonl").read_bytes())
    write("state", "states", b"\1" + bytes(40))
    write("state", "state", b"\2" + bytes(40))


def requests():
    asked = {"page": ("GET ", None), "file": ("GET web/main.js", None), "state": ("GET api/state", None), "result": ("GET api/result", None),
             "field": ("GET api/field/u/0", None), "strain": ("GET api/field/exx/0", None), "image": ("GET api/image/reference", None),
             "image_0": ("GET api/image/0", None), "frame": ("GET api/frame/1", None), "progress": ("GET api/run", None),
             "live": ("GET api/live/u", None), "settings": ("POST api/settings", {"toml": "subset = 21\n"}),
             "preview": ("POST api/preview", {"toml": "subset = 15\nstep = 12\n"}),
             "mask": ("POST api/mask", {"toml": 'roi-polygon = "1,1 50,2 30.5,40"\n'}),
             "point": ("POST api/probe", {"kind": "point", "points": [[30, 31]]}),
             "extensometer": ("POST api/probe", {"kind": "extensometer", "points": [[20, 20], [40, 40]]}),
             "line": ("POST api/probe", {"kind": "line", "points": [[20, 20], [40, 40]], "frame": 0}),
             "area": ("POST api/probe", {"kind": "area", "points": [[10, 10], [50, 10], [30, 50]]}),
             "match": ("POST api/match", {"frame": 1, "template": {"frame": 0, "rect": [20, 20, 16, 16]}, "threshold": 0.5, "max_matches": 2,
                                          "rotations": [-5, 5], "scales": None}),
             "template": ("POST api/template", {"path": "0.png"}),
             "targets": ("POST api/targets", {"left": "0.png", "right": "1.png", "plane": ""}), "target": ("GET api/target/0", None),
             "calibrate": ("POST api/calibrate", {"model": "k1", "target": {"pattern": "checkerboard", "columns": 5, "rows": 4, "square_mm": 1}}),
             "cancel": ("POST api/cancel", {})}
    for name, (line, body) in asked.items():
        write("request", name, line + "\n" + (json.dumps(body) if body is not None else ""))
    head = "\x01api/state HTTP/1.1\r\nHost: \x02\r\n"
    body = '{"kind": "point"}'
    write("server", "get", f"GET {head}\r\n")
    write("server", "two", f"GET {head}\r\nGET {head}Connection: close\r\n\r\n")
    write("server", "post", f"POST {head}Origin: http://\x02\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
    write("server", "chunks", f"POST {head}Origin: http://\x02\r\nContent-Type: application/json\r\n"
                              f"Transfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n{body}\r\n0\r\n\r\n")
    write("server", "range", f"GET {head}Range: bytes=0-1\r\nAccept-Encoding: gzip\r\n\r\n")
    write("server", "packed", f"POST {head}Origin: http://\x02\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd")
    write("server", "many", f"GET {head}\r\n" * 5 + "GET / HTTP/1.1\r\n\r\n")
    write("server", "form", f"POST {head}Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 50\r\n\r\n"
                            "--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--\r\n")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images(folder)
        recordings(folder)
        settings(folder)
        regions()
        cameras()
        rigs()
        loads()
        runs(folder)
        requests()


main()
