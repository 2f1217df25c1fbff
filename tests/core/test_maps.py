"""The factored maps are the explicit sums over products of features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import oracles
from hopefold.core.maps import HighOrder, Linear, SigmoidHighOrder, drop, gaussian_moment


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def randomised(map_, seed=0):
    generator = seeded(seed)
    map_ = map_.double()
    with torch.no_grad():
        for parameter in map_.parameters():
            parameter.normal_(generator=generator)
    return map_


def rows(n, n_features, seed=1):
    return torch.randn(n, n_features, generator=seeded(seed), dtype=torch.float64)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_hope_is_the_sum_over_all_products(order):
    map_ = randomised(HighOrder(3, 2, order, 5))
    x = rows(4, 3)
    C, c, P = (getattr(map_, name).tolist() for name in "CcP")
    expected = [oracles.hope(row, C, c, P, order) for row in x.tolist()]
    torch.testing.assert_close(map_(x), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_shope_is_the_sigmoid_of_the_sum_over_all_products(order):
    map_ = randomised(SigmoidHighOrder(3, 2, order, 4, 5))
    x = rows(4, 3)
    C, c, W, b, P = (getattr(map_, name).tolist() for name in "CcWbP")
    expected = [oracles.shope(row, C, c, W, b, P, order) for row in x.tolist()]
    torch.testing.assert_close(map_(x), torch.tensor(expected, dtype=torch.float64))


def test_order_one_is_a_linear_map():
    map_ = randomised(HighOrder(3, 2, 1, 5))
    x = rows(6, 3)
    straight = map_((x[:3] + x[3:]) / 2)
    torch.testing.assert_close(straight, (map_(x[:3]) + map_(x[3:])) / 2)


def test_linear_map_has_no_bias():
    map_ = randomised(Linear(3, 2))
    assert not map_(torch.zeros(1, 3, dtype=torch.float64)).any()
    x = rows(2, 3)
    np.testing.assert_allclose(map_(x).detach(), x.numpy() @ map_.P.detach().numpy().T)


@pytest.mark.parametrize(
    "map_",
    [Linear(20, 2), HighOrder(20, 2, 3, 50), SigmoidHighOrder(20, 2, 2, 60, 70)],
    ids=["linear", "hope", "shope"],
)
def test_a_started_map_spreads_its_rows_to_deviation_one(map_):
    x = torch.rand(500, 20, generator=seeded()) * 3
    map_.start(x, seeded())
    assert map_(x).detach().std(dim=0, correction=0).mean() == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_started_units_have_the_mean_square_they_should(order):
    map_ = SigmoidHighOrder(50, 2, order, 4000, 2000)
    x = torch.randn(400, 50, generator=seeded(1))
    x *= 7 / x.norm(dim=1, keepdim=True)  # rows of one length: no heavy tails of their own
    map_.start(x, seeded(2))
    map_.requires_grad_(False)
    factors = x @ map_.C.T + map_.c
    assert factors.square().mean() == pytest.approx(1, rel=0.05)
    activations = map_.interactions(x) @ map_.W.T
    assert activations.square().mean() == pytest.approx(1, rel=0.1)


def test_constant_rows_start_without_division_by_zero():
    map_ = HighOrder(3, 2, 2, 5)
    map_.start(torch.zeros(10, 3), seeded())
    assert all(parameter.isfinite().all() for parameter in map_.parameters())


def test_gaussian_moments_are_the_double_factorials():
    assert [gaussian_moment(2 * order) for order in (1, 2, 3, 4)] == [1, 3, 15, 105]


def test_a_map_without_a_generator_drops_nothing():
    map_ = randomised(SigmoidHighOrder(4, 2, 2, 8, 8, input_dropout=0.5, dropout=0.5))
    x = rows(5, 4)
    torch.testing.assert_close(map_(x), map_(x))
    assert not torch.equal(map_(x), map_(x, seeded()))
    torch.testing.assert_close(map_(x, seeded(3)), map_(x, seeded(3)))


def test_dropping_keeps_the_mean():
    dropped = drop(torch.ones(200, 500), 0.3, seeded())
    assert dropped.mean() == pytest.approx(1, abs=0.01)
    assert (dropped == 0).float().mean() == pytest.approx(0.3, abs=0.01)
