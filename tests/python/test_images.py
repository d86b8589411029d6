"""Image files as other programs write them: tifffile, ImageJ, Pillow, OpenCV; what the package reads of them."""

import struct
import subprocess
import warnings

import cv2
import numpy as np
import pytest
import tifffile
from PIL import Image, ImageOps

import dic

HEIGHT, WIDTH = 90, 120


@pytest.fixture
def grey():
    noise = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH)).astype(np.float32)
    smooth = cv2.GaussianBlur(noise, (0, 0), 1.7)
    return np.clip((smooth - smooth.mean()) * 6 + 128, 0, 255).astype(np.uint8)


@pytest.fixture
def region():
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    cv2.circle(mask, (60, 45), 30, 255, -1)
    return mask


def frames_of(path):
    source = dic._dic.open_frames([str(path)])
    return np.stack([source.read(i) for i in range(source.count())])


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int64, np.uint32, np.uint64, np.float16])
def test_arrays_of_other_types_are_measured_as_float64(grey, kind):
    low = (grey // 2).astype(np.float64)  # int8 ends at 127
    images = [low, np.roll(low, 2, 1)]
    expected = dic.track(images, subset=21, step=10, progress=False)
    found = dic.track([image.astype(kind) for image in images], subset=21, step=10, progress=False)
    assert (expected.status.values[0, 2:-2, 2:-2] == 0).all()
    np.testing.assert_allclose(found.u, expected.u, atol=1e-4)


def test_values_that_do_not_fit_are_refused(grey):
    with pytest.raises(dic.UsageError, match="beyond 32 bits"):
        dic.Tracker(grey.astype(np.int64) << 30)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_colour_is_measured_as_a_file_of_it(tmp_path, grey, kind):
    """Channels R, G, B, and perhaps opacity."""
    random = np.random.default_rng(4)
    colour = np.stack([grey, np.roll(grey, 3, 0), random.integers(0, 256, grey.shape)], -1).astype(kind)
    tifffile.imwrite(tmp_path / "a.tif", colour, photometric="rgb")
    np.testing.assert_allclose(dic._images.image(colour), dic.read_image(tmp_path / "a.tif"), rtol=1e-6)
    transparent = np.concatenate([colour, np.zeros_like(colour[..., :1])], -1)
    assert np.array_equal(dic._images.image(transparent), dic._images.image(colour))
    moved = [np.roll(colour, k, 1) for k in (0, 2)]
    ds = dic.track(moved, subset=21, step=10, progress=False)
    assert ds.attrs["image_width"] == WIDTH and ds.attrs["image_height"] == HEIGHT
    np.testing.assert_allclose(ds.u.values[0, 2:-2, 2:-2], 2, atol=0.01)


def test_ncc_of_a_faint_pattern_says_that_it_cannot_tell():
    faint = cv2.GaussianBlur(np.random.default_rng(31).normal(0, 1, (100, 150)), (0, 0), 2)
    faint = np.round(60000 + 4 * faint / faint.std()).astype(np.uint16)
    with pytest.warns(UserWarning, match='use criterion "zncc"'):
        dic.correlate(faint[20:50, 60:100], faint, criterion="ncc", peaks=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        peaks = dic.correlate(faint[20:50, 60:100], faint, criterion="zncc", peaks=True)
        assert (peaks.dx.item(), peaks.dy.item()) == (60, 20)
        clear = (faint - faint.min()).astype(np.uint8)
        peaks = dic.correlate(clear[20:50, 60:100], clear, criterion="ncc", peaks=True)
        assert (peaks.dx.item(), peaks.dy.item()) == (60, 20)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.uint32, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("options", [{}, {"byteorder": ">"}, {"tile": (32, 32)}, {"compression": "zlib"}, {"bigtiff": True}])
def test_types_of_elements(tmp_path, grey, kind, options):
    image = (grey.astype(np.float64) - 100).astype(kind) if np.dtype(kind).kind != "u" else grey.astype(kind) * 1000
    tifffile.imwrite(tmp_path / "a.tif", image, **options)
    read = dic.read_image(tmp_path / "a.tif")
    assert read.dtype == np.float32
    assert np.array_equal(read, image.astype(np.float32))


@pytest.mark.parametrize("options", [{"photometric": "minisblack"}, {"imagej": True}, {"ome": True}, {"metadata": None},
                                     {"imagej": True, "metadata": {"axes": "TYX"}}, {"truncate": True},
                                     {"compression": "zlib"}, {"bigtiff": True}, {"photometric": "minisblack", "tile": (32, 32)}])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_pages_are_frames(tmp_path, grey, options, kind):
    stack = np.stack([np.roll(grey, k, 1) for k in range(5)]).astype(kind)
    name = "a.ome.tif" if options.get("ome") else "a.tif"
    tifffile.imwrite(tmp_path / name, stack, **options)
    assert np.array_equal(frames_of(tmp_path / name), stack)
    assert np.array_equal(dic.read_image(tmp_path / name), stack[0])


def test_pages_by_pillow_and_opencv_are_frames(tmp_path, grey):
    stack = [np.roll(grey, k, 1) for k in range(4)]
    first, *others = map(Image.fromarray, stack)
    first.save(tmp_path / "pillow.tif", save_all=True, append_images=others)
    cv2.imwritemulti(str(tmp_path / "opencv.tif"), stack)
    for name in ("pillow.tif", "opencv.tif"):
        assert np.array_equal(frames_of(tmp_path / name), stack), name


def test_thumbnails_are_no_frames(tmp_path, grey):
    small = cv2.resize(grey, (WIDTH // 4, HEIGHT // 4))
    with tifffile.TiffWriter(tmp_path / "a.dng") as file:  # the picture is below the thumbnail
        file.write(cv2.merge([small] * 3), photometric="rgb", subfiletype=1, subifds=1, metadata=None)
        file.write(grey.astype(np.uint16) * 16, photometric="cfa", subfiletype=0, metadata=None,
                   extratags=[(33421, 3, 2, (2, 2), True), (33422, 1, 4, bytes([0, 1, 1, 2]), True)])
    assert np.array_equal(dic.read_image(tmp_path / "a.dng"), grey.astype(np.uint16) * 16)
    with tifffile.TiffWriter(tmp_path / "pyramid.tif") as file:  # reduced copies below the picture
        file.write(grey, subifds=1, metadata=None)
        file.write(small, subfiletype=1, metadata=None)
    with tifffile.TiffWriter(tmp_path / "behind.tif") as file:
        file.write(grey, metadata=None)
        file.write(small, metadata=None)
    for name in ("pyramid.tif", "behind.tif"):
        assert np.array_equal(frames_of(tmp_path / name), grey[None]), name


def test_a_stack_is_measured_as_a_folder_is(tmp_path, grey):
    stack = np.stack([np.roll(grey, 2 * k, 1) for k in range(3)])
    tifffile.imwrite(tmp_path / "a.tif", stack, photometric="minisblack")
    measured = dic.track(tmp_path / "a.tif", subset=21, step=9, progress=False)
    assert list(measured.name.values) == ["a_000001", "a_000002"]
    assert np.nanmedian(measured.u[1]) == pytest.approx(4, abs=0.01)
    assert len(dic.match(grey[20:50, 30:70], tmp_path / "a.tif")) == 3


def test_stacks_are_not_shared_by_workers(tmp_path, grey, program):
    tifffile.imwrite(tmp_path / "a.tif", np.stack([grey] * 3), photometric="minisblack")
    done = subprocess.run([program, "track", tmp_path / "a.tif", "--part", "0/2", "-o", tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode != 0
    # `dic watch` measures one frame of each file, and says so of a stack.
    folder = tmp_path / "camera"
    folder.mkdir()
    Image.fromarray(grey).save(folder / "0.tif")
    (tmp_path / "a.tif").rename(folder / "1.tif")
    done = subprocess.run([program, "watch", folder, "-o", tmp_path / "watched", "--idle", "1", "--patience", "0.2", "--no-pictures"],
                          capture_output=True, text=True)
    assert "holds 3 frames" in done.stderr + done.stdout


def light(inks):
    c, m, y, k = (inks[..., i].astype(float) / 255 for i in range(4))
    return 255 * (1 - k) * (1 - 0.299 * c - 0.587 * m - 0.114 * y)


def test_cmyk(tmp_path):
    inks = np.random.default_rng(2).integers(0, 256, (6, 5, 4)).astype(np.uint8).repeat(16, 0).repeat(16, 1)
    picture = Image.fromarray(inks, "CMYK")
    picture.save(tmp_path / "a.jpg", quality=100, subsampling=0)
    picture.save(tmp_path / "a.tif")
    picture.save(tmp_path / "z.tif", compression="tiff_lzw")
    for name, tolerance in (("a.jpg", 4), ("a.tif", 0.51), ("z.tif", 0.51)):
        assert np.abs(dic.read_image(tmp_path / name) - light(inks)).max() <= tolerance, name


def test_gif(tmp_path, grey):
    stack = [np.roll(grey, 3 * k, 1) for k in range(4)]
    first, *others = (Image.fromarray(one) for one in stack)
    first.save(tmp_path / "a.gif", save_all=True, append_images=others, duration=[100, 200, 50, 100])
    folder = tmp_path / "single"
    folder.mkdir()
    for k, one in enumerate(stack):
        Image.fromarray(one).save(folder / f"{k}.gif")
    assert np.array_equal(dic.read_image(folder / "2.gif"), stack[2])
    assert np.array_equal(frames_of(folder), stack)
    source = dic._dic.open_frames([str(tmp_path / "a.gif")])
    for k, one in enumerate(stack):
        assert np.array_equal(source.read(k), one)
    assert [round(source.time(k), 6) for k in range(4)] == [0, 0.1, 0.3, 0.35]
    (tmp_path / "a.gif").rename(folder / "3.gif")
    with pytest.raises(dic.FileError, match="several frames"):
        dic._dic.open_frames([str(folder)]).read(3)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_as_pillow_shows_it(tmp_path, grey, orientation):
    exif = Image.Exif()
    exif[0x112] = orientation
    picture = Image.fromarray(grey)
    for name, options in (("a.jpg", {"quality": 100}), ("a.png", {}), ("a.webp", {"lossless": True})):
        picture.save(tmp_path / name, exif=exif, **options)
        upright = np.asarray(ImageOps.exif_transpose(Image.open(tmp_path / name)).convert("L"))
        read = dic.read_image(tmp_path / name)
        assert read.shape == upright.shape, name
        assert np.abs(read.astype(int) - upright).max() <= 1, name


def test_masks_of_many_programs(tmp_path, region):
    inside = region > 0
    yellow = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    yellow[inside] = (255, 255, 0)
    tifffile.imwrite(tmp_path / "bool.tif", inside)
    tifffile.imwrite(tmp_path / "imagej.tif", region, photometric="miniswhite")
    tifffile.imwrite(tmp_path / "labels.tif", inside.astype(np.int32) * 7)
    tifffile.imwrite(tmp_path / "float.tif", inside.astype(np.float32))
    tifffile.imwrite(tmp_path / "jpeg.tif", region, compression="zlib")
    Image.fromarray(inside).save(tmp_path / "bits.png")
    Image.fromarray(inside).save(tmp_path / "bits.tif")
    Image.fromarray(inside).save(tmp_path / "fax.tif", compression="group4")
    Image.fromarray(inside).save(tmp_path / "bits.bmp")
    Image.fromarray(region).save(tmp_path / "jpeg75.jpg", quality=75)
    Image.fromarray(region).save(tmp_path / "jpeg30.jpg", quality=30)
    Image.fromarray(region).save(tmp_path / "jpeg.tif", compression="jpeg")
    Image.fromarray(yellow).save(tmp_path / "yellow.png")
    Image.fromarray(region).save(tmp_path / "region.gif")
    palette = Image.fromarray(inside.astype(np.uint8), "P")
    palette.putpalette([0, 0, 0, 128, 0, 0])
    palette.save(tmp_path / "palette.png")
    for name, colour in (("white", 255), ("black", 0)):
        plain = np.full_like(region, colour)
        Image.fromarray(np.dstack([plain, plain, plain, region])).save(tmp_path / f"erased_{name}.png")
        Image.fromarray(np.dstack([plain, region]), "LA").save(tmp_path / f"erased_grey_{name}.png")
    Image.fromarray(np.dstack([region] * 4)).save(tmp_path / "erased.webp", lossless=True)
    Image.fromarray(np.dstack([region] * 3)).save(tmp_path / "lossy.webp", quality=60)
    transparent = Image.fromarray(inside.astype(np.uint8), "P")
    transparent.putpalette([255, 255, 255, 255, 255, 255])
    transparent.save(tmp_path / "erased_palette.png", transparency=0)
    for path in sorted(tmp_path.iterdir()):
        mask = dic._dic.read_mask(path)
        assert set(np.unique(mask)) == {0, 255}, path.name
        wrong = np.count_nonzero((mask > 0) != inside)
        lossy = path.name in ("jpeg75.jpg", "jpeg30.jpg", "jpeg.tif", "lossy.webp")
        assert wrong <= (20 if lossy else 0), f"{path.name}: {wrong} px"


def test_the_summary_says_the_share_of_a_mask(tmp_path, grey, region, program):
    for k in range(2):
        Image.fromarray(np.roll(grey, k, 1)).save(tmp_path / f"{k}.png")
    Image.fromarray(region).save(tmp_path / "mask.tif")
    share = 100 * np.count_nonzero(region) / region.size
    done = subprocess.run([program, "track", tmp_path / "0.png", tmp_path / "1.png", "--roi", tmp_path / "mask.tif", "--subset", "21",
                           "--no-pictures", "-o", tmp_path / "out"], capture_output=True, text=True, check=True)
    assert f"({share:.3g} % of it inside)" in done.stdout


def test_transparent_pixels_of_a_template_do_not_count(tmp_path, grey, program):
    y, x = np.mgrid[-14:15, -14:15]
    opacity = np.where(x**2 + y**2 <= 14**2, 255, 0).astype(np.uint8)
    cut = grey[30:59, 50:79]
    shape = np.where(opacity > 0, cut, 255 - cut)  # what is transparent contradicts the image
    Image.fromarray(np.dstack([shape] * 3 + [opacity])).save(tmp_path / "template.png")
    Image.fromarray(shape).save(tmp_path / "opaque.png")
    Image.fromarray(grey).save(tmp_path / "image.png")
    found = dic.match(tmp_path / "template.png", tmp_path / "image.png")
    assert [found.x[0], found.y[0], found.score[0]] == pytest.approx([50, 30, 1], abs=1e-3)
    both = dic.match([tmp_path / "template.png", grey[10:30, 10:30]], grey, threshold=0.9)
    assert sorted(both.template) == [0, 1]
    done = subprocess.run([program, "match", "template.png", "image.png", "--csv"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ",50,30,64,44,1," in done.stdout
    opaque = dic.match(tmp_path / "opaque.png", grey, threshold=-1)
    assert opaque.score.max() < 0.9


@pytest.mark.parametrize("compression, name", [(34712, "JPEG 2000"), (34933, "PNG"), (34925, ""), (50002, "JPEG XL")])
def test_unknown_compressions_are_named(tmp_path, grey, compression, name):
    tifffile.imwrite(tmp_path / "a.tif", grey, metadata=None)
    data = bytearray((tmp_path / "a.tif").read_bytes())
    entry = data.index(struct.pack("<HHI", 259, 3, 1))
    data[entry + 8:entry + 10] = struct.pack("<H", compression)
    (tmp_path / "a.tif").write_bytes(data)
    with pytest.raises(dic.FileError, match=f"compression that is not supported .*{name}" if name else "TIFF"):
        dic.read_image(tmp_path / "a.tif")


@pytest.mark.parametrize("name, coder", [("a.mp4", "libx264"), ("a.mov", "mjpeg"), ("a.mkv", "libx264"), ("a.webm", "libvpx"), ("a.avi", "mpeg4")])
def test_times_of_frames_whose_rate_varies(tmp_path, name, coder):
    encode = ["-c:v", coder] + (["-bf", "3"] if coder == "libx264" else ["-b:v", "4M"])
    subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=64x48:rate=25", "-vf", "setpts=N*N*0.04/TB",
                    "-frames:v", "8", "-vsync", "passthrough", *encode, "-pix_fmt", "yuvj420p" if coder == "mjpeg" else "yuv420p", name],
                   cwd=tmp_path, check=True)
    source = dic._dic.open_frames([str(tmp_path / name)])
    assert source.count() == 8
    for i in range(8):
        source.read(i)
    with pytest.raises(IndexError):
        source.read(8)
    truth = [0.04 * i * i for i in range(8)]
    assert [source.time(i) for i in range(8)] == pytest.approx(truth, abs=1e-3)
    measured = dic.track(tmp_path / name, subset=15, step=9, progress=False)
    assert measured.time.values == pytest.approx(truth[1:], abs=1e-3)
