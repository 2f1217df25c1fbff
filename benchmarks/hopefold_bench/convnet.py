"""The convnet as a method of the tables, and its 512 features as a data set."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

from hopefold.errors import DataNotFound
from hopefold_bench import vgg
from hopefold_bench.models import MODELS

if TYPE_CHECKING:
    from numpy import ndarray


class Convnet(ClassifierMixin, TransformerMixin, BaseEstimator):
    """A convnet on square images, given as rows of pixels; `transform` gives its features."""

    def __init__(self, max_epochs: int = 6, random_state: Any = None) -> None:
        self.max_epochs = max_epochs
        self.random_state = random_state

    def fit(self, X: ndarray, y: ndarray) -> Self:
        """Train on the labels 0, 1, …"""
        side = math.isqrt(X.shape[1])
        self.net_ = vgg.train(
            X,
            y,
            image_shape=(side, side),
            seed=self.random_state or 0,
            epochs=self.max_epochs,
            progress=lambda _line: None,
        )
        return self

    def transform(self, X: ndarray) -> ndarray:
        """The 512 features."""
        return vgg.extract(self.net_, X)

    def predict(self, X: ndarray) -> ndarray:
        """The class with the largest softmax."""
        return vgg.predict(self.net_, X)

    def keep(self, part: str, folder: Path = MODELS) -> None:
        """Save the network, so that its features can be computed."""
        folder.mkdir(parents=True, exist_ok=True)
        _features_file(part, folder).unlink(missing_ok=True)
        vgg.save(self.net_, _net_file(part, folder))


def features(part: str, *tables: ndarray, folder: Path = MODELS) -> list[ndarray]:
    """The features of tables of images, by the network that was saved for this part.

    They are saved as well, because computing them takes a minute.
    """
    kept = _features_file(part, folder)
    if not kept.exists():
        if not _net_file(part, folder).exists():
            options = " --final" if part == "test" else ""
            options += "" if folder == MODELS else f" --results {folder.parent}"
            raise DataNotFound(
                f"the network of these features is not in {folder}: run `python -m "
                f"hopefold_bench run --data mnist --only convnet{options}` first, half an hour."
            )
        net = vgg.load(_net_file(part, folder))
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".npz", delete=False) as file:
            np.savez(file, *[vgg.extract(net, table) for table in tables])
        os.replace(file.name, kept)
    with np.load(kept) as found:
        return [found[name] for name in found.files]


def _net_file(part: str, folder: Path) -> Path:
    return folder / f"convnet-{part}.safetensors"


def _features_file(part: str, folder: Path) -> Path:
    return folder / f"convnet-{part}.npz"
