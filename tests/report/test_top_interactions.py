"""What a report says of the products that drive its map."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from hopefold import HOPE, SHOPE
from hopefold.baselines import LDA
from hopefold.report import render, top_interactions
from hopefold.report.scene import make_scene


@pytest.fixture(scope="module")
def rows():
    X = np.random.RandomState(0).normal(size=(300, 4))
    return X, np.where(X[:, 0] * X[:, 2] > 0, "same", "other")


@pytest.fixture(scope="module")
def scene(rows):
    X, y = rows
    model = HOPE(order=2, n_factors=8, random_state=0).fit(X[::2], y[::2])
    return make_scene(model, X, y, names=["height", "<b>", "width", "$x$"])


def test_the_panel_names_the_product_that_makes_the_classes_first(scene):
    assert scene.interactions.names[0] == "height × width"
    panel = render.render(scene).split("What drives the map")[1]
    assert panel.index("height × width</th>") < panel.index("&lt;b&gt;</th>")


def test_the_classes_that_a_product_moves_apart_are_told(scene):
    first = render._interactions(scene)[0]
    assert {scene.classes[first.low], scene.classes[first.high]} == {"same", "other"}


@pytest.mark.parametrize("kind", [HOPE, SHOPE])
def test_the_terms_of_a_row_are_its_largest(rows, kind):
    X, y = rows
    model = kind(order=2, n_factors=8, max_epochs=5, random_state=0).fit(X, y)
    found = make_scene(model, X, y).interactions
    for row in (0, 7):
        why = model.explain(X[row], top=top_interactions.N_OWN)
        assert [found.names[place].replace("column ", "x") for place in found.own[row]] == list(
            why.names
        )
        np.testing.assert_allclose(found.moves[row], why.values, rtol=1e-4, atol=1e-5)


def test_a_map_of_several_layers_has_a_panel_that_says_what_is_linearized(rows):
    X, y = rows
    model = SHOPE(n_units=(6, 5), n_factors=4, max_epochs=1, random_state=0).fit(X, y)
    page = render.render(make_scene(model, X, y))
    panel = page.split("What drives the map</h2>")[1].split("</section>")[0]
    assert "with all above the first layer&#39;s products linearized" in panel
    assert "<table>" in panel


def test_of_many_rows_the_misclassified_ones_come_first(monkeypatch):
    monkeypatch.setattr(top_interactions, "MOST_DETAILED", 5)
    misclassified = np.zeros(50, bool)
    misclassified[[3, 40]] = True
    chosen = top_interactions._choose(misclassified)
    assert len(chosen) == 5
    assert {3, 40} <= set(chosen)
    assert (np.diff(chosen) > 0).all()


def test_a_method_that_multiplies_nothing_has_no_panel(rows):
    X, y = rows
    made = make_scene(LDA(n_components=2).fit(*_three(X, y)), *_three(X, y))
    assert made.interactions is None
    assert "What drives the map" not in render.render(made)


def _three(X, y):
    return X, np.where(X[:, 1] > 1, "third", y)


def test_sparse_rows_and_labels_that_the_model_does_not_know(rows):
    X, y = rows
    model = HOPE(order=2, n_factors=8, max_epochs=3, random_state=0).fit(X, y)
    strange = np.where(np.arange(300) < 5, "new", y)
    dense, thin = (make_scene(model, rows_, strange) for rows_ in (X, sparse.csr_array(X)))
    assert dense.interactions.names == thin.interactions.names
    assert dense.interactions.shifts.shape[1] == 3


def test_one_class_alone_is_not_set_against_another(rows):
    X, y = rows
    model = HOPE(order=2, n_factors=8, max_epochs=3, random_state=0).fit(X, y)
    page = render.render(make_scene(model, X[y == y[0]], y[y == y[0]]))
    assert "What drives the map" in page
    assert "Apart from each other" not in page


def test_a_report_of_rows_that_are_all_the_same_has_no_panel(rows):
    X, y = rows
    model = HOPE(order=2, n_factors=8, max_epochs=3, random_state=0).fit(X, y)
    assert make_scene(model, X[:1], y[:1]).interactions is None


def test_images_have_a_picture_of_their_pixels_and_lines(digits_scene):
    pictures = list(render._pixel_pictures(digits_scene))
    assert [picture.name for picture in pictures] == ["weight of pixels", *map(str, range(10))]
    assert not pictures[0].lines
    assert len(pictures[1].lines) == top_interactions.N_LINES


def test_the_card_tells_what_moves_a_row(report, digits_scene):
    report.page.locator("#map").focus()
    report.page.keyboard.press("ArrowRight")
    row = int(report.page.locator("#card").get_attribute("data-row"))
    own = digits_scene.interactions.names[digits_scene.interactions.own[row, 0]]
    told = report.page.locator("#card .interactions").inner_text()
    assert "What moves it from the mean row" in told
    assert own in told
