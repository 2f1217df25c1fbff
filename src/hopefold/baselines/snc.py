"""Stochastic neighbour compression."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from hopefold import checks
from hopefold.baselines.projection import LinearGradient
from hopefold.core.kernels import log_gaussian
from hopefold.core.objectives import spread_over_exemplars
from hopefold.fitting.learning import Task
from hopefold.fitting.losses import Loss, onto_exemplars

if TYPE_CHECKING:
    from numpy import ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class SNC(LinearGradient):
    """Stochastic neighbour compression: prototypes that stand in for all rows in k-NN.

    Prototypes and a linear map are learned together, so that a prototype drawn at random by a
    Gaussian around a row is of the row's class; the nearest prototype decides.

    Parameters
    ----------
    exemplars : {"joint"}, default="joint"
        Prototypes start from k-means and are learned together with the map.
    n_neighbors : int or "auto", default="auto"
        Prototypes that vote in `predict`. ``"auto"``: the nearest one decides; with a
        ``class_weight``, which no single vote could heed, the Student kernel's mass of all.
    {parameters}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold.baselines import SNC
    >>> X, y = load_iris(return_X_y=True)
    >>> SNC(random_state=0).fit(X, y).score(X, y) > 0.9
    True

    """

    n_components: int = 50
    exemplars: str | None = "joint"

    _exemplar_choices: ClassVar = ("joint",)

    def _resolve_n_neighbors(self, *, with_exemplars: bool) -> int | None:
        checks.check_whole_or_auto("n_neighbors", self.n_neighbors, at_least=1)
        if self.n_neighbors == "auto":
            return 1 if self.class_weight is None else None
        return int(self.n_neighbors)

    def _make_loss(self, task: Task, training: ndarray) -> Loss:
        return onto_exemplars(partial(spread_over_exemplars, log_kernel=log_gaussian))
