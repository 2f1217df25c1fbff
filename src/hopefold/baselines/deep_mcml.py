"""Deep MCML with the Student kernel (dt-MCML)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hopefold.baselines.deep import DeepEmbedding
from hopefold.core.objectives import collapse_onto_pairs
from hopefold.fitting.learning import Task
from hopefold.fitting.losses import Loss, onto_pairs

if TYPE_CHECKING:
    from numpy import ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class DeepMCML(DeepEmbedding):
    """Maximally collapsing metric learning through a deep map (dt-MCML).

    Collapse onto pairs with the Student kernel, as in HOPE; only the map differs.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold.baselines import DeepMCML
    >>> X, y = load_iris(return_X_y=True)
    >>> DeepMCML(hidden_layer_sizes=(30, 30), random_state=0).fit(X, y).score(X, y) > 0.9
    True

    """

    def _make_loss(self, task: Task, training: ndarray) -> Loss:
        return onto_pairs(collapse_onto_pairs)
