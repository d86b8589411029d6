"""What a user does with the page of `dic view`, click by click: python test_use.py DIC"""

import base64
import json
import re
import time

import cv2
import numpy as np
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser_test import STRAINS, BrowserTest, stretched
from dic_program import main, speckle, write_image

CURVES = """return Chart.getChart("plot-history").data.datasets.filter((d) => d.label !== "shown frame")
    .map((d) => [d.label, d.yAxisID, d.data.map((p) => p.y)])"""


class UseTest(BrowserTest):
    def scales(self):
        return self.script("""const {scales} = Chart.getChart("plot-history");
            return Object.fromEntries(Object.entries(scales).map(([id, s]) => [id, {title: s.options.title.text,
              ticks: s.ticks.map((t) => t.value)}]))""")

    def box(self, name):
        return self.script("const b = document.getElementById(arguments[0]).getBoundingClientRect();"
                           "return [b.x, b.y, b.width, b.height]", name)

    def show_frame(self, number):
        self.script("const f = document.getElementById('frame'); f.value = arguments[0] - 1; f.dispatchEvent(new Event('input'))",
                    number)
        self.until(lambda: self.text("frame-name").startswith(f"{number} / "))

    def shapes(self):
        return [field.get_attribute("value") for field in self.browser.find_elements(By.CSS_SELECTOR, "#shapes input")]

    def probes(self):
        return [field.get_attribute("value") for field in self.browser.find_elements(By.CSS_SELECTOR, "#probes input.places")]

    def resize(self, width, height):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.addCleanup(self.browser.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})
        time.sleep(0.2)

    def open_project(self, path):
        self.click("open")
        self.until(lambda: self.by_id("chooser-project").is_displayed())
        self.upload("chooser-project", path)

    # Curves -----------------------------------------------------------------------------------------

    def test_strains_share_an_axis(self):
        self.measure()
        self.serve("dic_out")
        self.choose("quantity", "exx")
        self.choose("strain-unit", "%")
        self.click("probe-extensometer")
        self.pointer((60, 80), (260, 80), drag=True)
        self.click("probe-point")
        self.pointer((100, 100))
        self.until(lambda: len(self.script(CURVES)) == 2)
        curves = self.script(CURVES)
        self.assertEqual([axis for _, axis, _ in curves], ["y", "y"])
        for _, _, values in curves:
            np.testing.assert_allclose(values, [100 * strain for strain in STRAINS[1:]], atol=0.05)
        scales = self.scales()
        self.assertEqual(set(scales), {"x", "y"})
        self.assertEqual(scales["y"]["title"], "strain [%]")
        # Frames are counted: there is no frame 1.5.
        self.assertEqual(scales["x"]["ticks"], [1, 2, 3])
        # A length has another axis than a strain.
        self.choose("quantity", "u")
        self.until(lambda: "y2" in self.scales())
        self.assertEqual([self.scales()[axis]["title"] for axis in ("y", "y2")], ["u [px]", "extensometer strain [%]"])

    def test_rates(self):
        (self.folder / "times.txt").write_text("0\n1\n3\n4\n")
        self.measure("--times", "times.txt")
        self.serve("dic_out")
        self.click("probe-extensometer")
        self.pointer((60, 80), (260, 80), drag=True)
        self.click("rate")
        # The slopes of 0.002, 0.005, 0.01 at 1, 3 and 4 s: to both sides, at the ends to one.
        self.until(lambda: "rate" in self.scales().get("y", {}).get("title", ""))
        np.testing.assert_allclose(self.script(CURVES)[0][2], [0.0015, 0.008 / 3, 0.005], atol=5e-5)
        self.assertEqual(self.scales()["y"]["title"], "rate of strain [1/s]")
        self.click("save-history")
        rows = self.table("history.csv")
        self.assertIn("rate of strain [1/s]", rows[0][-1])
        np.testing.assert_allclose([float(row[-1]) for row in rows[1:]], [0.0015, 0.008 / 3, 0.005], atol=5e-5)

    def test_histogram(self):
        self.measure()
        self.serve("dic_out")
        fields = self.fields()
        self.choose("range-mode", "frame")
        time.sleep(0.3)
        counts = json.loads(self.script("return document.getElementById('histogram').dataset.counts"))
        values = np.sort(fields["u"][-1][~np.isnan(fields["u"][-1])].astype(np.float32))
        low, high = values[round(0.005 * (len(values) - 1))], values[round(0.995 * (len(values) - 1))]
        expected, _ = np.histogram(values[(values >= low) & (values <= high)], 60, (low, high))
        self.assertEqual(sum(counts), expected.sum())
        np.testing.assert_allclose(counts, expected, atol=2)  # a value on an edge between two bars
        self.choose("quantity", "status")
        self.until(lambda: not self.by_id("histogram").is_displayed())

    # Deformed view ----------------------------------------------------------------------------------

    def test_probes_follow_the_material(self):
        """With u = 12 px everywhere, what is drawn at x lies at x - 12 in the reference."""
        for k, name in enumerate(self.names):
            write_image(self.folder / name, speckle(240, 320, u=4.0 * k))
        self.measure("--search", "20")
        self.serve("dic_out")
        self.choose("background", "current")
        self.choose("where", "current")
        time.sleep(0.3)
        self.click("probe-point")
        self.pointer((112, 100))
        x, y = map(float, self.probes()[0].split(","))
        self.assertAlmostEqual(x, 100, delta=1)
        self.assertAlmostEqual(y, 100, delta=1)
        # It is grabbed where it is drawn.
        self.pointer((x + 12, y), (162, 100), drag=True)
        self.assertAlmostEqual(float(self.probes()[0].split(",")[0]), 150, delta=1)
        drawn = self.module("stage", "m.stage().layers.find((l) => l.motion).motion.to({x: 150, y: 100})")
        self.assertAlmostEqual(drawn["x"], 162, delta=0.1)
        # In the earlier frame the material was elsewhere.
        self.show_frame(1)
        self.until(lambda: abs(self.module("stage", "m.stage().layers.find((l) => l.motion).motion.to({x: 150, y: 100})")["x"] - 154) < 0.1)
        self.assertAlmostEqual(float(re.search(r" u (-?[\d.]+) px", self.hover(100, 80))[1]), 4, delta=0.05)
        self.choose("where", "reference")
        self.until(lambda: self.module("stage", "!m.stage().layers.some((l) => l.motion)"))

    # Mouse and keys ---------------------------------------------------------------------------------

    def double_click(self, x, y):
        ActionChains(self.browser, duration=20).move_to_element_with_offset(self.by_id("canvas"), *self.offset(x, y)) \
            .click().click().perform()

    def test_double_click_adds_no_second_corner(self):
        self.measure()
        self.serve(*self.names)
        self.click("tool-polygon")
        self.pointer((30, 30), (290, 30))
        self.double_click(290, 210)
        self.until(lambda: len(self.shapes()) == 1)
        self.assertEqual(len(self.shapes()[0].split()), 3)
        # With Select it adds one to a side, and none to a corner.
        self.click("tool-select")
        self.double_click(160, 30)
        self.until(lambda: len(self.shapes()[0].split()) == 4)
        self.double_click(290, 210)
        time.sleep(0.2)
        self.assertEqual(len(self.shapes()[0].split()), 4)

    def test_area_by_double_click(self):
        self.measure()
        self.serve("dic_out")
        self.click("probe-area")
        self.pointer((40, 40), (200, 40))
        self.double_click(200, 160)
        self.until(lambda: len(self.probes()) == 1)
        self.assertEqual(len(self.probes()[0].split()), 3)

    def test_keys_step_after_a_select(self):
        self.measure()
        self.serve("dic_out")
        self.choose("quantity", "exx")
        self.by_id("quantity").send_keys(",")
        self.until(lambda: "2 / 3" in self.text("frame-name"))
        self.assertEqual(self.value("quantity"), "exx")
        self.by_id("map").send_keys(".")
        self.until(lambda: "3 / 3" in self.text("frame-name"))
        # In a text they are text.
        self.by_id("range-min").send_keys("0.5")
        time.sleep(0.2)
        self.assertIn("3 / 3", self.text("frame-name"))

    # Layout -----------------------------------------------------------------------------------------

    def test_nothing_jumps_when_a_run_starts(self):
        self.serve(*self.names)
        self.type("option-subset", "21")
        watched = ("canvas", "bar", "time", "tab-setup", "tab-report", "undo")
        before = {name: self.box(name) for name in watched}
        view = self.module("stage", "m.stage().view")
        self.script("""window.moved = []; const names = arguments[0], before = arguments[1];
            window.watching = setInterval(() => { for (const name of names) {
              const b = document.getElementById(name).getBoundingClientRect(), now = [b.x, b.y, b.width, b.height];
              if (now.some((value, k) => Math.abs(value - before[name][k]) > 0.5)) window.moved.push([name, now]); } }, 10)""",
                    watched, before)
        self.click("run")
        self.until(lambda: "Done" in self.text("message"))
        time.sleep(0.2)
        self.assertEqual(self.script("clearInterval(window.watching); return window.moved"), [])
        self.assertEqual(self.module("stage", "m.stage().view"), view)

    def test_narrow_window_has_the_image_first(self):
        self.measure()
        self.serve("dic_out")
        self.resize(820, 700)
        stage, side = self.box("stage"), self.box("side")
        self.assertLess(stage[1], 80)
        self.assertGreaterEqual(side[1], stage[1] + stage[3] - 1)
        self.assertGreater(self.box("canvas")[3], 250)
        self.assertLessEqual(self.script("return document.documentElement.scrollWidth"), 820)
        self.click("probe-point")
        self.pointer((100, 100))
        self.until(lambda: len(self.probes()) == 1)

    def test_light_and_dark(self):
        self.measure()
        self.serve("dic_out")
        back = "return getComputedStyle(document.body).backgroundColor"

        def brightness():
            return sum(map(int, re.findall(r"\d+", self.script(back))))

        first = brightness()
        self.click("theme")
        second = brightness()
        self.assertGreater(abs(first - second), 400)
        self.browser.refresh()
        self.until(lambda: self.script("return document.body.dataset.ready"))
        self.assertEqual(brightness(), second)
        self.click("theme")
        self.assertEqual(brightness(), first)

    def test_the_colour_bar_is_smooth(self):
        """No step between neighbouring rows is larger than the map needs."""
        self.measure()
        self.serve("dic_out")
        time.sleep(0.2)
        rows = np.array(self.script("""const c = document.getElementById("canvas"), x = c.width - 110;
            const d = c.getContext("2d").getImageData(x, 42, 1, 216).data, rows = [];
            for (let i = 0; i < d.length; i += 4) rows.push([d[i], d[i + 1], d[i + 2]]);
            return rows"""))
        self.assertGreater(np.ptp(rows, axis=0).max(), 100)
        self.assertLessEqual(np.abs(np.diff(rows, axis=0)).max(), 4)

    # Words ------------------------------------------------------------------------------------------

    def test_no_options_of_the_command_line_in_words(self):
        """Only the command line itself has them."""
        self.measure()
        for arguments in (self.names, ["dic_out"]):
            self.serve(*arguments)
            words = self.script("""const words = [];
                for (const e of document.querySelectorAll("main *, header *")) {
                  if (e.closest("#command, #panel-report pre")) continue;
                  for (const name of ["title", "aria-label", "placeholder"]) words.push(e.getAttribute(name) ?? "");
                  for (const node of e.childNodes) if (node.nodeType === 3) words.push(node.textContent);
                }
                return words.filter((w) => /(^|[\\s(“"])--?[a-z]/.test(w))""")
            self.assertEqual(words, [])

    def test_a_program_that_has_ended(self):
        self.measure()
        server = self.serve("dic_out")
        server.stop()
        self.choose("quantity", "exy")
        self.until(lambda: self.by_id("message").get_attribute("data-kind") == "error")
        self.assertIn("does not answer", self.text("message"))
        self.assertNotIn("fetch", self.text("message"))
        # Nothing is shown under a name that is not its own.
        self.assertEqual(self.module("stage", "m.stage().layers.filter((l) => l.legend || l.values).length"), 0)

    # Project ----------------------------------------------------------------------------------------

    def test_undo_reload_and_project(self):
        self.measure("-o", "dic_out")
        server = self.serve(*self.names)
        self.click("tool-rectangle")
        self.pointer((30, 30), (290, 210), drag=True)
        self.type("option-subset", "25")
        self.assertEqual(self.value("option-subset"), "25")
        canvas = self.by_id("canvas")
        canvas.send_keys(Keys.CONTROL, "z")
        self.until(lambda: self.value("option-subset") == "33")
        self.assertEqual(len(self.shapes()), 1)
        self.click("undo")
        self.until(lambda: len(self.shapes()) == 0)
        self.click("redo")
        self.click("redo")
        self.until(lambda: self.value("option-subset") == "25")
        self.assertEqual(len(self.shapes()), 1)
        self.click("force")
        self.click("run")
        self.until(lambda: "Done" in self.text("message"))
        self.click("probe-extensometer")
        self.pointer((60, 80), (260, 80), drag=True)
        self.choose("quantity", "exx")
        self.click("range-max")
        self.by_id("range-max").send_keys(Keys.CONTROL, "a")
        self.by_id("range-max").send_keys("0.02", Keys.TAB)
        self.click("probe-point")
        self.pointer((100, 100))
        self.until(lambda: len(self.probes()) == 2)
        self.click("undo")
        self.until(lambda: len(self.probes()) == 1)
        self.click("undo")  # the range
        self.until(lambda: self.value("range-mode") == "all")
        self.click("redo")
        self.until(lambda: self.value("range-mode") == "fixed")

        places = self.probes()
        self.browser.refresh()
        self.until(lambda: self.script("return document.body.dataset.ready"))
        self.assertEqual(self.script("return document.body.dataset.tab"), "results")
        self.assertEqual([self.value("quantity"), self.value("range-max"), self.value("range-mode")], ["exx", "0.02", "fixed"])
        self.assertEqual(self.probes(), places)
        self.click("tab-setup")
        self.assertEqual(self.value("option-subset"), "25")
        self.assertEqual(len(self.shapes()), 1)
        region = self.shapes()
        self.click("save-project")
        saved = self.file("test.dicproject")
        server.stop()

        self.serve("dic_out")
        self.assertEqual(self.probes(), [])
        self.open_project(saved)
        self.until(lambda: self.probes() == places)
        self.assertEqual([self.value("quantity"), self.value("range-max")], ["exx", "0.02"])
        self.serve(*self.names)
        self.open_project(saved)
        self.until(lambda: self.value("option-subset") == "25")
        self.assertEqual(self.shapes(), region)
        (self.folder / "no.dicproject").write_text("{}")
        self.open_project(self.folder / "no.dicproject")
        self.until(lambda: "not a project" in self.text("message"))

    # Strain -----------------------------------------------------------------------------------------


    def test_change_the_strain_in_results(self):
        for name, strain in zip(self.names, (0, 0.05, 0.1, 0.2)):
            write_image(self.folder / name, stretched(strain))
        self.measure("--scale", "0.5")
        stored = (self.folder / "dic_out/result.vtkhdf").read_bytes()
        self.serve("dic_out")
        self.choose("quantity", "exx")
        self.assertIn("61 px, 30.5 mm", self.text("result-gauge"))
        # Green-Lagrange: e + e^2 / 2; Hencky: ln(1 + e).
        self.until(lambda: abs(self.exx() - (0.2 + 0.02)) < 2e-3)
        self.choose("result-strain-measure", "hencky")
        self.until(lambda: "In the files" in self.text("result-gauge"))
        self.until(lambda: abs(self.exx() - np.log(1.2)) < 2e-3)
        self.click("result-strain-window")
        self.by_id("result-strain-window").send_keys(Keys.CONTROL, "a")
        self.by_id("result-strain-window").send_keys("9", Keys.TAB)
        self.until(lambda: "101 px" in self.text("result-gauge"))
        self.succeed("strain", "dic_out", "--strain-window", "9", "--strain-measure", "hencky", "-o", "other")
        expected = self.fields("other")["exx"]
        shown = self.browser.execute_async_script("""const done = arguments[0];
            import("dic/server_source.js").then(async ({ServerSource}) => done(Array.from(await new ServerSource().load("exx", 2),
              (v) => (Number.isNaN(v) ? null : v))))""")
        np.testing.assert_array_equal(np.array(shown, dtype=float).reshape(expected[2].shape), expected[2])
        self.assertEqual((self.folder / "dic_out/result.vtkhdf").read_bytes(), stored)  # nothing is written by looking
        self.click("undo")
        self.until(lambda: "61 px" in self.text("result-gauge"))
        self.click("redo")
        self.until(lambda: "101 px" in self.text("result-gauge"))
        self.click("keep-strain")
        self.until(lambda: "In the files" not in self.text("result-gauge"))
        np.testing.assert_array_equal(self.fields()["exx"], expected)
        self.click("tab-report")
        self.assertIn("9 points", self.text("panel-report"))
        self.click("tab-results")
        self.click("result-strain-window")
        self.by_id("result-strain-window").send_keys(Keys.CONTROL, "a")
        self.by_id("result-strain-window").send_keys("8", Keys.TAB)
        self.until(lambda: self.by_id("message").get_attribute("data-kind") == "error")
        self.assertIn("odd", self.text("message"))
        self.assertEqual(self.value("result-strain-window"), "9")

    def exx(self):
        found = re.search(r" exx (-?[\d.]+)", self.hover(150, 120))
        return float(found[1]) if found else np.nan

    def test_preview_recommends_for_strain(self):
        random = np.random.default_rng(4)
        for k, name in enumerate(self.names):
            write_image(self.folder / name, np.clip(speckle(240, 320) + random.normal(0, 2, (240, 320)), 0, 255))
        self.serve(*self.names)
        self.click("preview")
        self.until(lambda: "For strain" in self.text("preview-result"))
        self.assertIn("53 px", self.text("preview-result"))
        self.type("strain-sigma", "100")
        self.click("preview")
        self.until(lambda: "below the 100" in self.text("preview-result"))
        sigma = float(re.search(r"has a sigma of ([\d.]+) µm/m", self.text("preview-result"))[1])
        self.assertLess(sigma, 100)
        self.click("use-for-strain")
        window, gauge = self.value("option-strain-window"), self.text("setup-gauge")
        self.assertIn(re.search(r"gauge length of (\d+ px)", self.text("preview-result"))[1], gauge)
        # The measurement has the noise that was predicted.
        self.click("run")
        self.until(lambda: "Done" in self.text("message"))
        exx = self.fields()["exx"]
        self.assertAlmostEqual(1e6 * np.nanstd(exx[-1]) / np.sqrt(2) / sigma, 1, delta=0.45)
        self.assertEqual(self.value("result-strain-window"), window)

    # Opening ----------------------------------------------------------------------------------------

    def chosen(self, name):
        self.browser.find_element(By.CSS_SELECTOR, f'#chooser-list button[data-name="{name}"]').click()

    def entries(self):
        return [b.get_attribute("data-name") for b in self.browser.find_elements(By.CSS_SELECTOR, "#chooser-list button")]

    def test_start_page_opens_frames_and_results(self):
        frames = self.folder / "frames"
        frames.mkdir()
        for k, strain in enumerate(STRAINS):
            write_image(frames / f"f{k}.png", stretched(strain))
        (frames / "outside").symlink_to("/etc")
        self.measure()
        self.serve()
        self.until(lambda: self.by_id("chooser").is_displayed() and len(self.entries()) > 1)
        self.assertEqual(self.entries(), ["dic_out", "frames", "saved"])
        self.assertFalse(self.by_id("chooser-up").is_enabled())  # no further than where the program was started
        self.chosen("frames")
        self.until(lambda: "4 images" in self.text("chooser-this"))
        self.assertEqual(self.entries(), [])  # a link that leads away is not followed
        self.click("chooser-this")
        self.until(lambda: self.script("return document.body.dataset.ready") and "1 / 4" in self.text("frame-name"))
        self.type("option-subset", "21")
        self.click("open")
        self.until(lambda: self.by_id("chooser").is_displayed() and "dic_out" in self.entries())
        self.chosen("dic_out")
        self.until(lambda: self.script("return document.body.dataset.ready") and "3 / 3" in self.text("frame-name"))
        self.assertEqual(self.script("return document.body.dataset.tab"), "results")
        self.assertIn("grey", self.hover(100, 80))
        self.click("open")
        self.until(lambda: self.by_id("chooser").is_displayed() and "frames" in self.entries())
        self.click("chooser-close")
        self.assertFalse(self.by_id("chooser").is_displayed())

    def test_two_results(self):
        self.measure("-o", "first")
        self.measure("-o", "second", "--strain-window", "9", "--reference-strategy", "previous")
        self.serve("first")
        self.click("choose-other")
        self.until(lambda: self.by_id("chooser").is_displayed() and "second" in self.entries())
        self.chosen("second")
        self.until(lambda: not self.by_id("chooser").is_displayed())
        self.choose("quantity", "exx")
        self.assertEqual(self.value("compare"), "difference")
        difference = self.fields("first")["exx"][2] - self.fields("second")["exx"][2]
        legend = "m.stage().layers.find((l) => l.legend).legend.title"
        self.until(lambda: self.module("stage", legend) == "Δexx")
        self.until(lambda: f"{np.sum(~np.isnan(difference))}" in self.text("frame-facts"))
        shown = self.module("stage", "Array.from(m.stage().layers.find((l) => l.values).values, (v) => (Number.isNaN(v) ? null : v))")
        np.testing.assert_allclose(np.array(shown, dtype=float).reshape(difference.shape), difference, atol=1e-8)
        self.choose("compare", "beside")
        self.until(lambda: self.module("stage", "m.stage().layers.filter((l) => l.side).length") == 2)
        self.assertEqual(self.module("stage", legend), "exx")
        self.choose("compare", "none")
        self.until(lambda: self.module("stage", "m.stage().layers.filter((l) => l.values).length") == 1)

    # Report -----------------------------------------------------------------------------------------

    def test_report_is_edited_printed_and_saved(self):
        self.measure("--scale", "0.1")
        server = self.serve("dic_out")
        self.click("probe-extensometer")
        self.pointer((60, 80), (260, 80), drag=True)
        self.until(lambda: len(self.script(CURVES)) == 1)
        self.click("tab-report")
        texts = {"title": "Tension of A12", "specimen": "steel", "operator": "E. Noether", "note": "First.\nSecond.",
                 "camera": "5 MP", "lens": "50 mm"}
        for name, text in texts.items():
            field = self.by_id(f"report-{name}")
            field.clear()
            field.send_keys(text, Keys.TAB)
        words = self.text("panel-report")
        for word in ("10 px per mm", "32 x 24 mm", "21 px", "affine", "virtual strain gauge"):
            self.assertIn(word, words)
        pictures = "return [...document.querySelectorAll('.pictures img')].map((i) => [i.alt, i.naturalWidth])"
        self.until(lambda: len(self.script(pictures)) == 5 and all(width > 800 for _, width in self.script(pictures)))
        self.until(lambda: self.by_id("report-history").is_displayed())

        # The printed pages have the pictures, whatever page is shown.
        self.click("tab-results")
        paper = self.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
        pdf = base64.b64decode(paper)
        self.assertGreaterEqual(len(re.findall(rb"/Subtype */Image", pdf)), 5)

        self.click("tab-report")
        self.click("save-report")
        saved = self.file("report.html")
        self.until(lambda: saved.stat().st_size > 100_000)
        server.stop()
        first = saved.rename(self.saved / "first.html")
        self.open(first.as_uri())
        self.assertEqual(len(self.probes()), 1)
        self.click("tab-report")
        self.assertEqual({name: self.value(f"report-{name}") for name in texts}, texts)
        # A report is edited and saved without the program.
        self.by_id("report-operator").clear()
        self.by_id("report-operator").send_keys("S. Kovalevskaya </script>", Keys.TAB)
        self.click("save-report")
        again = self.file("report.html")
        self.until(lambda: again.stat().st_size > 100_000)
        self.open(again.as_uri())
        self.click("tab-report")
        self.assertEqual(self.value("report-operator"), "S. Kovalevskaya </script>")
        self.assertEqual(self.value("report-title"), texts["title"])
        self.until(lambda: len(self.script(pictures)) == 5)

    def test_bias_and_noise_of_frames_at_rest_and_moved(self):
        random = np.random.default_rng(7)
        for name, shift in zip(self.names, (0, 0, 0, 3)):
            write_image(self.folder / name, np.clip(speckle(240, 320, u=shift, v=-shift) + random.normal(0, 3, (240, 320)), 0, 255))
        self.measure("--no-outliers")
        self.serve("dic_out")
        self.click("tab-report")
        self.type("report-rest", "1-2")
        self.type("report-moved", "3")
        self.until(lambda: self.browser.find_elements(By.ID, "figures-moved"))
        fields = self.fields()
        ok = fields["status"] == 0

        def rows(name):
            cells = self.script("return [...document.querySelectorAll(`#figures-${arguments[0]} tbody tr`)]"
                                ".map((r) => [...r.cells].map((c) => c.textContent))", name)
            return {row[0]: row[1:3] for row in cells}

        for quantity in ("u", "v", "exx", "eyy", "exy"):
            values = [fields[quantity][k][ok[k]].astype(float) for k in range(3)]
            values = [v[~np.isnan(v)] for v in values]  # no strain where the window has too few points
            bias, noise = map(float, rows("rest")[quantity])
            np.testing.assert_allclose([bias, noise], [np.mean([v.mean() for v in values[:2]]),
                                                       np.sqrt(np.mean([v.var() for v in values[:2]]))], rtol=6e-3, atol=1e-8)
            if quantity[0] == "e":
                np.testing.assert_allclose(list(map(float, rows("moved")[quantity])), [values[2].mean(), values[2].std()], rtol=6e-3, atol=1e-8)
            else:
                self.assertAlmostEqual(float(rows("moved")[quantity][1]) / values[2].std(), 1, delta=0.05)
        # An exact rotation about any point leaves nothing.
        left = self.module("metrology", """(() => {
            const result = {grid: {nx: 12, ny: 9, x0: 20, y0: 7, step: 5}, scale: 0.5}, u = [], v = [], t = 0.3;
            for (let j = 0; j < 9; ++j) for (let i = 0; i < 12; ++i) {
              const x = 0.5 * (20 + 5 * i) - 3, y = 0.5 * (7 + 5 * j) + 11;
              u.push(x * Math.cos(t) - y * Math.sin(t) - x + 4); v.push(x * Math.sin(t) + y * Math.cos(t) - y - 2);
            }
            u[5] = v[5] = NaN;
            const rest = m.withoutRigidMotion(result, Float64Array.from(u), Float64Array.from(v));
            return [rest.angle, Math.max(...[...rest.u, ...rest.v].filter((r) => !Number.isNaN(r)).map(Math.abs)), Number.isNaN(rest.u[5])];
            })()""")
        self.assertAlmostEqual(left[0], 0.3, delta=1e-12)
        self.assertLess(left[1], 1e-12)
        self.assertTrue(left[2])
        self.type("report-rest", "1-9")
        self.until(lambda: "names no frames" in self.text("panel-report"))

    def test_video(self):
        self.measure()
        self.serve("dic_out")
        self.choose("quantity", "exx")
        self.click("save-video")
        self.until(lambda: [path for path in self.saved.glob("exx.*") if path.suffix in (".mp4", ".webm")])
        time.sleep(0.3)
        path, = self.saved.glob("exx.*")
        self.until(lambda: self.text("message") == "")
        video = cv2.VideoCapture(str(path))
        pictures = []
        while True:
            is_read, picture = video.read()
            if not is_read:
                break
            pictures.append(picture)
        self.assertGreaterEqual(len(pictures), 3)
        self.assertAlmostEqual(pictures[0].shape[1], self.script("return document.getElementById('canvas').width"), delta=2)
        self.assertGreater(np.abs(pictures[0].astype(int) - pictures[-1]).max(), 30)
        self.assertIn("3 / 3", self.text("frame-name"))


if __name__ == "__main__":
    main()
