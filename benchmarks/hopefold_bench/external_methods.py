"""Methods of other packages, with the interface fit(X, y), transform(X).

Each package is imported when it is used, so none is required. Their warnings are ignored.
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


class _ExternalMethod(TransformerMixin, BaseEstimator):
    """A method that sees rows in the scale of our maps, and keeps the training points."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: ndarray, y: ndarray | None) -> Self:
        """Embed the training rows."""
        self._rows = X
        self.scale_ = learn_scale(X, "auto")
        with warnings.catch_warnings(action="ignore"):
            self.embedding_ = self._embed(self.scale_.apply(X), y)
        return self

    def transform(self, X: ndarray) -> ndarray:
        """The points of rows in the map."""
        if X is self._rows:
            return np.asarray(self.embedding_)
        with warnings.catch_warnings(action="ignore"):
            return np.asarray(self._embed_new(self.scale_.apply(X)))

    def _embed(self, X: ndarray, y: ndarray | None) -> Any:
        raise NotImplementedError

    def _embed_new(self, X: ndarray) -> Any:
        raise NotImplementedError


class SupervisedUMAP(_ExternalMethod):
    """UMAP with labels, with default settings; the label -1 means missing."""

    def _embed(self, X: ndarray, y: ndarray | None) -> Any:
        umap = import_module("umap")
        self._umap = umap.UMAP(random_state=self.random_state, n_jobs=1).fit(X, y)
        return self._umap.embedding_

    def _embed_new(self, X: ndarray) -> Any:
        return self._umap.transform(X)


class UMAP(SupervisedUMAP):
    """UMAP with default settings, without labels."""

    def _embed(self, X: ndarray, y: ndarray | None) -> Any:
        return super()._embed(X, None)


class PaCMAP(_ExternalMethod):
    """PaCMAP with default settings; it does not use labels."""

    def _embed(self, X: ndarray, y: ndarray | None) -> Any:
        pacmap = import_module("pacmap")
        self._pacmap = pacmap.PaCMAP(n_components=2, random_state=self.random_state)
        return self._pacmap.fit_transform(X, init="pca")

    def _embed_new(self, X: ndarray) -> Any:
        return self._pacmap.transform(X, basis=self.scale_.apply(self._rows))


class OpenTSNE(_ExternalMethod):
    """t-SNE of openTSNE with default settings; it does not use labels."""

    def _embed(self, X: ndarray, y: ndarray | None) -> Any:
        open_tsne = import_module("openTSNE")
        self._points = open_tsne.TSNE(random_state=self.random_state, n_jobs=1).fit(X)
        return self._points

    def _embed_new(self, X: ndarray) -> Any:
        return self._points.transform(X)
