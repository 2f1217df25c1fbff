"""LMNN: who the target neighbors are, and a margin that can be kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import oracles
from hopefold.baselines import LMNN
from hopefold.baselines.lmnn import find_targets
from hopefold.core.neighborhoods import large_margin
from methods import method_of


def distances(X, i, targets):
    return sorted(np.linalg.norm(X[targets] - X[i], axis=1))


@pytest.mark.parametrize("n_targets", [1, 3, 6])
@pytest.mark.parametrize("copies", [1, 3, 8])
def test_targets_are_the_nearest_of_the_class(make_task, n_targets, copies):
    random = np.random.RandomState(0)
    X = np.repeat(random.normal(size=(24, 3)), copies, axis=0).astype(np.float32)
    y = np.repeat(np.arange(24) % 3, copies)
    targets = find_targets(make_task(X, y), np.arange(len(X)), n_targets)
    for i in range(len(X)):
        expected = oracles.nearest_of_the_class(X.tolist(), y, i, n_targets)
        np.testing.assert_allclose(distances(X, i, targets[i]), expected, atol=1e-5)


@pytest.mark.parametrize("copies", [1, 8])
def test_no_row_is_its_own_target_nor_of_another_class(make_task, copies):
    random = np.random.RandomState(0)
    X, y = np.repeat(random.normal(size=(12, 3)), copies, axis=0), np.repeat([0, 1], 6 * copies)
    targets = find_targets(make_task(X, y), np.arange(len(X)), 3)
    assert (targets != np.arange(len(X))[:, None]).all()
    assert (y[targets] == y[:, None]).all()
    assert all(len(set(mine)) == 3 for mine in targets.tolist())


def test_a_small_class_has_its_few_rows_several_times(make_task):
    X, y = np.array([[0.0], [1.0], [3.0], [9.0], [9.5]]), np.array([0, 0, 0, 1, 1])
    targets = find_targets(make_task(X, y), np.arange(5), 3)
    assert targets.tolist() == [[1, 2, 1], [0, 2, 0], [1, 0, 1], [4, 4, 4], [3, 3, 3]]


def test_a_row_that_is_alone_in_its_class_has_itself(make_task):
    X, y = np.array([[0.0], [1.0], [3.0]]), np.array([0, 0, 1])
    assert find_targets(make_task(X, y), np.arange(3), 2)[2].tolist() == [2, 2]


def test_held_out_rows_are_nobodys_target(make_task, three_blobs):
    X, y = three_blobs
    training = np.arange(0, 90, 2)
    targets = find_targets(make_task(X, y), training, 3)
    assert np.isin(targets[training], training).all()


def test_the_loss_of_a_batch_is_the_loops(three_blobs, make_task, make_batch):
    X, y = (part[::9].astype(np.float32) for part in three_blobs)
    y = y.astype(int)
    task = make_task(X, y)
    loss = method_of(LMNN(n_targets=2, pull=0.3), task).make_loss(task, np.arange(len(X)))
    mine = loss(lambda x, *_: x.double() / 4, make_batch(X, y), None)
    targets = X[find_targets(task, np.arange(len(X)), 2)]
    loops = oracles.large_margin((X / 4).tolist(), y.tolist(), (targets / 4).tolist(), pull=0.3)
    assert float(mine) == pytest.approx(loops, rel=1e-6)


def test_a_margin_that_can_be_kept_is_kept(one_telling_column, make_task):
    X, y = one_telling_column
    model = LMNN(pull=0.0, max_epochs=100, validation_fraction=0, random_state=0)
    model.set_params(learning_rate=0.03).fit(X, y)
    points = torch.from_numpy(model.transform(X))
    targets = points[find_targets(make_task(X, y, scale="standard"), np.arange(240), 3)]
    assert float(large_margin(points, torch.from_numpy(y), targets, pull=0.0)) == 0


def test_the_pull_keeps_points_together(one_telling_column):
    X, y = one_telling_column
    near, far = (
        LMNN(pull=pull, max_epochs=30, validation_fraction=0, random_state=0).fit_transform(X, y)
        for pull in (0.9, 0.1)
    )
    assert near.std() < far.std()
