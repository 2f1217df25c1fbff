"""Losses whose gradients are formulas, beside the same losses under autograd."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from hopefold.core import objectives
from hopefold.core.maps import Products, SigmoidHighOrder
from hopefold.core.masks import MaskSampler
from hopefold.fitting.batch import Batch
from hopefold.fitting.losses import (
    ExemplarLoss,
    HighOrderLoss,
    PairLoss,
    onto_exemplars,
    onto_pairs,
)

ON_EXEMPLARS = {
    "collapse": (objectives.collapse_onto_exemplars, {"spread": False}),
    "spread": (objectives.spread_over_exemplars, {"spread": True}),
}
DROPOUT = {"input_dropout": 0.3, "dropout": 0.3}


@pytest.fixture(params=[False, True], ids=["plain", "weighted"])
def batch(request):
    generator = torch.Generator().manual_seed(0)
    labels, exemplar_labels = torch.arange(9) % 3, torch.arange(6) % 3
    weights = torch.tensor([0.5, 2.0, 1.25], dtype=torch.float64)
    return Batch(
        numbers=np.arange(9),
        table=torch.randn(15, 4, generator=generator, dtype=torch.float64),
        labels=labels,
        weights=weights[labels] if request.param else None,
        exemplars=torch.randn(6, 4, generator=generator, dtype=torch.float64).requires_grad_(),
        varies=torch.tensor([1.0, 0, 1, 1], dtype=torch.float64),
        exemplar_labels=exemplar_labels,
        exemplar_weights=weights[exemplar_labels] if request.param else None,
    )


@pytest.fixture(params=["hope", "shope"])
def map_(request, batch):
    made = {
        "hope": Products(4, 2, 3, 9, **DROPOUT),
        "shope": SigmoidHighOrder(4, 2, 2, 5, 6, **DROPOUT),
    }[request.param].double()
    made.start(batch.x, torch.Generator().manual_seed(1))
    return made


def compare(known, plain, map_, batch, learned):
    masks = [MaskSampler(0).masks(3, len(batch.x)) for _ in range(2)]
    found, expected = known(map_, batch, masks[0]), plain(map_, batch, masks[1])
    torch.testing.assert_close(found.value, expected.detach())
    torch.testing.assert_close(
        [found.gradients[parameter] for parameter in learned],
        list(torch.autograd.grad(expected, learned)),
    )


@pytest.mark.parametrize("name", ON_EXEMPLARS)
def test_losses_on_exemplars_come_with_the_gradients_that_autograd_finds(name, map_, batch):
    objective, options = ON_EXEMPLARS[name]
    learned = [*map_.parameters(), batch.exemplars]
    compare(HighOrderLoss(ExemplarLoss(**options)), onto_exemplars(objective), map_, batch, learned)


@pytest.mark.parametrize("conditional", [False, True], ids=["joint", "conditional"])
def test_losses_on_pairs_come_with_the_gradients_that_autograd_finds(conditional, map_, batch):
    objective = partial(objectives.collapse_onto_pairs, conditional=conditional)
    known = HighOrderLoss(PairLoss(conditional=conditional))
    compare(known, onto_pairs(objective), map_, batch, [*map_.parameters()])


def test_the_same_arguments_give_the_same_bits_again(map_, batch):
    loss = HighOrderLoss(ExemplarLoss(spread=False), radius=0.1)
    first, again = (loss(map_, batch, MaskSampler(0).masks(3, 9)).value for _ in range(2))
    assert torch.equal(first, again)
