"""Maps from other packages, given the one interface that the bench knows: fit(X, y), transform(X).

Each package is imported when its map is made, so that none has to be there. What it warns of is
left out: here nobody could do anything about it.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from hopefold.data.scaling import learn_scale

if TYPE_CHECKING:
    from numpy import ndarray


class _Foreign(TransformerMixin, BaseEstimator):
    """Rows in the scale of our maps; the points of the training rows are remembered."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: ndarray, y: ndarray | None) -> Self:
        """Place the training rows."""
        self._rows = X
        self.scale_ = learn_scale(X, "auto")
        with warnings.catch_warnings(action="ignore"):
            self.embedding_ = self._place(self.scale_.apply(X), y)
        return self

    def transform(self, X: ndarray) -> ndarray:
        """Where rows lie in the map."""
        if X is self._rows:
            return np.asarray(self.embedding_)
        with warnings.catch_warnings(action="ignore"):
            return np.asarray(self._add(self.scale_.apply(X)))

    def _place(self, X: ndarray, y: ndarray | None) -> Any:
        raise NotImplementedError

    def _add(self, X: ndarray) -> Any:
        raise NotImplementedError


class SupervisedUMAP(_Foreign):
    """UMAP with labels, at its defaults; a label of -1 is missing."""

    def _place(self, X: ndarray, y: ndarray | None) -> Any:
        umap = import_module("umap")
        self._umap = umap.UMAP(random_state=self.random_state, n_jobs=1).fit(X, y)
        return self._umap.embedding_

    def _add(self, X: ndarray) -> Any:
        return self._umap.transform(X)


class UMAP(SupervisedUMAP):
    """UMAP at its defaults, without labels."""

    def _place(self, X: ndarray, y: ndarray | None) -> Any:
        return super()._place(X, None)


class PaCMAP(_Foreign):
    """PaCMAP at its defaults; it does not look at labels."""

    def _place(self, X: ndarray, y: ndarray | None) -> Any:
        pacmap = import_module("pacmap")
        self._pacmap = pacmap.PaCMAP(n_components=2, random_state=self.random_state)
        return self._pacmap.fit_transform(X, init="pca")

    def _add(self, X: ndarray) -> Any:
        return self._pacmap.transform(X, basis=self.scale_.apply(self._rows))


class OpenTSNE(_Foreign):
    """t-SNE as in openTSNE, at its defaults; it does not look at labels."""

    def _place(self, X: ndarray, y: ndarray | None) -> Any:
        open_tsne = import_module("openTSNE")
        self._points = open_tsne.TSNE(random_state=self.random_state, n_jobs=1).fit(X)
        return self._points

    def _add(self, X: ndarray) -> Any:
        return self._points.transform(X)
