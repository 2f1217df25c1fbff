"""Reading a table from any source, for training or prediction."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse

from hopefold.data.columns import Columns, columns_called, learn_columns
from hopefold.data.missing_values import without_missing
from hopefold.data.sources import Frame, Matrix, load_numpy, read_source
from hopefold.errors import InvalidInput, InvalidParameter

if TYPE_CHECKING:
    from numpy import ndarray

MISSING = ("drop", "mean")


@dataclass(frozen=True)
class Table:
    """Rows of numbers, with their labels, names and other columns."""

    #: An array or a CSR matrix of shape (n, features).
    X: Any
    #: Labels (n,), and the names of the features and of the rows; ``None`` if there are none.
    y: ndarray | None
    names: ndarray | None = None
    ids: ndarray | None = None
    image_shape: tuple[int, int] | None = None
    #: How the columns were converted to features.
    columns: Columns = field(default_factory=Columns)
    #: Columns that are kept for the output, by name.
    kept: Mapping[str, ndarray] = field(default_factory=dict)
    #: The rows of the source that are left after dropping, and the number with missing values.
    places: ndarray | None = None
    n_dropped: int = 0


def read_table(
    path: str | PathLike[str],
    label: str | None = None,
    *,
    ids: Sequence[str] = (),
    drop: Sequence[str] = (),
    encode: bool = False,
    missing: str | None = None,
    columns: Columns | None = None,
    ignore_extra: bool = False,
    image_shape: tuple[int, int] | None = None,
    may_be_empty: bool = False,
    labeled: bool = True,
    missing_labels: bool = False,
) -> Table:
    """Read a table as input for `fit`; the model stores how the table was read.

    Parameters
    ----------
    path : path or str
        CSV, TSV, Parquet, NPZ (X, y), NPY, AnnData, a folder of images with one subfolder per
        class, ``-`` for CSV on standard input, or a named data set such as ``digits``.
    label : str, optional
        The column of the labels. Images, NPZ files and named data sets have known labels. For an
        NPY file, the path of another NPY file with the labels.
    ids, drop : sequence of str
        Columns that are not features: kept for the output, or dropped.
    encode : bool
        One-hot encode text columns.
    missing : {"drop", "mean"}, optional
        What to do with missing values: drop their rows, or fill in the mean of the column.
    columns : Columns, optional
        How a fitted model reads tables (``model.columns_``): columns are found by name, and encoded
        and filled as in the fit.
    ignore_extra : bool
        With ``columns``: ignore columns that the model does not know.
    image_shape : (int, int), optional
        The size to which images are resized.
    may_be_empty : bool
        Accept a table without rows, e.g. one of many.
    labeled : bool
        Whether labels are needed. If not, there is no y, and a column that ``label`` names is
        dropped.
    missing_labels : bool
        Keep rows whose label is missing; it is None in y.

    Examples
    --------
    >>> from hopefold.data.tables import read_table
    >>> table = read_table("iris")
    >>> table.X.shape, str(table.y[0]), table.names[0]
    ((150, 4), 'setosa', 'sepal length (cm)')

    """
    if missing not in (None, *MISSING):
        raise InvalidParameter(f"missing={missing!r} is not known: choose one of drop, mean.")
    size = image_shape or (columns.image_shape if columns else None)
    source = read_source(fspath(path), size)
    options = _Options(
        label, tuple(ids), tuple(drop), encode, missing is not None, columns, ignore_extra, labeled
    )
    table = _of_frame(source, options) if isinstance(source, Frame) else _of_matrix(source, options)
    return without_missing(
        table if labeled else replace(table, y=None),
        missing,
        source.source,
        fitting=columns is None,
        may_be_empty=may_be_empty,
        missing_labels=missing_labels,
    )


def as_table(X: Any, columns: Columns | None) -> Table | None:
    """Read a table, or convert a frame or file that a model has to encode or fill.

    Return ``None`` for input that needs no conversion.
    """
    if isinstance(X, Table):
        return X
    if columns is None or columns.names is None:
        return None
    if isinstance(X, str | PathLike):
        plain = not columns.values and columns.fills is None
        return None if plain else read_table(X, columns=columns)
    if not hasattr(X, "columns") or list(X.columns) == list(cast("ndarray", columns.features)):
        return None
    return Table(columns.make_of_frame(X), None, columns.features)


@dataclass(frozen=True)
class _Options:
    """The options of `read_table`."""

    label: str | None
    ids: tuple[str, ...]
    drop: tuple[str, ...]
    encode: bool
    lenient: bool
    columns: Columns | None
    ignore_extra: bool
    labeled: bool


def _of_frame(frame: Frame, options: _Options) -> Table:
    there, label, ids, drop = frame.columns, options.label, options.ids, options.drop
    for name in (*ids, *drop, *([label] if label is not None else [])):
        check_column(name, there, frame.source)
    known = options.columns or Columns()
    if label is None and known.label in there:
        label = known.label
    if frame.ids is not None:
        ids, drop = ids or (frame.ids,), (*drop, frame.ids)
    aside = {*ids, *drop, label, *known.aside} - set(known.names or ())
    free = [name for name in there if name not in aside]
    if options.columns is None:
        if label is None and options.labeled:
            raise InvalidInput(
                f"name the label column of {frame.source} (--label COLUMN): it has "
                f"{columns_called(there)}."
            )
        if not free:
            raise InvalidInput(f"{frame.source} has no columns other than the label and the ids.")
        aside -= {label}
        columns = learn_columns(there, free, encode=options.encode, label=label)
        columns = replace(columns, aside=tuple(name for name in there if name in aside))
    elif known.names is None:
        columns = replace(known, names=tuple(free))
    else:
        columns = known
        _check_names(columns.names or (), there, free, frame.source, options)
    X = columns.make(there, unknown_is_missing=options.lenient)
    kept = {name: frame.ids_in(name) for name in ids}
    y = None if label is None else frame.labels_in(label)
    return Table(X, y, columns.features, _joined(kept), columns.image_shape, columns, kept)


def _of_matrix(source: Matrix, options: _Options) -> Table:
    label, y = _labels_beside(source, options)
    for name in options.ids:
        check_column(name, source.beside, source.source)
    X, names = _chosen_columns(source, options)
    shape = source.image_shape
    columns = options.columns
    if columns is None:
        named = None if names is None else tuple(str(name) for name in names)
        columns = Columns(named, label=label, aside=options.ids, image_shape=shape)
    chosen = options.ids or ((source.ids,) if source.ids else ())
    kept = {name: source.beside[name] for name in chosen}
    X = X if sparse.issparse(X) or X.dtype.kind == "f" else X.astype(_float_type(X))
    return Table(X, y, names, _joined(kept), shape, columns, kept)


def _labels_beside(source: Matrix, options: _Options) -> tuple[str | None, ndarray | None]:
    """Return the labels that were asked for, or those that the source provides."""
    label, beside = options.label, source.beside
    if label is not None and label not in beside and label.endswith(".npy"):
        return None, _labels_in_a_file(label, source)
    if label is not None:
        check_column(label, beside, source.source)
    known = options.columns.label if options.columns else None
    label = next((one for one in (label, known, source.label) if one in beside), None)
    return label, None if label is None else beside[label]


def _chosen_columns(source: Matrix, options: _Options) -> tuple[Any, ndarray | None]:
    """Return the columns that a model knows, in its order, or all except the dropped ones."""
    X, names, wanted = source.X, source.names, options.columns and options.columns.names
    if names is None:
        for name in options.drop:
            check_column(name, (), source.source)
        return X, None
    for name in options.drop:
        check_column(name, names, source.source)
    free = [name for name in names if name not in options.drop]
    if wanted:
        _check_names(wanted, names, free, source.source, options)
        free = list(wanted)
    if free == list(names):
        return X, names
    places = {name: place for place, name in enumerate(names)}
    return X[:, [places[name] for name in free]], np.array(free, dtype=object)


def _float_type(X: ndarray) -> type:
    return np.float32 if X.dtype.itemsize <= 2 else np.float64


def _labels_in_a_file(label: str, source: Matrix) -> ndarray:
    if not Path(label).is_file():
        raise InvalidInput(f"the file {label} does not exist: give the labels of {source.source}.")
    y = np.asarray(load_numpy(Path(label)))
    if y.shape != (source.X.shape[0],):
        raise InvalidInput(
            f"{source.source} has {source.X.shape[0]} rows, and {label} has the shape {y.shape}: "
            "give one label per row."
        )
    return y


def _joined(kept: Mapping[str, ndarray]) -> ndarray | None:
    """Return the names of the rows as text."""
    if not kept:
        return None
    columns = [[str(value) for value in column] for column in kept.values()]
    return np.array([" · ".join(values) for values in zip(*columns, strict=True)])


def check_column(name: str, there: Iterable[str], source: str) -> None:
    """Raise an error that suggests the closest name unless the column exists."""
    names = [str(one) for one in there]
    if name in names:
        return
    lowered = {one.lower(): one for one in names}
    close = difflib.get_close_matches(name.lower(), lowered, 1)
    hint = f"did you mean {lowered[close[0]]!r}?" if close else f"it has {columns_called(names)}."
    if names and all(_looks_like_a_number(one) for one in names[:-1]) and not close:
        hint += " The first line looks like data: put a header line above it."
    if not names:
        hint = "it has no named columns."
    raise InvalidInput(f"{source} has no column {name!r}: {hint}")


def _looks_like_a_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_names(
    wanted: Sequence[str], there: Iterable[str], free: Sequence[str], source: str, options: _Options
) -> None:
    """Check that a table has the columns that the model was fitted on, and no others."""
    present, known = set(there), set(wanted)
    absent = [name for name in wanted if name not in present]
    extra = [] if options.ignore_extra else [name for name in free if name not in known]
    wrong = []
    if absent:
        wrong.append(f"lacks {columns_called(absent)}")
    if extra:
        wrong.append(f"has {columns_called(extra)}, which the model does not know")
    if not wrong:
        return
    if absent:
        remedy = "give the columns that the model was fitted on."
    else:
        remedy = f"leave it out (--drop {quote(extra[0])}), or all such (--ignore-extra)."
    raise InvalidInput(f"{source} {' and '.join(wrong)}: {remedy}")
