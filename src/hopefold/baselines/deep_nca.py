"""Deep NCA with the Student kernel (dt-NCA)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hopefold.baselines.deep import DeepEmbedding
from hopefold.core.kernels import log_student
from hopefold.core.neighborhoods import miss_neighbors
from hopefold.fitting.learning import Task
from hopefold.fitting.losses import Loss, onto_pairs

if TYPE_CHECKING:
    from numpy import ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class DeepNCA(DeepEmbedding):
    """Neighbourhood components analysis through a deep map, with the Student kernel (dt-NCA).

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold.baselines import DeepNCA
    >>> X, y = load_iris(return_X_y=True)
    >>> DeepNCA(hidden_layer_sizes=(30, 30), random_state=0).fit(X, y).score(X, y) > 0.9
    True

    """

    def _make_loss(self, task: Task, training: ndarray) -> Loss:
        return onto_pairs(partial(miss_neighbors, log_kernel=log_student))
