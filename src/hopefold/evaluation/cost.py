"""Storage and computation of a model, and its speed-up over k-NN on all rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sklearn.neighbors import KNeighborsClassifier

from hopefold.core.neighbors import decide
from hopefold.estimators.base import SupervisedEmbedding
from hopefold.persistence.model_files import size_of

if TYPE_CHECKING:
    from numpy import ndarray

Name = TypeVar("Name")


#: Bytes of a float32 value.
FLOAT = 4


class Kept(NamedTuple):
    """The storage needed to classify new rows: number of references, and bytes of float32."""

    rows: int
    bytes: int


def kept_by_neighbors(X: ndarray) -> Kept:
    """Return the storage of k-NN, which keeps all training rows."""
    return Kept(X.shape[0], FLOAT * X.shape[0] * X.shape[1])


def kept_by_model(model: SupervisedEmbedding) -> Kept:
    """Return the storage of a model: its references in the map, the map, and the scale.

    For a model that was fitted within a budget of bytes, it is the content of its file.
    """
    if model.precision_ != "float32":
        return Kept(len(model.reference_embedding_), size_of(model))
    weights = sum(parameter.numel() for parameter in model.map_.parameters())
    scale = 2 * model.n_features_in_
    references = model.reference_embedding_.size
    return Kept(len(model.reference_embedding_), FLOAT * (weights + scale + references))


class Cost(NamedTuple):
    """The cost to classify new rows; ``search_only`` excludes their embedding."""

    search_only: float
    end_to_end: float


class SpeedUp(NamedTuple):
    """Speed-up over brute-force k-NN among all raw training rows.

    ``search_only`` excludes the embedding of the new rows; ``end_to_end`` includes it.
    """

    search_only: float
    end_to_end: float


def operations(model: SupervisedEmbedding, n_references: int | None = None) -> Cost:
    """Multiply-adds to classify a row, by references of the model or of its map."""
    n_references = n_references or len(model.reference_embedding_)
    search = n_references * model.reference_embedding_.shape[1]
    embedding = sum(weights.numel() for weights in model.map_.parameters() if weights.ndim > 1)
    return Cost(search, search + embedding)


def counted_speed_up(model: SupervisedEmbedding, n_rows: int) -> SpeedUp:
    """The speed-up over k-NN among ``n_rows`` training rows, in multiply-adds."""
    brute_force, mine = n_rows * model.n_features_in_, operations(model)
    return SpeedUp(brute_force / mine.search_only, brute_force / mine.end_to_end)


def measured_speed_up(
    model: SupervisedEmbedding, X: ndarray, y: ndarray, X_new: ndarray
) -> SpeedUp:
    """Measure the speed-up over scikit-learn's brute-force 5-NN on the rows ``X_new``.

    The minimum of a few runs is used, which is least affected by other load on the machine.
    """
    neighbors = KNeighborsClassifier(5, algorithm="brute").fit(X, y)
    points, references = model.transform(X_new), model.references()
    works = {
        "brute force": lambda: neighbors.predict(X_new),
        "search only": lambda: decide(points, *references),
        "end to end": lambda: model.predict(X_new),
    }
    seconds = {name: min(times) for name, times in seconds_in_turns(works).items()}
    brute_force = seconds["brute force"]
    return SpeedUp(brute_force / seconds["search only"], brute_force / seconds["end to end"])


def seconds_in_turns(
    works: Mapping[Name, Callable[[], object]], *, repeats: int = 5
) -> dict[Name, list[float]]:
    """Measure the time of each function a few times, in turns, so that load affects all of them."""
    times: dict[Name, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - start)
    return times
