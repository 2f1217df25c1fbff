"""Accuracy of a map: k-NN errors, calibration, and a permutation test."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.base import clone

from hopefold import checks
from hopefold.core.calibration import reliability_bins
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
    """The expected calibration error, and its bins of rows with similar probabilities.

    ``error`` is the mean of |confidence - accuracy| over all rows. For each bin, ``confidence`` is
    the mean probability of the predicted class, ``accuracy`` the share of correct predictions, and
    ``counts`` the number of rows. Empty bins are omitted. It prints as a table.
    """

    error: float
    confidence: ndarray
    accuracy: ndarray
    counts: ndarray

    def __str__(self) -> str:
        lines = [f"expected calibration error {100 * self.error:.2f} %"]
        lines.append(f"{'confidence':>12}{'accuracy':>12}{'rows':>10}")
        for confidence, accuracy, count in zip(*self[1:], strict=True):
            lines.append(f"{100 * confidence:>10.1f} %{100 * accuracy:>10.1f} %{count:>10,}")
        return "\n".join(lines)


def calibration(
    probabilities: ndarray, labels: ndarray, classes: ndarray | None = None, n_bins: int = 15
) -> Calibration:
    """Compute the expected calibration error of predicted probabilities (Guo et al., 2017).

    Rows are put in ``n_bins`` bins of equal width, by the probability of their predicted class.

    Parameters
    ----------
    probabilities : array-like of shape (n_rows, n_classes)
        The probabilities of the classes, as of `predict_proba`.
    labels : array-like of shape (n_rows,)
        The true labels. Those that are not among the classes are predicted wrongly.
    classes : array-like of shape (n_classes,), optional
        The labels of the columns, as ``classes_``. By default, the sorted distinct ``labels``.
    n_bins : int, default 15
        Number of bins.

    Returns
    -------
    Calibration
        The error, and the bins.

    Examples
    --------
    >>> from hopefold.evaluation import calibration
    >>> probabilities = [[0.75, 0.25], [0.25, 0.75], [0.75, 0.25], [0.75, 0.25], [0.9, 0.1]]
    >>> print(calibration(probabilities, ["a", "b", "a", "b", "a"]))
    expected calibration error 2.00 %
      confidence    accuracy      rows
          75.0 %      75.0 %         4
          90.0 %     100.0 %         1

    """
    checks.check_whole("n_bins", n_bins, at_least=1)
    shares, labels = np.asarray(probabilities, np.float64), np.asarray(labels)
    known = np.unique(labels) if classes is None else np.asarray(classes)
    if shares.shape != (len(labels), len(known)) or not shares.size:
        raise InvalidParameter(
            f"probabilities of shape {shares.shape} do not match {len(labels)} labels and "
            f"{len(known)} classes: give a row for each label and a column for each class, and "
            "name the classes (classes=model.classes_) if some of them have no row."
        )
    correct = known[shares.argmax(axis=1)] == labels
    bins = reliability_bins(shares.max(axis=1), correct, n_bins)
    return Calibration(bins.error, bins.confidence, bins.accuracy, bins.counts)


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
    if model.validation_fraction == 0:
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
    fast = {} if checks.is_auto(model.validation_fraction) else {"refit": False}
    error: float | None = clone(model).set_params(**fast).fit(X, y).validation_error_
    if error is None:
        raise InvalidParameter("no row could be held out: give more rows, or fewer exemplars.")
    return error
