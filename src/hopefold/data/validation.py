"""Validation of X, y and parameters, with messages that name the user's columns and values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from hopefold.data.disk import chunks, is_on_disk
from hopefold.data.labels import check_sortable, count, own_errors
from hopefold.data.rows import float_types
from hopefold.data.scaling import Scale, can_be_shared
from hopefold.errors import (
    InvalidInput,
    InvalidParameter,
)

if TYPE_CHECKING:
    from numpy import ndarray


#: Up to this number of values, each one is checked for finiteness.
FEW_VALUES = 10_000


def check_rows(
    model: BaseEstimator,
    X: Any,
    y: Any = None,
    *,
    fitting: bool,
    names: ndarray | None = None,
    finite: bool = True,
    needs_labels: bool = True,
) -> Any:
    """Validate X (and y, when fitting) as scikit-learn does, and finite, with our own errors.

    ``names`` are the column names of a stream, which an array does not have. Without ``finite``,
    the caller has to call `check_finite`.
    """
    if not fitting and _is_as_it_should_be(X, model):
        if finite:
            check_finite(model, X)
        return X
    on_disk = is_on_disk(X)
    options: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": float_types(X),
        "ensure_all_finite": False,
        "skip_check_array": on_disk,  # it would be read as a whole
    }
    with own_errors(X):
        if fitting and y is None and not needs_labels:
            X = validate_data(model, X, y="no_validation", **options)
        elif fitting:
            also = ", or set missing_label=None to learn from them without a label"
            also = "" if needs_labels else also
            check_sortable(y, remedy=f"drop those rows{also}.")
            X, y = validate_data(model, X, y, **options)
            if on_disk:
                check_consistent_length(X, y)
                y = column_or_1d(y, warn=True)
            check_classification_targets(y)
        else:
            X = validate_data(model, X, reset=False, **options)
    if names is not None and fitting:
        model.feature_names_in_ = names
    if finite:
        check_finite(model, X)
    return (X, y) if fitting else X


def check_finite(model: BaseEstimator, X: Any) -> None:
    """Raise an error that names the first column with a value that is not finite."""
    _check_finite(X, getattr(model, "feature_names_in_", None))


def _is_as_it_should_be(X: Any, model: Any) -> bool:
    """Return whether scikit-learn's checks, which take a while, can be skipped."""
    return (
        type(X) is np.ndarray
        and X.dtype in (np.float32, np.float64)
        and X.ndim == 2
        and len(X) > 0
        and X.shape[1] == model.n_features_in_
        and not hasattr(model, "feature_names_in_")
    )


def check_more_rows(model: BaseEstimator, X: Any, y: Any) -> tuple[Any, ndarray]:
    """Validate X and y for `partial_fit` of a fitted model."""
    X = check_rows(model, X, fitting=False)
    with own_errors():
        if y is None:
            raise InvalidInput("partial_fit requires y to be passed, but the target y is None.")
        check_sortable(y)
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        check_classification_targets(y)
    return X, y


def check_batch(model: BaseEstimator, X: Any) -> None:
    """Validate some rows of a stream or of a table on disk, whose column names are correct."""
    n_features: int = model.n_features_in_
    if X.shape[1] != n_features:
        raise InvalidInput(
            f"X has {X.shape[1]} features, but {type(model).__name__} is expecting {n_features} "
            "features as input."
        )
    check_finite(model, X)


def check_names(model: BaseEstimator, names: ndarray | None) -> None:
    """Check that a table has the features of the model, in the same order."""
    known = getattr(model, "feature_names_in_", None)
    if names is None or known is None or list(names) == list(known):
        return
    strange = sorted(set(names) ^ set(known))
    what = f"{strange[0]!r} is only in one of them" if strange else "their order differs"
    raise InvalidInput(
        f"the features of the table are not those of the model ({what}): read it with "
        "read_table(path, columns=model.columns_)."
    )


def check_points(points: ndarray) -> None:
    """Raise an error if the embedding of a row is not finite."""
    if not _all_finite(points):
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise InvalidInput(
            f"row {row} lies so far outside the training data that its embedding overflows: "
            "clip or drop it, or check its units."
        )


def check_pixels(image_shape: tuple[int, int], n_features: int) -> None:
    """Check that the image has as many pixels as there are features."""
    height, width = image_shape
    if height * width != n_features or height < 1:
        raise InvalidParameter(
            f"image_shape={image_shape!r}, but a row has {n_features} features: give height and "
            "width of an image, whose product is that number."
        )


def check_one_scale(scale: Scale, augment: str) -> None:
    """Check that all columns that vary share one scale, so that pixels can move between them."""
    if not scale.is_one:
        raise InvalidParameter(
            f"augment={augment!r} moves pixels between columns, which are scaled separately: "
            "set scale='range', or augment=None."
        )


def check_seed(random_state: Any) -> np.random.RandomState:
    """Return the RandomState that scikit-learn makes of a seed."""
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise InvalidParameter(
            f"random_state={random_state!r}: give a whole number from 0 to 4294967295, "
            "a numpy.random.RandomState, or None."
        ) from error


def _all_finite(values: ndarray) -> bool:
    """Return whether all values are finite. For many, their sum is tested, which is fast."""
    if values.size > FEW_VALUES:
        if can_be_shared(values):
            total = float(torch.from_numpy(values).sum())
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                total = float(values.sum(dtype=np.float64))
        if math.isfinite(total):
            return True
    return bool(np.isfinite(values).all())


def _check_finite(X: Any, names: ndarray | None) -> None:
    if is_on_disk(X):
        for chunk in chunks(X):
            _check_finite(chunk, names)
        return
    values = X.data if sparse.issparse(X) else X
    if _all_finite(values):
        return
    if sparse.issparse(X):
        bad = ~np.isfinite(X.data)
        rows, columns = X.tocoo().row[bad], X.indices[bad]
        missing = np.isnan(X.data[bad])
    else:
        rows, columns = np.nonzero(~np.isfinite(X))
        missing = np.isnan(X[rows, columns])
    column = columns.min()
    kind, remedy = ("missing", "fill them, e.g. with SimpleImputer")
    here = (columns == column) & missing
    if not here.any():
        kind, remedy = ("infinite", "clip them")
        here = columns == column
    name = repr(str(names[column])) if names is not None else str(column)
    others = len(np.unique(columns)) - 1
    also = f", and {count(others, 'more column')} too" if others else ""
    raise InvalidInput(
        f"column {name} has {count(int(here.sum()), f'{kind} value')} "
        f"({'NaN' if kind == 'missing' else 'inf'}; first in row {rows[here].min()})"
        f"{also}: "
        f"drop those rows, or {remedy}."
    )
