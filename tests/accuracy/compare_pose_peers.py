#!/usr/bin/env python3
"""Finds parts at any angle by OpenCV's template matcher on the scenes of pose_accuracy.py, and prints the table of
docs/template-matching-tables.md.

    python -m venv peers && peers/bin/pip install -r tests/accuracy/pose_peers.txt
    peers/bin/python tests/accuracy/compare_pose_peers.py PROGRAM small:100:108

PROGRAM is the built `dic`. OpenCV's matcher knows no rotation: it correlates a copy of the template per degree, whose
mask hides what the turned template leaves empty, and parabolas through the scores beside the best ones refine place
and angle. Both run with two threads, in turn on each scene; times are processor time, because machines have other
work, too.
"""

import argparse
import os
import pathlib
import tempfile

import cv2
import numpy as np

import pose_accuracy
import pose_scenes

THREADS = 2
ANGLES = np.arange(360)
LEAST = 0.5  # score


def turned(image, degrees, size, flags=cv2.INTER_CUBIC):
    """The image turned about its centre, positive from x towards y, in the middle of an image of size x size."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    x, y, middle = (image.shape[1] - 1) / 2, (image.shape[0] - 1) / 2, (size - 1) / 2
    matrix = np.array([[c, -s, middle - c * x + s * y], [s, c, middle - s * x - c * y]])
    return cv2.warpAffine(image, matrix, (size, size), flags=flags)


class OpenCv:
    name = f"OpenCV {cv2.__version__}, `matchTemplate` with masks, 360 angles"

    def __init__(self, template):
        self.size = int(np.ceil(np.hypot(*template.shape))) + 1
        full = np.full(template.shape, 255, np.uint8)
        self.copies = [turned(template, a, self.size) for a in ANGLES]
        covers = [turned(full, a, self.size, cv2.INTER_LINEAR) for a in ANGLES]
        self.masks = [np.where(cover == 255, 255, 0).astype(np.uint8) for cover in covers]

    def scores(self, image, angle):
        found = cv2.matchTemplate(image, self.copies[angle], cv2.TM_CCOEFF_NORMED, mask=self.masks[angle])
        return np.where(np.isfinite(found), found, -1)


def vertex(before, here, after):
    """Position of a parabola's highest point between -1 and 1."""
    curvature = before - 2 * here + after
    return float(np.clip((before - after) / (2 * curvature), -1, 1)) if curvature < 0 else 0.0


def refined(matcher, scene, x, y, angle):
    """A match whose copy lies at the whole pixel (x, y)."""
    left, top = max(0, x - 1), max(0, y - 1)
    part = scene[top:y + matcher.size + 1, left:x + matcher.size + 1]
    planes = [matcher.scores(part, a % len(ANGLES)) for a in (angle - 1, angle, angle + 1)]
    at = lambda plane, i, j: planes[plane][np.clip(y - top + j, 0, planes[plane].shape[0] - 1),
                                           np.clip(x - left + i, 0, planes[plane].shape[1] - 1)]
    best = at(1, 0, 0)
    half = (matcher.size - 1) / 2
    return dict(center_x=x + half + vertex(at(1, -1, 0), best, at(1, 1, 0)),
                center_y=y + half + vertex(at(1, 0, -1), best, at(1, 0, 1)),
                rotation_deg=angle + vertex(at(0, 0, 0), best, at(2, 0, 0)), scale=1, sigma_x=np.nan, sigma_y=np.nan,
                score=float(best))


def search(matcher, scene, count, apart):
    """The `count` best places that are more than `apart` px from better ones."""
    best, angles = None, None
    for angle in ANGLES:
        scores = matcher.scores(scene, angle)
        if best is None:
            best, angles = scores.copy(), np.zeros(scores.shape, int)
        better = scores > best
        best[better], angles[better] = scores[better], angle
    matches = []
    y, x = np.mgrid[:best.shape[0], :best.shape[1]]
    for _ in range(count):
        j, i = np.unravel_index(np.argmax(best), best.shape)
        if best[j, i] < LEAST:
            break
        matches.append(refined(matcher, scene, i, j, angles[j, i]))
        best[np.hypot(x - i, y - j) < apart] = -1
    return matches


def processor_seconds():
    """Of this process and of those that it has started."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def dic_search(program, template, scene, truth):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cv2.imwrite(str(folder / "template.png"), template)
        cv2.imwrite(str(folder / "scene.png"), scene)
        return pose_accuracy.search(program, folder, truth, False, THREADS)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dic")
    parser.add_argument("scenes", metavar="PRESET:FIRST:END", help="of a preset with parts of scale 1")
    arguments = parser.parse_args()
    cv2.setNumThreads(THREADS)
    preset, first, end = arguments.scenes.split(":")
    results = {}
    for seed in range(int(first), int(end)):
        template, _, scene, truth = pose_scenes.render(preset, seed)
        count = len(truth["instances"]) + pose_accuracy.SPARE_MATCHES
        runs = {"`dic match --rotation -180:180`": lambda: dic_search(arguments.dic, template, scene, truth)}
        runs[OpenCv.name] = lambda: search(OpenCv(template), scene, count, min(template.shape) / 2)
        for name, find in runs.items():
            pairs, times = results.setdefault(name, ([], []))
            begin = processor_seconds()
            matches = find()
            times.append(processor_seconds() - begin)
            pairs += pose_accuracy.compare(truth, matches)[0]
    for name, (pairs, times) in results.items():
        s = pose_accuracy.summary(pairs)
        print(f"| {name} | {s['found']} of {s['parts']} | {s['pixels']:.4f} | {s['degrees']:.4f} "
              f"| {np.median(times):.2f} s |")


if __name__ == "__main__":
    main()
