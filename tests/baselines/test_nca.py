"""NCA is scikit-learn's on small data, and comes near it in batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.neighbors import NeighborhoodComponentsAnalysis

import oracles
from hopefold.baselines import NCA
from hopefold.core.kernels import log_gaussian
from hopefold.core.neighborhoods import miss_neighbors
from hopefold.data.scaling import learn_scale
from hopefold.fitting import plan as planning
from methods import method_of


def scaled(X):
    return learn_scale(X, "auto").apply(X).astype(np.float64)


def missed(P, X, y):
    points = torch.from_numpy(X @ np.asarray(P, dtype=np.float64).T)
    return float(miss_neighbors(points, torch.from_numpy(y), log_kernel=log_gaussian))


@pytest.mark.parametrize("n_components", [1, 2, 4])
def test_the_exact_solver_is_scikit_learns_on_the_scaled_rows(iris, n_components):
    X, y = iris
    mine = NCA(n_components, solver="exact", max_iter=20, random_state=0).fit(X, y)
    theirs = NeighborhoodComponentsAnalysis(n_components, max_iter=20, random_state=0)
    np.testing.assert_allclose(mine.map_.P, theirs.fit(scaled(X), y).components_, rtol=1e-5)


def test_one_batch_of_all_rows_comes_to_scikit_learns_objective(iris):
    X, y = iris
    model = NCA(solver="batches", batch_size=150, validation_fraction=0, random_state=0)
    model.set_params(optimizer="lbfgs", batch_iterations=100, max_epochs=1).fit(X, y)
    theirs = NeighborhoodComponentsAnalysis(2, max_iter=100, random_state=0).fit(scaled(X), y)
    hits, their_hits = (1 - missed(P, scaled(X), y) for P in (model.map_.P, theirs.components_))
    assert hits > 0.98 * their_hits


def test_the_loss_of_a_batch_is_the_loops(three_blobs, make_task, make_batch):
    X, y = (part[::9] for part in three_blobs)
    model = NCA(solver="batches")
    task = make_task(X, y)
    loss = method_of(model, task).make_loss(task, np.arange(len(X)))
    mine = loss(lambda x, _: x / 4, make_batch(X, y), None)
    loops = oracles.miss_neighbors((X / 4).tolist(), y.tolist(), kernel=oracles.gaussian)
    assert float(mine) == pytest.approx(loops, rel=1e-10)


def test_many_rows_are_learned_in_batches_and_few_exactly(iris, monkeypatch):
    X, y = iris
    few = NCA(max_iter=2, max_epochs=3).fit(X, y)
    monkeypatch.setattr(planning, "EXACT_UP_TO", 149)
    many = NCA(max_iter=2, max_epochs=3).fit(X, y)
    assert "loss" not in few.history_[0]
    assert "loss" in many.history_[0]
