"""Missing values: their rows are dropped, they are filled, or an error is raised."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from hopefold.data.columns import missing_in, with_means
from hopefold.errors import InvalidInput

if TYPE_CHECKING:
    from numpy import ndarray

    from hopefold.data.tables import Table


def without_missing(
    table: Table,
    missing: str | None,
    source: str,
    *,
    fitting: bool,
    may_be_empty: bool = False,
    missing_labels: bool = False,
) -> Table:
    """Drop or fill missing values, or raise an error."""
    n_rows = table.X.shape[0]
    keep = np.ones(n_rows, bool)
    if table.y is not None and (gone := missing_in(table.y)).any():
        if missing_labels:
            table = replace(table, y=_with_none(table.y, gone))
        elif missing == "drop":
            keep &= ~gone
        else:
            also = (
                ", or learn from them without it (hopefold fit --missing-label none)"
                if fitting
                else ""
            )
            raise InvalidInput(
                f"the label is missing in {_rows(gone)} of {source}: leave such rows out "
                f"(--missing drop){also}."
            )
    gaps = _gaps(table.X)
    if gaps is not None and missing == "drop":
        keep &= ~gaps.any(axis=1)
    elif fitting and missing == "mean" and not sparse.issparse(table.X):
        table = replace(table, columns=with_means(table.columns, table.X))
    if not keep.all():
        table = replace(some_rows(table, keep), n_dropped=int((~keep).sum()))
    if table.columns.fills is not None and gaps is not None:
        table = replace(table, X=table.columns.fill(table.X))
    if not table.X.shape[0] and not may_be_empty:
        if not n_rows:
            raise InvalidInput(f"{source} has columns and no rows: give some.")
        raise InvalidInput(f"every row of {source} has missing values: none is left.")
    gaps = _gaps(table.X)
    if gaps is not None:
        raise InvalidInput(_complaint(gaps, table.names, fitting=fitting))
    return table


def _gaps(X: Any) -> ndarray | None:
    """Return where values are NaN; ``None`` if nowhere."""
    with np.errstate(all="ignore"):
        values = X.data if sparse.issparse(X) else X
        if not np.isnan(values.sum(dtype=np.float64)) and np.isfinite(values.sum()):
            return None
    gaps: ndarray = np.isnan(X.toarray() if sparse.issparse(X) else X)
    return gaps if gaps.any() else None


def _rows(gone: ndarray) -> str:
    count = int(gone.sum())
    return f"{count:,} row{'s' * (count != 1)} (first in data row {int(gone.argmax()) + 1})"


def _complaint(gaps: ndarray, names: ndarray | None, *, fitting: bool) -> str:
    columns = np.flatnonzero(gaps.any(axis=0))
    column = int(columns[0])
    count, row = int(gaps[:, column].sum()), int(gaps[:, column].argmax())
    name = column if names is None else repr(str(names[column]))
    others = len(columns) - 1
    also = f", and {others:,} more column{'s' * (others != 1)} too" if others else ""
    fill = (
        "or fill them (--missing mean)."
        if fitting
        else "or fit a model that fills them (hopefold fit --missing mean)."
    )
    return (
        f"column {name} has {count:,} missing value{'s' * (count != 1)} "
        f"(first in data row {row + 1}){also}: leave such rows out (--missing drop), {fill}"
    )


def some_rows(table: Table, keep: ndarray) -> Table:
    """Return the selected rows of a table."""
    return replace(
        table,
        X=table.X[keep],
        y=None if table.y is None else _whole(table.y[keep]),
        ids=None if table.ids is None else table.ids[keep],
        kept={name: column[keep] for name, column in table.kept.items()},
        places=np.flatnonzero(keep),
    )


def _with_none(labels: ndarray, gone: ndarray) -> ndarray:
    """Return labels with the dtype that those present have alone, and None where missing."""
    marked = np.full(len(labels), None, dtype=object)
    marked[~gone] = _whole(labels[~gone]).tolist()
    return marked


def _whole(labels: ndarray) -> ndarray:
    """Convert floats back to integers if only missing values had made them floats."""
    whole = labels.dtype.kind == "f" and (labels == np.floor(labels)).all()
    return labels.astype(np.int64) if whole else labels
