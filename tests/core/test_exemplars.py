from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from hopefold.core.exemplars import kmeans_per_class


@pytest.fixture
def two_pairs_of_clumps():
    """Class 0 clumps at 0 and 10, class 1 at 100 and 110."""
    centers = np.array([[0.0, 0], [10, 0], [100, 0], [110, 0]])
    noise = 0.1 * np.random.RandomState(0).normal(size=(80, 2))
    return np.repeat(centers, 20, axis=0) + noise, np.repeat([0, 1], 40)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_each_class_gets_the_centers_of_its_own_clumps(two_pairs_of_clumps, make):
    X, labels = two_pairs_of_clumps
    X = make(X)
    centers, classes = kmeans_per_class(
        lambda which: X[which], labels, [2, 2], np.random.RandomState(0)
    )
    assert classes.tolist() == [0, 0, 1, 1]
    assert sorted(np.round(centers[:, 0])) == [0, 10, 100, 110]


def test_one_exemplar_is_the_mean(two_pairs_of_clumps):
    X, labels = two_pairs_of_clumps
    centers, _ = kmeans_per_class(lambda w: X[w], labels, [1, 1], np.random.RandomState(0))
    np.testing.assert_allclose(centers[0], X[labels == 0].mean(axis=0))


def test_as_many_exemplars_as_rows_are_the_rows(two_pairs_of_clumps):
    X, labels = two_pairs_of_clumps
    few = np.array([0, 1, 40])
    X, labels = X[few], labels[few]
    centers, classes = kmeans_per_class(lambda w: X[w], labels, [2, 1], np.random.RandomState(0))
    np.testing.assert_allclose(centers, X)
    assert classes.tolist() == [0, 0, 1]


def test_no_more_rows_are_fetched_than_allowed(two_pairs_of_clumps):
    X, labels = two_pairs_of_clumps
    fetched = []
    kmeans_per_class(
        lambda w: fetched.append(len(w)) or X[w],
        labels,
        [2, 2],
        np.random.RandomState(0),
        max_rows=15,
    )
    assert fetched == [15, 15]


def test_sparse_rows_with_long_indices_are_clustered_like_others():
    rows = sparse.random_array((40, 6), density=0.5, rng=np.random.default_rng(0), format="csr")
    long = rows.copy()
    long.indices, long.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    labels = np.repeat([0, 1], 20)
    centers = [
        kmeans_per_class(lambda members, X=X: X[members], labels, [2, 2], np.random.RandomState(0))
        for X in (rows, long)
    ]
    np.testing.assert_allclose(centers[0][0], centers[1][0])
