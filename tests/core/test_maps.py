"""The factored maps are the explicit sums over products of features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import oracles
from hopefold.core.maps import (
    Deep,
    EncoderDecoder,
    HighOrder,
    Linear,
    Pressed,
    Products,
    SigmoidHighOrder,
    Stacked,
)
from hopefold.core.masks import MaskSampler


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def masks(n_rows, seed=0):
    return MaskSampler(0).masks(seed, n_rows)


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


def test_a_stack_is_sigmoids_of_products_of_sigmoids_of_products():
    orders = (2, 1, 3)
    map_ = randomised(Stacked(3, 2, orders, (4, 2, 3), (3, 5, 2)))
    layers = [
        (*(getattr(layer, name).tolist() for name in "CcWb"), order)
        for layer, order in zip(map_.layers, orders, strict=True)
    ]
    x = rows(4, 3)
    expected = [oracles.stacked(row, layers, map_.P.tolist()) for row in x.tolist()]
    torch.testing.assert_close(map_(x), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("n_factors", [1, 7, 32])
def test_products_are_sums_of_powers(order, n_factors):
    map_ = randomised(Products(3, 2, order, n_factors))
    x = rows(6, 3) / 3
    powers = map_.as_powers()
    assert type(powers) is HighOrder
    assert len(powers.C) == len(powers.c) == powers.P.shape[1] == n_factors
    torch.testing.assert_close(powers.double()(x), map_(x), rtol=1e-4, atol=1e-4)


def test_a_product_is_of_different_sums():
    map_ = randomised(Products(3, 2, 2, 5))  # two products, one power left over
    sums = rows(4, 3) @ map_.C.T + map_.c
    units = [sums[:, 0] * sums[:, 2], sums[:, 1] * sums[:, 3], sums[:, 4] ** 2]
    torch.testing.assert_close(map_.interactions(rows(4, 3)), torch.stack(units, dim=1))


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
    [
        Linear(20, 2),
        HighOrder(20, 2, 3, 50),
        Products(20, 2, 3, 50),
        SigmoidHighOrder(20, 2, 2, 60, 70),
        Stacked(20, 2, (2, 2), (60, 50), (70, 40)),
        Deep(20, (30, 40), 2),
        EncoderDecoder(20, (30, 40), 2),
    ],
    ids=["linear", "hope", "products", "shope", "stacked", "deep", "encoder"],
)
def test_a_started_map_spreads_its_rows_to_deviation_one(map_):
    x = torch.rand(500, 20, generator=seeded()) * 3
    map_.start(x, seeded())
    assert map_(x).detach().std(dim=0, correction=0).mean() == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_started_units_are_powers_of_what_varies_little_around_1(order):
    map_ = HighOrder(50, 2, order, 400)
    x = torch.rand(300, 50, generator=seeded(1)) * 3
    map_.start(x, seeded(2))
    factors = (x @ map_.C.T + map_.c).detach()
    torch.testing.assert_close(factors.mean(dim=0), torch.ones(400), rtol=0, atol=1e-4)
    assert factors.std(dim=0, correction=0).mean() == pytest.approx(1 / order, rel=1e-4)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_started_sigmoids_are_fed_around_zero_with_deviation_one(order):
    map_ = SigmoidHighOrder(50, 2, order, 40, 30)
    x = torch.rand(300, 50, generator=seeded(1)) * 3
    map_.start(x, seeded(2))
    inputs = (map_.interactions(x) @ map_.W.T + map_.b).detach()
    torch.testing.assert_close(inputs.mean(dim=0), torch.zeros(30), rtol=0, atol=1e-4)
    assert inputs.std(dim=0, correction=0).mean() == pytest.approx(1, rel=1e-4)


def test_each_layer_of_a_started_stack_is_fed_as_one_layer_is():
    map_ = Stacked(50, 2, (2, 3), (40, 60), (30, 20))
    x = torch.rand(300, 50, generator=seeded(1)) * 3
    map_.start(x, seeded(2))
    for layer in map_.layers:
        factors = (x @ layer.C.T + layer.c).detach()
        inputs = (layer.interactions(x) @ layer.W.T + layer.b).detach()
        x = layer.hidden(x).detach()
        assert factors.mean() == pytest.approx(1, abs=1e-4)
        assert factors.std(dim=0, correction=0).mean() == pytest.approx(1 / layer.order, rel=1e-4)
        assert inputs.mean() == pytest.approx(0, abs=1e-4)
        assert inputs.std(dim=0, correction=0).mean() == pytest.approx(1, rel=1e-4)


def test_a_stack_drops_features_once_and_polynomial_units_in_every_layer():
    map_ = Stacked(4, 2, (2, 2, 2), (3, 3, 3), (5, 5, 5), input_dropout=0.2, dropout=0.1)
    assert [layer.input_dropout for layer in map_.layers] == [0.2, 0, 0]
    assert [layer.dropout for layer in map_.layers] == [0.1, 0.1, 0.1]


@pytest.mark.parametrize(
    "map_",
    [Linear(3, 2), HighOrder(3, 2, 2, 5), Deep(3, (5, 4), 2), EncoderDecoder(3, (5, 4), 2)],
    ids=["linear", "hope", "deep", "encoder"],
)
def test_constant_rows_start_without_division_by_zero(map_):
    map_.start(torch.zeros(10, 3), seeded())
    assert all(parameter.isfinite().all() for parameter in map_.parameters())


def test_a_map_without_masks_drops_nothing():
    map_ = randomised(SigmoidHighOrder(4, 2, 2, 8, 8, input_dropout=0.5, dropout=0.5))
    x = rows(5, 4)
    torch.testing.assert_close(map_(x), map_(x))
    assert not torch.equal(map_(x), map_(x, masks(5)))
    torch.testing.assert_close(map_(x, masks(5, seed=3)), map_(x, masks(5, seed=3)))


# -- deep maps --------------------------------------------------------------------------------


def layers_of(map_):
    return [(W.tolist(), b.tolist()) for W, b in zip(map_.W, map_.b, strict=True)]


@pytest.mark.parametrize("widths", [(5,), (5, 3), (2, 6, 4)], ids=str)
def test_a_deep_map_is_its_units_one_after_the_other(widths):
    map_ = randomised(Deep(3, widths, 2))
    x = rows(4, 3)
    expected = [oracles.deep(row, layers_of(map_), map_.P.tolist()) for row in x.tolist()]
    torch.testing.assert_close(map_(x), torch.tensor(expected, dtype=torch.float64))


def test_the_gradient_of_a_deep_map_reaches_every_layer():
    map_ = randomised(Deep(3, (4, 5), 2))
    x = rows(4, 3)
    names = [name for name, _ in map_.named_parameters()]
    assert torch.autograd.gradcheck(
        lambda *values: torch.func.functional_call(map_, dict(zip(names, values, strict=True)), x),
        tuple(map_.parameters()),
    )


@pytest.mark.parametrize("depth", [0, 1, 2, 3, None])
def test_hidden_units_are_those_of_the_layer_asked_for(depth):
    map_ = randomised(Deep(3, (2, 6, 4), 2))
    x = rows(5, 3)
    kept = layers_of(map_)[:depth]
    width = [3, 2, 6, 4][len(kept)]
    expected = [oracles.deep(row, kept, np.eye(width).tolist()) for row in x.tolist()]
    torch.testing.assert_close(
        map_.hidden(x, depth=depth), torch.tensor(expected, dtype=torch.float64)
    )


def test_a_started_deep_map_feeds_every_unit_around_zero():
    map_ = Deep(20, (30, 40), 2)
    x = torch.rand(500, 20, generator=seeded()) * 3
    map_.start(x, seeded())
    for depth, (W, b) in enumerate(zip(map_.W, map_.b, strict=True)):
        inputs = (map_.hidden(x, depth=depth) @ W.T + b).detach()
        torch.testing.assert_close(inputs.mean(dim=0), torch.zeros(len(b)), atol=1e-4, rtol=0)


def test_a_started_deep_map_feeds_the_units_of_a_layer_with_deviation_one():
    map_ = Deep(20, (30, 40), 2)
    x = torch.rand(500, 20, generator=seeded()) * 3
    map_.start(x, seeded())
    for depth, W in enumerate(map_.W):
        inputs = (map_.hidden(x, depth=depth) @ W.T).detach()
        assert inputs.std(dim=0, correction=0).mean() == pytest.approx(1, rel=1e-5)


def test_dropping_thins_the_inputs_of_a_deep_map_and_every_layer():
    map_ = randomised(Deep(50, (60, 70), 2, input_dropout=0.3, dropout=0.5))
    x = rows(200, 50)
    for depth, rate in [(0, 0.3), (1, 0.5), (2, 0.5)]:
        thinned = map_.hidden(x, masks(len(x)), depth=depth)
        assert (thinned == 0).double().mean() == pytest.approx(rate, abs=0.02)


def test_dropping_keeps_the_mean_of_a_layer():
    map_ = randomised(Deep(4, (30,), 2, dropout=0.5))
    x = rows(1, 4)
    thinned = map_.hidden(x.expand(20_000, -1), masks(20_000)).mean(dim=0)
    torch.testing.assert_close(thinned, map_.hidden(x)[0], atol=0.03, rtol=0)


def test_a_deep_map_without_masks_drops_nothing():
    thin = randomised(Deep(4, (8, 8), 2, input_dropout=0.5, dropout=0.5))
    full = randomised(Deep(4, (8, 8), 2))
    torch.testing.assert_close(thin(rows(5, 4)), full(rows(5, 4)))


def test_the_way_back_has_the_layers_in_reverse():
    decoder = EncoderDecoder(7, (6, 5, 4), 2).decoder
    assert [tuple(W.shape) for W in decoder.W] == [(4, 2), (5, 4), (6, 5)]
    assert decoder.P.shape == (7, 6)


def test_there_and_back_is_the_one_map_after_the_other():
    map_ = randomised(EncoderDecoder(3, (5, 4), 2))
    x = rows(4, 3)
    there = [oracles.deep(r, layers_of(map_.encoder), map_.encoder.P.tolist()) for r in x.tolist()]
    back = [oracles.deep(r, layers_of(map_.decoder), map_.decoder.P.tolist()) for r in there]
    torch.testing.assert_close(map_(x), torch.tensor(there, dtype=torch.float64))
    torch.testing.assert_close(map_.reconstruct(x), torch.tensor(back, dtype=torch.float64))


def test_the_way_back_is_never_thinned():
    map_ = randomised(EncoderDecoder(4, (8, 8), 2, dropout=0.5))
    x = rows(5, 4)
    points = map_(x, masks(4, seed=3))
    torch.testing.assert_close(map_.reconstruct(x, masks(4, seed=3)), map_.decoder(points))


def test_what_comes_back_at_the_start_spreads_as_the_rows_do():
    map_ = EncoderDecoder(20, (30, 40), 2)
    x = torch.rand(500, 20, generator=seeded()) * 3
    map_.start(x, seeded())
    restored = map_.reconstruct(x).detach()
    spread = x.std(dim=0, correction=0).mean()
    assert restored.std(dim=0, correction=0).mean() == pytest.approx(float(spread), rel=1e-5)


# -- spare coordinates ----------------------------------------------------------------------


def pressed(height: float) -> tuple[Pressed, torch.Tensor]:
    map_ = Pressed(SigmoidHighOrder(6, 2, 2, 5, 4), 3)
    x = torch.rand(50, 6, generator=seeded())
    map_.map.start(x, seeded())
    map_.start(x, seeded())
    map_.height = height
    return map_.requires_grad_(False), x


def test_a_pressed_map_has_the_maps_coordinates_and_spare_ones_beside():
    map_, x = pressed(0.25)
    y = map_(x)
    torch.testing.assert_close(y[:, :2], map_.map(x))
    torch.testing.assert_close(y[:, 2:], 0.25 * map_.map.hidden(x) @ map_.R.T)


def test_spare_coordinates_start_as_high_as_the_others_are_wide():
    map_, x = pressed(1.0)
    assert map_(x)[:, 2:].std(dim=0, correction=0).mean() == pytest.approx(1, rel=1e-4)


def test_at_height_0_nothing_is_left_of_them():
    map_, x = pressed(0.0)
    assert not map_(x)[:, 2:].any()
