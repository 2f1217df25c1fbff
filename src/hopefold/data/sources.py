"""Sources of tables: CSV, Parquet, NumPy files, folders of images, AnnData, named data sets."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hopefold.errors import BrokenFile, DataNotFound, InvalidInput, MissingPackage

if TYPE_CHECKING:
    from types import ModuleType

    from numpy import ndarray

#: The name of standard input.
STDIN = "-"

#: Data sets of scikit-learn with column names, and those of `hopefold.data.sets`.
SMALL_SETS = ("iris", "wine", "cancer")
IMAGE_SETS = ("digits", "mnist", "mnist-test", "usps")
NAMED_SETS = (*SMALL_SETS, *IMAGE_SETS)


@dataclass(frozen=True)
class Frame:
    """Columns by name, numeric or text, all of the same length."""

    source: str
    columns: Mapping[str, ndarray]
    #: The column of row names, if the file has one without a name.
    ids: str | None = None
    #: Returns a column as written, for file formats that store numbers as text.
    written: Callable[[str], ndarray] | None = None

    def ids_in(self, name: str) -> ndarray:
        """Return an identifier column without conversion to numbers: 007 stays 007."""
        return self.columns[name] if self.written is None else self.written(name)

    def labels_in(self, name: str) -> ndarray:
        """Return a label column: numbers, unless they are not in the usual notation."""
        labels = self.columns[name]
        if self.written is None or labels.dtype.kind not in "iu":
            return labels
        written = self.written(name)
        return labels if (labels.astype(str) == written).all() else written


@dataclass(frozen=True)
class Matrix:
    """Rows of numbers, dense or CSR, and additional columns: labels, ids."""

    source: str
    X: Any
    names: ndarray | None = None
    beside: Mapping[str, ndarray] = field(default_factory=dict)
    #: The additional columns with the labels and the ids by default.
    label: str | None = None
    ids: str | None = None
    image_shape: tuple[int, int] | None = None


def read_source(path: str, image_shape: tuple[int, int] | None = None) -> Frame | Matrix:
    """Read a file, a folder, standard input or a named data set, depending on its name."""
    if path == STDIN:
        from hopefold.data.csv_files import parse_csv

        return parse_csv(sys.stdin.buffer.read(), "standard input")
    place = Path(path)
    if not place.exists():
        if path in NAMED_SETS:
            return _read_named(path)
        raise _not_found(place)
    if place.is_dir():
        return _read_folder(place, image_shape)
    ending = "".join(place.suffixes[-2:] if place.suffix == ".gz" else place.suffixes[-1:]).lower()
    if ending not in READERS:
        raise InvalidInput(
            f"{path} ends in {ending or 'nothing'}, which is not a known format: give a file that "
            f"ends in {', '.join(READERS)}, a folder of images, or one of {', '.join(NAMED_SETS)}."
        )
    if not place.stat().st_size:
        raise InvalidInput(f"{path} is empty: give a table with a header line and some rows.")
    return READERS[ending](place)


def _not_found(place: Path) -> DataNotFound:
    folder = place.parent
    there = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    known = [*there, *NAMED_SETS] if folder == Path() else there
    close = difflib.get_close_matches(place.name, known, 1)
    if close:
        remedy = f"did you mean {folder / close[0]}?"
    elif not folder.is_dir():
        remedy = f"there is no folder {folder} either."
    else:
        remedy = f"give the path of a table, or a named set ({', '.join(NAMED_SETS)})."
    return DataNotFound(f"the file {place} does not exist: {remedy}")


def _read_csv(path: Path) -> Frame:
    from hopefold.data.csv_files import parse_csv

    pyarrow = _import("pyarrow")
    try:
        with pyarrow.input_stream(path) as stream:  # decompresses .gz
            content = stream.read()
    except (OSError, ValueError) as error:
        raise BrokenFile(f"{path} cannot be read ({error}).") from error
    return parse_csv(content, str(path), "\t" if ".tsv" in path.suffixes else None)


def _read_parquet(path: Path) -> Frame:
    from hopefold.data.csv_files import columns_of

    parquet = _import("pyarrow.parquet")
    try:
        table = parquet.read_table(path, use_threads=False)
    except (OSError, ValueError) as error:
        what = str(error).splitlines()[0]
        raise BrokenFile(
            f"{path} is not a complete Parquet file ({what}): write it again."
        ) from error
    return Frame(str(path), *columns_of(table, str(path)))


def _read_npz(path: Path) -> Matrix:
    loaded = load_numpy(path)
    arrays = loaded if isinstance(loaded, dict) else {}
    if "X" not in arrays:
        held = ", ".join(arrays) or "none"
        raise InvalidInput(
            f"{path} has no array X (its arrays: {held}): save it with "
            "numpy.savez(path, X=rows, y=labels)."
        )
    X, shape = _flat(arrays.pop("X"), str(path))
    names = arrays.pop("names", None)
    if names is not None and names.shape != (X.shape[1],):
        raise InvalidInput(
            f"{path} has {X.shape[1]} columns and names of shape {names.shape}: give one for each."
        )
    beside = {name: array for name, array in arrays.items() if array.shape == X.shape[:1]}
    if "y" in arrays and "y" not in beside:
        raise InvalidInput(
            f"{path} has {len(X)} rows in X and labels of shape {arrays['y'].shape} in y: "
            "give one label per row."
        )
    return Matrix(
        str(path),
        X,
        names=None if names is None else names.astype(str).astype(object),
        beside=beside,
        label="y" if "y" in beside else None,
        ids="ids" if "ids" in beside else None,
        image_shape=shape,
    )


def _read_npy(path: Path) -> Matrix:
    loaded = load_numpy(path)
    if isinstance(loaded, dict):
        raise InvalidInput(f"{path} is an NPZ file: give it the ending .npz.")
    X, shape = _flat(loaded, str(path))
    return Matrix(str(path), X, image_shape=shape)


def load_numpy(path: Path) -> Any:
    """Return the array of an NPY file, or the arrays of an NPZ file by name."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            return {name: loaded[name] for name in loaded.files}
    except Exception as error:  # damaged headers can raise any error
        raise _no_numpy_file(path, error) from error


def _no_numpy_file(path: Path, error: Exception) -> BrokenFile:
    if "allow_pickle" in str(error):
        return BrokenFile(
            f"{path} contains Python objects, which are not loaded, since they can run code: save "
            "text with .astype(str)."
        )
    return BrokenFile(f"{path} is not a complete NumPy file ({error}): write it again.")


def _flat(X: ndarray, source: str) -> tuple[ndarray, tuple[int, int] | None]:
    """Check for rows and columns; flatten images to rows of pixels."""
    if X.dtype.kind not in "biuf" or X.ndim not in (2, 3):
        raise InvalidInput(
            f"{source} contains an array of shape {X.shape} and type {X.dtype}: give numbers "
            "in rows and columns, or images as (rows, height, width)."
        )
    if X.ndim == 2:
        return X, None
    return X.reshape(len(X), -1), (int(X.shape[1]), int(X.shape[2]))


def _read_folder(folder: Path, image_shape: tuple[int, int] | None) -> Frame | Matrix:
    """Images, those of a class in a folder of its own; or Parquet files."""
    from hopefold.data.image_files import IMAGES, check_room, common_shape, read_image

    if any(folder.glob("*.parquet")):
        return _read_parquet(folder)
    files = sorted(
        path
        for path in (*folder.glob("*"), *folder.glob("*/*"))
        if path.suffix.lower() in IMAGES and not path.name.startswith(".")
    )
    if not files:
        raise InvalidInput(
            f"the folder {folder} has no images ({', '.join(IMAGES)}): put those of a class into "
            "a folder of its own in it."
        )
    height, width = image_shape or common_shape(files)
    check_room(len(files), height, width)
    images = [read_image(path, (height, width)) for path in files]
    beside = {"file": np.array([path.relative_to(folder).as_posix() for path in files])}
    inside = [path.parent != folder for path in files]
    if all(inside):
        beside["folder"] = np.array([path.parent.name for path in files])
    elif any(inside):
        raise InvalidInput(
            f"{folder} has images in folders and {files[inside.index(False)].name} beside them: "
            "put every image into the folder of its class."
        )
    X = np.stack(images).reshape(len(images), -1)
    label = "folder" if "folder" in beside else None
    return Matrix(str(folder), X, None, beside, label, "file", (height, width))


def _read_h5ad(path: Path) -> Matrix:
    from hopefold.data.anndata_files import read_h5ad

    return read_h5ad(path)


def _read_named(name: str) -> Matrix:
    if name in SMALL_SETS:
        from sklearn import datasets

        loader = {"cancer": "load_breast_cancer"}.get(name, f"load_{name}")
        found = getattr(datasets, loader)()
        names = np.array([str(one) for one in found.feature_names], dtype=object)
        labels = np.array([str(one) for one in found.target_names])[found.target]
        return Matrix(name, found.data, names, {"class": labels}, "class")
    from hopefold.data.sets import load_set

    kind, _, part = name.partition("-")
    data = load_set(kind)
    X, y = (data.X_test, data.y_test) if part else (data.X, data.y)
    beside = {"class": cast("ndarray", y)}
    return Matrix(name, X, None, beside, "class", image_shape=data.image_shape)


def _import(module: str, package: str = "pyarrow") -> ModuleType:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise MissingPackage(
            f"this is read with {package}, which is not installed: pip install 'hopefold[cli]'."
        ) from error


READERS: dict[str, Callable[[Path], Frame | Matrix]] = {
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
    ".tsv": _read_csv,
    ".tsv.gz": _read_csv,
    ".txt": _read_csv,
    ".parquet": _read_parquet,
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".h5ad": _read_h5ad,
}
