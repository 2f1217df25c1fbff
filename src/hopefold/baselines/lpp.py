"""Locality preserving projections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from sklearn.neighbors import kneighbors_graph

from hopefold import checks
from hopefold.baselines.projection import ClosedForm

if TYPE_CHECKING:
    from numpy import ndarray

#: Directions in which the rows vary less than this, relative to the most, are left out.
RANK_TOLERANCE = 1e-8

GRAPHS = ("class", "neighbors")


@dataclass(kw_only=True, eq=False, repr=False)
class LPP(ClosedForm):
    """Locality preserving projections: linear, and rows that a graph joins stay near each other.

    The directions a with the smallest ``aᵀ Xᵀ(D − S)X a`` where ``aᵀ Xᵀ D X a = 1``: S are the
    weights of the graph's edges, D their sums, and X is centred.

    Parameters
    ----------
    graph : {"class", "neighbors"}, default="class"
        ``"class"`` joins all rows of a class, each pair with the weight 1 / size of the class (then
        the directions are those of LDA). ``"neighbors"`` joins nearest rows whatever their class.
    n_graph_neighbors : int, default=5
        Neighbours of a row in the graph ``"neighbors"``.
    {parameters}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold.baselines import LPP
    >>> X, y = load_iris(return_X_y=True)
    >>> LPP(random_state=0).fit(X, y).transform(X).shape
    (150, 2)

    """

    graph: str = "class"
    n_graph_neighbors: int = 5

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_choice("graph", self.graph, GRAPHS)
        checks.check_whole("n_graph_neighbors", self.n_graph_neighbors, at_least=1)

    def _solve(self, x: ndarray, labels: ndarray, seed: int) -> ndarray:
        x = x - x.mean(axis=0)
        if self.graph == "class":
            joined, degrees = self._product_with_classes(x, labels), np.ones(len(x))
        else:
            edges = self._neighbor_graph(x)
            joined, degrees = edges @ x, np.asarray(edges.sum(axis=1)).ravel()
        weighted = x.T @ (degrees[:, None] * x)
        apart = weighted - x.T @ joined
        variances, axes = eigh(weighted)
        varies = variances > RANK_TOLERANCE * variances[-1]
        whiten = axes[:, varies] / np.sqrt(variances[varies])
        _, directions = eigh(whiten.T @ (apart + apart.T) @ whiten / 2)
        solution: ndarray = (whiten @ directions).T * np.sqrt(len(x))
        return solution

    def _product_with_classes(self, x: ndarray, labels: ndarray) -> ndarray:
        """S X for the graph of the classes: each row becomes the mean of its class."""
        means = np.stack([x[labels == k].mean(axis=0) for k in np.unique(labels)])
        return means[np.unique(labels, return_inverse=True)[1]]

    def _neighbor_graph(self, x: ndarray) -> Any:
        """1 where either row is among the nearest of the other."""
        n_neighbors = min(self.n_graph_neighbors, len(x) - 1)
        graph = kneighbors_graph(x.astype(np.float32), n_neighbors)
        return sparse.csr_array(graph.maximum(graph.T))
