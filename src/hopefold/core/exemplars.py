"""Initial exemplars: k-means centers of each class, or of all rows."""

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


#: Iterations of k-means for landmarks: rows are only compared with them, so few are enough.
ROUNDS = 10


def kmeans_per_class(
    rows_of: Callable[[Int[ndarray, " k"]], Float[ndarray, "k features"] | csr_array],
    labels: Int[ndarray, " n"],
    n_exemplars: Sequence[int],
    random_state: np.random.RandomState,
    *,
    max_rows: int | None = None,
) -> tuple[Float[ndarray, "z features"], Int[ndarray, " z"]]:
    """Return the k-means centers of each class in the input space, and their classes.

    Class k gets ``n_exemplars[k]`` centers. The rows of one class are fetched at a time, and at
    most ``max_rows`` of them at random, so memory use is bounded.
    """
    centers = []
    for label, n_centers in enumerate(n_exemplars):
        members = np.flatnonzero(labels == label)
        if max_rows is not None and len(members) > max_rows:
            members = np.sort(random_state.choice(members, max_rows, replace=False))
        rows = _with_short_indices(rows_of(members))
        if n_centers == 1:
            centers.append(np.asarray(rows.mean(axis=0)).reshape(1, -1))
        elif n_centers == len(members):
            centers.append(rows if isinstance(rows, np.ndarray) else rows.toarray())
        else:
            centers.append(_centers(KMeans(n_centers, n_init=1, random_state=random_state), rows))
    return np.concatenate(centers), np.repeat(np.arange(len(n_exemplars)), n_exemplars)


def kmeans_centers(
    rows: Float[ndarray, "k features"] | csr_array,
    n_centers: int,
    random_state: np.random.RandomState,
) -> Float[ndarray, "z features"]:
    """Return k-means centers of all rows, after a few iterations from random rows."""
    kmeans = KMeans(n_centers, init="random", n_init=1, max_iter=ROUNDS, random_state=random_state)
    return _centers(kmeans, _with_short_indices(rows))


def _centers(kmeans: KMeans, rows: Any) -> Float[ndarray, "z features"]:
    with warnings.catch_warnings():  # identical rows have identical centers
        warnings.simplefilter("ignore", ConvergenceWarning)
        centers: ndarray = kmeans.fit(rows).cluster_centers_
    return centers


def _with_short_indices(rows: Any) -> Any:
    """Cast sparse indices to 32 bits, which scikit-learn's k-means requires."""
    if isinstance(rows, np.ndarray) or rows.indices.dtype == np.int32:
        return rows
    short = rows.copy()
    short.indices, short.indptr = (part.astype(np.int32) for part in (rows.indices, rows.indptr))
    return short
