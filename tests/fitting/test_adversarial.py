"""Rows that are moved towards what they could be mistaken for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from hopefold import HOPE, SHOPE
from hopefold.core.maps import SigmoidHighOrder
from hopefold.core.objectives import collapse_onto_exemplars
from hopefold.data.rows import Rows
from hopefold.data.scaling import learn_scale
from hopefold.errors import InvalidParameter
from hopefold.fitting.batch import Batch
from hopefold.fitting.losses import ExemplarLoss, HighOrderLoss, onto_exemplars
from hopefold.fitting.task import Task
from methods import method_of

LENGTH = 0.3


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    return Batch(
        numbers=np.arange(6),
        table=torch.randn(8, 4, generator=generator),
        labels=torch.arange(6) % 2,
        weights=None,
        exemplars=torch.randn(2, 4, generator=generator).requires_grad_(),
        varies=torch.tensor([1.0, 1, 0, 1]),
        exemplar_labels=torch.arange(2),
        exemplar_weights=None,
    )


@pytest.fixture
def map_(batch):
    made = SigmoidHighOrder(4, 2, 2, 5, 6)
    made.start(batch.x, torch.Generator().manual_seed(1))
    return made


def test_the_adversarial_loss_is_the_mean_of_the_plain_one_and_one_row_by_row_uphill(map_, batch):
    loss = onto_exemplars(collapse_onto_exemplars)
    moved = batch.x.clone()
    for row in range(len(batch.x)):  # the loss is a mean over rows: each has a gradient of its own
        x = batch.x[[row]].requires_grad_()
        alone = replace(batch, table=x, labels=batch.labels[[row]])
        (uphill,) = torch.autograd.grad(loss(map_, alone, None), x)
        moved[row] += LENGTH * uphill[0] / uphill.norm()
    expected = (loss(map_, batch, None) + loss(map_, batch.with_rows(moved), None)) / 2
    learned = [*map_.parameters(), batch.exemplars]
    slopes = torch.autograd.grad(expected, learned)
    perturbed = HighOrderLoss(ExemplarLoss(spread=False), radius=LENGTH)(map_, batch, None)
    torch.testing.assert_close(perturbed.value, expected.detach())
    torch.testing.assert_close([perturbed.gradients[weights] for weights in learned], list(slopes))


def test_a_perturbation_raises_the_loss_and_leaves_the_rows_as_they_are(map_, batch):
    before = batch.x.clone()
    plain, perturbed = (
        HighOrderLoss(ExemplarLoss(spread=False), radius=radius) for radius in (0, LENGTH)
    )
    assert perturbed(map_, batch, None).value > plain(map_, batch, None).value
    assert torch.equal(batch.x, before)


def test_an_adversarially_trained_map_keeps_its_place_under_noise(digits):
    X, X_new, y, y_new = digits
    noise = np.random.RandomState(0).normal(size=X_new.shape)
    X_new = X_new + 0.35 * noise
    settings = {"max_epochs": 25, "random_state": 0, "validation_fraction": 0, "dropout": 0}
    settings["learning_rate"] = 2e-3
    plain = SHOPE(**settings, adversarial=0).fit(X, y).score(X_new, y_new)
    steady = SHOPE(**settings, adversarial=0.3).fit(X, y).score(X_new, y_new)
    assert steady > plain + 0.02


@pytest.mark.parametrize("exemplars", ["joint", "kmeans"])
def test_both_objectives_can_be_adversarial(exemplars, three_blobs):
    X, y = three_blobs
    model = HOPE(adversarial=0.1, exemplars=exemplars, max_epochs=20, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


def radius_of(model, X):
    """The radius of the perturbation: as a fit would decide it."""
    scale, labels = learn_scale(X, model.request().scale), np.arange(X.shape[0]) % 2
    task = Task(Rows.prepare(X, scale), scale, labels, np.arange(2), np.ones(2), seed=0)
    return method_of(model, task).plan.adversarial


def test_rows_are_perturbed_by_default_where_they_are_images(digits):
    table, wide = (np.random.RandomState(0).normal(size=(50, n)) for n in (99, 784))
    pixels, binary = digits[0], (table > 0).astype(float)
    assert radius_of(SHOPE(), table) == radius_of(SHOPE(), wide) == 0
    assert radius_of(SHOPE(), binary) == 0
    assert radius_of(SHOPE(scale=None), table) == 0
    assert radius_of(SHOPE(), table[:, :1]) == 0
    assert radius_of(SHOPE(), pixels) > 0
    assert radius_of(SHOPE(n_units=600), wide) > 0
    assert radius_of(SHOPE(scale="standard"), pixels) == 0
    assert radius_of(SHOPE(), csr_array(wide)) == radius_of(SHOPE(), csr_array(pixels)) == 0
    assert radius_of(SHOPE(adversarial=0.2), table) == 0.2
    assert radius_of(HOPE(), wide) == 0
    assert radius_of(SHOPE(optimizer="cg"), wide) == 0
    assert radius_of(SHOPE(augment="affine", image_shape=(28, 28)), wide) == 0


def test_the_radius_is_a_share(three_blobs):
    with pytest.raises(InvalidParameter, match="adversarial=-1"):
        SHOPE(adversarial=-1).fit(*three_blobs)


def test_an_exemplar_learns_nothing_for_a_column_that_is_constant(three_blobs):
    """What it learned there would be lost with the column's gain, and it would lie elsewhere."""
    X, y = three_blobs
    X = np.column_stack([X, np.full(len(X), 7.0)])
    model = SHOPE(max_epochs=20, random_state=0).fit(X, y)
    assert (model.exemplars_[:, -1] == 7).all()
    scaled = torch.from_numpy(model.scale_.apply(model.exemplars_))
    assert (scaled[:, -1] == 0).all()
    moved = model.transform(model.exemplars_ + np.eye(6)[-1])
    np.testing.assert_array_equal(moved, model.exemplar_embedding_)
