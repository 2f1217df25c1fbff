"""The vote, its tie rule, and the kernel's mass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from hopefold.core import neighbors


@settings(max_examples=60, deadline=None)
@given(
    labels=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    n_neighbors=st.integers(1, 12),
    seed=st.integers(0, 1000),
)
def test_the_vote_equals_the_loops(labels, n_neighbors, seed):
    random = np.random.RandomState(seed)
    references, points = random.normal(size=(len(labels), 2)), random.normal(size=(5, 2))
    labels = np.array(labels)
    shares = neighbors.class_shares(points, references, labels, np.ones(4), n_neighbors)
    for point, share in zip(points, shares, strict=True):
        distances = [oracles.squared_distance(point, r) for r in references]
        assert share.argmax() == oracles.vote(distances, labels.tolist(), n_neighbors)


def test_among_tied_classes_the_nearest_wins():
    """Two exemplars a class and five neighbors: 2-2-1. The smallest label must not win."""
    references = np.array([[1.0], [1.1], [2.0], [2.1], [9.0]])
    labels = np.array([2, 2, 0, 0, 1])
    shares = neighbors.class_shares(np.array([[0.0]]), references, labels, np.ones(3), 5)
    assert shares.argmax() == 2


def test_a_majority_beats_a_nearer_minority():
    references = np.array([[0.1], [2.0], [3.0]])
    shares = neighbors.class_shares(
        np.array([[0.0]]), references, np.array([0, 1, 1]), np.ones(2), 3
    )
    assert shares.argmax() == 1


def test_a_late_tie_among_many_neighbors_still_goes_to_the_nearer():
    labels = np.array([0] * 400 + [2] * 500 + [1] * 500)
    votes = neighbors.vote(labels[None, :], 3)
    assert votes.argmax() == 2


def test_kernel_mass_equals_the_loops():
    random = np.random.RandomState(0)
    points, references = random.normal(size=(6, 3)), random.normal(size=(5, 3))
    labels = np.array([0, 0, 1, 2, 2])
    shares = neighbors.class_shares(points, references, labels, np.ones(3), None)
    expected = [oracles.kernel_mass(p, references, labels, 3) for p in points]
    np.testing.assert_allclose(shares, expected)


def test_kernel_mass_is_the_same_in_chunks(monkeypatch):
    random = np.random.RandomState(0)
    arguments = random.normal(size=(50, 2)), random.normal(size=(4, 2)), np.array([0, 1, 1, 0]), 2
    whole = neighbors.kernel_mass(*arguments)
    monkeypatch.setattr(neighbors, "CHUNK", 12)
    np.testing.assert_array_equal(neighbors.kernel_mass(*arguments), whole)


@pytest.mark.parametrize("n_neighbors", [None, 2])
def test_a_heavier_class_counts_for_more(n_neighbors):
    references, labels = np.array([[-1.0], [1.0]]), np.array([0, 1])
    shares = neighbors.class_shares(
        np.array([[0.1]]), references, labels, np.array([3.0, 1.0]), n_neighbors
    )
    assert shares.argmax() == 0
    assert shares.sum() == pytest.approx(1)


def test_a_temperature_changes_the_kernels_probabilities_and_no_vote():
    points = np.random.RandomState(0).normal(size=(9, 1))
    references, labels = np.array([[-1.0], [0.5], [1.0]]), np.array([0, 1, 1])
    for n_neighbors, same in ((None, False), (2, True)):
        arguments = points, references, labels, np.ones(2), n_neighbors
        cold, warm = (neighbors.class_shares(*arguments, temperature) for temperature in (1, 3))
        assert np.array_equal(cold, warm) == same
        np.testing.assert_array_equal(neighbors.decide(*arguments), warm.argmax(axis=1))
        chunks = np.concatenate([*neighbors.shares_by_chunks(*arguments, 3)])
        np.testing.assert_array_equal(chunks, warm)


def test_points_beyond_the_square_of_float32_still_have_a_class():
    points = np.array([[1e30, 0], [-3e38, 1]], dtype=np.float32)
    references = np.array([[1, 0], [-1, 0]], dtype=np.float32)
    shares = neighbors.class_shares(points, references, np.array([0, 1]), np.ones(2), None)
    assert np.isfinite(shares).all()


def test_neighbors_come_nearest_first():
    distances, indices = neighbors.nearest(np.zeros((1, 2)), np.array([[3, 4], [0, 1.0]]), 2)
    np.testing.assert_allclose(distances, [[1, 5]])
    np.testing.assert_array_equal(indices, [[1, 0]])
