"""Maps as polynomials: the multipliers of lines from the middle row, and of tangents."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import oracles
from hopefold.core import linearization
from hopefold.core.linearization import SeveralLayers, linearize, power_slopes
from hopefold.core.maps import HighOrder, SigmoidHighOrder, Stacked

SIZES = [((2, 3), (5, 4), (6, 3)), ((3, 1, 2), (4, 3, 5), (2, 6, 4)), ((1, 4), (3, 3), (5, 5))]


@pytest.fixture(params=SIZES, ids=str)
def stack(request):
    return _started(Stacked(4, 2, *request.param))


@pytest.fixture
def rows():
    return 3 * torch.randn(7, 4, generator=torch.Generator().manual_seed(1)).double()


MIDDLE = torch.tensor([0.5, -0.2, 0.1, 0.3], dtype=torch.float64)


def _started(map_):
    generator = torch.Generator().manual_seed(0)
    map_.start(torch.randn(50, 4, generator=generator), generator)
    return map_


def _upper(map_, inputs):
    """The points, from the inputs of the first sigmoids."""
    units = inputs.sigmoid()
    for layer in map_.layers[1:]:
        C, c, W, b = (weights.double() for weights in (layer.C, layer.c, layer.W, layer.b))
        units = ((units @ C.T + c) ** layer.order @ W.T + b).sigmoid()
    return units @ map_.P.double().T


def _plain(map_):
    return [
        (*(weights.tolist() for weights in (layer.C, layer.c, layer.W, layer.b)), layer.order)
        for layer in map_.layers
    ], map_.P.tolist()


def test_slopes_of_lines_are_those_of_loops(stack, rows):
    multipliers = linearize(stack).multipliers(rows, MIDDLE)
    for row in range(len(rows)):
        expected = oracles.secants(rows[row].tolist(), MIDDLE.tolist(), *_plain(stack))
        np.testing.assert_allclose(multipliers[:, row], expected, rtol=1e-6, atol=1e-12)


def test_slopes_at_the_row_are_those_of_autograd(stack, rows):
    linear = linearize(stack)
    inputs = (linear.inputs.at(rows) + linear.b).requires_grad_()
    points = _upper(stack, inputs)
    expected = torch.stack(
        [torch.autograd.grad(y.sum(), inputs, retain_graph=True)[0] for y in points.T]
    )
    torch.testing.assert_close(linear.multipliers(rows, None), expected)


def test_slopes_of_lines_to_the_middle_row_itself_are_those_of_tangents(stack):
    linear = linearize(stack)
    torch.testing.assert_close(
        linear.multipliers(MIDDLE[None], MIDDLE), linear.multipliers(MIDDLE[None], None)
    )


def test_lines_lead_from_the_middle_row_to_the_row(stack, rows):
    linear = linearize(stack)
    way = linear.inputs.at(rows) - linear.inputs.at(MIDDLE[None])
    moved = torch.einsum("dnu,nu->nd", linear.multipliers(rows, MIDDLE), way)
    expected = linear.points(rows) - linear.points(MIDDLE[None])
    torch.testing.assert_close(moved, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: HighOrder(4, 2, 3, 5),
        lambda: SigmoidHighOrder(4, 2, 3, 5, 6),
        lambda: Stacked(4, 2, (2, 3), (5, 4), (6, 3)),
    ],
    ids=["HOPE", "S-HOPE", "stack"],
)
def test_points_and_polynomials_of_every_map(make, rows):
    map_ = _started(make())
    linear = linearize(map_)
    points = linear.points(rows)
    torch.testing.assert_close(points, map_(rows.float()).double(), rtol=1e-4, atol=1e-4)
    for row in range(len(rows)):
        start, end = linear.polynomial([rows[row : row + 1]], MIDDLE).at(
            torch.stack([MIDDLE, rows[row]])
        )
        expected = points[row] - linear.points(MIDDLE[None])[0]
        torch.testing.assert_close(end - start, expected, rtol=1e-9, atol=1e-9)


def test_the_polynomial_of_several_rows_has_their_mean_slopes(stack, rows):
    linear = linearize(stack)
    each = [linear.polynomial([row[None]], MIDDLE).P for row in rows]
    together = linear.polynomial([rows[:3], rows[3:]], MIDDLE).P
    torch.testing.assert_close(together, torch.stack(each).mean(dim=0))


def test_blocks_of_any_size_give_the_same(stack, rows, monkeypatch):
    linear = linearize(stack)
    parts = torch.randn(3, len(linear.b), dtype=torch.float64)
    monkeypatch.setattr(linearization, "BLOCK", 30)
    small = SeveralLayers(stack)
    for middle in (MIDDLE, None):
        expected = linear.polynomial([rows], middle).P
        torch.testing.assert_close(small.polynomial([rows], middle).P, expected)
    expected = linear.polynomial_on([rows], MIDDLE).P
    torch.testing.assert_close(small.polynomial_on([rows], MIDDLE).P, expected)
    expected = linear.moves(rows, MIDDLE, parts)
    assert expected.shape == (7, 3, 2)
    torch.testing.assert_close(small.moves(rows, MIDDLE, parts), expected)


@pytest.mark.parametrize("order", [1, 2, 3, 6])
def test_slopes_of_powers_are_those_of_the_line_and_of_the_tangent(order):
    s = torch.tensor([[-2.0, 0.5, 0.0, 3.0]]).double()
    start = torch.tensor([[1.0, -1.0, 2.0, 1.5]]).double()
    expected = (s**order - start**order) / (s - start)
    torch.testing.assert_close(power_slopes(s, start, order), expected)
    torch.testing.assert_close(power_slopes(s, None, order), order * s ** (order - 1))
    torch.testing.assert_close(power_slopes(s, s, order), order * s ** (order - 1))


def test_the_polynomial_on_rows_is_a_ridge_regression_that_starts_at_the_mean_slopes(stack, rows):
    linear = linearize(stack)
    A, a, order = linear.inputs.A.numpy(), linear.inputs.a.numpy(), linear.inputs.order
    z = (rows.numpy() @ A.T + a) ** order - (A @ MIDDLE.numpy() + a) ** order
    mean = linear.polynomial([rows], MIDDLE).P.numpy()
    y = (linear.points(rows) - linear.points(MIDDLE[None])).numpy() - z @ mean.T
    ridge = np.sqrt(linearization.RIDGE * np.mean(np.sum(z**2, axis=0))) * np.eye(z.shape[1])
    both = np.vstack([z, ridge]), np.vstack([y, np.zeros((z.shape[1], 2))])
    expected = mean + np.linalg.lstsq(*both, rcond=None)[0].T
    found = linear.polynomial_on([rows[:4], rows[4:]], MIDDLE)
    np.testing.assert_allclose(found.P, expected, rtol=1e-6, atol=1e-9)


def test_the_polynomial_on_one_row_is_that_of_its_line(stack, rows):
    linear = linearize(stack)
    for row in (rows[:1], MIDDLE[None]):
        expected = linear.polynomial([row], MIDDLE).P
        torch.testing.assert_close(linear.polynomial_on([row], MIDDLE).P, expected)


@pytest.mark.parametrize(
    "map_", [HighOrder(4, 2, 3, 5), SigmoidHighOrder(4, 2, 3, 5, 6)], ids=["HOPE", "S-HOPE"]
)
def test_one_layer_has_its_mean_slopes_on_any_rows(map_, rows):
    linear = linearize(_started(map_))
    expected = linear.polynomial([rows], MIDDLE)
    assert torch.equal(linear.polynomial_on([rows], MIDDLE).P, expected.P)
