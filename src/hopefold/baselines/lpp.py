"""Locality preserving projections."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from sklearn.neighbors import kneighbors_graph

from hopefold.baselines.projection import SolvedMethod
from hopefold.estimators.base import SupervisedEmbedding

if TYPE_CHECKING:
    from numpy import ndarray

#: Directions in which the rows vary less than this, relative to the most, are left out.
RANK_TOLERANCE = 1e-8


class LPPMethod(SolvedMethod):
    """Directions along which rows that a graph joins stay near each other."""

    def directions(self, x: ndarray, labels: ndarray, seed: int) -> ndarray:
        """Those of the generalized eigenproblem, whitened first."""
        x = x - x.mean(axis=0)
        if self.plan.options["graph"] == "class":
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
        n_neighbors = min(self.plan.options["n_graph_neighbors"], len(x) - 1)
        graph = kneighbors_graph(x.astype(np.float32), n_neighbors)
        return sparse.csr_array(graph.maximum(graph.T))


@dataclass(kw_only=True, eq=False, repr=False)
class LPP(SupervisedEmbedding):
    """Locality preserving projections: linear, and rows that a graph joins stay near each other.

    The directions a with the smallest ``aᵀ Xᵀ(D − S)X a`` where ``aᵀ Xᵀ D X a = 1``: S are the
    weights of the graph's edges, D their sums, and X is centered.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map.
    graph : {"class", "neighbors"}, default="class"
        ``"class"`` joins all rows of a class, each pair with the weight 1 / size of the class (the
        directions are then those of LDA). ``"neighbors"`` joins nearest neighbors regardless of
        class.
    n_graph_neighbors : int, default=5
        Neighbors of a row in the graph ``"neighbors"``.
    exemplars : {"kmeans", None}, default=None
        The references that new rows are compared with. ``"kmeans"``: the k-means centers of each
        class in the input space, mapped. ``None``: all embedded training rows.
    n_exemplars : int, default=2
        Exemplars per class. A class with fewer rows gets one exemplar per row.
    validation_fraction : float, default=0.1
        Fraction of the rows that is held out, stratified by class. The error on these rows is
        reported. A method that learns in epochs keeps the last epoch whose error is not
        significantly above the lowest one. 0 turns validation off.
    refit : bool, default=True
        After validation, train again on all rows, for the selected number of epochs.
    scale : {"auto", "standard", "range", None}, default="auto"
        How columns are scaled. ``"standard"``: each column to mean 0 and standard deviation 1.
        ``"range"``: the whole table to [0, 1]. ``"auto"``: ``"range"`` if all columns share one
        range, as pixels do; sparse columns are divided by their largest magnitude; otherwise
        ``"standard"``. ``None``: not at all. Exemplars are returned in the original units.
    n_neighbors : int or "auto", default="auto"
        Neighbors that vote in `predict`. ``"auto"``: 5. If classes tie, the class of the nearest
        neighbor wins.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the validation error and in `predict`. The map does not depend on
        them.
    device : str or torch.device, default="auto"
        Where to compute. ``"auto"``: a GPU if there is one, otherwise the CPU.
    random_state : int, RandomState or None, default=None
        Seed of all random numbers. The same int gives the same result.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    map_ : torch.nn.Module
        The learned map, for rows scaled by ``scale_``.
    exemplars_ : ndarray of shape (n_references, n_features) or None
        The exemplars in the units of the training data.
    exemplar_labels_, exemplar_embedding_ : ndarray or None
        The classes of the exemplars, and their points in the map.
    reference_embedding_, reference_labels_ : ndarray
        The points that `predict` compares with: the exemplars, or all training rows.
    classes_, class_weight_ : ndarray
        The sorted labels and their weights. Empty for a map learned without labels.
    validation_error_ : float or None
        Error on the held-out rows, before they are learned from. Rows are weighted by
        ``class_weight``. With Adam, they choose neither the epoch nor any setting.
    n_held_out_, validation_interval_ : int, (float, float) or None
        The number of rows that ``validation_error_`` was measured on, and its 95 % confidence
        interval. With fewer than 280 rows, it may be all rows: see ``validation_fraction``.
    temperature_ : float
        Temperature of the probabilities, learned from the held-out rows: the kernel's probabilities
        to the power of ``1 / temperature_``, divided by their sum. 1 where neighbors vote, or if
        fewer than 20 rows are held out.
    calibration_error_ : float or None
        Expected calibration error of the probabilities on the held-out rows, each half at the
        temperature of the other. Rows are weighted by ``class_weight``. ``None`` without held-out
        rows.
    trustworthiness_ : float or None
        Trustworthiness of the neighbors in the map, from 0 to 1, on held-out rows. ``None`` unless
        neighbors are part of the loss and at least 36 rows are held out.
    train_error_ : float
        Error on the training rows. The smaller it is compared with ``validation_error_``, the more
        the map overfits.
    n_iter_ : int
        The selected number of epochs.
    interrupted_ : bool
        Whether Ctrl-C has ended the fit early: then the map is the best one until then.
    history_ : list of dict
        One record per epoch: epoch, loss, learning_rate, validation_error.
    scale_ : Scale
        The scaling of the columns.
    columns_ : hopefold.data.columns.Columns or None
        How the columns of a table become features, if the model was fitted to a table.
    precision_ : {"float32", "float16", "int8"}
        How a model file stores the weights and the exemplars.
    n_features_in_, feature_names_in_ : int, ndarray of str
        As in scikit-learn.

    References
    ----------
    .. [1] X. He and P. Niyogi. Locality Preserving Projections. NIPS, 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold.baselines import LPP
    >>> X, y = load_iris(return_X_y=True)
    >>> LPP(random_state=0).fit(X, y).transform(X).shape
    (150, 2)

    """

    # Parameters, written by `make parameters`.
    n_components: int = field(default=2, kw_only=False)
    graph: str = "class"
    n_graph_neighbors: int = 5
    exemplars: str | None = None
    n_exemplars: int = 2
    validation_fraction: float = 0.1
    refit: bool = True
    scale: str | None = "auto"
    n_neighbors: int | str = "auto"
    class_weight: Any = None
    device: Any = "auto"
    random_state: Any = None
    verbose: int = 0
    # End of the parameters.

    method: ClassVar = LPPMethod
