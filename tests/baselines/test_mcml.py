"""MCML finds the optimum where it is known."""

from __future__ import annotations

import numpy as np
import pytest

import oracles
from hopefold.baselines import MCML
from methods import method_of


@pytest.fixture(scope="module")
def collapsed():
    """The first column is the class, the four others are noise: zero loss can be reached."""
    y = np.arange(120) % 2
    X = np.random.RandomState(0).normal(size=(120, 5))
    X[:, 0] = 2 * y - 1
    model = MCML(max_epochs=150, validation_fraction=0, learning_rate=0.03, random_state=0)
    return model.fit(X, y), X, y


def test_noise_is_switched_off(collapsed):
    model, _, _ = collapsed
    listens = model.map_.P.abs().max(dim=0).values
    assert listens[1:].max() < 0.05 * listens[0]


def test_classes_collapse_until_the_loss_is_gone(collapsed):
    model, _, _ = collapsed
    assert model.history_[0]["loss"] > 0.1
    assert model.history_[-1]["loss"] < 0.02


def test_the_loss_of_a_batch_is_the_loops(three_blobs, make_task, make_batch):
    X, y = (part[::9] for part in three_blobs)
    task = make_task(X, y)
    loss = method_of(MCML(), task).make_loss(task, np.arange(len(X)))
    mine = loss(lambda x, _: x / 4, make_batch(X, y), None)
    loops = oracles.collapse_onto_pairs(
        (X / 4).tolist(), y.tolist(), conditional=True, kernel=oracles.gaussian
    )
    assert float(mine) == pytest.approx(loops, rel=1e-10)
