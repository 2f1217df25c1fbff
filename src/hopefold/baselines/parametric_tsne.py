"""Parametric t-SNE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from torch import Tensor

from hopefold import checks
from hopefold.baselines.deep import DeepEmbedding
from hopefold.baselines.projection import WEIGHTS_JUDGE_ONLY
from hopefold.core.masks import Masks
from hopefold.core.neighborhoods import input_affinities, match_affinities
from hopefold.fitting.learning import Task
from hopefold.fitting.losses import Batch, Loss

if TYPE_CHECKING:
    from numpy import ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class ParametricTSNE(DeepEmbedding):
    """t-SNE through a deep map: rows that are near stay near. Labels do not shape the map.

    They choose the epoch on the held-out rows, and name the references in `predict`. Affinities
    are those within a mini-batch.

    Parameters
    ----------
    perplexity : float, default=30
        Neighbours that a row is to have, roughly, in a batch.
    {parameters}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold.baselines import ParametricTSNE
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ParametricTSNE(hidden_layer_sizes=(30, 30), random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True

    """

    perplexity: float = 30.0

    _prose: ClassVar = DeepEmbedding._prose | WEIGHTS_JUDGE_ONLY

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_number("perplexity", self.perplexity, 1, np.inf, open_low=True)

    def _make_loss(self, task: Task, training: ndarray) -> Loss:
        def loss(map_: Any, batch: Batch, masks: Masks | None) -> Tensor:
            affinities = input_affinities(batch.x, self.perplexity)
            return match_affinities(map_(batch.x, masks), affinities)

        return loss
