"""The display of a row in a card: as an image, or by its most discriminative columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image
from scipy import sparse

if TYPE_CHECKING:
    from numpy import ndarray

#: Number of columns from which cards choose.
N_COLUMNS = 8

#: Maximum number of pixels of all thumbnails, and the maximum side length of one.
MOST_PIXELS = 56_000_000
LONGEST_SIDE = 64

#: Number of rows that are processed at once.
CHUNK = 4_096


@dataclass(frozen=True)
class Columns:
    """The most discriminative columns and their values, in the original units.

    ``separation`` is the share of a column's variance that lies between the classes.
    """

    names: tuple[str, ...]
    separation: ndarray
    mean: ndarray
    deviation: ndarray
    values: ndarray
    exemplar_values: ndarray | None


@dataclass(frozen=True)
class Images:
    """Grayscale images, 0 black and 255 white; inverted if most pixels of a row are empty."""

    thumbnails: ndarray
    exemplars: ndarray | None
    is_ink: bool
    shape: tuple[int, int]


RowDisplay = Columns | Images


def make_display(
    X: Any,
    codes: ndarray,
    shown: ndarray,
    exemplars: ndarray | None,
    names: tuple[str, ...],
    image_shape: tuple[int, int] | None,
) -> RowDisplay:
    """Return images if their shape is known, else columns."""
    if image_shape is None:
        return find_separating_columns(X, codes, shown, exemplars, names)
    return make_images(X, shown, exemplars, image_shape)


def find_separating_columns(
    X: Any, codes: ndarray, shown: ndarray, exemplars: ndarray | None, names: tuple[str, ...]
) -> Columns:
    """Return the columns with the largest share of variance between classes, in that order."""
    mean, deviation, separation = _variances(X, codes)
    chosen = np.argsort(-separation, kind="stable")[:N_COLUMNS]
    values = X[:, chosen]
    values = values.toarray() if sparse.issparse(values) else values
    return Columns(
        names=tuple(names[column] for column in chosen),
        separation=separation[chosen],
        mean=mean[chosen],
        deviation=deviation[chosen],
        values=values[shown],
        exemplar_values=None if exemplars is None else exemplars[:, chosen],
    )


def _variances(X: Any, codes: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """Return the mean, the deviation, and the between-class share of variance of each column."""
    n_rows = X.shape[0]
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    counts = np.bincount(codes)
    squares, sums = np.zeros(X.shape[1]), np.zeros((len(counts), X.shape[1]))
    for start in range(0, n_rows, CHUNK):
        some = slice(start, start + CHUNK)
        rows = X[some].toarray() if sparse.issparse(X) else X[some]
        away = rows.astype(np.float64) - mean
        squares += np.square(away).sum(axis=0)
        np.add.at(sums, codes[some], away)
    between = (np.square(sums) / np.maximum(counts, 1)[:, None]).sum(axis=0)
    separation = np.divide(between, squares, out=np.zeros_like(squares), where=squares > 0)
    return mean, np.sqrt(squares / n_rows), separation


def make_images(
    X: Any, shown: ndarray, exemplars: ndarray | None, shape: tuple[int, int]
) -> Images:
    """Return grayscale thumbnails, scaled from the minimum to the maximum of all rows."""
    low, high = float(X.min()), float(X.max())
    size = _thumbnail_size(shape, len(shown))
    thumbnails = np.empty((len(shown), *size), np.uint8)
    n_empty = 0
    for start in range(0, len(shown), CHUNK):
        some = slice(start, start + CHUNK)
        rows = X[shown[some]]
        rows = rows.toarray() if sparse.issparse(rows) else rows
        grays = _grays(rows, low, high)
        n_empty += int((grays < 26).sum())
        thumbnails[some] = _resize(grays.reshape(-1, *shape), size)
    is_ink = n_empty > len(shown) * shape[0] * shape[1] / 2
    large = None
    if exemplars is not None:
        grays = _grays(exemplars, low, high).reshape(-1, *shape)
        large = _resize(grays, _thumbnail_size(shape, len(exemplars)))
    if is_ink:
        np.subtract(255, thumbnails, out=thumbnails)
        large = None if large is None else 255 - large
    return Images(thumbnails, large, is_ink, shape)


def _grays(rows: ndarray, low: float, high: float) -> ndarray:
    """Scale values from the minimum to the maximum to bytes."""
    shares = (rows.astype(np.float64) - low) / (high - low or 1)
    grays: ndarray = np.rint(255 * np.clip(shares, 0, 1)).astype(np.uint8)
    return grays


def _thumbnail_size(shape: tuple[int, int], n: int) -> tuple[int, int]:
    """Return the size of thumbnails: at most that of the image, smaller if there are many."""
    height, width = shape
    shrink = min(1.0, LONGEST_SIDE / max(shape), (MOST_PIXELS / max(n, 1) / height / width) ** 0.5)
    return max(1, int(height * shrink)), max(1, int(width * shrink))


def _resize(images: ndarray, size: tuple[int, int]) -> ndarray:
    if images.shape[1:] == size:
        return images
    small = [
        np.asarray(Image.fromarray(image).resize(size[::-1], Image.Resampling.BOX))
        for image in images
    ]
    return np.stack(small)
