"""A handful of rows that stand in for all: where exemplars start, by class or regardless of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray
    from scipy.sparse import csr_array


#: Rounds of k-means after which many centres are good enough to compare rows with.
ROUNDS = 10


def kmeans_per_class(
    rows_of: Callable[[Int[ndarray, " k"]], Float[ndarray, "k features"] | csr_array],
    labels: Int[ndarray, " n"],
    n_exemplars: Sequence[int],
    random_state: np.random.RandomState,
    *,
    max_rows: int | None = None,
) -> tuple[Float[ndarray, "z features"], Int[ndarray, " z"]]:
    """The k-means centres of each class in the input space, and their classes.

    Class k gets ``n_exemplars[k]`` centres. Rows are fetched one class at a time, at most
    ``max_rows`` of them at random, so that memory stays bounded.
    """
    centres = []
    for label, n_centres in enumerate(n_exemplars):
        members = np.flatnonzero(labels == label)
        if max_rows is not None and len(members) > max_rows:
            members = np.sort(random_state.choice(members, max_rows, replace=False))
        rows = _with_short_indices(rows_of(members))
        if n_centres == 1:
            centres.append(np.asarray(rows.mean(axis=0)).reshape(1, -1))
        elif n_centres == len(members):
            centres.append(rows if isinstance(rows, np.ndarray) else rows.toarray())
        else:
            centres.append(_centres(KMeans(n_centres, n_init=1, random_state=random_state), rows))
    return np.concatenate(centres), np.repeat(np.arange(len(n_exemplars)), n_exemplars)


def kmeans_centres(
    rows: Float[ndarray, "k features"] | csr_array,
    n_centres: int,
    random_state: np.random.RandomState,
) -> Float[ndarray, "z features"]:
    """Many k-means centres of rows of any class, after a few rounds from random rows."""
    kmeans = KMeans(n_centres, init="random", n_init=1, max_iter=ROUNDS, random_state=random_state)
    return _centres(kmeans, _with_short_indices(rows))


def _centres(kmeans: KMeans, rows: Any) -> Float[ndarray, "z features"]:
    with warnings.catch_warnings():  # rows that are all alike make centres that are alike
        warnings.simplefilter("ignore", ConvergenceWarning)
        centres: ndarray = kmeans.fit(rows).cluster_centers_
    return centres


def _with_short_indices(rows: Any) -> Any:
    """scikit-learn's k-means takes 32-bit indices alone; those of a few rows always fit."""
    if isinstance(rows, np.ndarray) or rows.indices.dtype == np.int32:
        return rows
    short = rows.copy()
    short.indices, short.indptr = (part.astype(np.int32) for part in (rows.indices, rows.indptr))
    return short
