"""Pictures of what drives a map."""

from __future__ import annotations

import io

import numpy as np
import pytest

from hopefold import HOPE
from hopefold.report.interaction_figures import (
    N_LINES,
    draw_interactions,
    draw_pixel_pairs,
    pair_weights,
)

NAMES = ["$a$", "b_b", "<c>"]


@pytest.fixture(scope="module")
def model():
    X = np.random.RandomState(0).normal(size=(300, 3))
    return HOPE(order=2, n_factors=8, max_epochs=5, random_state=0).fit(X, X[:, 0] * X[:, 2] > 0)


def written(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    return buffer.getvalue().decode()


def test_bars_are_as_long_as_weights_and_named(model):
    found = model.interactions(5, feature_names=NAMES)
    (axes,) = draw_interactions(found).axes
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], found.weights)
    assert len(axes.get_yticklabels()) == 5


def test_names_that_look_like_formulas_are_drawn_as_they_are(model):
    pairs = model.interactions(order=2, feature_names=NAMES)
    assert written(draw_interactions(model.interactions(5, feature_names=NAMES), pairs, NAMES))


def test_the_heat_map_holds_each_pair_on_both_sides(model):
    pairs = model.interactions(order=2)
    table = pair_weights(pairs, 3)
    np.testing.assert_array_equal(table, table.T)
    place = pairs.terms.index((0, 2))
    assert table[2, 0] == pairs.weights[place]


def test_lines_join_the_pixels_of_the_heaviest_pairs(digits):
    X, _, y, _ = digits
    model = HOPE(order=2, n_factors=8, max_epochs=2, random_state=0).fit(X, y)
    pairs = model.interactions(order=2, top=100)
    importances = model.feature_importances_
    figure = draw_pixel_pairs(importances, pairs, model.exemplars_, model.exemplar_labels_, (8, 8))
    drawn = figure.axes[1].lines
    assert len(drawn) == N_LINES
    one, other = pairs.terms[0]
    assert list(drawn[0].get_xdata()) == [one % 8, other % 8][: len(drawn[0].get_xdata())]


def test_long_names_are_told_by_what_differs():
    X = np.random.RandomState(0).normal(size=(300, 3))
    names = [f"measured concentration of {what} in mg per litre" for what in ("A", "B", "C")]
    model = HOPE(order=2, n_factors=8, max_epochs=5, random_state=0).fit(X, X[:, 0] * X[:, 2] > 0)
    found, pairs = (model.interactions(order=2, feature_names=names) for _ in range(2))
    bars, heat = draw_interactions(found, pairs, names).axes[:2]
    shown = [label.get_text() for label in heat.get_yticklabels()]
    assert shown == ["…A…", "…B…", "…C…"]
    assert bars.get_yticklabels()[found.terms.index((0, 2))].get_text() == "…A… × …C…"


def test_few_bars_leave_room_for_the_names_of_many_columns():
    X = np.random.RandomState(0).normal(size=(300, 13))
    names = [f"a column of the table, {number}" for number in range(13)]
    model = HOPE(order=2, n_factors=8, max_epochs=2, random_state=0).fit(X, X[:, 0] > 0)
    pairs = model.interactions(50, order=2, feature_names=names)
    figure = draw_interactions(model.interactions(2, feature_names=names), pairs, names)
    figure.draw_without_rendering()
    labels = figure.axes[1].get_yticklabels()
    tops = [label.get_window_extent().y0 for label in labels]
    heights = [label.get_window_extent().height for label in labels]
    assert min(np.abs(np.diff(tops))) >= 0.9 * max(heights)
