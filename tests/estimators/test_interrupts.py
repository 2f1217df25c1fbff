"""Ctrl-C: a fit that has completed an epoch returns its best map so far."""

from __future__ import annotations

import numpy as np
import pytest

from hopefold import HOPE, SHOPE, load
from hopefold.errors import InterruptedWarning
from hopefold.fitting.objective import Objective

QUICK = {"max_epochs": 20, "random_state": 0, "n_factors": 16}

#: Steps of an epoch on 81 of 90 rows, in batches of 32.
STEPS = 3


@pytest.fixture
def interrupt(monkeypatch):
    """Interrupts a fit at the nth evaluation of its loss."""

    def at(number):
        calls, loss = iter(range(10**6)), Objective.loss

        def interrupted(self, *arguments):
            if next(calls) == number:
                raise KeyboardInterrupt
            return loss(self, *arguments)

        monkeypatch.setattr(Objective, "loss", interrupted)

    return at


@pytest.mark.parametrize("model", [HOPE(**QUICK), SHOPE(**QUICK), SHOPE(**QUICK, n_units=20)])
def test_the_best_epoch_is_returned_with_a_warning(model, three_blobs, interrupt, tmp_path):
    X, y = three_blobs
    interrupt(8 * STEPS)
    with pytest.warns(InterruptedWarning, match=r"after epoch \d of 20: it returns the map of ep"):
        model.fit(X, y)
    assert model.interrupted_
    errors = [record["validation_error"] for record in model.history_]
    assert len(errors) < 10
    assert model.validation_error_ == errors[model.n_iter_ - 1]
    assert model.validation_error_ <= min(errors) + 0.2
    model.save(tmp_path / "model.hope")
    again = load(tmp_path / "model.hope")
    assert again.interrupted_
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_before_the_first_epoch_is_over_the_model_stays_as_it_was(three_blobs, interrupt):
    X, y = three_blobs
    model = SHOPE(**QUICK).fit(X, y)
    points = model.transform(X)
    interrupt(1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    np.testing.assert_array_equal(model.transform(X), points)
    assert not model.interrupted_


def test_in_the_last_stretch_the_evaluated_map_is_returned(three_blobs, interrupt):
    X, y = three_blobs
    settings = {**QUICK, "validation_fraction": 0.1}
    before = SHOPE(**settings, refit=False).fit(X, y)
    n_steps = STEPS * 20
    interrupt(n_steps + 2)
    with pytest.warns(InterruptedWarning, match="without the held-out rows"):
        after = SHOPE(**settings).fit(X, y)
    assert after.interrupted_
    np.testing.assert_array_equal(after.transform(X), before.transform(X))


def test_a_second_fit_that_is_interrupted_is_marked(three_blobs, interrupt):
    X, y = three_blobs
    settings = {**QUICK, "validation_fraction": 0.1, "exemplars": None, "n_units": 20}
    first = 20 * STEPS
    interrupt(first + 2 * STEPS)
    with pytest.warns(InterruptedWarning, match="was interrupted after epoch"):
        model = SHOPE(**settings, batch_size=32).fit(X, y)
    assert model.interrupted_


def test_a_comparison_that_is_interrupted_is_no_fit(interrupt):
    random = np.random.RandomState(0)
    X = random.normal(size=(400, 5))
    interrupt(30)
    with pytest.raises(KeyboardInterrupt):
        SHOPE(random_state=0).fit(X, X[:, 0] > 0)
