"""Classification of points by references: the Student kernel's mass per class, or a k-NN vote.

The vote breaks ties differently from scikit-learn: **among tied classes the one with the nearest
reference wins.** Five votes among two exemplars per class are almost always a 2-2-1 tie, and
breaking ties by label would turn an error of 4 % into one of 40 %.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors

from hopefold.core.calibration import temper

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray

#: Number of row-reference pairs that are compared at once: 8 MB of float64.
CHUNK = 1_000_000

#: Bonus in votes of the nearest reference: less than a vote, so it only breaks ties.
TIE_BONUS = 1e-3


def nearest(
    points: Float[ndarray, "n d"], references: Float[ndarray, "r d"], n_neighbors: int
) -> tuple[Float[ndarray, "n k"], Int[ndarray, "n k"]]:
    """Return the distances to the nearest references in ascending order, and their indices."""
    return _search(references, n_neighbors)(points)


def _search(references: ndarray, n_neighbors: int) -> Callable[[ndarray], tuple[ndarray, ndarray]]:
    """Return a search function from points to distances and indices; the index is built once."""
    search: Callable[[ndarray], tuple[ndarray, ndarray]]
    search = NearestNeighbors(n_neighbors=n_neighbors).fit(references).kneighbors
    return search


def vote(neighbor_labels: Int[ndarray, "n k"], n_classes: int) -> Float[ndarray, "n classes"]:
    """Return the votes of each class, given neighbors in ascending order of distance.

    The bonus separates tied classes by at most a thousandth of a vote, in favor of the class of the
    nearest reference, so the prediction is always the argmax.
    """
    n, k = neighbor_labels.shape
    votes = np.zeros((n, n_classes))
    rows = np.arange(n)
    for rank in range(k):
        classes = neighbor_labels[:, rank]
        first = votes[rows, classes] == 0
        votes[rows, classes] += 1 + first * (TIE_BONUS / (1 + rank))
    return votes


def kernel_mass(
    points: Float[ndarray, "n d"],
    references: Float[ndarray, "r d"],
    labels: Int[ndarray, " r"],
    n_classes: int,
) -> Float[ndarray, "n classes"]:
    """Return Σ_j 1/(1 + d_ij) over the references of each class (the numerator of eq. 10)."""
    # by torch, as its threads and NumPy's would compete: idle threads spin
    p, r = (torch.from_numpy(xy.astype(np.float64)) for xy in (points, references))
    membership = torch.zeros(len(r), n_classes, dtype=torch.float64)
    membership[torch.arange(len(r)), torch.from_numpy(labels)] = 1
    mass = torch.empty(len(p), n_classes, dtype=torch.float64)
    step = max(1, CHUNK // len(r))
    for start in range(0, len(p), step):
        some = p[start : start + step]
        similarity = torch.ones(len(some), len(r), dtype=torch.float64)
        for axis in range(p.shape[1]):
            apart = some[:, axis, None] - r[:, axis]
            similarity.addcmul_(apart, apart)
        mass[start : start + step] = similarity.reciprocal_() @ membership
    return mass.numpy()


def class_shares(
    points: Float[ndarray, "n d"],
    references: Float[ndarray, "r d"],
    labels: Int[ndarray, " r"],
    class_weights: Float[ndarray, " classes"],
    n_neighbors: int | None,
    temperature: float = 1.0,
) -> Float[ndarray, "n classes"]:
    """Return class probabilities: a vote of the nearest references, or, if ``None``, kernel mass.

    References are weighted by the weights of their classes. The kernel's probabilities are those at
    the temperature (`temper`); votes, which may be 0, have none.
    """
    return _shares_function(references, labels, class_weights, n_neighbors, temperature)(points)


def decide(
    points: Float[ndarray, "n d"],
    references: Float[ndarray, "r d"],
    labels: Int[ndarray, " r"],
    class_weights: Float[ndarray, " classes"],
    n_neighbors: int | None,
) -> Int[ndarray, " n"]:
    """Return the most probable class of each point, at any temperature; in bounded memory."""
    chunks = shares_by_chunks(points, references, labels, class_weights, n_neighbors)
    return np.concatenate([shares.argmax(axis=1) for shares in chunks])


def shares_by_chunks(
    points: Float[ndarray, "n d"],
    references: Float[ndarray, "r d"],
    labels: Int[ndarray, " r"],
    class_weights: Float[ndarray, " classes"],
    n_neighbors: int | None,
    temperature: float = 1.0,
) -> Iterator[Float[ndarray, "c classes"]]:
    """Yield the result of `class_shares` for consecutive chunks of points."""
    shares_of = _shares_function(references, labels, class_weights, n_neighbors, temperature)
    step = max(1, CHUNK // len(class_weights))
    return (shares_of(points[start : start + step]) for start in range(0, len(points), step))


def _shares_function(
    references: ndarray,
    labels: ndarray,
    class_weights: ndarray,
    n_neighbors: int | None,
    temperature: float,
) -> Callable[[ndarray], ndarray]:
    """Return a function from points to class probabilities; the search index is built once."""
    n_classes, weighted = len(class_weights), bool((class_weights != 1).any())
    if n_neighbors is not None:
        search = _search(references, min(n_neighbors, len(references)))

    def shares(points: ndarray) -> ndarray:
        if n_neighbors is None:
            mass = kernel_mass(points, references, labels, n_classes)
        else:
            mass = vote(labels[search(points)[1]], n_classes)
        if weighted:
            mass *= class_weights
        mass /= torch.from_numpy(mass).sum(dim=1, keepdim=True).numpy()  # faster over few columns
        return mass if n_neighbors is not None else temper(mass, temperature)

    return shares
