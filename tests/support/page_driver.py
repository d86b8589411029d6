"""Mouse and keyboard on the page of `dic view`, in Chromium without a window: for the tests of the page and for pictures of it."""

import os

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select


def open_browser(width, height, *arguments, logs=None):
    options = webdriver.ChromeOptions()
    options.binary_location = os.environ.get("DIC_CHROMIUM", "/usr/bin/chromium")
    for argument in ("--headless=new", "--no-sandbox", f"--window-size={width},{height}", "--force-device-scale-factor=1", *arguments):
        options.add_argument(argument)
    if logs:
        options.set_capability("goog:loggingPrefs", logs)
    return webdriver.Chrome(options, Service(os.environ.get("DIC_CHROMEDRIVER", "/usr/bin/chromedriver")))


class PageDriver:
    """Elements are named by their id; `self.browser` has the page open."""

    def by_id(self, name):
        return self.browser.find_element(By.ID, name)

    def show(self, name):
        """Opens the section around an element and scrolls to it."""
        element = self.by_id(name)
        self.browser.execute_script("arguments[0].closest('details')?.setAttribute('open', '')", element)
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        return element

    def click(self, name):
        self.show(name).click()

    def type(self, name, value):
        self.click(name)
        self.by_id(name).clear()
        self.by_id(name).send_keys(value, Keys.TAB)

    def choose(self, name, value):
        Select(self.show(name)).select_by_value(value)

    def upload(self, button, path):
        self.click(button)
        self.browser.find_element(By.CSS_SELECTOR, "input[type=file]").send_keys(str(path))

    def offset(self, x, y):
        """Offset of a place in the image from the middle of the canvas, screen px."""
        return self.browser.execute_async_script("""
            const [x, y, done] = arguments;
            import("dic/stage.js").then(({stage}) => {
              const s = stage(), at = s.toScreen({x, y});
              done([Math.round(at.x - s.width / 2), Math.round(at.y - s.height / 2)]);
            });""", x, y)

    def pointer(self, *places, drag=False):
        """Clicks one place of the image (px) after the other, or drags from the first to the last."""
        canvas, actions = self.by_id("canvas"), ActionChains(self.browser, duration=20)
        for k, (x, y) in enumerate(places):
            actions.move_to_element_with_offset(canvas, *self.offset(x, y))
            if not drag:
                actions.click()
            elif k == 0:
                actions.click_and_hold()
        if drag:
            actions.release()
        actions.perform()
