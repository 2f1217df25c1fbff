"""HOPE and S-HOPE."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from torch import nn

from hopefold.core.maps import HighOrder, Pressed, SigmoidHighOrder
from hopefold.core.objectives import (
    collapse_onto_exemplars,
    collapse_onto_pairs,
    spread_over_exemplars,
)
from hopefold.errors import InvalidParameter
from hopefold.estimators import checks
from hopefold.estimators.gradient import START_ROWS, GradientEmbedding
from hopefold.estimators.learning import Loss, Start, Task, onto_exemplars, onto_pairs

if TYPE_CHECKING:
    from numpy import ndarray

#: The most features that are dropped in training, and how many there must be for that: the more
#: there are, the more of them others can stand in for.
INPUT_DROPOUT = 0.25
MANY_FEATURES = 250

#: Steps after which no data need more epochs than a few.
MANY_STEPS = 20_000

OBJECTIVES = {"collapse": collapse_onto_exemplars, "spread": spread_over_exemplars}


@dataclass(kw_only=True, eq=False, repr=False)
class HighOrderEmbedding(GradientEmbedding):
    """What HOPE and S-HOPE share: joint exemplars or pairs, and products of features."""

    exemplars: str | None = "joint"
    objective: str = "collapse"
    conditional: bool = False
    input_dropout: float | str = "auto"
    dropout: float | str = "auto"
    spare_components: int = 0
    learning_rate: float = 2e-3
    order: int = 2
    n_factors: int = 400

    _exemplar_choices: ClassVar = ("joint", "kmeans", None)
    _prose: ClassVar = {
        "exemplars": (
            '{"joint", "kmeans", None}',
            """What new rows are compared with. ``"joint"``: exemplars that start from k-means and
are learned together with the map. ``"kmeans"``: the map is learned on pairs of rows, and
the k-means centres of each class in the input space are mapped. ``None``: learned on pairs,
and all embedded training rows are kept.""",
        ),
        "n_neighbors": (
            'int or "auto"',
            """Neighbours that vote in `predict`. ``"auto"``: the Student kernel's mass of the
exemplars, or 5 training rows where there are no exemplars. Among tied classes the nearest
wins.""",
        ),
        "objective": (
            '{"collapse", "spread"}',
            """``"collapse"`` pulls a row onto all exemplars of its class; ``"spread"`` to any of
them, so that they may lie apart (``exemplars="joint"`` only).""",
        ),
        "max_epochs": (
            'int or "auto"',
            """Passes over the rows, at the most. ``"auto"``: about 2,000 steps, in 70 to 100
passes, and fewer, down to 10, where these make more than 20,000 steps; 50 for the optimizers
``"cg"`` and ``"lbfgs"``.""",
        ),
        "input_dropout": (
            'float or "auto"',
            """Share of the features that are dropped at random in training. ``"auto"``: a
thousandth for each feature that there is, 0.25 at the most.""",
        ),
        "dropout": (
            'float or "auto"',
            """Share of the polynomial units that are dropped at random in training. ``"auto"``:
none.""",
        ),
        "spare_components": (
            "int",
            """Dimensions that the map has besides in training, so that classes can pass each other:
they are pressed flat on the way, and the learned map does not have them.""",
        ),
        "conditional": (
            "bool",
            """Normalise the pairwise objective row by row instead of over all pairs of a batch. The
objective on exemplars is always so.""",
        ),
    }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("input_dropout", "dropout"):
            checks.check_number_or_auto(name, getattr(self, name), 0, 1)
        checks.check_whole("spare_components", self.spare_components, at_least=0)
        checks.check_whole("order", self.order, at_least=1, at_most=20)
        checks.check_whole("n_factors", self.n_factors, at_least=1)
        checks.check_choice("objective", self.objective, tuple(OBJECTIVES))
        checks.check_choice("conditional", self.conditional, (True, False))
        if self.objective == "spread" and self.exemplars != "joint":
            raise InvalidParameter(
                f"objective='spread' lets joint exemplars lie apart, but exemplars="
                f"{self.exemplars!r}: set exemplars='joint', or objective='collapse'."
            )

    def _resolve_n_neighbors(self, *, with_exemplars: bool) -> int | None:
        if self.n_neighbors == "auto" and with_exemplars:
            return None
        return super()._resolve_n_neighbors(with_exemplars=with_exemplars)

    def _epochs(self, steps: float) -> int:
        """More than others need, as inputs are dropped; fewer where there are very many rows."""
        if self.optimizer != "adam":
            return super()._epochs(steps)
        return round(min(max(super()._epochs(steps), 70), max(MANY_STEPS / steps, 10)))

    def _dropout(self, n_features: int) -> dict[str, float]:
        """What the map drops in training: features only where others can stand in for them."""
        auto = {
            "input_dropout": INPUT_DROPOUT * min(1, n_features / MANY_FEATURES),
            "dropout": 0.0,
        }
        asked = {name: getattr(self, name) for name in auto}
        return auto | {name: share for name, share in asked.items() if share != "auto"}

    def _with_spare(self, map_: Any, start: Start) -> nn.Module:
        if not self.spare_components:
            return map_
        pressed = Pressed(map_, self.spare_components)
        pressed.start(start.fetch(START_ROWS), start.generator)
        return pressed

    def _make_loss(self, task: Task, training: ndarray) -> Loss:
        if self.exemplars == "joint":
            return onto_exemplars(OBJECTIVES[self.objective])
        return onto_pairs(partial(collapse_onto_pairs, conditional=self.conditional))


@dataclass(kw_only=True, eq=False, repr=False)
class HOPE(HighOrderEmbedding):
    """High-order parametric embedding: a map that is linear in products of features.

    ``y = P (Cx)^O``: each coordinate is a polynomial of degree ``order`` in the features, learned
    so that classes collapse, with a few synthetic exemplars that stand in for the whole data set.

    Parameters
    ----------
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

    def _make_map(self, n_features: int) -> nn.Module:
        return HighOrder(
            n_features,
            self.n_components,
            self.order,
            self.n_factors,
            **self._dropout(n_features),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class SHOPE(HighOrderEmbedding):
    """Sigmoid high-order parametric embedding: a shallow map from products of features.

    ``y = P σ(W (Cx)^O + b)``, learned so that classes collapse, with a few synthetic exemplars
    that stand in for the whole data set.

    Parameters
    ----------
    order : int, default=2
        Most features that are multiplied with each other in a polynomial unit.
    n_factors : int, default=400
        Polynomial units.
    n_units : int, default=600
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

    n_units: int = 600
    spare_components: int = 2

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_whole("n_units", self.n_units, at_least=1)

    def _make_map(self, n_features: int) -> nn.Module:
        return SigmoidHighOrder(
            n_features,
            self.n_components,
            self.order,
            self.n_factors,
            self.n_units,
            **self._dropout(n_features),
        )
