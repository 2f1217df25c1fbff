"""Read a fitted model, and a table in the way of that model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopefold.errors import DataNotFound, InvalidInput

if TYPE_CHECKING:
    from numpy import ndarray

    from hopefold.data.columns import Columns
    from hopefold.data.tables import Table

#: Wildcard characters of a pattern.
WILD = frozenset("*?[")


def load_model(path: Path) -> Any:
    """Load the model in a file."""
    from hopefold import load

    check_file(path)
    return load(path)


def check_file(path: Path) -> None:
    """Check that the file exists; if not, name the models that do."""
    if path.is_file():
        return
    if path.is_dir():
        raise DataNotFound(f"{path} is a folder, not a model: give a file written by fit.")
    models = sorted(path.parent.glob("*.hope")) if path.parent.is_dir() else []
    there = f"there is {', '.join(map(str, models[:5]))}." if models else "make one with fit."
    raise DataNotFound(f"there is no model file {path}: {there}")


def is_read_in_parts(data: Path, *, several: bool) -> bool:
    """Whether the data are several Parquet files, or one that several processes read."""
    if data.is_dir():
        return any(data.glob("*.parquet"))
    return data.suffix.lower() == ".parquet" and (several or is_pattern(data))


def is_pattern(data: Path) -> bool:
    """Whether the path is a pattern that may match several files."""
    return not data.exists() and bool(WILD & set(str(data)))


def columns_of(model: Any) -> Columns:
    """Return how the model reads tables: as in the fit, or by the names of its features."""
    from hopefold.data.columns import Columns

    if model.columns_ is not None:
        columns: Columns = model.columns_
        return columns
    names = getattr(model, "feature_names_in_", None)
    shape = getattr(model, "image_shape", None)
    return Columns(None if names is None else tuple(map(str, names)), image_shape=shape)


def read_for(
    model: Any,
    data: Path,
    label: str | None = None,
    *,
    ids: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    missing: str | None = None,
    ignore_extra: bool = False,
    may_be_empty: bool = False,
) -> Table:
    """Read the rows of a table as in the fit of the model."""
    from hopefold.data.labels import is_missing
    from hopefold.data.tables import read_table

    columns = columns_of(model)
    table = read_table(
        data,
        label,
        ids=ids or (),
        drop=drop or (),
        missing=missing,
        columns=columns,
        ignore_extra=ignore_extra,
        may_be_empty=may_be_empty,
        missing_labels=not len(model.classes_) or is_missing(getattr(model, "missing_label", ())),
    )
    n_columns, expected = table.X.shape[1], model.n_features_in_
    if n_columns != expected:
        shape = model.columns_.image_shape if model.columns_ else None
        what = f" ({shape[0]} × {shape[1]} pixels)" if shape else ""
        raise InvalidInput(
            f"{data} has {n_columns} columns of numbers, but the model was fitted on "
            f"{expected}{what}: leave others out (--drop, --id), or name the label (--label)."
        )
    return table


def labeled(model: Any, table: Table, data: Path) -> Table:
    """Return the rows that have a label, with labels of the type of the model's classes."""
    from hopefold.data.missing_values import some_rows
    from hopefold.evaluation import labeled_rows

    y = labels_of(table, data, model.classes_ if len(model.classes_) else None)
    known = labeled_rows(model, y)
    if not known.any():
        raise InvalidInput(f"every label of {data} is missing: name another column (--label).")
    table = replace(table, y=y)
    return table if known.all() else some_rows(table, known)


def labels_of(table: Table, data: Path, classes: ndarray | None = None) -> ndarray:
    """Return the labels, or raise an error if there are none.

    Labels are converted to the type of the classes if they match as text: 1 in a CSV and '1' in the
    model.
    """
    import numpy as np

    if table.y is None:
        raise InvalidInput(f"{data} has no known labels: name their column (--label COLUMN).")
    y = np.asarray(table.y)
    if classes is None or (y.dtype.kind in "OU") == (classes.dtype.kind in "OU"):
        return y
    known = {str(label): label for label in classes.tolist()} | {"None": None}
    return np.array([known.get(str(label), str(label)) for label in y.tolist()], dtype=object)
