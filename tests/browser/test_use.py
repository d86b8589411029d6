"""What a user does with the page of `dic view`, click by click: python test_use.py DIC"""

import json
import re
import time

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
        self.upload("open-project", saved)
        self.until(lambda: self.probes() == places)
        self.assertEqual([self.value("quantity"), self.value("range-max")], ["exx", "0.02"])
        self.serve(*self.names)
        self.upload("open-project", saved)
        self.until(lambda: self.value("option-subset") == "25")
        self.assertEqual(self.shapes(), region)
        (self.folder / "no.dicproject").write_text("{}")
        self.upload("open-project", self.folder / "no.dicproject")
        self.until(lambda: "not a project" in self.text("message"))


if __name__ == "__main__":
    main()
