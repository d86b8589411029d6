"""The page of `dic view` and a report in Chromium without a window: python test_page.py DIC"""

import json
import re
import subprocess
import time

import cv2
import numpy as np
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import dic_program
from browser_test import NAME, SIZE, STRAINS, BrowserTest, stretched
from dic_program import main, write_image
from view_server import ViewServer

def number_of(value):
    """A value as JSON has it, with None for a missing number."""
    return np.nan if value is None else value


class PageTest(BrowserTest):
    # Tests ------------------------------------------------------------------------------------------

    def test_from_frames_to_curves_by_mouse(self):
        server = ViewServer(dic_program.PROGRAM, self.folder, *self.names, "--no-browser")
        self.addCleanup(server.stop)
        self.open(server.address)

        # A polygon, a hole, and undo.
        self.click("tool-polygon")
        self.pointer((30, 30), (290, 30), (290, 210), (30, 210), (30, 30))
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "#shapes input")), 1)
        self.click("hole")
        self.click("tool-circle")
        self.pointer((160, 120), (180, 120), drag=True)
        command = self.by_id("command").get_attribute("value")
        self.assertIn("--roi-polygon", command)
        self.assertIn("--roi-hole", command)
        self.click("undo")
        self.assertNotIn("--roi-hole", self.by_id("command").get_attribute("value"))
        self.click("redo")
        self.assertIn("--roi-hole", self.by_id("command").get_attribute("value"))

        # The scale: a line of 100 px that is 50 mm long.
        self.click("tool-scale")
        self.pointer((100, 60), (200, 60), drag=True)
        self.by_id("length-mm").send_keys("50", Keys.ENTER)
        self.until(lambda: self.by_id("scale").get_attribute("value"))
        self.assertAlmostEqual(float(self.by_id("scale").get_attribute("value")), 0.5, delta=0.01)
        self.type("scale", "0.5")

        self.click("preview")
        self.until(lambda: "Subset" in self.text("preview-result"))
        self.assertIn("speckle", self.text("preview-result"))
        self.type("option-subset", "21")
        self.type("option-step", "10")
        self.click("save-toml")
        self.click("save-mask")
        toml = self.file("dic.toml")
        self.assertIn("subset = 21", toml.read_text())

        self.click("run")
        self.until(lambda: "Done" in self.text("message"))
        self.succeed("track", *self.names, "--config", toml, "--no-pictures", "-o", "typed")
        self.succeed("track", *self.names, "--roi", self.file("roi.png"), "--subset", "21", "--step", "10", "--scale", "0.5",
                     "--no-pictures", "-o", "masked")
        fields = self.fields()
        for other in ("typed", "masked"):
            np.testing.assert_array_equal(fields["u"], self.fields(other)["u"])

        # Fields.
        self.assertIn("3 / 3", self.text("frame-name"))
        self.by_id("frame").send_keys(Keys.HOME)
        self.until(lambda: "1 / 3" in self.text("frame-name"))
        self.by_id("frame").send_keys(Keys.END)
        self.until(lambda: "3 / 3" in self.text("frame-name"))
        self.assertIn(NAME.format(3), self.text("frame-name"))
        words = self.hover(100, 80)
        self.assertAlmostEqual(float(re.search(r" u (-?[\d.]+) mm", words)[1]), 0.5 * STRAINS[-1] * 100, delta=0.02)
        self.assertIn("ok", words)
        self.assertNotRegex(self.hover(160, 120), r" u -?\d")  # the hole
        for quantity in ("exx", "von_mises", "status", "angle", "d"):
            self.choose("quantity", quantity)
            time.sleep(0.1)
        self.choose("quantity", "exx")
        self.until(lambda: "exx" in self.hover(100, 80))
        self.assertAlmostEqual(float(re.search(r" exx (-?[\d.]+)", self.hover(100, 80))[1]), STRAINS[-1], delta=5e-4)
        self.click("contours")
        for vectors in ("displacement", "principal", "none"):
            self.choose("vectors", vectors)
        self.choose("background", "current")
        self.choose("where", "current")
        self.click("play")
        time.sleep(0.5)
        self.click("play")
        self.click("zoom-in")
        self.by_id("canvas").send_keys("0")

        # An extensometer and its curve, an area, a line.
        self.choose("where", "reference")
        self.click("probe-extensometer")
        self.pointer((60, 80), (260, 80), drag=True)
        self.click("probe-line")
        self.pointer((60, 180), (260, 180), drag=True)
        self.click("probe-point")
        self.pointer((100, 100))
        self.until(lambda: not self.by_id("profile-box").get_attribute("hidden"))
        # Two questions at once leave one curve.
        self.browser.execute_script("""
            for (const [name, value, event] of [["frame", 0, "input"], ["quantity", "u", "change"], ["quantity", "exx", "change"]]) {
              const element = document.getElementById(name);
              element.value = value;
              element.dispatchEvent(new Event(event));
            }""")
        time.sleep(0.3)
        self.assertEqual(self.browser.execute_script("return Chart.getChart('plot-profile').data.datasets.length"), 1)
        self.by_id("frame").send_keys(Keys.END)
        time.sleep(0.3)
        self.click("save-history")
        rows = self.table("history.csv")
        self.assertEqual(rows[0][:3], ["frame", "name", "extensometer 1 strain"])
        self.assertEqual([row[1] for row in rows[1:]], self.names[1:])
        np.testing.assert_allclose([float(row[2]) for row in rows[1:]], STRAINS[1:], atol=1e-4)
        np.testing.assert_allclose([float(row[4]) for row in rows[1:]], STRAINS[1:], atol=5e-4)
        places = [field.get_attribute("value") for field in
                  self.browser.find_elements(By.CSS_SELECTOR, "#probes input.places")]
        ends = [place.replace(" ", ",") for place in places]
        self.succeed("probe", "dic_out", "--extensometer", ends[0], "--line", ends[1], "--point", ends[2], "-o", "asked")
        asked = json.loads((self.folder / "asked/probe.json").read_text())["frames"]
        for row, frame in zip(rows[1:], asked):
            np.testing.assert_allclose([float(row[2]), float(row[4])],
                                       [frame["extensometers"][0]["strain"], frame["points"][0]["exx"]], rtol=1e-9)
        self.click("save-profile")
        profile = self.table("profile.csv")
        self.assertEqual(profile[0], ["line", "distance [mm]", "exx"])
        line = asked[int(self.text("frame-name").split(" / ")[0]) - 1]["lines"][0]
        np.testing.assert_allclose([[float(cell) for cell in row[1:]] for row in profile[1:]],
                                   [[at["distance"], at["exx"] if at["exx"] is not None else np.nan] for at in line], rtol=1e-9)

        # Stress and strain.
        (self.folder / "forces.csv").write_text("frame,force [kN]\n" + "".join(f"{k},{2 * k}\n" for k in (1, 2, 3)))
        self.upload("load-forces", self.folder / "forces.csv")
        self.until(lambda: not self.by_id("stress-box").get_attribute("hidden"))
        self.assertEqual(self.by_id("force-column").get_attribute("value"), "force [kN]")
        self.type("force-area", "20")
        self.click("save-stress")
        rows = self.table("stress_strain.csv")
        self.assertEqual(rows[0][:3], ["frame", "stress [MPa]", "extensometer 1 strain"])
        np.testing.assert_allclose([float(row[1]) for row in rows[1:]], [100, 200, 300])
        for text in ("Specimen;A12\nKraft [N]\n0\n2000,5\n4000,5\n6000,5\n", "Image,Load step,F / kN\n0,1,0\n1,1,2.0005\n2,1,4.0005\n3,1,6.0005\n",
                     "Extension;Load\n(mm);(lbf)\n" + "".join(f"0.1;{newton / 4.4482216152605}\n" for newton in (2000.5, 4000.5, 6000.5))):
            (self.folder / "forces.csv").write_text(text)
            self.upload("load-forces", self.folder / "forces.csv")
            self.until(lambda: self.by_id("force-area").get_attribute("value") == "")
            self.type("force-area", "20")
            (self.saved / "stress_strain.csv").unlink()
            self.click("save-stress")
            rows = self.table("stress_strain.csv")
            np.testing.assert_allclose([float(row[1]) for row in rows[1:]], [100.025, 200.025, 300.025], rtol=1e-5)

        # A table that leaves the choice, from a machine that writes UTF-16; one that is refused leaves it as it is.
        text = "frame;Kraft oben [kN];Kraft unten [kN]\n" + "".join(f"{k};{k},5;{2 * k},0\n" for k in (1, 2, 3))
        (self.folder / "forces.csv").write_text(text, encoding="utf-16")
        self.upload("load-forces", self.folder / "forces.csv")
        self.until(lambda: "several columns of forces" in self.text("force-columns"))
        self.assertTrue(self.by_id("stress-box").get_attribute("hidden"))
        self.choose("force-column", "Kraft unten [kN]")
        self.until(lambda: not self.browser.find_elements(By.ID, "force-problem"))
        (self.folder / "refused.csv").write_text("1,2\n2,3\n")
        self.upload("load-forces", self.folder / "refused.csv")
        self.until(lambda: "'refused.csv' has no names above its numbers" in self.text("message"))
        self.until(lambda: "forces.csv" in self.text("force-columns"))
        self.type("force-area", "2,5")
        (self.saved / "stress_strain.csv").unlink()
        self.click("save-stress")
        rows = self.table("stress_strain.csv")
        np.testing.assert_allclose([float(row[1]) for row in rows[1:]], [800, 1600, 2400])

        # Undo, redo and a reload keep column and area.
        area = lambda: self.by_id("force-area").get_attribute("value")  # noqa: E731
        self.click("undo")
        self.until(lambda: area() == "")
        self.click("redo")
        self.until(lambda: area() == "2.5")
        self.open(server.address)
        self.until(lambda: area() == "2.5" and self.by_id("force-column").get_attribute("value") == "Kraft unten [kN]")
        (self.saved / "stress_strain.csv").unlink()
        self.click("save-stress")
        self.assertEqual([row[1] for row in self.table("stress_strain.csv")], [row[1] for row in rows])

        self.click("tab-report")
        self.assertIn(NAME.format(2), self.text("panel-report"))
        self.assert_clean(server.origin)

        # The forces travel with the report, which reads no tables.
        self.click("save-report")
        self.open(self.file("report.html").as_uri())
        self.click("tab-results")
        self.assertEqual(self.browser.find_elements(By.ID, "load-forces"), [])
        self.assertIn("Column Kraft unten [kN], area 2.5 mm²", self.text("force-columns"))
        (self.saved / "stress_strain.csv").unlink()
        self.click("save-stress")
        self.assertEqual([row[1] for row in self.table("stress_strain.csv")], [row[1] for row in rows])
        self.assert_clean("file:", server.origin)

    PROBES = {"point": [[(100.3, 80.7)], [(110, 90)], [(160, 120)], [(200, 160.5)], [(318, 200)]],
              "extensometer": [[(60, 80), (260, 81.5)], [(100, 60), (100, 180)], [(60, 80), (160, 118)]],
              "line": [[(50, 70), (250, 170)], [(150, 30), (150, 200)]],
              "area": [[(40, 40), (280, 40), (280, 200), (40, 200)], [(100, 50), (230, 90.5), (120, 110), (170, 170)]]}

    def test_probes_are_those_of_dic_probe(self):
        """Values from the program, values that the page computes for a report, and those of `dic probe` agree."""
        for name, strain in zip(self.names, STRAINS):
            image = stretched(strain)
            image[105:135, 140:180] = 90  # no texture
            image[155:, :] = np.roll(image, round(300 * strain), axis=1)[155:, :]  # a crack along x
            write_image(self.folder / name, image)
        self.succeed("track", *self.names, "--subset", "21", "--step", "10", "--no-pictures", "--scale", "0.5")
        self.succeed("probe", "dic_out", *(word for kind, all_places in self.PROBES.items() for places in all_places
                                           for word in (f"--{kind}", (" " if kind == "area" else ",").join(
                                               f"{x},{y}" for x, y in places))))
        frames = json.loads((self.folder / "dic_probe/probe.json").read_text())["frames"]
        problems = {at["problem"] for frame in frames for at in frame["points"]}
        self.assertTrue(any("flat" in why for why in problems if why), problems)
        self.assertTrue(any("outside" in why for why in problems if why), problems)

        server = ViewServer(dic_program.PROGRAM, self.folder, "dic_out", "--no-browser")
        self.addCleanup(server.stop)
        self.open(server.address)
        for kind, number, places in ((kind, k, places) for kind, all_places in self.PROBES.items()
                                     for k, places in enumerate(all_places)):
            asked, computed, profiles = self.answers("server", kind, places)
            for k, frame in enumerate(frames):
                self.assert_same(kind, frame[f"{kind}s"][number], asked[k], 1e-12, 0)
                self.assert_same(kind, frame[f"{kind}s"][number], computed[k], 2e-6, 2e-7)  # the page has float values
            for profile, tolerance in zip(profiles, (1e-12, 2e-6)):
                for at, expected in zip(profile, frames[1]["lines"][number], strict=True):
                    self.assert_same("point", expected, at, tolerance, tolerance)
                    np.testing.assert_allclose(at["distance"], expected["distance"], rtol=1e-12)
        self.assert_clean(server.origin)

        self.succeed("report", "dic_out")
        self.open((self.folder / "report.html").as_uri())
        sigma = np.nanmedian(self.fields()["sigma_u"])
        for number, places in enumerate(self.PROBES["point"]):
            asked, computed, _ = self.answers("report", "point", places)
            for k, frame in enumerate(frames):
                expected = frame["points"][number]
                self.assertEqual(asked[k]["problem"], expected["problem"] or "")
                np.testing.assert_allclose(number_of(asked[k]["u"]), number_of(expected["u"]), rtol=0, atol=0.1 * sigma)
        self.assert_clean("file:")

    def answers(self, source, kind, places):
        """Values of all frames, by the page's source and by its own computation; for a line, the profiles of frame 1."""
        return self.browser.execute_async_script("""
            const [name, kind, places, done] = arguments;
            const points = places.map(([x, y]) => ({x, y}));
            Promise.all(["server_source", "report_source", "result", "probe_values"].map((file) => import(`dic/${file}.js`)))
              .then(async ([{ServerSource}, {ReportSource}, {Result}, {historyOf, profileOf}]) => {
                const source = name === "server" ? new ServerSource()
                  : new ReportSource(JSON.parse(document.getElementById("report-data").textContent));
                const result = new Result(await source.result(), (array, frame) => source.load(array, frame));
                const isLine = kind === "line";
                done([await source.history(result, kind, points, () => false), await historyOf(result, kind, points, () => false),
                  isLine ? [await source.profile(result, points, 1), await profileOf(result, points, 1)] : []]);
              });""", source, kind, places)

    def assert_same(self, kind, expected, found, rtol, atol):
        if kind == "line":  # the page shows the mean
            means = {name: [at[name] for at in expected if at[name] is not None] for name in ("u", "exx", "e1", "zncc")}
            expected = {name: np.mean(values) if values else None for name, values in means.items()}
        elif kind == "area":
            expected = expected["mean"]
        else:
            self.assertEqual(found["problem"], expected["problem"] or "")
        for name in set(expected) - {"problem", "distance", "x", "y"}:
            np.testing.assert_allclose(number_of(found[name]), number_of(expected[name]), rtol=max(rtol, 1e-14), atol=atol,
                                       err_msg=f"{kind} {name}")

    def test_a_result_that_grows(self):
        """Frames of dic watch appear, the slider extends; who looks at the last one sees the new last one."""
        camera = self.folder / "camera"
        camera.mkdir()
        watch = subprocess.Popen([dic_program.PROGRAM, "watch", "camera", "--until", "5", "--subset", "21", "--step", "10", "-o", "grown",
                                  "--no-pictures"], cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.addCleanup(watch.communicate)
        self.addCleanup(watch.kill)

        def arrives(k, strain):
            write_image(self.folder / "coming.png", stretched(strain))
            (self.folder / "coming.png").rename(camera / f"frame_{k}.png")
            if k > 0:
                self.assertEqual(json.loads(watch.stdout.readline())["frame"], k)

        for k in range(3):
            arrives(k, 0.002 * k)
        server = ViewServer(dic_program.PROGRAM, self.folder, "grown", "--no-browser")
        self.addCleanup(server.stop)
        self.open(server.address)
        self.until(lambda: "2 / 2" in self.text("frame-name"))
        self.click("probe-extensometer")
        self.pointer((60, 120), (260, 120), drag=True)
        arrives(3, 0.006)
        self.until(lambda: "3 / 3" in self.text("frame-name"))
        self.assertEqual(self.by_id("frame").get_attribute("max"), "2")
        self.by_id("frame").send_keys(Keys.HOME)
        self.until(lambda: "1 / 3" in self.text("frame-name"))
        arrives(4, 0.008)
        self.until(lambda: "1 / 4" in self.text("frame-name"))  # who looks at another one stays there
        arrives(5, 0.010)
        self.until(lambda: "1 / 5" in self.text("frame-name"))
        self.assertEqual(watch.wait(60), 0)
        self.click("save-history")
        rows = self.table("history.csv")
        self.assertEqual(len(rows), 6)
        self.assertAlmostEqual(float(rows[-1][-1]), 0.010, delta=5e-4)
        self.assert_clean(server.origin)

    def test_video(self):
        """Its frames can be looked at in any order, before and after measuring."""
        shape = SIZE[::-1]
        video = cv2.VideoWriter(str(self.folder / "clip.avi"), cv2.VideoWriter_fourcc(*"FFV1"), 10, shape, False)
        if not video.isOpened():
            self.skipTest("this OpenCV writes no video without loss")
        images = [np.round(stretched(strain)).astype(np.uint8) for strain in STRAINS]
        for image in images:
            video.write(image)
        video.release()
        server = ViewServer(dic_program.PROGRAM, self.folder, "clip.avi", "--no-browser")
        self.addCleanup(server.stop)
        self.open(server.address)
        self.assertIn("1 / 4", self.text("frame-name"))
        for frame in (2, 0, 3, 1):
            self.browser.execute_script("const f = document.getElementById('frame'); f.value = arguments[0];"
                                        "f.dispatchEvent(new Event('input'))", frame)
            self.until(lambda: f"{frame + 1} / 4" in self.text("frame-name"))
            for x, y in ((100, 80), (171, 123)):
                grey = float(re.search(r"grey (\d+)", self.hover(x, y))[1])
                at = re.search(r"x ([\d.]+)  y ([\d.]+)", self.text("cursor"))
                expected = images[frame][round(float(at[2])), round(float(at[1]))]
                self.assertAlmostEqual(grey, expected, delta=1)
        self.type("option-subset", "21")
        self.type("option-step", "10")
        self.click("run")
        self.until(lambda: "Done" in self.text("message"))
        self.choose("quantity", "exx")
        self.choose("background", "current")
        self.until(lambda: " exx " in self.hover(100, 80))
        self.assertAlmostEqual(float(re.search(r" exx (-?[\d.]+)", self.hover(100, 80))[1]), STRAINS[-1], delta=5e-4)
        self.assertIn("3 / 3  clip_000003", self.text("frame-name"))
        self.assert_clean(server.origin)

    def test_settings_and_errors(self):
        (self.folder / "my.toml").write_text('subset = 25\nroi-polygon = ["20,20 200,20 200,150 20,150"]\nstrain-measure = "hencky"\n')
        server = ViewServer(dic_program.PROGRAM, self.folder, *self.names, "--no-browser")
        self.addCleanup(server.stop)
        self.open(server.address)
        self.upload("load-toml", self.folder / "my.toml")
        self.until(lambda: self.by_id("option-subset").get_attribute("value") == "25")
        self.assertEqual(self.browser.find_element(By.CSS_SELECTOR, "#shapes input").get_attribute("value"),
                         "20,20 200,20 200,150 20,150")
        self.assertIn("--strain-measure hencky", self.by_id("command").get_attribute("value"))
        self.type("option-subset", "24")
        self.click("run")
        self.until(lambda: self.by_id("message").get_attribute("data-kind") == "error")
        self.assertIn("odd", self.text("message"))
        # The page's own log of an answer with an error is expected here.
        self.browser.get_log("browser")
        self.assert_clean(server.origin)

    def test_report_alone(self):
        self.succeed("track", *self.names, "--subset", "21", "--step", "10", "--no-pictures")
        self.succeed("report", "dic_out", "--specimen", "<b>steel</b>", "--note", "first\nsecond")
        fields = self.fields()
        for path in (*self.folder.glob("*.png"), *(self.folder / "dic_out").iterdir()):
            path.unlink()  # it needs nothing else
        self.open((self.folder / "report.html").as_uri())
        self.until(lambda: "3 / 3" in self.text("frame-name"))
        for frame in range(3):
            self.browser.execute_script("const f = document.getElementById('frame'); f.value = arguments[0];"
                                        "f.dispatchEvent(new Event('input'))", frame)
            self.until(lambda: f"{frame + 1} / 3" in self.text("frame-name"))
            shown = self.browser.execute_async_script("""
                const [frame, done] = arguments;
                Promise.all([import("dic/report_source.js")]).then(async ([{ReportSource}]) => {
                  const source = new ReportSource(JSON.parse(document.getElementById("report-data").textContent));
                  const all = {};
                  for (const name of ["u", "exx", "zncc", "status", "sigma_u"])
                    all[name] = Array.from(await source.load(name, frame), (v) => (Number.isNaN(v) ? null : v));
                  done(all);
                });""", frame)
            for name, limit in (("u", 0.1 * np.nanmedian(fields["sigma_u"])), ("zncc", 1e-3), ("status", 0),
                                ("exx", 0.1 * np.nanmedian(fields["sigma_exx"]))):
                values = np.array([np.nan if v is None else v for v in shown[name]]).reshape(fields[name][frame].shape)
                np.testing.assert_allclose(values, fields[name][frame], rtol=0, atol=limit, err_msg=name)
        self.assertIn(" u ", self.hover(100, 80))
        self.assertIn("grey", self.hover(100, 80))
        self.click("probe-extensometer")
        self.pointer((60, 80), (260, 80), drag=True)
        time.sleep(0.4)
        self.click("save-history")
        rows = self.table("history.csv")
        np.testing.assert_allclose([float(row[2]) for row in rows[1:]], STRAINS[1:], atol=1e-4)
        self.click("tab-report")
        self.assertEqual([self.value("report-specimen"), self.value("report-note")], ["<b>steel</b>", "first\nsecond"])
        self.assertEqual(self.by_id("report-camera").get_attribute("placeholder"), "not stated")
        for words in ("virtual strain gauge", "61 px", NAME.format(1)):
            self.assertIn(words, self.text("panel-report"))
        self.assert_clean("file:")


if __name__ == "__main__":
    main()
