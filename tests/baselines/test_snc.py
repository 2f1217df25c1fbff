"""SNC: prototypes under the Gaussian form of the spreading objective, and their nearest decides."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

import oracles
from hopefold.baselines import SNC
from hopefold.errors import InvalidParameter
from methods import method_of

QUICK = {"max_epochs": 10, "random_state": 0}


def test_the_loss_of_a_batch_is_the_loops(three_blobs, make_task, make_batch):
    X, y = (part[::9] for part in three_blobs)
    prototypes, classes = torch.from_numpy(X[::2] + 0.3), y[::2].tolist()
    task = make_task(X, y)
    loss = method_of(SNC(), task).make_loss(task, np.arange(len(X)))
    batch = make_batch(X, y, prototypes, classes)
    mine = loss(lambda x, _=None: x / 4, batch, None)
    loops = oracles.spread_over_exemplars(
        (X / 4).tolist(),
        y.tolist(),
        (prototypes / 4).tolist(),
        classes,
        kernel=oracles.gaussian,
    )
    assert float(mine) == pytest.approx(loops, rel=1e-10)


def test_the_nearest_prototype_decides(digits):
    X, X_test, y, _ = (part[:400] for part in digits)
    model = SNC(**QUICK).fit(X, y)
    distances = cdist(model.transform(X_test), model.exemplar_embedding_)
    np.testing.assert_array_equal(
        model.predict(X_test), model.exemplar_labels_[distances.argmin(axis=1)]
    )


def test_prototypes_and_the_map_are_learned_together(three_blobs):
    X, y = three_blobs
    short, long = (
        SNC(max_epochs=epochs, validation_fraction=0, random_state=0).fit(X, y)
        for epochs in (1, 20)
    )
    assert np.abs(long.exemplars_ - short.exemplars_).max() > 0.05
    assert (long.map_.P - short.map_.P).abs().max() > 0.05


def test_one_prototype_a_class_stands_in_for_all_rows(three_blobs):
    X, y = three_blobs
    model = SNC(n_exemplars=1, **QUICK).fit(X, y)
    assert len(model.exemplars_) == 3
    assert model.score(X, y) > 0.95


def test_with_class_weights_the_weighted_mass_of_all_prototypes_decides(iris):
    X, y = iris
    model = SNC(class_weight={0: 1, 1: 1, 2: 20}, **QUICK).fit(X, y)
    points, prototypes = model.transform(X).tolist(), model.exemplar_embedding_.tolist()
    masses = [oracles.kernel_mass(p, prototypes, model.exemplar_labels_, 3) for p in points]
    decisions = (np.array(masses) * [1, 1, 20]).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), decisions)
    nearest = model.exemplar_labels_[cdist(points, prototypes).argmin(axis=1)]
    assert (decisions == 2).sum() > (nearest == 2).sum()


def test_more_prototypes_may_vote(three_blobs):
    X, y = three_blobs
    shares = SNC(n_neighbors=3, n_exemplars=3, **QUICK).fit(X, y).predict_proba(X)
    assert ((shares > 0).sum(axis=1) > 1).any()


@pytest.mark.parametrize("exemplars", ["kmeans", None])
def test_prototypes_are_always_learned(exemplars, three_blobs):
    with pytest.raises(InvalidParameter, match="exemplars"):
        SNC(exemplars=exemplars).fit(*three_blobs)


def test_a_feature_that_never_varies_throws_no_row_far_out(digits):
    """Of ten classes' nine shrunk discriminants, one would be a pixel that no row has."""
    X, _, y, _ = (part[:1_000] for part in digits)
    model = SNC(max_epochs=1, random_state=0).fit(X, y)
    assert np.abs(model.transform(X)).max() < 100
    assert model.score(X, y) > 0.9
