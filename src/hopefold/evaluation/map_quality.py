"""Quality of a map: trustworthiness, distances of exemplars, and overlap with training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hopefold.data.fingerprints import share_seen
from hopefold.data.rows import Rows
from hopefold.errors import InvalidParameter
from hopefold.estimators.base import SupervisedEmbedding
from hopefold.fitting.landmarks import trust

if TYPE_CHECKING:
    from numpy import ndarray


def trustworthiness(model: SupervisedEmbedding, X: ndarray, points: ndarray) -> float | None:
    """Return the trustworthiness of neighbors in the map: 1 is best, and 0.5 is chance level.

    As in scikit-learn, in the scale of the model, with 12 neighbors, on at most 2,000 rows drawn at
    random. ``None`` for fewer than three rows. ``model.trustworthiness_`` is the same on held-out
    rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import SHOPE
    >>> from hopefold.evaluation import trustworthiness
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = SHOPE(random_state=0, max_epochs=10).fit(X)
    >>> trustworthiness(model, X, model.transform(X)) > 0.9
    True

    """
    return trust(Rows(X, model.scale_), np.arange(X.shape[0]), lambda some: points[some])


def share_learned(model: SupervisedEmbedding, X: ndarray) -> float | None:
    """Estimate the share of the rows that a model was trained on; ``None`` for older files.

    The model keeps fingerprints of a few training rows: enough to estimate the share.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import SHOPE
    >>> from hopefold.evaluation import share_learned
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SHOPE(random_state=0, max_epochs=10).fit(X[::2], y[::2])
    >>> share_learned(model, X[::2])
    1.0

    """
    return None if model.seen_ is None else share_seen(X, model.seen_)


def exemplar_distances(
    points: ndarray, labels: ndarray, exemplars: ndarray, exemplar_labels: ndarray
) -> ndarray:
    """How far each exemplar lies from the center of its class in the map, in radii of the class.

    The center is the mean of the points of the class, the radius the root of their mean squared
    distance to it. From a class in a single place, an exemplar is 0 or infinitely many radii off.

    Examples
    --------
    >>> from hopefold.evaluation import exemplar_distances
    >>> exemplar_distances([[0, 0], [0, 2]], ["a", "a"], [[0, 1], [3, 1]], ["a", "a"])
    array([0., 3.])

    """
    points, exemplars = (np.asarray(these, dtype=np.float64) for these in (points, exemplars))
    labels, exemplar_labels = np.asarray(labels), np.asarray(exemplar_labels)
    distances = np.empty(len(exemplars))
    for label in np.unique(exemplar_labels):
        members, own = points[labels == label], exemplar_labels == label
        if not len(members):
            raise InvalidParameter(f"no point is of the class {label}, which has exemplars.")
        center = members.mean(axis=0)
        radius = np.sqrt(np.square(members - center).sum(axis=1).mean())
        away = np.linalg.norm(exemplars[own] - center, axis=1)
        distances[own] = away / radius if radius > 0 else np.where(away > 0, np.inf, 0)
    return distances
