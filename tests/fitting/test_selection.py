"""Columns, layers and decay that are compared on a part of the training rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hopefold import HOPE, SHOPE, load
from hopefold.core.maps import SigmoidHighOrder
from hopefold.fitting.selection import column_importance


@pytest.fixture(scope="module")
def product():
    """The sign of a product of two columns among 20, with a tenth of the labels flipped."""
    random = np.random.RandomState(0)
    X = random.normal(size=(2_500, 20))
    return X, (X[:, 3] * X[:, 11] > 0) ^ (random.rand(len(X)) < 0.1)


@pytest.fixture(scope="module")
def fitted(product):
    X, y = product
    return SHOPE(random_state=0).fit(X[:1_500], y[:1_500])


def test_columns_that_do_not_matter_are_dropped(fitted, product):
    X, y = product
    assert np.flatnonzero(fitted.column_gains_).tolist() == [3, 11]
    assert fitted.column_gains_.max() == 1
    assert fitted.plan_.options["select_columns"] == 2
    assert fitted.plan_.reasons["select_columns"] == "2 of 20 columns"
    assert fitted.score(X[1_500:], y[1_500:]) > 0.85


def test_the_map_ignores_columns_that_are_dropped(fitted, product):
    X = product[0][:50].copy()
    points = fitted.transform(X)
    X[:, np.setdiff1d(np.arange(20), [3, 11])] = 7
    np.testing.assert_array_equal(fitted.transform(X), points)


def test_a_file_keeps_the_columns(fitted, tmp_path):
    fitted.save(tmp_path / "model.hope")
    again = load(tmp_path / "model.hope")
    np.testing.assert_array_equal(again.column_gains_, fitted.column_gains_)


def test_hope_drops_columns_too(product):
    X, y = product
    model = HOPE(random_state=0, max_epochs=20, n_factors=256).fit(X[:1_500], y[:1_500])
    assert set(np.flatnonzero(model.column_gains_)) >= {3, 11}
    assert np.count_nonzero(model.column_gains_) < 20
    assert model.score(X[1_500:], y[1_500:]) > 0.8


def test_all_columns_stay_if_the_user_says_so(product):
    X, y = product
    model = SHOPE(random_state=0, max_epochs=2, select_columns=False).fit(X[:1_200], y[:1_200])
    assert (model.column_gains_ > 0).all()


def test_all_columns_stay_where_all_matter():
    random = np.random.RandomState(0)
    X = random.normal(size=(1_200, 6))
    y = (X @ np.ones(6) > 0).astype(int)
    model = SHOPE(random_state=0).fit(X, y)
    assert (model.column_gains_ > 0).all()


def test_noise_in_labels_makes_weights_decay():
    random = np.random.RandomState(2)
    X = random.normal(size=(700, 30))
    y = X[:, 0] + X[:, 1] + random.normal(size=700) > 0
    assert SHOPE(random_state=0).fit(X, y).plan_.weight_decay > 0


def test_importance_is_the_length_of_the_gradient_times_the_deviation():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(30, 4, generator=generator) * torch.tensor([1.0, 2.0, 0.5, 0.0])
    map_ = SigmoidHighOrder(4, 2, 2, 5, 6)
    map_.start(torch.randn(30, 4, generator=generator), generator)
    expected = torch.zeros(4)
    for row in x:
        jacobian = torch.autograd.functional.jacobian(lambda one: map_(one[None])[0], row)
        expected += jacobian.norm(dim=0) / len(x)
    expected *= x.std(dim=0)
    found = column_importance(map_.requires_grad_(False), x)
    torch.testing.assert_close(torch.from_numpy(found), expected)
