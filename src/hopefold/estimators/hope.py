"""HOPE and S-HOPE."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from hopefold.core.maps import HighOrder, SigmoidHighOrder
from hopefold.estimators import checks
from hopefold.estimators.base import SupervisedEmbedding


@dataclass(kw_only=True, eq=False, repr=False)
class HOPE(SupervisedEmbedding):
    """High-order parametric embedding: a map that is linear in products of features.

    ``y = P (Cx)^O``: each coordinate is a polynomial of degree ``order`` in the features, learned
    so that classes collapse, with a few synthetic exemplars that stand in for the whole data set.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map.
    order : int, default=3
        Most features that are multiplied with each other. 1 is a linear map.
    n_factors : int, default=300
        Products of weighted sums that a coordinate is made of.
    {parameters}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import HOPE
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HOPE(random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (150, 2)
    >>> model.exemplars_.shape, model.exemplar_labels_
    ((6, 4), array([0, 0, 1, 1, 2, 2]))

    """

    order: int = 3
    n_factors: int = 300

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_whole("order", self.order, at_least=1, at_most=20)
        checks.check_whole("n_factors", self.n_factors, at_least=1)

    def _make_map(self, n_features: int) -> nn.Module:
        return HighOrder(
            n_features,
            self.n_components,
            self.order,
            self.n_factors,
            input_dropout=self.input_dropout,
            dropout=self.dropout,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class SHOPE(SupervisedEmbedding):
    """Sigmoid high-order parametric embedding: a shallow map from products of features.

    ``y = P σ(W (Cx)^O + b)``, learned so that classes collapse, with a few synthetic exemplars
    that stand in for the whole data set.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map.
    order : int, default=2
        Most features that are multiplied with each other in a polynomial unit.
    n_factors : int, default=400
        Polynomial units.
    n_units : int, default=400
        Sigmoid units.
    {parameters}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import SHOPE
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SHOPE(random_state=0).fit(X, y)
    >>> model.predict(X[:3])
    array([0, 0, 0])
    >>> model.score(X, y) > 0.95
    True

    """

    order: int = 2
    n_factors: int = 400
    n_units: int = 400
    input_dropout: float = 0.05

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_whole("order", self.order, at_least=1, at_most=20)
        checks.check_whole("n_factors", self.n_factors, at_least=1)
        checks.check_whole("n_units", self.n_units, at_least=1)

    def _make_map(self, n_features: int) -> nn.Module:
        return SigmoidHighOrder(
            n_features,
            self.n_components,
            self.order,
            self.n_factors,
            self.n_units,
            input_dropout=self.input_dropout,
            dropout=self.dropout,
        )
