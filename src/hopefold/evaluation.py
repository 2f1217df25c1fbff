"""How good is it, and what does it save?"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from hopefold.core.neighbors import nearest, vote
from hopefold.estimators.base import SupervisedEmbedding

if TYPE_CHECKING:
    from numpy import ndarray

#: Bytes of a number in float32.
FLOAT = 4


def knn_error(
    references: ndarray,
    reference_labels: ndarray,
    points: ndarray,
    labels: ndarray,
    n_neighbors: int = 5,
) -> float:
    """Share of the points that their nearest references misjudge; ties go to the nearer class.

    Examples
    --------
    >>> from hopefold.evaluation import knn_error
    >>> knn_error([[0.0], [1.0], [9.0]], ["a", "a", "b"], [[0.4], [8.0]], ["a", "a"], n_neighbors=1)
    0.5

    """
    classes, codes = np.unique(np.asarray(reference_labels), return_inverse=True)
    _, indices = nearest(points, references, min(n_neighbors, len(codes)))
    decisions = classes[vote(codes[indices], len(classes)).argmax(axis=1)]
    return float(np.mean(decisions != np.asarray(labels)))


class Kept(NamedTuple):
    """What has to be kept to judge new rows, in numbers of rows and in bytes of float32."""

    rows: int
    bytes: int


def kept_by_neighbors(X: ndarray) -> Kept:
    """k-NN keeps all training rows."""
    return Kept(X.shape[0], FLOAT * X.shape[0] * X.shape[1])


def kept_by_model(model: SupervisedEmbedding) -> Kept:
    """A model keeps its references in the map, the map, and the scale of the columns."""
    weights = sum(parameter.numel() for parameter in model.map_.parameters())
    scale = 2 * model.n_features_in_
    references = model.reference_embedding_.size
    return Kept(len(model.reference_embedding_), FLOAT * (weights + scale + references))


class SpeedUp(NamedTuple):
    """How many times cheaper than brute-force k-NN among all raw training rows.

    ``search_only`` leaves out the embedding of the new rows; ``end_to_end`` has it.
    """

    search_only: float
    end_to_end: float


def counted_speed_up(model: SupervisedEmbedding, n_rows: int) -> SpeedUp:
    """The speed-up over k-NN among ``n_rows`` training rows, in multiply-adds."""
    brute_force = n_rows * model.n_features_in_
    search = model.reference_embedding_.size
    embedding = sum(weights.numel() for weights in model.map_.parameters() if weights.ndim > 1)
    return SpeedUp(brute_force / search, brute_force / (search + embedding))


def measured_speed_up(
    model: SupervisedEmbedding, X: ndarray, y: ndarray, X_new: ndarray
) -> SpeedUp:
    """The speed-up over scikit-learn's brute-force 5-NN, by the clock, on the rows ``X_new``."""
    neighbors = KNeighborsClassifier(5, algorithm="brute").fit(X, y)
    points = model.transform(X_new)
    brute_force = _seconds(lambda: neighbors.predict(X_new))
    search = _seconds(lambda: model._judge(points).argmax(axis=1))
    end_to_end = _seconds(lambda: model.predict(X_new))
    return SpeedUp(brute_force / search, brute_force / end_to_end)


def _seconds(work: Callable[[], object], *, repeats: int = 5) -> float:
    """The shortest of a few runs: the one least disturbed by the rest of the machine."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
