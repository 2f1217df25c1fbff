"""Deep maps: what they minimize, and how their layers are pre-trained."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold._t_sne import _joint_probabilities, _kl_divergence

import oracles
from hopefold import HOPE
from hopefold.baselines import Autoencoder, DeepMCML, DeepNCA, ParametricTSNE, deep
from hopefold.baselines.deep import Restoration
from hopefold.core.maps import Deep, HighOrder
from hopefold.core.masks import MaskSampler
from hopefold.fitting.build import Start
from methods import method_of

TWO_LAYERS = {"hidden_layer_sizes": (12, 10)}


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def small(three_blobs):
    """Thirty rows, their labels, and a deep map of them."""
    X, y = (part[::3] for part in three_blobs)
    map_ = Deep(5, (12, 10), 2)
    map_.start(torch.from_numpy(X).float(), seeded())
    return X, y, map_.double()


def loss_and_gradient(model, map_, batch, task):
    points = map_(batch.x).detach().requires_grad_()
    loss = method_of(model, task).make_loss(task, np.arange(len(points)))(
        lambda *_: points, batch, None
    )
    return float(loss.detach()), torch.autograd.grad(loss, points)[0]


# -- what is minimized ------------------------------------------------------------------------


def test_parametric_tsne_has_the_loss_and_the_gradient_of_scikit_learn(
    small, make_task, make_batch
):
    X, y, map_ = small
    model = ParametricTSNE(perplexity=5)
    loss, gradient = loss_and_gradient(model, map_, make_batch(X, y), make_task(X, y))
    squared = squareform(pdist(X, "sqeuclidean"))
    theirs, their_gradient = _kl_divergence(
        map_(torch.from_numpy(X)).detach().numpy().ravel(),
        _joint_probabilities(squared, 5, verbose=0),
        degrees_of_freedom=1,
        n_samples=30,
        n_components=2,
    )
    assert loss == pytest.approx(theirs, rel=1e-4)
    np.testing.assert_allclose(gradient.ravel(), their_gradient, atol=1e-5)


def test_deep_mcml_has_the_pairwise_loss_of_hope(small, make_task, make_batch):
    X, y, _ = small
    batch, task = make_batch(X, y), make_task(X, y)
    map_ = HighOrder(X.shape[1], 2, 2, 5).double()
    map_.start(batch.x, torch.Generator().manual_seed(0))
    mine, hopes = (
        method_of(model, task).make_loss(task, np.arange(len(X)))(map_, batch, None)
        for model in (DeepMCML(), HOPE(exemplars=None))
    )
    torch.testing.assert_close(mine.detach(), hopes.value)
    slopes = torch.autograd.grad(mine, [*map_.parameters()])
    torch.testing.assert_close(list(slopes), list(hopes.gradients.values()))


def test_the_loss_of_deep_mcml_is_the_loops(small, make_task, make_batch):
    X, y, map_ = small
    loss, _ = loss_and_gradient(DeepMCML(), map_, make_batch(X, y), make_task(X, y))
    points = map_(torch.from_numpy(X)).tolist()
    assert loss == pytest.approx(oracles.collapse_onto_pairs(points, y.tolist()), rel=1e-10)


def test_the_loss_of_deep_nca_is_the_loops(small, make_task, make_batch):
    X, y, map_ = small
    loss, _ = loss_and_gradient(DeepNCA(), map_, make_batch(X, y), make_task(X, y))
    loops = oracles.miss_neighbors(
        map_(torch.from_numpy(X)).tolist(), y.tolist(), kernel=oracles.student
    )
    assert loss == pytest.approx(loops, rel=1e-10)


@pytest.mark.parametrize("cls", [ParametricTSNE, DeepNCA, DeepMCML])
def test_training_lowers_the_loss(cls, three_blobs):
    model = cls(**TWO_LAYERS, max_epochs=20, learning_rate=0.01, random_state=0)
    history = model.fit(*three_blobs).history_
    assert history[-1]["loss"] < 0.8 * history[0]["loss"]


def test_labels_do_not_shape_the_map_of_parametric_tsne(three_blobs):
    X, y = three_blobs
    one, other = (
        ParametricTSNE(**TWO_LAYERS, max_epochs=3, validation_fraction=0, random_state=0)
        .fit(X, labels)
        .transform(X)
        for labels in (y, np.arange(90) % 3)
    )
    np.testing.assert_array_equal(one, other)


# -- pre-training -----------------------------------------------------------------------------


def start(model, task, training=None):
    map_ = method_of(model, task).make_map(task.rows.n_features)
    training = np.arange(len(task.rows)) if training is None else training
    method_of(model, task).start_map(
        map_, Start(task, training, np.random.RandomState(0), seeded())
    )
    return map_


@pytest.mark.parametrize("cls", [DeepMCML, Autoencoder])
def test_pre_training_lowers_the_restoration_error_of_each_layer(
    cls, digits, make_task, monkeypatch
):
    runs = []

    def recorded(*arguments, **options):
        runs.append(minimize(*arguments, **options))
        return runs[-1]

    minimize = deep.minimize
    monkeypatch.setattr(deep, "minimize", recorded)
    start(cls(hidden_layer_sizes=(30, 20), pretraining_epochs=20), make_task(digits[0], digits[2]))
    assert len(runs) == 2
    for run in runs:
        assert run.history[-1]["loss"] < 0.7 * run.history[0]["loss"]


def test_the_restoration_error_is_the_denoising_formula(small, make_task):
    X, y, _ = small
    task = make_task(X, y)
    map_ = start(DeepMCML(**TWO_LAYERS, pretraining_epochs=0), task)
    restore = Restoration(map_, 1, task, np.arange(30), task.rows.fetch(slice(None)))
    W, b, D, c = (
        parameter.detach().normal_(generator=seeded()) for parameter in restore.groups["map"]
    )
    inputs = map_.hidden(task.rows.fetch(slice(None)), depth=1).detach()
    kept = MaskSampler(0).masks(7, 30).draw(inputs, 0.25) * 0.75
    restored = torch.tanh((inputs * kept) @ W.T + b) * (5 / 10**0.5) @ D.T + c
    by_hand = (restored - inputs).square().sum(dim=1).mean()
    torch.testing.assert_close(restore(torch.arange(30), 7, 0.0).detach(), by_hand)


def test_a_layer_learns_from_the_training_rows_alone(digits, make_task):
    X, y = digits[0][:300], digits[2][:300]
    other = X.copy()
    other[:100] = 0
    model = DeepMCML(**TWO_LAYERS, pretraining_epochs=2)
    one, two = (start(model, make_task(rows, y), np.arange(100, 300)) for rows in (X, other))
    for name, parameter in one.named_parameters():
        assert torch.equal(parameter, two.get_parameter(name))


def test_without_pre_training_the_random_start_stays(small, make_task):
    X, y, _ = small
    task = make_task(X, y)
    map_ = start(DeepMCML(**TWO_LAYERS, pretraining_epochs=0), task)
    random = Deep(5, (12, 10), 2)
    sample = np.sort(np.random.RandomState(0).permutation(30))
    random.start(task.rows.fetch(sample), seeded())
    for name, parameter in map_.named_parameters():
        assert torch.equal(parameter, random.get_parameter(name))


def test_pre_training_changes_every_layer(small, make_task):
    X, y, _ = small
    before, after = (
        start(DeepMCML(**TWO_LAYERS, pretraining_epochs=epochs), make_task(X, y))
        for epochs in (0, 3)
    )
    for name, parameter in after.named_parameters():
        assert not torch.equal(parameter, before.get_parameter(name))


def test_a_pre_trained_map_spreads_its_rows_to_deviation_one_even_if_classes_come_in_a_row(
    make_task,
):
    y = np.repeat(np.arange(3), 300)
    X = np.random.RandomState(0).normal(size=(900, 5)) * 0.1 + 3 * np.eye(5)[y]
    map_ = start(DeepMCML(**TWO_LAYERS, pretraining_epochs=2), make_task(X, y))
    points = map_(torch.from_numpy(X).float()).detach()
    assert points.std(dim=0).mean() == pytest.approx(1, rel=0.1)
