"""How faithful a map is: neighbours, exemplars, and rows that it has learned from."""

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
    """How far neighbours in the map are neighbours among the rows: 1 if all are, 0.5 by chance.

    That of scikit-learn, in the scale of the model, with 12 neighbours; of 2,000 rows at the most,
    drawn at random. ``None`` for fewer than three rows. ``model.trustworthiness_`` is the same of
    rows that were held out.

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
    """About what share of the rows a model has learned from; ``None`` for files that do not know.

    The model keeps fingerprints of a few of its rows: enough to tell how many are old, not which.

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
    """How far each exemplar lies from the centre of its class in the map, in radii of the class.

    The centre is the mean of the points of the class, the radius the root of their mean squared
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
        centre = members.mean(axis=0)
        radius = np.sqrt(np.square(members - centre).sum(axis=1).mean())
        away = np.linalg.norm(exemplars[own] - centre, axis=1)
        distances[own] = away / radius if radius > 0 else np.where(away > 0, np.inf, 0)
    return distances
