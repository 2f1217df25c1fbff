"""Reports in a real browser: what people do, and that nothing goes wrong while they do it."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from PIL import Image

from hopefold import SHOPE
from hopefold.report.render import write_report
from hopefold.report.scene import make_scene


@pytest.fixture(scope="module")
def sixty(tmp_path_factory, many_blobs):
    """A table of 60 classes."""
    X, codes = many_blobs(60, 1_200)
    y = np.array([f"species {code:02d}" for code in range(60)])[codes]
    model = SHOPE(max_epochs=30, n_factors=40, n_units=40, random_state=0).fit(X[:600], y[:600])
    X[-1] = 300  # like nothing else
    names = ["length", "width", "height", "mass", "age", "depth"]
    scene = make_scene(model, X[600:], y[600:], names=names, title="Sixty species")
    path = tmp_path_factory.mktemp("report") / "sixty.html"
    write_report(scene, path)
    return scene, path


@pytest.fixture(scope="module")
def table(visit, sixty):
    """The report on the table, in a browser."""
    return visit(sixty[1])


def test_hovering_over_a_point_shows_its_card(report, digits_scene):
    row = int(np.flatnonzero(digits_scene.true == 3)[7])
    report.hover(trace=3, point=7)
    shown = int(report.page.locator("#card").get_attribute("data-row"))
    assert digits_scene.true[shown] == 3
    assert np.linalg.norm(digits_scene.points[shown] - digits_scene.points[row]) < 0.5
    card = report.card()
    assert f"Row {shown}" in card
    for words in ("True", "Predicted", "Nearest exemplar", "Nearest rows", "%"):
        assert words in card
    assert report.page.locator("#card .thumbnail").count() == 6


def test_rows_under_an_exemplar_can_be_pointed_at(report, digits_scene):
    exemplar_trace = 11  # after ten classes and the crosses
    report.hover(trace=exemplar_trace, point=0)
    shown = int(report.page.locator("#card").get_attribute("data-row"))
    away = np.linalg.norm(digits_scene.points - digits_scene.exemplars.points[0], axis=1)
    script = (
        "() => { const { range, _length } = map._fullLayout.xaxis; return [...range, _length]; }"
    )
    left, right, width = report.page.evaluate(script)
    assert away[shown] < 13 * (right - left) / width, "within thirteen pixels"


def test_the_card_names_the_nearest_rows_and_the_probabilities(report, digits_scene):
    report.hover(trace=5, point=0)
    shown = int(report.page.locator("#card").get_attribute("data-row"))
    away = np.linalg.norm(digits_scene.points - digits_scene.points[shown], axis=1)
    nearest = np.argsort(away)[1:6]
    titles = [
        button.get_attribute("title") for button in report.page.locator(".neighbors button").all()
    ]
    assert {int(title.split(",")[0]) for title in titles} == set(nearest.tolist())
    shares = report.page.locator(".shares .number").all_inner_texts()
    told = [float(share.split("\u202f")[0].lstrip("> ")) for share in shares]
    np.testing.assert_allclose(told, 100 * digits_scene.shares[shown], atol=0.11)


def test_a_thumbnail_shows_the_pixels_of_its_row(report, digits_scene):
    report.page.fill("#wanted", "1234")
    report.page.press("#wanted", "Enter")
    assert report.page.locator("#card").get_attribute("data-row") == "1234"
    png = report.page.locator("#card .head .thumbnail").screenshot()
    seen = np.asarray(Image.open(io.BytesIO(png)).convert("L"))[6::13, 6::13]
    np.testing.assert_allclose(seen, digits_scene.display.thumbnails[1234], atol=1)


def test_the_legend_isolates_a_class_and_shows_all_again(report, digits_scene):
    chip = report.page.locator("#legend [data-code='4']")
    chip.click()
    counts = np.bincount(digits_scene.true)
    assert report.lit()[:10] == [counts[4] if code == 4 else 0 for code in range(10)]
    assert report.chosen() == f"{counts[4]} rows of class 4"
    chip.click()
    assert report.lit()[:10] == [None] * 10
    assert report.page.locator("#chosen").is_hidden()


def test_the_lasso_lists_rows_and_downloads_them(report, digits_scene):
    report.page.click("[data-mode=lasso]")
    box = report.page.locator("#map").bounding_box()
    left, top, width, height = (box[key] for key in ("x", "y", "width", "height"))
    corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.5), (0.02, 0.5), (0.02, 0.03)]
    report.page.mouse.move(left + 0.02 * width, top + 0.02 * height)
    report.page.mouse.down()
    for right, down in corners[1:]:
        report.page.mouse.move(left + right * width, top + down * height, steps=4)
    report.page.mouse.up()
    report.page.wait_for_selector("#chosen h2")
    n_chosen = sum(report.lit()[:10])
    assert 0 < n_chosen < len(digits_scene.true)
    assert report.chosen() == f"{n_chosen:,} rows in the lasso"
    assert report.page.locator("#chosen tbody tr").count() == min(n_chosen, 100)
    with report.page.expect_download() as download:
        report.page.click("#download")
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_bytes().decode())))
    assert len(rows) == n_chosen
    for row in rows:
        number = int(row["id"])
        assert row["true"] == digits_scene.classes[digits_scene.true[number]]
        assert float(row["x"]) == pytest.approx(digits_scene.points[number, 0], rel=1e-5)
    highest = min(float(row["y"]) for row in rows)
    assert (digits_scene.points[:, 1] > highest).sum() <= n_chosen


def test_clicking_an_exemplar_lights_its_region(report, digits_scene):
    report.page.click("[data-exemplar='9']")
    away = digits_scene.points[:, None] - digits_scene.exemplars.points[None]
    own = (np.linalg.norm(away, axis=2).argmin(axis=1) == 9).sum()
    assert report.chosen() == f"{own} rows nearest to exemplar 10, of class 4"
    assert sum(report.lit()[:10]) == own
    corners = report.page.locator(".region").get_attribute("points").split()
    assert len(corners) >= 3
    report.page.click("#clear")
    assert report.page.locator(".region").get_attribute("points") == ""


def test_a_confusion_cell_filters_the_map(report, digits_scene):
    confusion = digits_scene.confusion.copy()
    np.fill_diagonal(confusion, 0)
    true, predicted = np.unravel_index(confusion.argmax(), confusion.shape)
    report.page.click(f".matrix [data-true='{true}'][data-predicted='{predicted}']")
    n = confusion[true, predicted]
    rows = "row" if n == 1 else "rows"
    assert report.chosen() == f"{n} {rows} of class {true}, predicted as {predicted}"
    assert report.lit()[:10] == [n if code == true else 0 for code in range(10)]


def test_mistaken_new_rows_are_marked_and_exemplars_are_red_circles(report, digits_scene):
    traces = report.page.evaluate(
        """() => document.getElementById("map").data.map(trace =>
            ({ type: trace.type, symbol: trace.marker.symbol, color: trace.marker.color,
               x: Array.from(trace.x) }))"""
    )
    assert {trace["type"] for trace in traces} == {"scattergl"}
    *points, mistakes, exemplars = traces
    wrong = (digits_scene.true != digits_scene.predicted) & ~digits_scene.training
    np.testing.assert_allclose(mistakes["x"], digits_scene.points[wrong, 0], rtol=1e-6)
    assert sum(len(trace["x"]) for trace in points) == len(digits_scene.true)
    assert exemplars["symbol"] == "circle-open"
    assert exemplars["color"] == ["#d1001f"] * 20


def test_sixty_classes_have_a_chip_each_and_cards_show_telling_columns(table, sixty):
    scene, _ = sixty
    assert table.page.locator("#legend [data-code]").count() == 60
    table.page.locator("#legend [data-code='59']").click()
    assert table.chosen() == "10 rows of class species 59"
    table.page.locator("#chosen tbody button").first.click()
    row = int(table.page.locator("#card").get_attribute("data-row"))
    assert scene.true[row] == 59
    names = table.page.locator(".columns th").all_inner_texts()
    assert set(names) <= {"length", "width", "height", "mass", "age", "depth"}
    values = [float(text) for text in table.page.locator(".columns td.number").all_inner_texts()]
    places = [scene.display.names.index(name) for name in names]
    np.testing.assert_allclose(values, scene.display.values[row, places], rtol=1e-3)
    assert not table.wrong


def test_a_row_like_nothing_else_is_marked(table):
    table.page.click("[data-special='far from everything']")
    assert table.chosen() == "1 row far from everything learned"
    table.page.click("#chosen tbody button")
    assert table.page.locator("#card").get_attribute("data-row") == "599"
    assert "far from everything learned" in table.card()
    assert not table.wrong


def test_user_text_is_text_everywhere(visit, nasty_scene, tmp_path):
    write_report(nasty_scene, tmp_path / "nasty.html")
    nasty = visit(tmp_path / "nasty.html")
    title = nasty_scene.title
    assert nasty.page.title() == nasty.page.locator("h1").inner_text() == title
    assert nasty.page.locator("img, b:not(figcaption b)").count() == 0
    nasty.hover(trace=0, point=3)
    assert nasty.page.locator("#card h3").inner_text().startswith(title)
    assert "</style>" in nasty.page.locator("#legend").inner_text()
    nasty.page.locator("#legend [data-code='0']").click()
    nasty.page.locator("[data-exemplar]").first.click()
    nasty.page.locator(".matrix button").first.click()
    nasty.page.fill("#wanted", title[:12])
    assert nasty.page.locator("#found button").count() == 8
    assert nasty.page.locator("img, b:not(figcaption b)").count() == 0
    assert not nasty.wrong


def test_a_row_is_found_by_its_id(report):
    report.page.fill("#wanted", "77")
    assert report.page.locator("#found button").first.inner_text().startswith("77")
    report.page.press("#wanted", "Enter")
    assert report.page.locator("#card").get_attribute("data-row") == "77"
    report.page.fill("#wanted", "no such")
    assert "no row has this id" in report.page.locator("#found").inner_text()


def test_the_keyboard_alone_goes_from_point_to_point(report, digits_scene):
    for _ in range(20):
        report.page.keyboard.press("Tab")
        if report.page.evaluate("() => document.activeElement.id") == "map":
            break
    report.page.keyboard.press("ArrowRight")
    first = int(report.page.locator("#card").get_attribute("data-row"))
    report.page.keyboard.press("ArrowUp")
    second = int(report.page.locator("#card").get_attribute("data-row"))
    assert digits_scene.points[second, 1] > digits_scene.points[first, 1]
    report.page.keyboard.press("Tab")
    report.page.keyboard.press("Enter")
    assert report.chosen().endswith("of class 0")
    report.page.keyboard.press("Escape")
    assert report.lit()[:10] == [None] * 10


def test_a_phone_shows_the_page_without_scrolling_sideways(visit, digits_report, sixty):
    for path in (digits_report, sixty[1]):
        phone = visit(path, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
        assert phone.page.evaluate("() => document.documentElement.scrollWidth") <= 390
        phone.page.touchscreen.tap(*phone.where(0, 0))
        phone.page.wait_for_selector("#card[data-row]")
        card = phone.page.locator("#card").bounding_box()
        assert card["y"] + card["height"] <= 844, "the card is on the screen, with the map"
        assert not phone.wrong


def test_text_stands_out_from_its_ground_in_the_light_and_in_the_dark(report):
    for scheme in ("dark", "light"):
        report.page.emulate_media(color_scheme=scheme)
        for selector in ("h1", ".note", ".caption", "#legend .quiet", ".matrix th"):
            assert contrast(report.page, selector) >= 4.5, (scheme, selector)


def contrast(page, selector):
    """Of text against the page, as WCAG defines it."""
    script = """selector => [getComputedStyle(document.querySelector(selector)).color,
                             getComputedStyle(document.body).backgroundColor]"""
    colors = page.evaluate(script, selector)
    channels = [
        np.array([float(part) for part in color[4:-1].split(",")]) / 255 for color in colors
    ]
    linear = [np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for c in channels]
    dark, light = sorted(float(c @ [0.2126, 0.7152, 0.0722]) for c in linear)
    return (light + 0.05) / (dark + 0.05)


def test_a_printed_page_has_the_map_in_it(report):
    pdf = report.page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert report.page.locator(".printed").count() == 0, "afterwards all is as before"
    report.page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    painted = report.page.evaluate(
        """() => Math.max(...Array.from(document.querySelectorAll(".printed"), canvas =>
            canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
                .data.reduce((most, value) => Math.max(most, value), 0)))"""
    )
    assert painted > 200
