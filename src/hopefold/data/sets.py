"""Named data sets from their original files: digits, mnist, usps.

A file is searched for in a folder that the user names (an argument, or ``HOPEFOLD_DATA``), then
in the cache. Otherwise it is downloaded from public mirrors. Its SHA-256 is always verified.
``digits`` comes with scikit-learn.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
from rich.progress import Progress as RichProgress
from scipy.io import loadmat
from sklearn.datasets import load_digits

from hopefold.errors import DataNotFound, InvalidParameter, WrongChecksum

if TYPE_CHECKING:
    from types import ModuleType

    from numpy import ndarray

#: The folder of the user's own copies: ``$HOPEFOLD_DATA/mnist/train-images-idx3-ubyte.gz`` etc.
FOLDER_VARIABLE = "HOPEFOLD_DATA"

#: Timeout of a mirror in seconds.
TIMEOUT = 30

DOWNLOAD_COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(bar_width=24),
    DownloadColumn(),
    TransferSpeedColumn(),
)


@dataclass(frozen=True)
class DataSet:
    """Images as rows of pixels, their labels, and the official test part if there is one."""

    name: str
    X: ndarray
    y: ndarray
    image_shape: tuple[int, int]
    X_test: ndarray | None = None
    y_test: ndarray | None = None


@dataclass(frozen=True)
class Source:
    """The files of a data set with their SHA-256, the mirrors, and the function that reads them."""

    read: Callable[[list[Path]], DataSet]
    files: dict[str, str] = field(default_factory=dict)
    mirrors: tuple[str, ...] = ()


def load_set(name: str, folder: str | PathLike[str] | None = None) -> DataSet:
    """Load a data set by name.

    Parameters
    ----------
    name : {"digits", "mnist", "usps"}
        The name of the data set.
    folder : path, optional
        Where ``name/<file>`` is searched for first. Default: the variable ``HOPEFOLD_DATA``.

    Examples
    --------
    >>> from hopefold.data.sets import load_set
    >>> load_set("digits").X.shape
    (1797, 64)

    """
    if not isinstance(name, str) or name not in SOURCES:
        raise InvalidParameter(
            f"{name!r} is not a known data set: choose one of {', '.join(SOURCES)}."
        )
    source, own = SOURCES[name], _users_folder(name, folder)
    return source.read([_find(name, file, own) for file in source.files])


def _users_folder(name: str, folder: str | PathLike[str] | None) -> Path | None:
    """Return the folder that the user names, if any."""
    if folder is None or folder == "":
        folder = os.environ.get(FOLDER_VARIABLE)
    elif not isinstance(folder, str | PathLike):
        raise InvalidParameter(
            f"folder={folder!r} is not a path: give the folder that contains {name}/, or omit it."
        )
    return Path(folder).expanduser() if folder else None


def _find(name: str, file: str, own: Path | None) -> Path:
    """Return the path of a verified file: the user's own, the cached, or the downloaded one."""
    if own is None:
        return _cached_or_downloaded(name, file)
    path, checksum = own / name / file, SOURCES[name].files[file]
    if path.exists():
        if _sha256(path) != checksum:
            raise WrongChecksum(
                f"{path} is not the original file (its SHA-256 is not {checksum}): replace it, or "
                "remove it to have the original downloaded."
            )
        return path
    try:
        return _cached_or_downloaded(name, file)
    except DataNotFound as error:
        why = "" if own.is_dir() else f" (there is no folder {own})"
        raise DataNotFound(f"{file} is not in {path.parent}{why}; {error}") from error


def _cached_or_downloaded(name: str, file: str) -> Path:
    """Replace a damaged file in the cache; if that fails, the error says so."""
    path = cache_folder() / name / file
    if not path.exists():
        return _download(name, path)
    if _sha256(path) == SOURCES[name].files[file]:
        return path
    path.unlink()
    try:
        return _download(name, path)
    except DataNotFound as error:
        raise DataNotFound(
            f"{path} was not the original file and has been removed; {error}"
        ) from error


def cache_folder() -> Path:
    """Return the folder of downloaded files."""
    return Path(_pooch().os_cache("hopefold"))


def _download(name: str, path: Path) -> Path:
    source, reasons = SOURCES[name], []
    for mirror in source.mirrors:
        try:
            return _retrieve(mirror + path.name, source.files[path.name], path)
        except (OSError, ValueError) as error:  # not available, or not the original
            reasons.append(f"{mirror}: {str(error).splitlines()[0][:80]}")
    wanted = ", ".join(f"{file} (SHA-256 {sha})" for file, sha in source.files.items())
    raise DataNotFound(
        f"{name} is not in the cache and could not be downloaded ({'; '.join(reasons)}): "
        f"put {wanted} into {path.parent}, or into a folder {name}/ below ${FOLDER_VARIABLE}."
    )


def _retrieve(url: str, checksum: str, path: Path) -> Path:
    """Download one file through pooch, which removes it again if its checksum is wrong."""
    pooch = _pooch()
    pooch.get_logger().setLevel("WARNING")  # the progress bar is enough
    with RichProgress(*DOWNLOAD_COLUMNS, console=Console(stderr=True)) as progress:
        bar = _Bar(progress, path.name)
        downloader = pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT)
        known = f"sha256:{checksum}"
        return Path(pooch.retrieve(url, known, path.name, path.parent, downloader=downloader))


class _Bar:
    """The interface of pooch for a progress bar, implemented with rich."""

    def __init__(self, progress: RichProgress, title: str) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=None)
        self.total = 0

    def update(self, n_bytes: int) -> None:
        self._progress.update(self._task, advance=n_bytes, total=self.total)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        pass


def _pooch() -> ModuleType:
    try:
        import pooch
    except ImportError as error:
        raise DataNotFound(
            "data sets are downloaded with pooch, which is not installed: "
            "pip install 'hopefold[cli]', or name a folder that has the files."
        ) from error
    return pooch


def _sha256(path: Path) -> str:
    if path.is_dir():
        raise DataNotFound(
            f"{path} is a folder, not a file: replace it by the original file, or remove it to "
            "have the original downloaded."
        )
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_digits(_: list[Path]) -> DataSet:
    X, y = load_digits(return_X_y=True)
    return DataSet("digits", X.astype(np.float32), y, (8, 8))


def _read_mnist(paths: list[Path]) -> DataSet:
    X, y, X_test, y_test = (_read_idx(path) for path in paths)
    return DataSet(
        "mnist", X.reshape(-1, 784), y, (28, 28), X_test=X_test.reshape(-1, 784), y_test=y_test
    )


def _read_idx(path: Path) -> ndarray:
    """Read an IDX file: two zeros, the type (8), the number of axes, their lengths, the data."""
    content = gzip.decompress(path.read_bytes())
    n_axes = content[3]
    shape = np.frombuffer(content, ">u4", count=n_axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def _read_usps(paths: list[Path]) -> DataSet:
    """Read 256 × 1100 × 10: slice k is digit k + 1, the last one 0; pixels are in column order."""
    pixels = loadmat(paths[0])["data"]
    X = pixels.reshape(16, 16, 1100, 10).transpose(3, 2, 1, 0).reshape(11_000, 256)
    return DataSet("usps", X, np.repeat([1, 2, 3, 4, 5, 6, 7, 8, 9, 0], 1100), (16, 16))


SOURCES = {
    "digits": Source(_read_digits),
    "mnist": Source(
        _read_mnist,
        {
            "train-images-idx3-ubyte.gz": (
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
            ),
            "train-labels-idx1-ubyte.gz": (
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
            ),
            "t10k-images-idx3-ubyte.gz": (
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
            ),
            "t10k-labels-idx1-ubyte.gz": (
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
            ),
        },
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ),
    ),
    "usps": Source(
        _read_usps,
        {"usps_all.mat": "da2c8d6e8bd743da00c67020f444e0f28250dfbd16c55d8135c50ffa7719a5f9"},
        ("https://cs.nyu.edu/~roweis/data/",),
    ),
}
