"""Reports as people get them, opened in a real browser."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from hopefold import SHOPE
from hopefold.report.render import write_report
from hopefold.report.scene import make_scene

HOW_TO_GET_IT = (
    "reports are tested in Chromium, which is not there: apt-get install chromium, "
    "or put a chromium on the PATH"
)

#: Software WebGL, and not a word to anyone.
OPTIONS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--enable-unsafe-swiftshader",
]

NASTY = (
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "\"'&amp;{{7*7}}</style>",
    "\u2028 $x$ <b>bold</b>",
)


@pytest.fixture(scope="session")
def chromium():
    """A browser; where there is none, a skip that says how to get one, or a failure if required."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        if "HOPEFOLD_REQUIRE_CHROMIUM" in os.environ:
            pytest.fail(HOW_TO_GET_IT)
        pytest.skip(HOW_TO_GET_IT)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        yield browser
        browser.close()


class Visit:
    """A page, and everything that went wrong while it was open."""

    def __init__(self, page, path):
        self.page, self.path, self.wrong = page, path, []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("request", self._see)
        page.on("dialog", lambda dialog: self.wrong.append(f"dialog: {dialog.message}"))
        self._devtools = page.context.new_cdp_session(page)
        self._devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(path.as_uri())
        page.wait_for_selector("#map[data-ready]", timeout=60_000)

    def _hear(self, message):
        if message.type == "error":
            self.wrong.append(f"console: {message.text}")

    def _see(self, request):
        if request.url != self.path.as_uri() and not request.url.startswith(("data:", "blob:")):
            self.wrong.append(f"request: {request.url}")

    def cpu_seconds(self):
        """CPU time of the page's main thread, which other work on the machine does not lengthen."""
        metrics = self._devtools.send("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def where(self, trace, point):
        """Where a point of the map is on the screen."""
        self.page.locator("#map").scroll_into_view_if_needed()
        script = """([trace, point]) => {
            const map = document.getElementById("map"), box = map.getBoundingClientRect();
            const { x, y } = map._fullData[trace], { xaxis, yaxis } = map._fullLayout;
            return [box.left + xaxis._offset + xaxis.d2p(x[point]),
                    box.top + yaxis._offset + yaxis.d2p(y[point])];
        }"""
        return self.page.evaluate(script, [trace, point])

    def hover(self, trace, point):
        """Go to a point from where there is nothing, and wait for its card."""
        self.page.mouse.move(2, 2)
        self.page.evaluate("() => delete document.getElementById('card').dataset.row")
        self.page.mouse.move(*self.where(trace, point))
        self.page.wait_for_selector("#card[data-row]")

    def lit(self):
        """How many points each class has lit: None, if nothing is chosen."""
        script = """() => document.getElementById("map")._fullData
            .map(trace => trace.selectedpoints ? trace.selectedpoints.length : null)"""
        return self.page.evaluate(script)

    def chosen(self):
        return self.page.locator("#chosen h2").inner_text()

    def card(self):
        return self.page.locator("#card").inner_text()


@pytest.fixture(scope="session")
def visit(chromium):
    """Opens a report."""

    def open_report(path, **options):
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        return Visit(context.new_page(), path)

    return open_report


@pytest.fixture(scope="session")
def digits_visit(visit, digits_report):
    return visit(digits_report)


@pytest.fixture
def report(digits_visit):
    """The report on the digits, with all rows lit; nothing may go wrong during a test."""
    digits_visit.page.keyboard.press("Escape")
    digits_visit.page.click("#whole")
    digits_visit.wrong.clear()
    yield digits_visit
    assert not digits_visit.wrong


@pytest.fixture(scope="session")
def digits_scene(digits):
    X, X_test, y, y_test = digits
    model = SHOPE(max_epochs=15, n_factors=60, n_units=60, random_state=0).fit(X, y)
    training = np.repeat([True, False], [len(y), len(y_test)])
    return make_scene(
        model,
        np.concatenate([X, X_test]),
        np.concatenate([y, y_test]),
        image_shape=(8, 8),
        title="Digits",
        training=training,
    )


@pytest.fixture(scope="session")
def digits_report(digits_scene, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "digits.html"
    write_report(digits_scene, path)
    return path


@pytest.fixture(scope="session")
def many_blobs():
    """Makes rows of classes that are easy to tell apart, in six columns."""

    def make(n_classes, n_rows):
        random = np.random.RandomState(0)
        codes = np.arange(n_rows) % n_classes
        centers = 5 * random.normal(size=(n_classes, 6))
        return centers[codes] + random.normal(size=(n_rows, 6)), codes

    return make


@pytest.fixture(scope="session")
def nasty_scene(many_blobs):
    """Labels, names of columns, ids and a title that would break a careless page."""
    X, codes = many_blobs(len(NASTY), 120)
    y = np.array(NASTY)[codes]
    model = SHOPE(max_epochs=10, n_factors=20, n_units=20, random_state=0).fit(X[::2], y[::2])
    return make_scene(
        model,
        X,
        y,
        ids=[f"{NASTY[0]} {row}" for row in range(len(y))],
        names=[f"{NASTY[column % 4]} {column}" for column in range(6)],
        title=NASTY[0],
        training=np.arange(len(y)) % 2 == 0,
    )
