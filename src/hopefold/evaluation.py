"""How good is it, and what does it save? Plain arrays in, plain numbers out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hopefold.core.neighbors import nearest, vote

if TYPE_CHECKING:
    from numpy import ndarray


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


@dataclass(frozen=True)
class Cost:
    """What one prediction costs: multiply-adds for the map and for the search."""

    embedding: int
    search: int

    @property
    def total(self) -> int:
        """From raw row to label."""
        return self.embedding + self.search


@dataclass(frozen=True)
class SpeedUp:
    """How many times cheaper than brute-force neighbours among all raw training rows."""

    search_only: float
    end_to_end: float


def multiply_adds(model: object, n_references: int) -> Cost:
    """Multiply-adds of a fitted model for one row, against so many references in the map."""
    weights = sum(p.numel() for p in model.map_.parameters() if p.ndim == 2)  # type: ignore[attr-defined]
    return Cost(weights, n_references * model.n_components)  # type: ignore[attr-defined]


def speed_up_by_operations(model: object, n_rows: int, n_references: int) -> SpeedUp:
    """The speed-up over k-NN among ``n_rows`` raw rows, counted in multiply-adds."""
    brute_force = n_rows * model.n_features_in_  # type: ignore[attr-defined]
    cost = multiply_adds(model, n_references)
    return SpeedUp(brute_force / cost.search, brute_force / cost.total)


def seconds(work: Callable[[], object], *, repeats: int = 5) -> float:
    """The shortest of a few runs: the one least disturbed by the rest of the machine."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
