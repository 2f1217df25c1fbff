"""Validation of X, y and parameters, with messages that name the user's columns and values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from hopefold.data.disk import chunks, is_on_disk
from hopefold.data.rows import float_types
from hopefold.data.scaling import Scale, can_be_shared
from hopefold.errors import (
    HopefoldError,
    InvalidInput,
    InvalidParameter,
    InvalidType,
    MarkerWarning,
    RareClassWarning,
    warn,
)

if TYPE_CHECKING:
    from jaxtyping import Bool
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
    with _our_errors(X):
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
    with _our_errors():
        if y is None:
            raise InvalidInput("partial_fit requires y to be passed, but the target y is None.")
        check_sortable(y)
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        check_classification_targets(y)
    return X, y


def check_known_classes(known: ndarray, y: ndarray, classes: Any) -> ndarray:
    """Return the indices of labels among the classes; unknown labels are an error."""
    check_classes(known, len(y))
    if classes is not None and not np.array_equal(np.unique(classes), known):
        raise InvalidInput(
            f"classes={list(classes)!r}, but the first call had {known.tolist()!r}: give the same, "
            "or none."
        )
    new = np.setdiff1d(y, known)
    if len(new):
        raise InvalidInput(
            f"y has the label {new.tolist()[0]!r}, which is not among the classes so far: give "
            "all labels that there will be as classes in the first call."
        )
    return np.searchsorted(known, y)


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


def check_classes(classes: ndarray, n_rows: int, n_labelled: int | None = None) -> None:
    """Check that there are at least two classes."""
    which = f"all {n_rows} rows"
    if n_labelled not in (None, n_rows):
        which = f"all {n_labelled} rows that have a label, of {n_rows}"
    if not len(classes):
        raise InvalidInput(
            f"the label is missing in all {n_rows} rows: call fit(X) without y to learn from rows "
            "alone (--unlabelled), or check missing_label."
        )
    if len(classes) < 2:
        raise InvalidInput(
            f"y has one class only ({classes.tolist()[0]!r}, in {which}): "
            "a supervised map needs at least two, check that y is the label column."
        )


def warn_of_rare_classes(classes: ndarray, sizes: ndarray, n_exemplars: int) -> None:
    """Warn about classes with fewer rows than exemplars were asked for."""
    rare = np.flatnonzero(sizes < n_exemplars)
    if len(rare):
        named = ", ".join(f"{classes.tolist()[k]!r} ({sizes[k]})" for k in rare[:5])
        named += f" and {len(rare) - 5} more" if len(rare) > 5 else ""
        warn(
            f"fewer rows than n_exemplars={n_exemplars} in class {named}: "
            "each gets as many exemplars as it has rows.",
            RareClassWarning,
        )


def check_points(points: ndarray) -> None:
    """Raise an error if the embedding of a row is not finite."""
    if not _all_finite(points):
        row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise InvalidInput(
            f"row {row} lies so far outside the training data that its embedding overflows: "
            "clip or drop it, or check its units."
        )


def check_class_weight(class_weight: Any, classes: ndarray, y: ndarray) -> ndarray:
    """Return one positive weight per class."""
    balanced = isinstance(class_weight, str) and class_weight == "balanced"
    if not isinstance(class_weight, dict | None) and not balanced:
        raise InvalidParameter(
            f"class_weight={class_weight!r}: give 'balanced', None, or a dict from label to weight."
        )
    if isinstance(class_weight, dict):
        weights = _weights_by_label(class_weight, classes.tolist())
    else:
        with _our_errors():
            weights = compute_class_weight(class_weight, classes=classes, y=y)
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise InvalidParameter(
            f"class_weight={class_weight!r}: give every class a weight above 0, or drop its rows."
        )
    return weights


def _weights_by_label(class_weight: dict[Any, Any], labels: list[Any]) -> ndarray:
    """Return class weights as scikit-learn does, except that the label "1" is not the number 1."""
    missing = [label for label in labels if label not in class_weight]
    if missing and len(class_weight) > len(labels) - len(missing):
        raise InvalidInput(f"The classes, {missing}, are not in class_weight")
    try:
        return np.array([class_weight.get(label, 1) for label in labels], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"class_weight={class_weight!r}: give every class a weight above 0, or drop its rows."
        ) from error


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


@contextmanager
def _our_errors(X: Any = None) -> Iterator[None]:
    """Convert scikit-learn's errors to our types, with the same messages."""
    try:
        yield
    except HopefoldError:
        raise
    except ValueError as error:
        raise InvalidInput(_text_column(X) or str(error)) from error
    except TypeError as error:
        raise InvalidType(_text_column(X) or str(error)) from error


def check_sortable(
    y: Any, *, remedy: str = "drop those rows.", rows: ndarray | None = None
) -> None:
    """Raise an error for labels that are missing or cannot be sorted.

    ``rows`` are the numbers of the rows of these labels, if they are not all rows.
    """
    if y is None:
        return
    labels = np.asarray(y).ravel()
    plain = isinstance(y, list | tuple) and labels.dtype.kind == "U"  # NumPy writes NaN as "nan"
    values = np.array(y, dtype=object).ravel() if plain else labels
    if values.dtype.kind in "fM":
        missing = np.flatnonzero(np.isnan(values)).tolist()
    elif values.dtype.kind == "O":
        missing = [row for row, label in enumerate(values) if is_missing(label)]
    else:
        return
    if missing:
        first = missing[0] if rows is None else rows[missing[0]]
        raise InvalidInput(
            f"Input y contains NaN: {_count(len(missing), 'missing label')} "
            f"(first in row {first}): {remedy}"
        )
    if labels.dtype.kind != "O":
        return
    kinds = {isinstance(label, str) for label in labels}
    if len(kinds) > 1:
        raise InvalidInput(
            "y mixes text with other labels, which have no common order: "
            "make all of them text, e.g. with [str(label) for label in y]."
        )


def split_labels(y: Any, marker: Any, n_rows: int) -> tuple[ndarray, Bool[ndarray, " n"]]:
    """Return the labels that are not missing, and the mask of labeled rows.

    None and NaN are one marker, as tables convert one into the other; so are -1 and "-1".
    """
    with _our_errors():
        values = np.asarray(y) if isinstance(y, np.ndarray) else np.asarray(y, dtype=object)
        values = values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values
        if values.shape != (n_rows,):
            raise InvalidInput(f"there are {n_rows} rows and labels of shape {values.shape}.")
        if is_missing(marker):
            missing = [is_missing(label) for label in values.tolist()]
        else:
            missing = [_is_equal_label(label, marker) for label in values.tolist()]
        known = ~np.array(missing, dtype=bool)
        there = values[known]
        remedy = f"mark them with {marker!r} as well, or drop those rows."
        check_sortable(there, remedy=remedy, rows=np.flatnonzero(known))
        if there.dtype == object:
            there = np.array(there.tolist())
        if len(there):
            check_classification_targets(there)
    return there, known


def _is_equal_label(label: Any, marker: Any) -> bool:
    if isinstance(label, bool) or is_missing(label):
        return False
    return bool(label == marker) or str(label) == str(marker)


def warn_of_marker(marker: Any, labels: ndarray) -> None:
    """Warn if a marker other than None or NaN marks no label as missing."""
    if not is_missing(marker):
        close = get_close_matches(str(marker), [str(label) for label in np.unique(labels)], 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        warn(
            f"missing_label={marker!r} marks no row: all labels are treated as classes.{hint}",
            MarkerWarning,
        )


def is_marker(marker: Any) -> bool:
    """Return whether a value marks a missing label. The marker ``()`` marks none."""
    return not (isinstance(marker, tuple) and not marker)


def is_missing(label: Any) -> bool:
    """Return whether a value is None, NaN, or pandas' NA."""
    if label is None:
        return True
    try:
        return not bool(label == label)  # noqa: PLR0124
    except (TypeError, ValueError):  # comparing pandas.NA raises
        return True


def _text_column(X: Any) -> str | None:
    """Return the message about the first column of a frame that is not numeric."""
    for name in getattr(X, "columns", ()):
        column = np.asarray(X[name])
        if column.dtype.kind in "Mm":
            return f"column {str(name)!r} has dates or times: convert them to numbers, or drop it."
        try:
            column.astype(np.float64)
        except (TypeError, ValueError):
            return (
                f"column {str(name)!r} holds {column[0]!r}, which is not a number: encode it, e.g. "
                "with OneHotEncoder, or drop it."
            )
    return None


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
    also = f", and {_count(others, 'more column')} too" if others else ""
    raise InvalidInput(
        f"column {name} has {_count(int(here.sum()), f'{kind} value')} "
        f"({'NaN' if kind == 'missing' else 'inf'}; first in row {rows[here].min()})"
        f"{also}: "
        f"drop those rows, or {remedy}."
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
