"""Validation of the inputs of a report: a model, rows, labels and names."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hopefold.data import validation
from hopefold.errors import InvalidInput, InvalidParameter
from hopefold.estimators.base import SupervisedEmbedding
from hopefold.evaluation import labeled_rows

if TYPE_CHECKING:
    from numpy import ndarray

#: The class name of rows without a label.
UNLABELED = "no label"


def check_rows_and_labels(model: Any, X: Any, y: Any) -> tuple[Any, ndarray, ndarray]:
    """Return the rows, their labels, and the mask of labeled rows."""
    if not isinstance(model, SupervisedEmbedding):
        raise InvalidParameter(f"{model!r} is not a hopefold estimator: give a fitted one.")
    check_is_fitted(model)
    if (n_components := model.reference_embedding_.shape[1]) != 2:
        raise InvalidParameter(
            f"a report draws a map of two dimensions, but this one has {n_components}: "
            "fit with n_components=2."
        )
    X = without_warnings(validation.check_rows, model, X, fitting=False)
    n_rows, labels = X.shape[0], np.asarray(y)
    nothing = np.empty(n_rows, int), np.zeros(n_rows, bool)
    if y is None and not len(model.classes_):
        return X, *nothing
    if y is None:
        raise InvalidInput(
            "the model names classes, and a report compares them with labels: give y."
        )
    if labels.shape != (n_rows,):
        raise InvalidInput(f"there are {n_rows} rows and labels of shape {labels.shape}.")
    labeled = labeled_rows(model, labels)
    if not labeled.any() and not len(model.classes_):
        return X, *nothing
    if not labeled.any():
        raise InvalidInput(f"the label is missing in all {n_rows} rows: give rows with labels.")
    return X, labels, labeled


def without_warnings(work: Any, *arguments: Any, **options: Any) -> Any:
    """Suppress scikit-learn's warning for arrays without feature names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return work(*arguments, **options)


def check_names(names: Any, what: str, n: int) -> tuple[str, ...] | None:
    """Check for one name per item, or none at all."""
    if names is None:
        return None
    if len(names) != n:
        raise InvalidParameter(f"{what} has {len(names)} entries for {n}: give one each.")
    return tuple(map(str, names))


def check_training(training: Any, n_rows: int, known: bool) -> ndarray:
    """Return the mask of training rows: as given, or all or none of them."""
    if training is None:
        return np.full(n_rows, known)
    training = np.asarray(training)
    if training.dtype != bool or training.shape != (n_rows,):
        raise InvalidParameter(
            f"training is of type {training.dtype} and shape {training.shape}: give True or False "
            f"for each of the {n_rows} rows."
        )
    return training


def codes_of(
    known: ndarray, y: ndarray, labeled: ndarray
) -> tuple[tuple[str, ...], ndarray, int | None]:
    """Return the classes of the model, then unknown labels; and the code of each label.

    The last code is that of rows without a label, if there are any.
    """
    values, places = np.unique(y[labeled], return_inverse=True)
    order = {label: code for code, label in enumerate(known.tolist())}
    for label in values.tolist():
        order.setdefault(label, len(order))
    codes = np.array([order[label] for label in values.tolist()])
    names, true = tuple(map(str, order)), np.full(len(labeled), len(order))
    true[labeled] = codes[places] if len(codes) else 0
    return (names, true, None) if labeled.all() else ((*names, UNLABELED), true, len(names))
