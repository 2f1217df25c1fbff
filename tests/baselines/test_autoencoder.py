"""The autoencoder restores what no plane holds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from hopefold.baselines import Autoencoder
from hopefold.fitting.build import Start
from methods import method_of


@pytest.fixture(scope="module")
def curve():
    """Rows on a curve in five dimensions, and which third of it they lie on."""
    t = np.random.RandomState(0).rand(300)
    X = np.stack([np.cos(4 * t), np.sin(4 * t), t, np.cos(2 * t), np.sin(6 * t)], axis=1)
    return X, np.digitize(t, [1 / 3, 2 / 3])


def test_a_curve_is_restored_better_than_by_pca(curve):
    X, y = curve
    model = Autoencoder(1, hidden_layer_sizes=(20,), validation_fraction=0, random_state=0)
    model.set_params(learning_rate=0.01, max_epochs=60).fit(X, y)
    rows = torch.from_numpy(model.scale_.apply(X))
    error = (model.map_.reconstruct(rows) - rows).square().mean()
    pca = PCA(1).fit(rows)
    flat = np.square(pca.inverse_transform(pca.transform(rows)) - rows.numpy()).mean()
    assert error < 0.5 * flat


def test_labels_do_not_shape_the_map(curve):
    X, y = curve
    settings = {"hidden_layer_sizes": (8,), "max_epochs": 3, "random_state": 0}
    one, other = (
        Autoencoder(**settings, validation_fraction=0).fit(X, labels) for labels in (y, y[::-1])
    )
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


def test_the_loss_is_the_mean_squared_length_of_what_is_not_restored(make_task, make_batch):
    x = np.random.RandomState(0).normal(size=(6, 3))
    model = Autoencoder(2, hidden_layer_sizes=(5, 4))
    task = make_task(x, np.arange(6) % 2)
    map_ = method_of(model, task).make_map(3).double()
    map_.start(torch.from_numpy(x), torch.Generator().manual_seed(0))
    loss = method_of(model, task).make_loss(task, np.arange(6))
    mine = loss(map_, make_batch(x, np.arange(6) % 2), None)
    restored = map_.reconstruct(torch.from_numpy(x)).detach().numpy()
    by_hand = sum(np.sum((a - b) ** 2) for a, b in zip(restored, x, strict=True)) / 6
    assert float(mine.detach()) == pytest.approx(by_hand)


def test_the_way_back_starts_from_where_pre_training_has_put_the_points(make_task, curve):
    X, y = (part[:200] for part in curve)  # all of them in the sample
    task = make_task(X, y)
    model = Autoencoder(1, hidden_layer_sizes=(8, 6), pretraining_epochs=2)
    map_ = method_of(model, task).make_map(5)
    generator = torch.Generator().manual_seed(0)
    method_of(model, task).start_map(
        map_, Start(task, np.arange(200), np.random.RandomState(0), generator)
    )
    x = task.rows.fetch(slice(None))
    spread = map_.reconstruct(x).detach().std(dim=0).mean()
    assert spread == pytest.approx(float(x.std(dim=0).mean()), rel=1e-4)
