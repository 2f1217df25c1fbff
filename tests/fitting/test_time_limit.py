"""A fit with a time limit ends within it, with the best that it has."""

from __future__ import annotations

import time

import numpy as np
import pytest

from hopefold import HOPE, SHOPE
from hopefold.errors import InvalidParameter, TimeLimitWarning
from hopefold.fitting.time_limit import TimeLimit


@pytest.fixture(scope="module")
def rows():
    random = np.random.RandomState(0)
    X = random.normal(size=(3_000, 20))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("kind", [HOPE, SHOPE])
def test_a_fit_ends_within_its_limit_and_says_so(kind, rows):
    X, y = rows
    start = time.perf_counter()
    with pytest.warns(TimeLimitWarning, match=r"has used up its time_limit after epoch \d+ of"):
        model = kind(random_state=0, time_limit=1.5, max_epochs=100_000).fit(X, y)
    assert time.perf_counter() - start < 1.5 * 1.5
    assert model.score(X, y) > 0.8
    assert model.history_[-1]["learning_rate"] < 0.2 * max(
        r["learning_rate"] for r in model.history_
    )


def test_less_than_an_epoch_is_enough(rows):
    X, y = rows
    with pytest.warns(TimeLimitWarning):
        model = SHOPE(random_state=0, time_limit=1e-6, max_epochs=50).fit(X, y)
    assert len(model.history_) == 1
    assert np.isfinite(model.transform(X)).all()


def test_a_fit_that_needs_less_time_is_the_same(three_blobs):
    X, y = three_blobs
    quick = {"max_epochs": 3, "random_state": 0, "n_factors": 8}
    limited = SHOPE(**quick, time_limit=1_000).fit(X, y)
    np.testing.assert_array_equal(limited.transform(X), SHOPE(**quick).fit(X, y).transform(X))


def test_without_labels_and_with_pairs(three_blobs):
    X, y = three_blobs
    with pytest.warns(TimeLimitWarning):
        SHOPE(random_state=0, time_limit=0.3, max_epochs=10**6).fit(X)
    with pytest.warns(TimeLimitWarning):
        HOPE(random_state=0, time_limit=0.3, max_epochs=10**6, exemplars="kmeans").fit(X, y)


@pytest.mark.parametrize("seconds", [0, -1, "1 minute"])
def test_seconds_are_a_positive_number(three_blobs, seconds):
    with pytest.raises(InvalidParameter, match="time_limit"):
        SHOPE(time_limit=seconds).fit(*three_blobs)


def test_a_portion_is_a_share_of_the_time_left():
    limit = TimeLimit(100.0)
    assert TimeLimit(None).portion(0.5) is None
    spent = limit.portion(0.5)
    assert 0 <= spent() < 0.1
