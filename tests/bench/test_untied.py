"""Untied factors: the sum over products, with a matrix for each place in the product."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
import torch

from hopefold import SHOPE
from hopefold.core.maps import SigmoidHighOrder
from hopefold_bench.methods import METHODS
from hopefold_bench.untied import UntiedSHOPE, UntiedSigmoidHighOrder


def randomised(map_):
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in map_.double().parameters():
            parameter.normal_(generator=generator)
    return map_


def rows(n, n_features):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n, n_features, generator=generator, dtype=torch.float64)


def interactions(x, C, c, order, n_factors):
    """Eq. 3 in loops: x with a 1 appended, over all O-tuples of features."""
    x = [*x, 1.0]
    weights = [[*row, bias] for row, bias in zip(C, c, strict=True)]
    return [
        sum(
            prod(weights[o * n_factors + f][i] * x[i] for o, i in enumerate(features))
            for features in product(range(len(x)), repeat=order)
        )
        for f in range(n_factors)
    ]


def test_shope_takes_the_sigmoid_of_the_sum_over_all_products():
    map_ = randomised(UntiedSigmoidHighOrder(3, 2, 2, 4, 5))
    C, c = map_.C.tolist(), map_.c.tolist()
    products = np.array([interactions(row, C, c, 2, 4) for row in rows(6, 3).tolist()])
    W, b, P = (getattr(map_, name).detach().numpy() for name in "WbP")
    expected = 1 / (1 + np.exp(-products @ W.T - b)) @ P.T
    np.testing.assert_allclose(map_(rows(6, 3)).detach(), expected)


def test_equal_factors_make_the_tied_map():
    tied = randomised(SigmoidHighOrder(3, 2, 3, 4, 5))
    untied = UntiedSigmoidHighOrder(3, 2, 3, 4, 5).double()
    state = tied.state_dict()
    state |= {"C": state["C"].repeat(3, 1), "c": state["c"].repeat(3)}
    untied.load_state_dict(state)
    torch.testing.assert_close(untied(rows(6, 3)), tied(rows(6, 3)))


@pytest.mark.parametrize("order", [1, 2, 4])
def test_the_sigmoids_start_with_inputs_around_0_that_spread_1(order):
    map_ = UntiedSigmoidHighOrder(20, 2, order, 3_000, 200)
    x = rows(200, 20).float()
    map_.start(x, torch.Generator().manual_seed(0))
    inputs = (map_.interactions(x) @ map_.W.T + map_.b).detach()
    torch.testing.assert_close(inputs.mean(dim=0), torch.zeros(200), rtol=0, atol=1e-4)
    assert float(inputs.std(dim=0, correction=0).mean()) == pytest.approx(1, rel=1e-4)


def test_they_are_learned_as_the_tied_ones_are(three_blobs):
    model = UntiedSHOPE(n_factors=8, n_units=600, random_state=0).fit(*three_blobs)
    assert model.score(*three_blobs) > 0.95
    assert model.map_.C.shape == (model.order * 8, 5)
    assert model.get_params().keys() == SHOPE().get_params().keys()


def test_the_bench_knows_them_and_no_plan_of_the_paper_runs_them():
    assert type(METHODS["S-HOPE untied"].make("usps", 0)) is UntiedSHOPE
    assert not METHODS["S-HOPE untied"].runs
