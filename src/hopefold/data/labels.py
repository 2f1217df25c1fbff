"""Checks of labels and classes, with errors that name the user's labels and rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

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


def check_classes(classes: ndarray, n_rows: int, n_labeled: int | None = None) -> None:
    """Check that there are at least two classes."""
    which = f"all {n_rows} rows"
    if n_labeled not in (None, n_rows):
        which = f"all {n_labeled} rows that have a label, of {n_rows}"
    if not len(classes):
        raise InvalidInput(
            f"the label is missing in all {n_rows} rows: call fit(X) without y to learn from rows "
            "alone (--unlabeled), or check missing_label."
        )
    if len(classes) < 2:
        raise InvalidInput(
            f"y has one class only ({classes.tolist()[0]!r}, in {which}): "
            "a supervised map needs at least two, check that y is the label column."
        )


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
        with own_errors():
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
            f"Input y contains NaN: {count(len(missing), 'missing label')} "
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
    with own_errors():
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


@contextmanager
def own_errors(X: Any = None) -> Iterator[None]:
    """Convert scikit-learn's errors to our types, with the same messages."""
    try:
        yield
    except HopefoldError:
        raise
    except ValueError as error:
        raise InvalidInput(_text_column(X) or str(error)) from error
    except TypeError as error:
        raise InvalidType(_text_column(X) or str(error)) from error


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


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where needed."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
