"""Take the pictures of a report that the docs show, in Chromium.

python benchmarks/report_pictures.py
"""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hopefold import SHOPE
from hopefold.report.render import write_report
from hopefold.report.scene import make_scene

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def write_digits(path: Path) -> str:
    """Write the report on the digits, and return the id of a misclassified row."""
    X, y = load_digits(return_X_y=True)
    learned, _ = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=0)
    training = np.isin(np.arange(len(y)), learned)
    model = SHOPE(random_state=0).fit(X[learned], y[learned])
    title = "Handwritten digits"
    scene = make_scene(model, X, y, image_shape=(8, 8), title=title, training=training)
    write_report(scene, path)
    return str(np.flatnonzero((scene.true != scene.predicted) & ~training)[0])


def take(browser: Browser, page: Path, row: str, scheme: str) -> None:
    """Take a picture of the top of the page, with the card of a row."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 960}, color_scheme=scheme, device_scale_factor=1.25
    )
    report = context.new_page()
    report.goto(page.as_uri())
    report.wait_for_selector("#map[data-ready]")
    report.fill("#wanted", row)
    report.press("#wanted", "Enter")
    report.evaluate("() => { document.activeElement.blur(); document.forms[0].reset(); }")
    report.wait_for_timeout(500)
    name = "report.png" if scheme == "light" else f"report-{scheme}.png"
    top = {"x": 0, "y": 0, "width": 1280, "height": 1255}
    picture = Image.open(io.BytesIO(report.screenshot(full_page=True, clip=top)))
    picture.convert("RGB").save(IMAGES / name, optimize=True)
    context.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "digits.html"
        row = write_digits(page)
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            take(browser, page, row, scheme)
        browser.close()
