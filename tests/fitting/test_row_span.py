"""Tables of more columns than rows: the map is learned in the span of its rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification

from hopefold import SHOPE, load
from methods import plan_for

QUICK = {"max_epochs": 20, "random_state": 0}


@pytest.fixture(scope="module")
def wide():
    """120 rows of 400 columns, and as many new ones."""
    X, y = make_classification(
        620, 400, n_informative=10, n_redundant=20, class_sep=2.0, random_state=0
    )
    return X[:120], y[:120], X[120:], y[120:]


@pytest.fixture(scope="module")
def fitted(wide):
    X, y, *_ = wide
    return SHOPE(**QUICK, validation_fraction=0).fit(X, y)


def test_weights_and_exemplars_are_in_the_span_of_the_rows(fitted, wide):
    rows = torch.from_numpy(fitted.scale_.apply(wide[0])).double()
    _, _, basis = torch.linalg.svd(rows, full_matrices=False)
    C = fitted.map_.layers[0].C.detach().double()
    exemplars = torch.from_numpy(fitted.scale_.apply(fitted.exemplars_)).double()
    for found in (C, exemplars):
        outside = found - found @ basis.T @ basis
        assert outside.abs().max() < 1e-4 * found.abs().max()


def test_a_row_outside_of_the_span_has_the_point_of_its_projection(fitted, wide):
    rows = torch.from_numpy(fitted.scale_.apply(wide[0])).double()
    _, _, basis = torch.linalg.svd(rows, full_matrices=False)
    new = torch.from_numpy(fitted.scale_.apply(wide[2][:5])).double()
    projected = fitted.scale_.undo((new @ basis.T @ basis).float().numpy())
    np.testing.assert_allclose(
        fitted.transform(projected), fitted.transform(wide[2][:5]), atol=2e-3
    )


def test_new_rows_are_predicted(wide):
    X, y, X_new, y_new = wide
    model = SHOPE(random_state=0).fit(X, y)
    assert model.score(X_new, y_new) > 0.7
    low, high = model.validation_interval_
    assert low <= 1 - model.score(X_new, y_new) <= high


def test_the_same_seed_gives_the_same_bits_and_a_file_keeps_them(fitted, wide, tmp_path):
    X, y, X_new, _ = wide
    again = SHOPE(**QUICK, validation_fraction=0).fit(X, y)
    np.testing.assert_array_equal(again.transform(X_new), fitted.transform(X_new))
    fitted.save(tmp_path / "wide.hope")
    loaded = load(tmp_path / "wide.hope")
    np.testing.assert_array_equal(loaded.transform(X_new), fitted.transform(X_new))


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"n_columns": 400}, True),
        ({"n_columns": 100}, False),
        ({"n_columns": 400, "is_dense": False}, False),
        ({"n_columns": 400, "has_pixels": True}, False),
        ({"n_columns": 9_000, "n_training": 2_000}, False),
    ],
    ids=str,
)
def test_it_is_planned_for_few_dense_rows_of_many_columns(facts, expected):
    known = {"n_features": 400, "n_rows": 120, "n_training": 120, "is_dense": True}
    known |= {"n_labeled": 120, "n_classes": 2}
    assert plan_for(SHOPE(), **{**known, **facts}).in_row_span == expected
