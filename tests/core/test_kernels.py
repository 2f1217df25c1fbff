from __future__ import annotations

import math

import pytest
import torch

import oracles
from hopefold.core.kernels import log_gaussian, log_student, squared_distances


def test_squared_distances_equal_the_loops():
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (4, 5))
    expected = [[oracles.squared_distance(u, v) for v in b.tolist()] for u in a.tolist()]
    torch.testing.assert_close(squared_distances(a, b), torch.tensor(expected, dtype=torch.float64))


def test_distances_survive_an_origin_far_away_in_float32():
    a = torch.tensor([[1e4, 1e4]])
    assert float(squared_distances(a, a + 1)) == pytest.approx(2, rel=1e-3)


def test_a_point_is_never_less_than_nothing_away_from_itself():
    a = torch.randn(50, 2, generator=torch.Generator().manual_seed(0)) * 100
    assert (squared_distances(a, a) >= 0).all()


def test_student_kernel_squares_the_distance():
    """A public implementation forgets the square."""
    d = squared_distances(torch.zeros(1, 2), torch.tensor([[3.0, 0.0]]))
    assert float(log_student(d)) == pytest.approx(math.log(1 / 10))


def test_gaussian_kernel_squares_the_distance():
    d = squared_distances(torch.zeros(1, 2), torch.tensor([[3.0, 0.0]]))
    assert float(log_gaussian(d)) == pytest.approx(-9)
