from __future__ import annotations

import base64
import html
import io
import json
import re

import numpy as np
import pytest
from PIL import Image

from hopefold import SHOPE
from hopefold.errors import NoSuchFolder
from hopefold.report import scene as scenes
from hopefold.report.curves import training_curves
from hopefold.report.payload import payload, thumbnail_sheets, to_json
from hopefold.report.render import PAGE, SCRIPTS, render, write_report
from hopefold.report.scene import make_scene


def test_a_page_is_one_file_with_plotly_in_it_once(digits_scene):
    page = render(digits_scene)
    assert page.count("plotly.js v") == 1
    assert len(re.findall(r"<script>", page)) == 2
    own = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)""", own)
    assert "default-src 'none'" in html.unescape(own)


def test_the_same_scene_gives_the_same_page(digits_scene):
    assert render(digits_scene) == render(digits_scene)


def test_arrays_come_back_as_they_were(digits_scene):
    data = json.loads(to_json(digits_scene))
    for name, values in {
        "x": digits_scene.points[:, 0],
        "y": digits_scene.points[:, 1],
        "true": digits_scene.true,
        "predicted": digits_scene.predicted,
        "leading": digits_scene.leading.ravel(),
        "flags": digits_scene.training + 2 * digits_scene.far,
    }.items():
        got = np.frombuffer(base64.b64decode(data[name]["bytes"]), data[name]["type"])
        np.testing.assert_array_equal(got, values)


def test_json_is_safe_within_a_script_element(nasty_scene):
    text = to_json(nasty_scene)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text)["classes"] == list(nasty_scene.classes)


def test_user_text_is_never_markup(nasty_scene):
    page = render(nasty_scene)
    assert "onerror=alert(1)>" not in page
    assert "<b>bold" not in page


def test_thumbnails_are_on_sheets_in_order(digits_scene):
    sheets = thumbnail_sheets(digits_scene.display)
    assert len(sheets) == 2
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(sheets[1]))).convert("L"))
    row = 1024 + 37
    np.testing.assert_array_equal(sheet[8:16, 40:48], digits_scene.display.thumbnails[row])


def test_large_whole_numbers_keep_their_digits(three_blobs):
    X, y = three_blobs
    X = X.copy()
    X[:, 0] = 1_700_000_001 + 1_000 * y
    model = SHOPE(max_epochs=2, n_factors=4, n_units=4, random_state=0).fit(X, y)
    columns = payload(make_scene(model, X, y))["columns"]
    assert columns["values"]["type"] == "float64"


def test_the_page_says_when_only_some_rows_are_drawn(three_blobs, monkeypatch):
    X, y = three_blobs
    model = SHOPE(max_epochs=2, n_factors=4, n_units=4, random_state=0).fit(X, y)
    assert "Drawn are" not in render(make_scene(model, X, y))
    monkeypatch.setattr(scenes, "MOST_ROWS", 80)
    monkeypatch.setattr(scenes, "SAMPLE", 30)
    assert "Drawn are 30 of 90 rows" in render(make_scene(model, X, y))


def test_the_page_says_how_to_run_the_permutation_test(digits_scene):
    assert "permutation_test(model, X, y" in render(digits_scene)


def test_curves_go_from_the_first_epoch_to_the_last_and_show_the_one_kept():
    history = [{"epoch": k, "loss": 4.0 - k, "validation_error": 0.5 / k} for k in (1, 2, 3)]
    loss, error = training_curves(history, kept=2)
    assert loss.path == "M0.0,0.0 L210.0,50.0 L420.0,100.0"
    assert loss.kept == pytest.approx((210.0, 50.0))
    assert error.last == "25.0\u202f%"
    assert training_curves([], kept=0) == []


def test_every_script_of_the_page_is_in_it():
    assert {path.name for path in PAGE.iterdir() if path.name.endswith(".js")} == {
        f"{name}.js" for name in SCRIPTS
    }


def test_a_report_that_cannot_be_written_leaves_nothing(digits_scene, tmp_path):
    with pytest.raises(NoSuchFolder):
        write_report(digits_scene, tmp_path / "no" / "report.html")
    assert list(tmp_path.iterdir()) == []
