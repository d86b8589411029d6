"""Makes the pictures of docs/tutorial.md, docs/user-guide.md, docs/gallery.md and docs/template-matching.md from data/, `dic synth`
and rendered scenes: python docs/pictures/make_pictures.py DIC [tutorial|guide|gallery|matches]

Needs the package dic, the packages of tests/requirements.txt, Chromium and its driver. The commands are those of the pages.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
WIDTH = 900  # px of a picture on a page
COLOURS = 255
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"<!-- picture: (\S+) from (\S+) -->")
sys.path.insert(0, str(ROOT / "tests" / "support"))
from page_driver import PageDriver, open_browser  # noqa: E402


def save(source, name, width=WIDTH):
    """Writes a picture of the documents: at most `width` px wide, in few colours, so that it is small."""
    image = Image.open(source).convert("RGB")
    if image.width > width:
        image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
    PICTURES.mkdir(exist_ok=True)
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(PICTURES / name, optimize=True)
    print(name, image.size, (PICTURES / name).stat().st_size // 1000, "kB")


class Page(PageDriver):
    """The page of `dic view` at an address."""

    def __init__(self, address):
        self.browser = open_browser(1200, 860)
        self.browser.get(address)
        self.until("return document.body.dataset.ready")

    def until(self, script, seconds=120):
        end = time.monotonic() + seconds
        while not self.browser.execute_script(script):
            if time.monotonic() > end:
                sys.exit(f"The page does not come to: {script}")
            time.sleep(0.1)

    def until_says(self, name, words):
        self.until(f"return document.getElementById('{name}').textContent.includes('{words}')")

    def draw_plate(self):
        """The region of the plate with its hole."""
        self.click("tool-polygon")
        self.pointer((8, 8), (311, 8), (311, 391), (8, 391), (8, 8))
        self.click("hole")
        self.click("tool-circle")
        self.pointer((159, 199), (199, 199), drag=True)

    def save(self, name):
        time.sleep(0.5)  # animations of the page
        self.browser.save_screenshot("page.png")
        save("page.png", name)


def show_preview(page):
    page.type("scale", "0.05")
    page.type("option-subset", "21")
    page.type("option-step", "4")
    page.click("preview")
    page.until_says("preview-result", "Subset")
    page.show("preview-result")


def measure_strain(page):
    page.click("run")
    page.until_says("message", "Done")
    page.choose("quantity", "eyy")
    page.choose("strain-unit", "%")


def photograph_tutorial(page):
    page.save("tutorial-1-frames.png")
    page.draw_plate()
    page.save("tutorial-2-region.png")
    show_preview(page)
    page.save("tutorial-3-preview.png")
    measure_strain(page)
    page.save("tutorial-4-field.png")
    page.click("probe-extensometer")
    page.pointer((60, 60), (60, 340), drag=True)
    page.save("tutorial-5-number.png")


def photograph_guide(page):
    """The two pages that the user guide shows."""
    page.draw_plate()
    show_preview(page)
    page.save("view-setup.png")
    measure_strain(page)
    page.click("probe-extensometer")
    page.pointer((60, 60), (60, 340), drag=True)
    page.click("probe-line")
    page.pointer((204, 199), (300, 199), drag=True)
    page.upload("load-forces", ROOT / "data/plate_with_hole/loads.csv")
    page.until("return document.getElementById('force-area')")
    page.type("force-area", "24")
    page.show("quantity")
    page.save("view-results.png")


def choose_file(page, *names):
    """Goes to these entries of the chooser, one after the other; takes the folder that is listed then."""
    for name in names:
        page.until(f"return document.querySelector('#chooser-list [data-name=\"{name}\"]')")
        page.browser.execute_script(f"document.querySelector('#chooser-list [data-name=\"{name}\"]').click()")
    if not names[-1].endswith(".png"):
        page.until_says("chooser-folder", f"/{names[-1]}")
        page.click("chooser-this")
    page.until("return !document.getElementById('chooser').open")


def photograph_match(page):
    page.click("tab-match")
    page.click("match-load")
    choose_file(page, "template.png")
    page.choose("match-rotation", "any")
    page.choose("match-scale", "large")
    page.click("match-search")
    page.until_says("match-summary", "in this frame")
    page.save("match-3-page.png")


def photograph_calibration(page):
    page.click("tab-calibrate")
    page.click("calibrate-choose-plane")
    choose_file(page, "flat.png")
    page.click("calibrate-choose-left")
    choose_file(page, "lens")
    for name, value in (("columns", 9), ("rows", 6), ("square_mm", 6)):
        page.type(f"calibrate-{name}", value)
    page.click("calibrate-run")
    page.until_says("calibrate-result", "fx")
    page.browser.execute_script("document.querySelectorAll('#calibrate-table tbody tr')[2].click()")
    page.until_says("frame-name", "3 / ")
    page.show("calibrate-result")
    page.save("view-calibrate.png")


def render_targets():
    """A folder of tilted boards, and one on the specimen, as a known camera sees them."""
    import rendered_boards as boards

    lens = pathlib.Path("lens")
    lens.mkdir()
    boards.write_targets(lens, boards.is_dark_board, (48, 30), 14)
    boards.write_image("flat.png", boards.render(boards.is_dark_board, (0.1, -0.15, 0.02), (-25, -16, 160), 50))


def photograph_page(program, photograph, frames="data/plate_with_hole"):
    from view_server import ViewServer

    if not os.path.exists("data"):
        os.symlink(ROOT / "data", "data")
    server = ViewServer(program, pathlib.Path.cwd(), frames, "--no-browser")
    try:
        page = Page(server.address)
        try:
            photograph(page)
        finally:
            page.browser.quit()
    finally:
        server.stop()


def photograph_matches(program):
    """Templates beside the scenes of tests/accuracy/pose_scenes.py in which they were found."""
    sys.path.insert(0, str(ROOT / "tests" / "accuracy"))
    import cv2
    import pose_scenes

    scenes = {
        "match-1-poses.png": ("small_scale", 4, ["--scales", "0.78:1.28", "--max-matches", 4]),
        "match-2-hidden.png": ("small_hard", 5, ["--scales", "0.88:1.12", "--max-matches", 6, "--threshold", 0.7]),
    }
    for name, (preset, seed, options) in scenes.items():
        template, _, scene, _ = pose_scenes.render(preset, seed)
        cv2.imwrite("template.png", template)
        cv2.imwrite("scene.png", scene)
        command = [program, "match", "template.png", "scene.png", "--rotation", "-180:180", "--draw", "found.png", *options]
        subprocess.run([str(part) for part in command], check=True)
        found = Image.open("found.png").convert("RGB")
        picture = Image.new("RGB", (found.width + 160, found.height), "white")
        picture.paste(Image.open("template.png").convert("RGB").resize((120, 120), Image.Resampling.NEAREST), (20, 20))
        picture.paste(found, (160, 0))
        picture.save("picture.png")
        save("picture.png", name, 640)
    photograph_page(program, photograph_match, "scene.png")


def run_page(name, program):
    """Runs the blocks of a page that its test runs; a mark `<!-- picture: NAME from FILE -->` takes FILE as a picture."""
    text = (ROOT / "docs" / name).read_text()
    environment = dict(os.environ, PATH=os.pathsep.join([str(pathlib.Path(program).parent), os.environ["PATH"]]), MPLBACKEND="agg")
    if not os.path.exists("data"):
        os.symlink(ROOT / "data", "data")
    for mark in sorted([*BLOCK.finditer(text), *SHOWN.finditer(text)], key=lambda found: found.start()):
        if mark.re is SHOWN:
            save(mark.group(2), mark.group(1), 640)
        elif "docs-test: skip" not in text[: mark.start()].splitlines()[-1]:
            command = ["bash", "-euo", "pipefail"] if mark.group(1) == "sh" else [sys.executable]
            subprocess.run([*command, "-c", mark.group(2)], check=True, env=environment)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    for name in sys.argv[2:] or ["tutorial", "guide", "gallery", "matches"]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            if name == "matches":
                photograph_matches(program)
            elif name == "guide":
                photograph_page(program, photograph_guide)
                render_targets()
                photograph_page(program, photograph_calibration)
            else:
                if name == "tutorial":
                    photograph_page(program, photograph_tutorial)
                run_page(f"{name}.md", program)
            os.chdir(ROOT)


if __name__ == "__main__":
    main()
