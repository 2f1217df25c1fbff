"""After the error on held-out rows is known, a fit goes on from all rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from hopefold import HOPE, SHOPE
from hopefold.fitting import held_out, last_stretch

QUICK = {"max_epochs": 10, "random_state": 0, "n_factors": 16, "validation_fraction": 0.1}


@pytest.mark.parametrize("model", [HOPE(**QUICK), SHOPE(**QUICK), SHOPE(**QUICK, n_units=20)])
def test_the_error_is_that_of_the_map_before(model, three_blobs):
    X, y = three_blobs
    before = clone(model).set_params(refit=False).fit(X, y)
    after = clone(model).fit(X, y)
    assert after.history_ == before.history_
    assert after.validation_error_ == before.validation_error_
    assert not np.array_equal(after.transform(X), before.transform(X))


def test_held_out_rows_are_learned_from():
    """Two rows of a class far away are held out or not: the map must tell them apart in the end."""
    random = np.random.RandomState(0)
    X = random.normal(size=(200, 3))
    y = np.repeat([0, 1], 100)
    X[y == 1] += 4
    model = SHOPE(random_state=0, validation_fraction=0.5).fit(X, y)
    assert model.train_error_ <= 0.02


def test_a_stretch_that_makes_the_map_worse_is_undone(three_blobs, monkeypatch):
    X, y = three_blobs
    before = SHOPE(**QUICK, refit=False).fit(X, y)
    monkeypatch.setattr(last_stretch, "worse_beyond_chance", lambda *_: True)
    after = SHOPE(**QUICK).fit(X, y)
    np.testing.assert_array_equal(after.transform(X), before.transform(X))


def test_a_stretch_that_diverges_is_undone(three_blobs, monkeypatch):
    X, y = three_blobs
    before = SHOPE(**QUICK, refit=False).fit(X, y)
    monkeypatch.setattr(last_stretch, "LAST_RATE", 1e30)
    after = SHOPE(**QUICK).fit(X, y)
    np.testing.assert_array_equal(after.transform(X), before.transform(X))


@pytest.mark.parametrize("settings", [{"exemplars": None}, {"exemplars": "kmeans"}], ids=str)
def test_a_second_fit_that_is_worse_is_not_kept(three_blobs, monkeypatch, settings):
    X, y = three_blobs
    before = SHOPE(**QUICK, **settings, refit=False).fit(X, y)
    monkeypatch.setattr(held_out, "worse_beyond_chance", lambda *_: True)
    after = SHOPE(**QUICK, **settings).fit(X, y)
    np.testing.assert_array_equal(after.transform(X), before.transform(X))
