"""Streams of rows: Parquet files and folders, or iterables of batches.

A stream is read once for a fit. If it does not fit the buffer, it is written to a temporary file
as plain rows, since training accesses them in random order, once per epoch.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from hopefold.data import disk
from hopefold.data.rows import float_types
from hopefold.errors import BrokenFile, DataNotFound, InvalidInput, MissingPackage, NoRoomOnDisk

if TYPE_CHECKING:
    from types import ModuleType

    from jaxtyping import Float
    from numpy import ndarray

#: Number of values of a Parquet file that are read at once.
BATCH = 2**20


class Batch(NamedTuple):
    """Some rows of a stream, their labels if it has any, and the column names."""

    X: Float[ndarray, "n features"]
    y: ndarray | None
    names: ndarray | None


class Table(NamedTuple):
    """All rows of a stream, in memory or on disk."""

    X: Float[ndarray, "n features"]
    y: ndarray | None
    names: ndarray | None


def is_stream(X: Any) -> bool:
    """Return whether X is a path, a pyarrow dataset, or an iterable of batches, and not a table."""
    if isinstance(X, np.ndarray):
        return False
    if _is_parquet(X):
        return True
    table = any(hasattr(X, name) for name in ("__array__", "__getitem__", "shape", "dtype"))
    return hasattr(X, "__iter__") and not table


def is_list_of_batches(X: Any) -> bool:
    """Return whether X is a list of pairs (X, y)."""
    return isinstance(X, list) and bool(X) and all(_is_pair(batch) for batch in X)


def read_all(
    source: Any, label: Any, *, part: int = 0, n_parts: int = 1, label_needed: bool = True
) -> Table:
    """Read a stream, or one part of it, for a fit.

    ``label`` is the label column of a Parquet source, whose row groups are divided among the parts
    so that each has about the same number of rows. Other streams yield pairs (X, y) and have one
    part.
    """
    if _is_parquet(source):
        if label is None and label_needed:
            raise InvalidInput("give y the name of the label column, e.g. fit(path, 'label').")
        batches = _read_parquet(source, label, None, part, n_parts)
    elif n_parts > 1:
        raise InvalidInput(
            "several processes can only learn from Parquet files, of which each reads a part, or "
            "from arrays, of which each process has its own: give one of these."
        )
    elif label is not None:
        raise InvalidInput("a stream of batches yields pairs (X, y): leave y out.")
    else:
        batches = _check_batches(source, with_labels=True)
    with tempfile.TemporaryFile() as file:  # the mapping stays valid when it is closed
        labels: list[ndarray] = []
        names, X = None, np.empty((0, 0))
        for batch in batches:
            X = batch.X if not X.size else batch.X.astype(X.dtype, copy=False)
            _append(X, file)
            names = batch.names
            if batch.y is not None:
                labels.append(np.asarray(batch.y))
        if not X.size:
            raise InvalidInput("the stream has no rows: give some to learn from.")
        rows = np.memmap(file, X.dtype, mode="r").reshape(-1, X.shape[1])
    rows = rows if disk.is_on_disk(rows) else np.array(rows)
    return Table(rows, np.concatenate(labels) if labels else None, names)


def read_rows(source: Any, columns: Sequence[str] | None) -> Iterator[Float[ndarray, "n features"]]:
    """Yield the rows of a stream in batches, without labels: given columns, or all of them."""
    if _is_parquet(source):
        batches = _read_parquet(source, None, columns)
    else:
        batches = _check_batches(source, with_labels=False)
    return (batch.X for batch in batches)


def read_batches(X: Any, columns: Sequence[str] | None) -> Iterator[Float[ndarray, "n features"]]:
    """Yield the rows of a stream or of a table on disk in batches."""
    return disk.chunks(X) if disk.is_on_disk(X) else read_rows(X, columns)


def _read_parquet(
    source: Any, label: Any, columns: Sequence[str] | None, part: int = 0, n_parts: int = 1
) -> Iterator[Batch]:
    pyarrow, dataset, parquet = _pyarrow()
    if not _is_dataset(source):
        found = _existing(source)
        with _naming(source):
            source = dataset.dataset(found, format="parquet")
    fragments = sorted(source.get_fragments(), key=lambda fragment: fragment.path)
    if not fragments:
        raise InvalidInput("the folder has no Parquet file.")
    first = _schema(fragments[0])
    features = _features(first, label, columns, fragments[0].path)
    for fragment in fragments:
        _check_schema(_schema(fragment), fragment.path, first, fragments[0].path, features, label)
    dtype = _float_type(first, features)
    wanted = features if label is None else [*features, label]
    shares = _deal(fragments, part, n_parts) if n_parts > 1 else [None] * len(fragments)
    for fragment, groups in zip(fragments, shares, strict=True):
        if groups == []:
            continue
        with _naming(fragment.path):
            file = parquet.ParquetFile(
                fragment.path, filesystem=fragment.filesystem, pre_buffer=False, buffer_size=2**16
            )
            batches = file.iter_batches(
                max(1, BATCH // len(wanted)), columns=wanted, use_threads=False, row_groups=groups
            )
        while True:
            with _naming(fragment.path):
                batch = next(batches, None)
            if batch is None:
                break
            X: ndarray = np.empty((len(batch), len(features)), dtype)
            for place, name in enumerate(features):
                X[:, place] = batch.column(name).to_numpy(zero_copy_only=False)
            y = None if label is None else _labels(batch.column(label))
            yield Batch(X, y, np.array(features, dtype=object))
        pyarrow.default_memory_pool().release_unused()


def _existing(source: str | PathLike[str]) -> Any:
    """Return the path of a file or folder, or those of all files that match a pattern."""
    path = Path(source)
    if path.exists():
        return path
    found = sorted(glob(str(path), recursive=True)) if has_magic(str(path)) else []
    if not found:
        raise DataNotFound(f"{path} does not exist: give a Parquet file or a folder of them.")
    return found


def _deal(fragments: Sequence[Any], part: int, n_parts: int) -> list[list[int]]:
    """Return the row groups of each file in a part: consecutive ones, with about as many rows."""
    sizes = []
    for number, fragment in enumerate(fragments):
        with _naming(fragment.path):
            groups = fragment.row_groups
        sizes += [(number, group.id, group.num_rows) for group in groups]
    if len(sizes) < n_parts:
        raise InvalidInput(
            f"{fragments[0].path}{' and the others have' * (len(fragments) > 1) or ' has'} "
            f"{len(sizes)} row groups for {n_parts} processes: write smaller row groups, or start "
            "fewer processes."
        )
    ends = np.cumsum([n_rows for _, _, n_rows in sizes])
    middles = ends - np.array([n_rows for _, _, n_rows in sizes]) / 2
    owners = np.minimum((middles * n_parts / max(ends[-1], 1)).astype(int), n_parts - 1)
    mine: list[list[int]] = [[] for _ in fragments]
    for (number, group, _), owner in zip(sizes, owners, strict=True):
        if owner == part:
            mine[number].append(group)
    return mine


def _features(schema: Any, label: Any, columns: Sequence[str] | None, path: str) -> list[str]:
    if label is not None and (not isinstance(label, str) or label not in schema.names):
        known = ", ".join(schema.names[:10]) + (", …" if len(schema.names) > 10 else "")
        raise InvalidInput(
            f"{path} has no column {label!r}: give y the name of the label column, one of {known}."
        )
    others = [name for name in schema.names if name != label]
    features = others if columns is None else list(columns)
    for name in features:
        if name not in schema.names:
            raise InvalidInput(f"{path} has no column {name!r}, which the model was fitted with.")
        kind = str(schema.field(name).type)
        if not kind.startswith(("int", "uint", "float", "double", "half", "bool", "decimal")):
            labels = ", or give y its name if it has the labels" if label is None else ""
            raise InvalidInput(
                f"column {name!r} of {path} has type {kind}, which is not a number: encode it, or "
                f"leave it out{labels}."
            )
    if not features:
        raise InvalidInput(f"{path} has no columns other than the label.")
    return features


def _check_schema(
    schema: Any, path: str, first: Any, first_path: str, features: Sequence[str], label: Any
) -> None:
    """Check that the columns of a file agree with those of the first one."""
    for name in [*features, *([label] if label is not None else [])]:
        if name not in schema.names:
            raise InvalidInput(
                f"{path} has no column {name!r}, but {first_path} has: give all files the same "
                "columns."
            )
        mine, theirs = schema.field(name).type, first.field(name).type
        if mine != theirs:
            raise InvalidInput(
                f"column {name!r} is of type {mine} in {path}, but {theirs} in {first_path}: use "
                "one type in all files."
            )


def _labels(column: Any) -> ndarray:
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    labels: ndarray = column.to_numpy(zero_copy_only=False)
    return labels


def _float_type(schema: Any, features: Sequence[str]) -> type:
    """Return float32 if it represents every value of the columns exactly, else float64."""
    narrow = {"float", "halffloat", "int8", "int16", "uint8", "uint16", "bool"}
    kinds = {str(schema.field(name).type) for name in features}
    return np.float32 if kinds <= narrow else np.float64


def _check_batches(source: Iterable[Any], *, with_labels: bool) -> Iterator[Batch]:
    if iter(source) is source:
        raise InvalidInput(
            f"a {type(source).__name__} can be read only once: give a list of batches, or an "
            "object whose __iter__ starts anew each time."
        )
    n_features = None
    for number, batch in enumerate(source):
        if with_labels and not _is_pair(batch):
            raise InvalidInput(f"batch {number} of the stream is not a pair (X, y).")
        X, y = batch if _is_pair(batch) else (batch, None)
        names = np.asarray(X.columns, dtype=object) if hasattr(X, "columns") else None
        if sparse.issparse(X):
            raise InvalidInput(
                f"batch {number} of the stream is sparse: give the whole CSR matrix instead."
            )
        X = np.asarray(X)
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise InvalidInput(
                f"batch {number} of the stream has the shape {X.shape} and the type {X.dtype}: "
                "give rows and columns of numbers."
            )
        n_features = X.shape[1] if n_features is None else n_features
        if X.shape[1] != n_features:
            raise InvalidInput(
                f"batch {number} of the stream has {X.shape[1]} columns, those before it have "
                f"{n_features}."
            )
        if y is not None and with_labels:
            y = np.asarray(y)
            if y.shape != (len(X),):
                raise InvalidInput(
                    f"batch {number} of the stream has {len(X)} rows and labels of shape {y.shape}."
                )
        if X.dtype not in (kinds := float_types(X)):
            X = X.astype(kinds[0])
        if len(X):
            yield Batch(X, y if with_labels else None, names)


def _append(X: ndarray, file: IO[bytes]) -> None:
    try:
        file.write(np.ascontiguousarray(X).data)
        file.flush()
    except OSError as error:
        raise NoRoomOnDisk(
            f"a stream is kept in {tempfile.gettempdir()} during the fit, but writing failed there "
            f"({error}): free some space, or set TMPDIR to another folder."
        ) from error


@contextmanager
def _naming(path: str | PathLike[str]) -> Iterator[None]:
    """Convert pyarrow's errors about a file into ours, which name the file."""
    try:
        yield
    except (OSError, ValueError) as error:
        what = str(error).splitlines()[0]
        raise BrokenFile(
            f"{path} is not a complete Parquet file ({what}): write it again."
        ) from error


def _schema(fragment: Any) -> Any:
    with _naming(fragment.path):
        return fragment.physical_schema


def _pyarrow() -> tuple[ModuleType, ModuleType, ModuleType]:
    try:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow import dataset, parquet
    except ImportError as error:
        raise MissingPackage(
            "Parquet files are read by pyarrow, which is not installed: pip install pyarrow."
        ) from error
    return pyarrow, dataset, parquet


def _is_parquet(source: Any) -> bool:
    return isinstance(source, str | PathLike) or _is_dataset(source)


def _is_dataset(X: Any) -> bool:
    return type(X).__module__.startswith("pyarrow") and hasattr(X, "get_fragments")


def _is_pair(batch: Any) -> bool:
    return isinstance(batch, tuple | list) and len(batch) == 2 and not np.isscalar(batch[0])
