"""The data sets, split into training rows and new rows.

By default the new rows are a validation part of the training part. ``final=True`` gives the test
part; the command line enters this in the ledger first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.model_selection import train_test_split

from hopefold.data.sets import FOLDER_VARIABLE, load_set
from hopefold.errors import InvalidParameter
from hopefold_bench.convnet import features
from hopefold_bench.folders import REPOSITORY
from hopefold_bench.models import MODELS
from hopefold_bench.small_sets import CHECKED_SETS

if TYPE_CHECKING:
    from numpy import ndarray

#: Share of the training part that becomes the validation part.
VALIDATION = 0.1

#: Training rows and new rows of a quick run.
QUICK = (1_000, 300)


@dataclass(frozen=True)
class Splits:
    """Training rows, and new rows for evaluation, with their labels."""

    X: ndarray
    y: ndarray
    X_new: ndarray
    y_new: ndarray
    image_shape: tuple[int, int] | None = None


def load_splits(
    data: str, split: int, *, final: bool, quick: bool = False, models: Path = MODELS
) -> Splits:
    """The training rows and the new rows of a data set.

    Parameters
    ----------
    data : {"digits", "mnist", "usps", "vgg"} or one of `CHECKED_SETS`
        The data set. Pixels are as in the original files; ``"vgg"`` has 512 features of a convnet
        on MNIST.
    split : int
        The seed of the split into training and test part (except on MNIST, which has an official
        one), and of the split into training and validation part.
    final : bool
        False: the new rows are a stratified tenth of the training part. True: the new rows are the
        test part, and the training rows are the whole training part.
    quick : bool, default=False
        Keep few rows of each, stratified.
    models : Path
        The folder of the saved convnet.

    Examples
    --------
    >>> from hopefold_bench.splits import load_splits
    >>> splits = load_splits("digits", 0, final=False)
    >>> splits.X.shape, splits.X_new.shape
    ((1131, 64), (126, 64))

    """
    if data not in DATA_SETS:
        raise InvalidParameter(
            f"{data!r} is not a known data set: choose from {', '.join(DATA_SETS)}."
        )
    read = partial(_vgg, models=models) if data == "vgg" else DATA_SETS[data]
    splits = read(split, final)
    if not quick:
        return splits
    X, y = _some(splits.X, splits.y, QUICK[0], split)
    X_new, y_new = _some(splits.X_new, splits.y_new, QUICK[1], split)
    return Splits(X, y, X_new, y_new, splits.image_shape)


def data_folder() -> Path | None:
    """The folder of original files: the user's, or the one beside the repository."""
    if folder := os.environ.get(FOLDER_VARIABLE):
        return Path(folder)
    beside = REPOSITORY.parent / "shared" / "data"
    return beside if beside.exists() else None


def _digits(split: int, final: bool) -> Splits:
    """70/30, stratified."""
    digits = load_set("digits")
    return _splits(_stratified(digits.X, digits.y, 0.3, split), split, final, digits.image_shape)


def _mnist(split: int, final: bool) -> Splits:
    """The official 60,000 / 10,000."""
    mnist = load_set("mnist", data_folder())
    assert mnist.X_test is not None
    assert mnist.y_test is not None
    arrays = (mnist.X, mnist.y, mnist.X_test, mnist.y_test)
    return _splits(arrays, split, final, mnist.image_shape)


def _usps(split: int, final: bool) -> Splits:
    """800/300 per digit: 8,000 and 3,000 of the 11,000 images."""
    usps = load_set("usps", data_folder())
    return _splits(_stratified(usps.X, usps.y, 3_000, split), split, final, usps.image_shape)


def _vgg(_split: int, final: bool, models: Path = MODELS) -> Splits:
    """512 features below the softmax of a convnet that was trained on the training rows.

    There is one network for each part, and so the same rows for every split.
    """
    mnist = _mnist(0, final)
    X, X_new = features("test" if final else "validation", mnist.X, mnist.X_new, folder=models)
    return Splits(X, mnist.y, X_new, mnist.y_new)


def _small(name: str, split: int, final: bool) -> Splits:
    """70/30, stratified."""
    X, y = CHECKED_SETS[name]()
    return _splits(_stratified(X, y, 0.3, split), split, final)


DATA_SETS: dict[str, Callable[[int, bool], Splits]] = {
    "digits": _digits,
    "usps": _usps,
    "mnist": _mnist,
    "vgg": _vgg,
    **{name: partial(_small, name) for name in CHECKED_SETS},
}

Arrays = tuple["ndarray", "ndarray", "ndarray", "ndarray"]


def _splits(
    arrays: Arrays, split: int, final: bool, image_shape: tuple[int, int] | None = None
) -> Splits:
    """Training and test part, or training and validation part."""
    if not final:
        arrays = _stratified(arrays[0], arrays[1], VALIDATION, split)
    return Splits(*arrays, image_shape)


def _stratified(X: ndarray, y: ndarray, new: float, seed: int) -> Arrays:
    """A stratified split X, y, X_new, y_new, with a share or a number of new rows."""
    X, X_new, y, y_new = train_test_split(X, y, test_size=new, stratify=y, random_state=seed)
    return X, y, X_new, y_new


def _some(X: ndarray, y: ndarray, n_rows: int, seed: int) -> tuple[ndarray, ndarray]:
    if n_rows >= len(y) - len(np.unique(y)):  # a stratified remainder has a row of each class
        return X, y
    X, _, y, _ = train_test_split(X, y, train_size=n_rows, stratify=y, random_state=seed)
    return X, y
