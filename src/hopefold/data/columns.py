"""Conversion of table columns to features: selection, encoding, and filling of missing values.

It is learned with a model and saved in its file, so that new rows are read in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.errors import InvalidInput

if TYPE_CHECKING:
    from numpy import ndarray

#: A text column with more distinct values is treated as an identifier or free text.
MOST_VALUES = 100

#: Types that count as numbers in a column of dtype object.
NUMBERS = (bool, int, float, np.number, np.bool_)

#: Maximum number of names that an error lists.
LISTED = 5


@dataclass(frozen=True)
class Columns:
    """The columns that are read from a table, and their conversion to features.

    Parameters
    ----------
    names : sequence of str or None
        The columns that are read, in the order of the features; ``None`` where they have no names.
    values : dict
        The values of each column that is one-hot encoded; each becomes a feature.
    fills : ndarray of shape (n_features,) or None
        Replacement of missing values per feature; ``None``: missing values are an error.
    label : str or None
        The column of the labels.
    aside : sequence of str
        Columns of the table that are not features.
    image_shape : (int, int) or None
        Height and width, if rows are images.

    """

    names: tuple[str, ...] | None = None
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fills: ndarray | None = None
    label: str | None = None
    aside: tuple[str, ...] = ()
    image_shape: tuple[int, int] | None = None

    @property
    def features(self) -> ndarray | None:
        """The names of the features: a one-hot encoded column has one per value."""
        if self.names is None:
            return None
        features = [
            f"{name}={value}" if value is not None else name
            for name in self.names
            for value in self.values.get(name, (None,))
        ]
        return np.array(features, dtype=object)

    def make(self, frame: Mapping[str, ndarray], *, unknown_is_missing: bool = False) -> ndarray:
        """Return the features of all rows of named columns; missing values are NaN."""
        assert self.names is not None
        parts: list[ndarray] = []
        for name in self.names:
            if name in self.values:
                parts.append(
                    _one_hot(name, frame[name], self.values[name], lenient=unknown_is_missing)
                )
            else:
                parts.append(_numbers(name, frame[name])[:, None])
        narrow = all(part.dtype == np.float32 for part in parts)
        return np.concatenate(parts, axis=1, dtype=np.float32 if narrow else np.float64)

    def fill(self, X: ndarray) -> ndarray:
        """Fill missing values, if there are fills."""
        if self.fills is None:
            return X
        return np.where(np.isnan(X), self.fills, X).astype(X.dtype)

    def make_of_frame(self, frame: Any) -> ndarray:
        """Return the features of a data frame that has the columns of the table."""
        names = self.names or ()
        absent = [name for name in names if name not in frame.columns]
        if absent:
            raise InvalidInput(f"X has no {columns_called(absent)}, which the model was fitted on.")
        return self.fill(self.make({name: np.asarray(frame[name]) for name in names}))

    def as_plain(self) -> dict[str, Any]:
        """Return JSON, without the fills and without names that equal those of the features."""
        plain = {
            "names": self.names if self.values else None,
            "values": self.values,
            "label": self.label,
            "aside": self.aside,
            "image_shape": self.image_shape,
        }
        return {name: value for name, value in plain.items() if value}

    @classmethod
    def from_plain(
        cls, plain: Mapping[str, Any], features: Sequence[str] | None, fills: ndarray | None
    ) -> Columns:
        """Restore the result of `as_plain`; raise a ValueError for invalid content."""
        names, values = plain.get("names", features), plain.get("values", {})
        label, aside, shape = plain.get("label"), plain.get("aside", []), plain.get("image_shape")
        sound = (
            (names is None or _is_text_alone(names))
            and isinstance(values, dict)
            and all(map(_is_text_alone, values.values()))
            and isinstance(label, str | None)
            and _is_text_alone(aside)
            and (shape is None or _is_pair(shape))
        )
        if not sound:
            raise ValueError("its columns are not text")
        columns = cls(
            names=None if names is None else tuple(names),
            values={name: tuple(known) for name, known in values.items()},
            fills=fills,
            label=label,
            aside=tuple(aside),
            image_shape=None if shape is None else (shape[0], shape[1]),
        )
        n_features = sum(len(columns.values.get(name, (None,))) for name in names or ())
        if n_features != len(features or ()) or (
            features is not None and list(columns.features) != list(features)  # type: ignore[arg-type]
        ):
            raise ValueError("its columns do not fit its features")
        return columns


def _is_text_alone(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _is_pair(value: Any) -> bool:
    """Return whether the value is a height and a width: two positive integers."""
    whole = isinstance(value, list) and all(type(one) is int and one > 0 for one in value)
    return whole and len(value) == 2


def learn_columns(
    frame: Mapping[str, ndarray], names: Sequence[str], *, encode: bool, label: str | None
) -> Columns:
    """Determine which columns are numeric, and the values of the others."""
    values = {}
    for name in names:
        if not is_text(frame[name]):
            continue
        if not encode:
            raise InvalidInput(_no_number(name, frame[name]))
        values[name] = _values(name, frame[name])
    return Columns(names=tuple(names), values=values, label=label)


def with_means(columns: Columns, X: ndarray) -> Columns:
    """Set the fills to the column means."""
    there = ~np.isnan(X)
    counts = there.sum(axis=0)
    if not counts.all():
        features = columns.features
        column = int(np.flatnonzero(counts == 0)[0])
        name = column if features is None else str(features[column])
        raise InvalidInput(
            f"column {name!r} has no value in any row, so it has no mean: leave it out "
            f"(--drop {quote(str(name))})."
        )
    means = np.where(there, X, 0).sum(axis=0, dtype=np.float64) / counts
    return replace(columns, fills=means)


def is_text(column: ndarray) -> bool:
    """Return whether a column has values other than numbers, booleans and missing values."""
    if column.dtype.kind != "O":
        return column.dtype.kind not in "biuf"
    return not all(is_missing(value) or isinstance(value, NUMBERS) for value in column)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or missing in pandas."""
    if value is None:
        return True
    try:
        return not bool(value == value)  # noqa: PLR0124
    except (TypeError, ValueError):
        return True


def missing_in(column: ndarray) -> ndarray:
    """Return which values of a column are missing."""
    if column.dtype.kind in "biuUS":
        return np.zeros(len(column), bool)
    if column.dtype.kind == "O":
        return np.array([is_missing(value) for value in column], dtype=bool)
    return np.isnat(column) if column.dtype.kind in "mM" else np.isnan(column)


def columns_called(names: Iterable[Any]) -> str:
    """Format names for a message: column 'a' and 'b'; columns 'a', 'b', 'c', … (12 in all)."""
    quoted = [repr(str(name)) for name in names]
    shown = ", ".join(quoted[:LISTED])
    more = f", … ({len(quoted):,} in all)" if len(quoted) > LISTED else ""
    return f"column{'s' if len(quoted) > 1 else ''} {shown}{more}"


def _numbers(name: str, column: ndarray) -> ndarray:
    if is_text(column):
        raise InvalidInput(_no_number(name, column, fitted=True))
    if column.dtype.kind == "O":
        gone = missing_in(column)
        return np.where(gone, np.nan, np.where(gone, 0, column).astype(np.float64))
    narrow = column.dtype.itemsize <= (4 if column.dtype.kind == "f" else 2)
    return column.astype(np.float32 if narrow else np.float64)


def _one_hot(name: str, column: ndarray, values: Sequence[str], *, lenient: bool) -> ndarray:
    """Return one feature per value; NaN in all of them where the value is missing."""
    places = {value: place for place, value in enumerate(values)}
    gone = missing_in(column)
    codes = np.array(
        [-1 if absent else places.get(str(v), -2) for v, absent in zip(column, gone, strict=True)],
        dtype=np.intp,  # also for 0 rows
    )
    strange = np.flatnonzero(codes == -2)
    if len(strange) and not lenient:
        known = ", ".join(repr(value) for value in values[:LISTED])
        more = ", …" if len(values) > LISTED else ""
        raise InvalidInput(
            f"column {name!r} holds {str(column[strange[0]])!r} in data row {strange[0] + 1}, and "
            f"{len(strange)} such value{'s' * (len(strange) != 1)} in all that the model was not "
            f"fitted on (it knows {known}{more}): leave such rows out (--missing drop), or fit "
            "with some of them."
        )
    hot: ndarray = np.zeros((len(column), len(values)), dtype=np.float32)
    known_rows = np.flatnonzero(codes >= 0)
    hot[known_rows, codes[known_rows]] = 1
    hot[codes < 0] = np.nan
    return hot


def _values(name: str, column: ndarray) -> tuple[str, ...]:
    there = column[~missing_in(column)]
    values = sorted({str(value) for value in there})
    if len(values) > min(MOST_VALUES, max(len(there) / 2, 10)):
        raise InvalidInput(
            f"column {name!r} has {len(values):,} different values in {len(there):,} rows, too "
            f"many to be encoded: keep it as an identifier (--id {quote(name)}), or leave it out "
            f"(--drop {quote(name)})."
        )
    return tuple(values)


def _no_number(name: str, column: ndarray, *, fitted: bool = False) -> str:
    row = next((row for row, value in enumerate(column) if _is_no_number(value)), 0)
    what = (
        f"column {name!r} holds {str(column[row])!r} in data row {row + 1}, which is not a number"
    )
    if fitted:
        return f"{what}, but the model was fitted on numbers there: correct it, or clear the cell."
    return (
        f"{what}: encode text columns (--encode), keep this one as an identifier "
        f"(--id {quote(name)}), or leave it out (--drop {quote(name)})."
    )


def _is_no_number(value: Any) -> bool:
    if is_missing(value):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return True
    return False
