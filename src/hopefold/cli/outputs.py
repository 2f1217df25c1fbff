"""Files that verbs write: checked before the work, written whole or not at all."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopefold.errors import (
    CannotWrite,
    HopefoldError,
    InvalidParameter,
    MissingPackage,
    NoSuchFolder,
)

if TYPE_CHECKING:
    from numpy import ndarray

STDOUT = Path("-")
TABLES = (".csv", ".tsv", ".parquet", ".npz")
PICTURES = (".png", ".svg", ".pdf")


def check_target(
    path: Path, endings: Sequence[str] = (), *, force: bool, reads: Sequence[Path] = ()
) -> None:
    """Check that a file can be written, and may be. Called before the work, not after.

    The files that a verb ``reads`` are never overwritten.
    """
    if path == STDOUT and ".csv" in endings:
        return
    if endings and path.suffix.lower() not in endings:
        raise InvalidParameter(
            f"cannot write {path}: give it a name that ends in {', '.join(endings)}."
        )
    if path.is_dir():
        raise InvalidParameter(f"cannot write {path}, which is a folder: name a file in it.")
    if path.exists() and not path.is_file():
        raise InvalidParameter(f"cannot write {path}, which is a device or a pipe: name a file.")
    if path.exists() and any(path.samefile(one) for one in reads if one.exists()):
        raise InvalidParameter(f"{path} is an input: give the result another name.")
    if path.exists() and not force:
        raise InvalidParameter(
            f"{path} already exists: overwrite it with --force, or choose another name."
        )
    folder = path.resolve().parent
    if not folder.is_dir():
        raise NoSuchFolder(f"cannot write {path}: make the folder {folder} first.")
    with writing(path), tempfile.TemporaryFile(dir=folder):
        pass


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn errors of the disk into errors that name the file."""
    try:
        yield
    except BrokenPipeError:  # the reader has closed the pipe
        raise
    except OSError as error:
        if isinstance(error, HopefoldError):
            raise
        where = "standard output" if path == STDOUT else path
        why = error.strerror or str(error)
        raise CannotWrite(
            f"cannot write {where} ({why}): make room, or choose another place."
        ) from error


def write(path: Path, content: bytes) -> None:
    """Write the whole file, or leave the old one as it is."""
    from hopefold.persistence.store import write_atomically

    if path == STDOUT:
        with writing(path):
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        return
    with writing(path):
        write_atomically(path, content)


def write_table(path: Path, columns: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write columns to CSV, TSV or Parquet, or arrays to NPZ, depending on the extension."""
    write(path, _npz(arrays) if path.suffix.lower() == ".npz" else _table(path, columns))


def write_figure(path: Path, figure: Any, dpi: int = 130) -> None:
    """Write a figure in the format of the extension."""
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower(), dpi=dpi)
    write(path, content.getvalue())


def _npz(arrays: Mapping[str, Any]) -> bytes:
    import numpy as np

    content = io.BytesIO()
    plain: dict[str, Any] = {name: _plain(array) for name, array in arrays.items()}
    np.savez_compressed(content, **plain)
    return content.getvalue()


def _plain(array: Any) -> ndarray:
    """Return text as text: NumPy would pickle objects."""
    import numpy as np

    array = np.asarray(array)
    return array.astype(str) if array.dtype == object else array


def parquet_with_notes(columns: Mapping[str, Any], notes: Mapping[str, str]) -> bytes:
    """Return a Parquet file with notes in its metadata."""
    pyarrow, _, parquet = _pyarrow()
    arrays = {name: pyarrow.array(column) for name, column in columns.items()}
    for name, array in arrays.items():
        if str(array.type) == "null" and not len(array):  # an empty column of text
            arrays[name] = array.cast(pyarrow.string())
    content = io.BytesIO()
    parquet.write_table(pyarrow.table(arrays).replace_schema_metadata(notes), content)
    return content.getvalue()


def _table(path: Path, columns: Mapping[str, Any]) -> bytes:
    from hopefold.data.csv_files import with_marks

    pyarrow, csv, parquet = _pyarrow()
    table = pyarrow.table({name: pyarrow.array(column) for name, column in columns.items()})
    content = io.BytesIO()
    if path.suffix.lower() == ".parquet":
        parquet.write_table(table, content)
    else:
        tab = "\t" if path.suffix.lower() == ".tsv" else ","
        options = csv.WriteOptions(delimiter=tab, quoting_style="needed")
        csv.write_csv(with_marks(table), content, options)
    return content.getvalue()


def _pyarrow() -> tuple[Any, Any, Any]:
    try:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow import csv, parquet
    except ImportError as error:
        raise MissingPackage(
            "tables are written with pyarrow, which is not installed: pip install 'hopefold[cli]'."
        ) from error
    return pyarrow, csv, parquet


def size(path: Path) -> str:
    """Return the size of a file with a unit."""
    n_bytes = float(path.stat().st_size)
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} GB"
