"""The way through a map and back: the map's own points, and the gradients that autograd finds."""

from __future__ import annotations

import pytest
import torch

from hopefold.core.backprop import MapBackprop
from hopefold.core.maps import HighOrder, Pressed, Products, SigmoidHighOrder, Stacked
from hopefold.core.masks import MaskSampler
from hopefold_bench.untied import UntiedSigmoidHighOrder

DROPOUT = {"input_dropout": 0.4, "dropout": 0.3}
MAPS = {
    **{f"hope {order}": lambda o=order: HighOrder(4, 2, o, 5, **DROPOUT) for order in (1, 2, 3, 4)},
    **{
        f"products {order}": lambda o=order: Products(4, 2, o, 19, **DROPOUT)
        for order in (1, 2, 3, 4)
    },
    **{
        f"shope {order}": lambda o=order: SigmoidHighOrder(4, 2, o, 5, 6, **DROPOUT)
        for order in (1, 2, 3)
    },
    "two layers": lambda: Stacked(4, 2, (2, 3), (5, 3), (6, 7), **DROPOUT),
    "three layers": lambda: Stacked(4, 2, (1, 2, 2), (5, 4, 3), (6, 5, 7), **DROPOUT),
    "pressed layers": lambda: Pressed(Stacked(4, 2, (2, 2), (5, 4), (6, 3), **DROPOUT), 3),
    "untied": lambda: UntiedSigmoidHighOrder(4, 2, 3, 5, 6, **DROPOUT),
    "pressed hope": lambda: Pressed(Products(4, 2, 3, 9, **DROPOUT), 3),
    "pressed shope": lambda: Pressed(SigmoidHighOrder(4, 2, 2, 5, 6, **DROPOUT), 3),
}
ANY_MAP = pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def rows(n, n_features, seed=1):
    return torch.randn(n, n_features, generator=seeded(seed), dtype=torch.float64)


def masks(n_rows, seed=0):
    return MaskSampler(0).masks(seed, n_rows)


def randomised(map_, seed=0):
    generator = seeded(seed)
    with torch.no_grad():
        for parameter in map_.double().parameters():
            parameter.normal_(generator=generator)
    if isinstance(map_, Pressed):
        map_.height = 0.7
    return map_


def forward_and_backward(backprop, x, pull, masks=None, *, add=False):
    """Points, and the gradients of their product with ``pull``."""
    with torch.no_grad():
        points = backprop.forward(x, masks)
        backprop.backward(pull, add=add)
        return (
            points,
            [slope.clone() for slope in backprop.gradients.values()],
            backprop.grad_rows(slice(None)),
        )


def by_autograd(map_, x, pull, masks=None):
    x = x.clone().requires_grad_()
    points = map_(x, masks)
    gradients = torch.autograd.grad((points * pull).sum(), [*map_.parameters(), x])
    return points.detach(), list(gradients[:-1]), gradients[-1]


@ANY_MAP
@pytest.mark.parametrize("n_thinned", [0, 5, 8], ids=["whole", "above", "all"])
def test_a_passage_gives_the_points_and_gradients_of_its_map(make, n_thinned):
    map_ = randomised(make())
    x, pull = rows(8, 4), rows(8, len(map_(rows(1, 4))[0]), seed=3)
    drawn = [masks(n_thinned) if n_thinned else None for _ in range(2)]
    torch.testing.assert_close(
        forward_and_backward(MapBackprop(map_), x, pull, drawn[0]),
        by_autograd(map_, x, pull, drawn[1]),
    )


@ANY_MAP
def test_what_a_passage_has_seen_before_leaves_no_trace(make):
    map_ = randomised(make())
    backprop, n_points = MapBackprop(map_), len(map_(rows(1, 4))[0])
    forward_and_backward(backprop, rows(9, 4, seed=5), rows(9, n_points, seed=6), masks(9))
    x, pull = rows(6, 4), rows(6, n_points, seed=3)
    torch.testing.assert_close(
        forward_and_backward(backprop, x, pull),
        forward_and_backward(MapBackprop(map_), x, pull),
        rtol=0,
        atol=0,
    )


@ANY_MAP
def test_gradients_of_two_ways_can_be_added(make):
    map_ = randomised(make())
    backprop, n_points = MapBackprop(map_), len(map_(rows(1, 4))[0])
    x, pull = rows(6, 4), rows(6, n_points, seed=3)
    _, first, _ = forward_and_backward(backprop, x[:2], pull[:2])
    _, both, _ = forward_and_backward(backprop, x[2:], pull[2:], add=True)
    _, expected, _ = by_autograd(map_, x, pull)
    torch.testing.assert_close(both, expected)
    assert not any(torch.equal(*gradients) for gradients in zip(first, both, strict=True))


@ANY_MAP
def test_the_first_rows_may_go_back_alone(make):
    map_ = randomised(make())
    x, pull = rows(8, 4), rows(8, len(map_(rows(1, 4))[0]), seed=3)
    _, gradients, grad_rows = forward_and_backward(MapBackprop(map_), x, pull[:5], masks(5))
    _, expected, to_all = by_autograd(map_, x, torch.cat([pull[:5], 0 * pull[5:]]), masks(5))
    torch.testing.assert_close((gradients, grad_rows), (expected, to_all[:5]))


@ANY_MAP
def test_rows_that_are_not_new_are_not_gone_through_again(make):
    map_ = randomised(make())
    backprop, pull = MapBackprop(map_), rows(8, len(map_(rows(1, 4))[0]), seed=3)
    x = torch.cat([rows(5, 4, seed=7), rows(8, 4)[5:]])
    with torch.no_grad():
        backprop.forward(rows(8, 4), masks(5))
        backprop.backward(pull[:5])
        points = backprop.forward(x, new=slice(5))
        backprop.backward(pull)
    expected, gradients, grad_rows = by_autograd(map_, x, pull)
    torch.testing.assert_close(points, expected[:5])
    torch.testing.assert_close([*backprop.gradients.values()], gradients)
    torch.testing.assert_close(backprop.grad_rows(slice(None)), grad_rows)


def test_the_rows_are_left_as_they_are():
    map_ = randomised(SigmoidHighOrder(4, 2, 2, 5, 6, **DROPOUT))
    x = rows(6, 4)
    before = x.clone()
    forward_and_backward(MapBackprop(map_), x, rows(6, 2), masks(4))
    assert torch.equal(x, before)


def test_the_gradient_to_some_rows_is_part_of_that_to_all():
    backprop = MapBackprop(randomised(SigmoidHighOrder(4, 2, 2, 5, 6, **DROPOUT)))
    _, _, to_all = forward_and_backward(backprop, rows(6, 4), rows(6, 2), masks(4))
    for which in (slice(4), slice(4, None), slice(2, 5), slice(5, 6)):
        torch.testing.assert_close(backprop.grad_rows(which), to_all[which])


def test_gradients_through_layers_are_those_of_finite_differences():
    map_ = randomised(Stacked(3, 2, (2, 3), (4, 3), (5, 4)))
    x, pull, backprop = rows(4, 3), rows(4, 2, seed=3), MapBackprop(map_)
    _, gradients, grad_rows = forward_and_backward(backprop, x, pull)
    with torch.no_grad():
        for values, slope in zip((*map_.parameters(), x), (*gradients, grad_rows), strict=True):
            found = torch.empty_like(values)
            for place in range(values.numel()):
                number = values.view(-1)[place]
                before, ends = number.clone(), []
                for step in (1e-6, -1e-6):
                    number.copy_(before + step)
                    ends.append((map_(x) * pull).sum())
                number.copy_(before)
                found.view(-1)[place] = (ends[0] - ends[1]) / 2e-6
            torch.testing.assert_close(slope, found, rtol=1e-5, atol=1e-6)
