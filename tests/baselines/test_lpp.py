"""LPP solves its eigenproblem, on either graph."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles

import oracles
from hopefold.baselines import LDA, LPP


def directions_of(model):
    return model.map_.P.numpy().astype(np.float64)


def rayleigh(direction, X, edges):
    """How near joined rows lie along a direction, relative to how much all rows spread."""
    points = X @ direction
    joined = sum(
        edges[i, j] * (points[i] - points[j]) ** 2 for i, j in zip(*np.nonzero(edges), strict=True)
    )
    return joined / (2 * (edges.sum(axis=1) * points**2).sum())


def class_graph(y):
    return (y[:, None] == y[None, :]) / np.bincount(y)[y][:, None]


def neighbor_graph(X, k):
    """1 where either row is among the k nearest of the other, by looking at all."""
    edges = np.zeros((len(X), len(X)))
    for i in range(len(X)):
        others = [j for j in range(len(X)) if j != i]
        others.sort(key=lambda j: oracles.squared_distance(X[i], X[j]))
        for j in others[:k]:
            edges[i, j] = edges[j, i] = 1
    return edges


@pytest.fixture(scope="module")
def rows():
    """Centered, and no two pairs of rows equally far from each other."""
    random = np.random.RandomState(0)
    y = np.arange(60) % 3
    X = random.normal(size=(60, 5)) @ random.normal(size=(5, 5)) + 2 * np.eye(5)[y]
    return X - X.mean(axis=0), y


def test_the_class_graph_has_the_plane_of_lda(digits):
    X, y = digits[0][:400], digits[2][:400]
    mine, theirs = (cls(random_state=0).fit(X, y) for cls in (LPP, LDA))
    angles = subspace_angles(directions_of(mine).T, directions_of(theirs).T)
    assert np.degrees(angles).max() < 0.1


@pytest.mark.parametrize("graph", ["class", "neighbors"])
def test_directions_fulfil_the_generalized_eigen_equation(rows, graph):
    X, y = rows
    model = LPP(5, graph=graph, scale=None, validation_fraction=0).fit(X, y)
    edges = class_graph(y) if graph == "class" else neighbor_graph(X, 5)
    spread = X.T @ np.diag(edges.sum(axis=1)) @ X
    apart = spread - X.T @ edges @ X
    for a in directions_of(model):
        value = (a @ apart @ a) / (a @ spread @ a)
        residual = apart @ a - value * spread @ a
        assert np.linalg.norm(residual) < 1e-5 * np.linalg.norm(spread @ a)


@pytest.mark.parametrize("graph", ["class", "neighbors"])
def test_the_first_direction_keeps_joined_rows_nearer_than_any_random_one(rows, graph):
    X, y = rows
    model = LPP(5, graph=graph, scale=None, validation_fraction=0).fit(X, y)
    edges = class_graph(y) if graph == "class" else neighbor_graph(X, 5)
    first, *others = (rayleigh(a, X, edges) for a in directions_of(model))
    tried = np.random.RandomState(1).normal(size=(50, 5))
    assert first < min(rayleigh(a, X, edges) for a in tried)
    assert (np.diff([first, *others]) > -1e-9).all()


def test_points_spread_as_the_constraint_says(rows):
    X, y = rows
    points = LPP(graph="class", scale=None, validation_fraction=0).fit(X, y).transform(X)
    np.testing.assert_allclose(points.T @ points / len(X), np.eye(2), atol=1e-4)


@pytest.mark.parametrize("graph", ["class", "neighbors"])
def test_directions_do_not_see_where_the_origin_is(rows, graph):
    X, y = rows
    here, there = (
        LPP(graph=graph, scale=None, validation_fraction=0).fit(X + shift, y) for shift in (0, 5)
    )
    angles = subspace_angles(directions_of(here).T, directions_of(there).T)
    assert np.degrees(angles).max() < 0.1


def test_the_neighbor_graph_does_not_see_the_labels(rows):
    X, y = rows
    one, other = (
        LPP(graph="neighbors", validation_fraction=0).fit(X, labels) for labels in (y, y[::-1])
    )
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


def test_a_graph_of_more_neighbors_than_there_are_rows_joins_all():
    random = np.random.RandomState(0)
    X, y = random.normal(size=(8, 3)), np.arange(8) % 2
    few = LPP(graph="neighbors", n_graph_neighbors=7, validation_fraction=0).fit(X, y)
    many = LPP(graph="neighbors", n_graph_neighbors=70, validation_fraction=0).fit(X, y)
    np.testing.assert_array_equal(few.transform(X), many.transform(X))


@pytest.mark.parametrize("graph", ["class", "neighbors"])
def test_directions_that_do_not_vary_are_left_out(rows, graph):
    X, y = rows
    model = LPP(4, graph=graph, validation_fraction=0).fit(np.hstack([X[:, :2], X[:, :2]]), y)
    assert directions_of(model)[:2].any(axis=1).all()
    assert not directions_of(model)[2:].any()
