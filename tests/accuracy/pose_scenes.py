#!/usr/bin/env python3
"""Renders scenes with parts at exactly known poses: a template, an image and truth.json.

A part is a picture of random shapes, drawn at several times the resolution. Every instance is sampled from it
after a Gaussian that has the same width in image pixels at every scale, as a lens has it. The template is the part
at 0 degrees and scale 1.
"""

import argparse
import json
import pathlib

import cv2
import numpy as np

BLUR = 0.55  # standard deviation of the lens, image px

PRESETS = {
    "small": dict(size=(640, 480), template=(60, 60), n=4, noise=1),
    "small_scale": dict(size=(640, 480), template=(60, 60), n=4, noise=2, scale=(0.8, 1.25), gain=(0.6, 1.3)),
    "small_hard": dict(size=(640, 480), template=(60, 60), n=4, noise=5, scale=(0.9, 1.1), gain=(0.5, 1.3),
                       occlude=0.2, decoys=2),
    "symmetric": dict(size=(640, 480), template=(96, 64), n=4, noise=2, gain=(0.8, 1.2), symmetric=True, shapes=7),
    "border": dict(size=(640, 480), template=(60, 60), n=6, noise=2, gain=(0.8, 1.2), border=0.25),
    "body": dict(size=(640, 480), template=(80, 60), n=5, noise=2, gain=(0.8, 1.2), body=True, decoys=1),
    "medium": dict(size=(1600, 1200), template=(200, 150), n=5, noise=2, gain=(0.7, 1.2)),
    "medium_hard": dict(size=(1600, 1200), template=(200, 150), n=5, noise=4, gain=(0.7, 1.2), scale=(0.8, 1.25),
                        occlude=0.2, decoys=1),
    "large": dict(size=(4024, 3036), template=(762, 521), n=4, noise=2, gain=(0.8, 1.2)),
    "large_scale": dict(size=(4024, 3036), template=(762, 521), n=4, noise=2, gain=(0.8, 1.2), scale=(0.8, 1.25)),
    "large_hard": dict(size=(4024, 3036), template=(762, 521), n=4, noise=2, gain=(0.8, 1.2), occlude=0.2),
    "large_plain": dict(size=(4024, 3036), template=(762, 521), n=4, noise=2, angle=0, plain=True),
    "empty": dict(size=(640, 480), template=(60, 60), n=0, noise=2),
}


def bilinear(image, y, x):
    """Values between the pixels; OpenCV's remap rounds positions to 1/32 px."""
    height, width = image.shape
    y, x = np.clip(y, 0, height - 1.001), np.clip(x, 0, width - 1.001)
    j, i = y.astype(int), x.astype(int)
    b, a = y - j, x - i
    top = image[j, i] * (1 - a) + image[j, i + 1] * a
    return top * (1 - b) + (image[j + 1, i] * (1 - a) + image[j + 1, i + 1] * a) * b


def draw_shapes(rng, canvas, count, size, low=20, high=230):
    """Draws discs, rings, bars and ellipses, whose extent is `size` px on average."""
    height, width = canvas.shape
    for _ in range(count):
        x, y = int(rng.uniform(0, width)), int(rng.uniform(0, height))
        r = max(2, int(size * rng.uniform(0.3, 1)))
        level = float(rng.uniform(low, high))
        kind = rng.integers(4)
        if kind == 0:
            cv2.circle(canvas, (x, y), r, level, -1)
        elif kind == 1:
            cv2.circle(canvas, (x, y), r, level, max(1, r // 3))
        elif kind == 2:
            box = cv2.boxPoints(((x, y), (2 * r, 0.7 * r), float(rng.uniform(0, 180))))
            cv2.fillPoly(canvas, [np.int32(box)], level)
        else:
            cv2.ellipse(canvas, (x, y), (r, r // 2), float(rng.uniform(0, 180)), 0, 360, level, -1)


class Part:
    def __init__(self, rng, options, like=None):
        self.width, self.height = options["template"]
        self.factor = 8 if self.width < 300 else 4
        size = (self.height * self.factor, self.width * self.factor)
        if like is None:
            self.fine = np.full(size, float(rng.uniform(80, 150)), np.float32)
            draw_shapes(rng, self.fine, options.get("shapes", 12), 0.18 * min(size))
            if options.get("symmetric"):
                self.fine[size[0] // 2:] = self.fine[:size[0] // 2][::-1, ::-1]
                cv2.circle(self.fine, (size[1] // 5, size[0] // 4), size[0] // 14, 20.0, -1)
        else:  # a near-duplicate: some other shapes on the same part
            self.fine = like.fine.copy()
            draw_shapes(rng, self.fine, 5, 0.22 * min(size))
        self.alpha = np.ones(size, np.float32)
        if options.get("body"):
            self.alpha[:] = 0
            cv2.ellipse(self.alpha, (size[1] // 2, size[0] // 2), (int(size[1] * 0.46), int(size[0] * 0.46)), 0, 0,
                        360, 1.0, -1)
        self.blurred = {}

    def blur(self, scale):
        if scale not in self.blurred:
            sigma = BLUR * self.factor / scale
            self.blurred[scale] = [cv2.GaussianBlur(a, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
                                   for a in (self.fine, self.alpha)]
        return self.blurred[scale]

    def at(self, u, v, scale):
        """Grey levels and coverage at template coordinates u, v (centre of the top-left pixel = 0)."""
        fine, alpha = self.blur(scale)
        k = self.factor
        y, x = (v + 0.5) * k - 0.5, (u + 0.5) * k - 0.5
        grey, cover = bilinear(fine, y, x), bilinear(alpha, y, x)
        soft = 1 / scale
        edge = lambda d: np.clip(d / soft + 0.5, 0, 1)
        cover = cover * edge(u + 0.5) * edge(self.width - 0.5 - u) * edge(v + 0.5) * edge(self.height - 0.5 - v)
        return grey, cover


def paste(scene, part, pose, gain, offset):
    cx, cy, angle, scale = pose
    reach = scale * np.hypot(part.width, part.height) / 2 + 2
    height, width = scene.shape
    x0, x1 = max(0, int(cx - reach)), min(width, int(cx + reach) + 1)
    y0, y1 = max(0, int(cy - reach)), min(height, int(cy + reach) + 1)
    y, x = np.mgrid[y0:y1, x0:x1].astype(np.float64)
    c, s = np.cos(np.radians(angle)) / scale, np.sin(np.radians(angle)) / scale
    u = c * (x - cx) + s * (y - cy) + (part.width - 1) / 2
    v = -s * (x - cx) + c * (y - cy) + (part.height - 1) / 2
    grey, cover = part.at(u, v, scale)
    window = scene[y0:y1, x0:x1]
    window += (cover * (gain * grey + offset - window)).astype(scene.dtype)
    return u, v


def hide(rng, scene, part, pose, share):
    """Covers a corner of the instance with a textured bar; returns the share of pixels that it covers."""
    cx, cy, angle, scale = pose
    a = np.radians(angle)
    along = rng.integers(4)
    half = [part.width / 2, part.height / 2][along % 2]
    level = rng.uniform(30, 220)
    height, width = scene.shape
    reach = scale * np.hypot(part.width, part.height) / 2 + 2
    x0, x1 = max(0, int(cx - reach)), min(width, int(cx + reach) + 1)
    y0, y1 = max(0, int(cy - reach)), min(height, int(cy + reach) + 1)
    y, x = np.mgrid[y0:y1, x0:x1].astype(np.float64)
    u = (np.cos(a) * (x - cx) + np.sin(a) * (y - cy)) / scale
    v = (-np.sin(a) * (x - cx) + np.cos(a) * (y - cy)) / scale
    axis = [u, v][along % 2] * (1 if along < 2 else -1)
    inside = (abs(u) < part.width / 2) & (abs(v) < part.height / 2)
    covered = inside & (axis > half * (1 - 2 * share))
    scene[y0:y1, x0:x1][covered] = level
    return covered.sum() / max(1, inside.sum())


def place(rng, options, taken):
    width, height = options["size"]
    tw, th = options["template"]
    low, high = options.get("scale", (1, 1))
    angle = options.get("angle", 180)
    for _ in range(2000):
        scale = float(rng.uniform(low, high)) if high > low else 1.0
        pose_angle = float(rng.uniform(-angle, angle))
        reach = scale * np.hypot(tw, th) / 2
        border = options.get("border")
        if border is None:
            x, y = rng.uniform(reach + 1, width - reach - 1), rng.uniform(reach + 1, height - reach - 1)
        else:
            x, y = rng.uniform(reach, width - reach), rng.uniform(reach, height - reach)
            inset = border * min(tw, th)
            side = rng.integers(4)
            x = [inset, width - 1 - inset, x, x][side]
            y = [y, y, inset, height - 1 - inset][side]
        if all(np.hypot(x - q[0], y - q[1]) > reach + q[2] for q in taken):
            taken.append((x, y, reach))
            return float(x), float(y), pose_angle, scale
    return None


def render(preset, seed, **changes):
    """Returns template, mask (or None), scene, truth."""
    options = {**PRESETS[preset], **changes}
    rng = np.random.default_rng([seed, sum(map(ord, preset))])
    width, height = options["size"]
    unit = min(options["template"]) / 60
    texture = cv2.GaussianBlur(rng.standard_normal((int(height / unit) + 8, int(width / unit) + 8)).astype(np.float32),
                               (0, 0), 3)
    texture = cv2.resize(texture, (width, height), interpolation=cv2.INTER_CUBIC)
    scene = (120 + 22 * texture / texture.std()).astype(np.float32)
    if options.get("plain"):
        scene[:] = 120
    draw_shapes(rng, scene, int(width * height / unit**2 / 4000), 7 * unit)
    scene = cv2.GaussianBlur(scene, (0, 0), BLUR)
    part = Part(rng, options)
    low, high = options.get("gain", (1, 1))
    instances, decoys, taken = [], [], []
    for k in range(options["n"] + options.get("decoys", 0)):
        pose = place(rng, options, taken)
        if pose is None:
            continue
        is_decoy = k >= options["n"]
        gain, offset = float(rng.uniform(low, high)), float(rng.uniform(-15, 15)) if high > low else 0.0
        paste(scene, Part(rng, options, part) if is_decoy else part, pose, gain, offset)
        hidden = 0.0
        if options.get("occlude") and not is_decoy and k % 2 == 0:
            hidden = float(hide(rng, scene, part, pose, options["occlude"]))
        (decoys if is_decoy else instances).append(
            dict(center_x=pose[0], center_y=pose[1], rotation_deg=pose[2], scale=pose[3], gain=gain, offset=offset,
                 occluded=hidden > 0, hidden=hidden))
    scene = scene + rng.normal(0, options["noise"], scene.shape)
    tw, th = options["template"]
    v, u = np.mgrid[0:th, 0:tw].astype(np.float64)
    template = part.at(u, v, 1.0)[0] + rng.normal(0, min(1, options["noise"]), (th, tw))
    mask = part.at(u, v, 1.0)[1] > 0.99 if options.get("body") else None
    to_u8 = lambda a: np.clip(np.rint(a), 0, 255).astype(np.uint8)
    truth = dict(options={k: v for k, v in options.items()}, seed=seed, preset=preset,
                 symmetry_deg=180 if options.get("symmetric") else None, instances=instances, decoys=decoys)
    return to_u8(template), None if mask is None else to_u8(mask * 255), to_u8(scene), truth


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("preset", choices=PRESETS)
    parser.add_argument("seed", type=int)
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    template, mask, scene, truth = render(arguments.preset, arguments.seed)
    cv2.imwrite(str(arguments.folder / "template.png"), template)
    cv2.imwrite(str(arguments.folder / "scene.png"), scene)
    if mask is not None:
        cv2.imwrite(str(arguments.folder / "mask.png"), mask)
    (arguments.folder / "truth.json").write_text(json.dumps(truth, indent=1))


if __name__ == "__main__":
    main()
