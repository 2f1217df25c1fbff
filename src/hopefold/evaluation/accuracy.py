"""Accuracy of a map: k-NN errors, calibration, and a permutation test."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.base import clone

from hopefold import checks
from hopefold.core.neighbors import nearest, vote
from hopefold.data import labels as label_checks
from hopefold.data import validation
from hopefold.errors import ChanceWarning, InvalidParameter
from hopefold.estimators.base import SupervisedEmbedding

if TYPE_CHECKING:
    from numpy import ndarray


def knn_error(
    references: ndarray,
    reference_labels: ndarray,
    points: ndarray,
    labels: ndarray,
    n_neighbors: int = 5,
) -> float:
    """Return the share of points misclassified by their nearest references.

    Ties go to the class of the nearest reference.

    Examples
    --------
    >>> from hopefold.evaluation import knn_error
    >>> knn_error([[0.0], [1.0], [9.0]], ["a", "a", "b"], [[0.4], [8.0]], ["a", "a"], n_neighbors=1)
    0.5

    """
    wrong = misclassified_rows(references, reference_labels, points, labels, n_neighbors)
    return float(wrong.mean())


def misclassified_rows(
    references: ndarray,
    reference_labels: ndarray,
    points: ndarray,
    labels: ndarray,
    n_neighbors: int = 5,
) -> ndarray:
    """Return which points are misclassified by their nearest references, as in `knn_error`."""
    classes, codes = np.unique(np.asarray(reference_labels), return_inverse=True)
    _, indices = nearest(points, references, min(n_neighbors, len(codes)))
    decisions = classes[vote(codes[indices], len(classes)).argmax(axis=1)]
    wrong: ndarray = decisions != np.asarray(labels)
    return wrong


def left_out_error(points: ndarray, labels: ndarray, n_neighbors: int = 5) -> float:
    """Return the leave-one-out k-NN error: each point is classified by the other points.

    Examples
    --------
    >>> from hopefold.evaluation import left_out_error
    >>> left_out_error([[0.0], [1.0], [2.0], [9.0]], ["a", "a", "a", "b"], n_neighbors=1)
    0.25

    """
    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    n_nearest = min(n_neighbors, len(codes) - 1)
    _, indices = nearest(points, points, n_nearest + 1)
    others = indices != np.arange(len(codes))[:, None]
    others[others.all(axis=1), -1] = False  # too many duplicates to find itself
    indices = indices[others].reshape(len(codes), n_nearest)
    decisions = vote(codes[indices], len(classes)).argmax(axis=1)
    return float((decisions != codes).mean())


def labeled_rows(model: SupervisedEmbedding, y: ndarray) -> ndarray:
    """Return which rows have a label: all except those with the model's missing-label marker.

    For a model that was learned without labels, None and NaN also mark missing labels.

    Examples
    --------
    >>> from hopefold import SHOPE
    >>> from hopefold.evaluation import labeled_rows
    >>> labeled_rows(SHOPE(missing_label=-1), [0, -1, 1])
    array([ True, False,  True])

    """
    marker = getattr(model, "missing_label", ())
    if not label_checks.is_marker(marker):
        if len(getattr(model, "classes_", "?")):
            return np.ones(len(y), bool)
        marker = None
    return label_checks.split_labels(y, marker, len(y))[1]


class Calibration(NamedTuple):
    """Reliability of probabilities in bins of similar ones; empty bins are omitted.

    ``error`` is the mean absolute difference of predicted probability and accuracy, over all rows.
    """

    error: float
    promised: ndarray
    came_true: ndarray
    counts: ndarray


def calibration(probabilities: ndarray, right: ndarray, n_bins: int = 10) -> Calibration:
    """Compute the calibration of predicted probabilities.

    ``probabilities`` are those of the predicted classes, and ``right`` is whether the predictions
    are correct. Bins have equal width; the error is the expected calibration error.

    Examples
    --------
    >>> from hopefold.evaluation import calibration
    >>> calibration([0.6, 0.6, 0.6, 0.6, 0.6], [True, True, True, False, False]).error
    0.0

    """
    probabilities, right = np.asarray(probabilities, np.float64), np.asarray(right, np.float64)
    bins = np.minimum((probabilities * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    full = counts > 0
    counts = counts[full]
    promised, came_true = (
        np.bincount(bins, weights, n_bins)[full] / counts for weights in (probabilities, right)
    )
    error = float(np.average(np.abs(promised - came_true), weights=counts))
    return Calibration(error, promised, came_true, counts)


class PermutationTest(NamedTuple):
    """Held-out errors with the true labels and with permuted ones, and the p-value."""

    error: float
    permuted_errors: ndarray
    p_value: float


def permutation_test(
    model: SupervisedEmbedding,
    X: ndarray,
    y: ndarray,
    n_permutations: int = 20,
    random_state: int | None = 0,
) -> PermutationTest:
    """Test whether the held-out error is lower than with permuted labels.

    The model is fitted on the same rows, once with the labels ``y`` and ``n_permutations`` times
    with permuted ones, and the held-out errors are compared. The p-value is the share of all these
    errors that are as low as the true one, so it is never below 1 / (permutations + 1). The model
    itself is not changed. Its ``random_state`` applies to every fit, ``random_state`` here to the
    permutations.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import SHOPE
    >>> from hopefold.evaluation import permutation_test
    >>> X, y = load_iris(return_X_y=True)
    >>> result = permutation_test(SHOPE(max_epochs=10, random_state=0), X, y, n_permutations=4)
    >>> result.p_value
    0.2

    """
    checks.check_whole("n_permutations", n_permutations, at_least=1)
    if not isinstance(model, SupervisedEmbedding):
        raise InvalidParameter(
            f"{model!r} is not a hopefold estimator, which holds rows out: give one of "
            "them, or use scikit-learn's permutation_test_score."
        )
    if not model.validation_fraction > 0:
        raise InvalidParameter(
            "the test compares held-out errors, but validation_fraction=0: set it, e.g. to 0.1."
        )
    random = validation.check_seed(random_state)
    labels = np.asarray(y)
    shuffled = [labels, *(random.permutation(labels) for _ in range(n_permutations))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ChanceWarning)
        errors = np.array([_held_out_error(model, X, these) for these in shuffled])
    return PermutationTest(float(errors[0]), errors[1:], float((errors <= errors[0]).mean()))


def _held_out_error(model: SupervisedEmbedding, X: ndarray, y: ndarray) -> float:
    error: float | None = clone(model).set_params(refit=False).fit(X, y).validation_error_
    if error is None:
        raise InvalidParameter("no row could be held out: give more rows, or fewer exemplars.")
    return error
