"""Makes the pictures of docs/tutorial.md, docs/gallery.md and docs/template-matching.md from data/, `dic synth` and rendered
scenes: python docs/pictures/make_pictures.py DIC [tutorial|gallery|matches]

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


def save(source, name, width=WIDTH):
    """Writes a picture of the documents: at most `width` px wide, in few colours, so that it is small."""
    image = Image.open(source).convert("RGB")
    if image.width > width:
        image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
    PICTURES.mkdir(exist_ok=True)
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(PICTURES / name, optimize=True)
    print(name, image.size, (PICTURES / name).stat().st_size // 1000, "kB")


class Page:
    """The page of `dic view` in Chromium without a window."""

    def __init__(self, address):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = os.environ.get("DIC_CHROMIUM", "/usr/bin/chromium")
        for argument in ("--headless=new", "--no-sandbox", "--window-size=1200,860", "--force-device-scale-factor=1"):
            options.add_argument(argument)
        self.browser = webdriver.Chrome(options, Service(os.environ.get("DIC_CHROMEDRIVER", "/usr/bin/chromedriver")))
        self.browser.get(address)
        self.until("return document.body.dataset.ready")

    def until(self, script, seconds=120):
        end = time.monotonic() + seconds
        while not self.browser.execute_script(script):
            if time.monotonic() > end:
                sys.exit(f"The page does not come to: {script}")
            time.sleep(0.1)

    def click(self, name):
        element = self.browser.find_element("id", name)
        self.browser.execute_script("arguments[0].closest('details')?.setAttribute('open', '')", element)
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'nearest'})", element)
        element.click()

    def show(self, name):
        element = self.browser.find_element("id", name)
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'nearest'})", element)

    def type(self, name, text):
        from selenium.webdriver.common.keys import Keys

        self.click(name)
        self.browser.find_element("id", name).clear()
        self.browser.find_element("id", name).send_keys(text, Keys.TAB)

    def choose(self, name, value):
        from selenium.webdriver.support.ui import Select

        Select(self.browser.find_element("id", name)).select_by_value(value)

    def pointer(self, *places, drag=False):
        """Clicks one place of the image (px) after the other, or drags from the first to the last."""
        from selenium.webdriver.common.action_chains import ActionChains

        canvas, actions = self.browser.find_element("id", "canvas"), ActionChains(self.browser, duration=20)
        for k, (x, y) in enumerate(places):
            at = self.browser.execute_async_script("""
                const [x, y, done] = arguments;
                import("dic/stage.js").then(({stage}) => {
                  const s = stage(), at = s.toScreen({x, y});
                  done([Math.round(at.x - s.width / 2), Math.round(at.y - s.height / 2)]);
                });""", x, y)
            actions.move_to_element_with_offset(canvas, *at)
            if not drag:
                actions.click()
            elif k == 0:
                actions.click_and_hold()
        if drag:
            actions.release()
        actions.perform()

    def save(self, name):
        time.sleep(0.5)  # animations of the page
        self.browser.save_screenshot("page.png")
        save("page.png", name)


def photograph_tutorial(program):
    from view_server import ViewServer

    pathlib.Path("data").symlink_to(ROOT / "data")
    server = ViewServer(program, pathlib.Path.cwd(), "data/plate_with_hole", "--no-browser")
    page = Page(server.address)
    try:
        page.save("tutorial-1-frames.png")
        page.click("tool-polygon")
        page.pointer((8, 8), (311, 8), (311, 391), (8, 391), (8, 8))
        page.click("hole")
        page.click("tool-circle")
        page.pointer((159, 199), (199, 199), drag=True)
        page.save("tutorial-2-region.png")
        page.type("scale", "0.05")
        page.type("option-subset", "21")
        page.type("option-step", "4")
        page.click("preview")
        page.until("return document.getElementById('preview-result').textContent.includes('Subset')")
        page.show("preview-result")
        page.save("tutorial-3-preview.png")
        page.click("run")
        page.until("return document.getElementById('message').textContent.includes('Done')")
        page.choose("quantity", "eyy")
        page.choose("strain-unit", "%")
        page.save("tutorial-4-field.png")
        page.click("probe-extensometer")
        page.pointer((60, 60), (60, 340), drag=True)
        page.save("tutorial-5-number.png")
    finally:
        page.browser.quit()
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
    for name in sys.argv[2:] or ["tutorial", "gallery", "matches"]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            if name == "matches":
                photograph_matches(program)
            else:
                if name == "tutorial":
                    photograph_tutorial(program)
                run_page(f"{name}.md", program)
            os.chdir(ROOT)


if __name__ == "__main__":
    main()
