"""A page in Chromium without a window, with the images of a test in which a pattern is stretched along x."""

import csv
import re
import time

import numpy as np
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import WebDriverWait

import dic_program
from dic_program import ProgramTest, speckle, write_image
from page_driver import PageDriver, open_browser
from view_server import ViewServer

SIZE = (240, 320)  # height, width
STRAINS = [0, 0.002, 0.005, 0.01]  # stretch along x of every frame
NAME = "<img src=x onerror=document.title='caught'>_{}.png"


def stretched(strain):
    """A pattern that was stretched along x about the left edge: u = strain * x in the reference."""
    x = np.arange(SIZE[1], dtype=float)
    return speckle(*SIZE, u=x - x / (1 + strain))


class BrowserTest(PageDriver, ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = open_browser(1366, 768, "--disable-background-networking", "--disable-component-update",
                                   logs={"browser": "ALL", "performance": "ALL"})
        cls.addClassCleanup(cls.browser.quit)

    def setUp(self):
        super().setUp()
        self.names = [NAME.format(k) for k in range(len(STRAINS))]
        for name, strain in zip(self.names, STRAINS):
            write_image(self.folder / name, stretched(strain))
        self.saved = self.folder / "saved"
        self.saved.mkdir()
        self.browser.execute_cdp_cmd("Browser.setDownloadBehavior",
                                     {"behavior": "allow", "downloadPath": str(self.saved)})
        for kind in ("browser", "performance"):
            self.browser.get_log(kind)  # of earlier tests

    # The browser ------------------------------------------------------------------------------------

    def open(self, address):
        self.address = address
        self.browser.get(address)
        self.until(lambda: self.browser.execute_script("return document.body.dataset.ready"))

    def until(self, condition, seconds=60):
        # The page makes parts anew, so that an element may be gone when it is asked.
        waiting = WebDriverWait(self.browser, seconds, 0.05, ignored_exceptions=[StaleElementReferenceException])
        return waiting.until(lambda _: condition())

    def text(self, name):
        return self.browser.execute_script("return document.getElementById(arguments[0]).textContent", name)

    def hover(self, x, y):
        ActionChains(self.browser, duration=10).move_to_element_with_offset(
            self.by_id("canvas"), *self.offset(x, y)).perform()
        time.sleep(0.15)
        return self.text("cursor")

    def file(self, name):
        path = self.saved / name
        self.until(path.exists)
        time.sleep(0.1)
        return path

    def table(self, name):
        with self.file(name).open(newline="") as file:
            return list(csv.reader(file))

    def assert_clean(self, *origins):
        """No error in the console, and no request to anywhere but these addresses."""
        self.assertEqual([entry for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"], [])
        for entry in self.browser.get_log("performance"):
            for url in re.findall(r'"Network.requestWillBeSent".*?"request":\{.*?"url":"([^"]*)"', entry["message"]):
                self.assertTrue(url.startswith((*origins, "data:", "blob:", "chrome")), url)
        self.assertNotEqual(self.browser.title, "caught")

    def serve(self, *arguments):
        """Opens the page of `dic view` with these arguments."""
        server = ViewServer(dic_program.PROGRAM, self.folder, *arguments, "--no-browser")
        self.addCleanup(server.stop)
        self.open(server.address)
        return server

    def measure(self, *arguments):
        self.succeed("track", *self.names, "--subset", "21", "--step", "10", "--no-pictures", *arguments)

    def script(self, code, *arguments):
        return self.browser.execute_script(code, *arguments)

    def module(self, name, code, *arguments):
        """The value of an expression in which `m` is a module of the page and `a` are the arguments."""
        return self.browser.execute_async_script(
            f"const a = [...arguments], done = a.pop(); import('dic/{name}.js').then(async (m) => done(await ({code})));", *arguments)

    def choose_entry(self, name):
        """Clicks an entry of the dialog that lists files and folders as soon as it is listed."""
        self.until(lambda: self.script("const entry = document.querySelector(`#chooser-list [data-name='${arguments[0]}']`);"
                                       "entry?.click(); return Boolean(entry)", name))

    def value(self, name):
        return self.by_id(name).get_attribute("value")
