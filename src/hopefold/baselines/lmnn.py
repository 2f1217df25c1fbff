"""Large-margin nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from hopefold import checks
from hopefold.baselines.projection import LinearGradient
from hopefold.core.masks import Masks
from hopefold.core.neighborhoods import large_margin
from hopefold.core.neighbors import nearest
from hopefold.fitting.learning import Task
from hopefold.fitting.losses import Batch, Loss

if TYPE_CHECKING:
    from jaxtyping import Int
    from numpy import ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class LMNN(LinearGradient):
    """Large-margin nearest neighbours: a linear map that keeps other classes at a distance.

    Each row has target neighbours, the nearest of its class in the input space: they are pulled
    near, and rows of other classes are pushed one unit beyond them.

    Parameters
    ----------
    n_targets : int, default=3
        Target neighbours of a row.
    pull : float, default=0.5
        Weight of the pull; that of the push is ``1 - pull``.
    {parameters}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold.baselines import LMNN
    >>> X, y = load_iris(return_X_y=True)
    >>> LMNN(random_state=0).fit(X, y).score(X, y) > 0.9
    True

    """

    learning_rate: float = 1e-3
    n_targets: int = 3
    pull: float = 0.5

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_whole("n_targets", self.n_targets, at_least=1)
        checks.check_number("pull", self.pull, 0, 1)

    def _make_loss(self, task: Task, training: ndarray) -> Loss:
        targets = find_targets(task, training, self.n_targets)

        def loss(map_: Any, batch: Batch, masks: Masks | None) -> Tensor:
            mine = targets[batch.numbers]
            points = map_(task.rows.fetch(mine.ravel()).to(batch.x.device))
            return large_margin(
                map_(batch.x, masks),
                batch.labels,
                points.reshape(*mine.shape, -1),
                batch.weights,
                pull=self.pull,
            )

        return loss


def find_targets(task: Task, training: ndarray, n_targets: int) -> Int[ndarray, "n k"]:
    """The training rows of its own class that are nearest to each training row.

    A row of a class that is too small has some of them twice; one that is alone has itself.
    """
    targets = np.tile(np.arange(len(task.labels))[:, None], (1, n_targets))
    for label in np.unique(task.labels[training]):
        members = training[task.labels[training] == label]
        k = min(n_targets, len(members) - 1)
        if k:
            rows = task.rows.fetch(members).numpy()
            _, indices = nearest(rows, rows, k + 1)
            others = np.stack([_without(row, i, k) for i, row in enumerate(indices)])
            targets[members] = members[others[:, np.arange(n_targets) % k]]
    return targets


def _without(neighbours: ndarray, itself: int, k: int) -> ndarray:
    """The k nearest other rows: a row need not be its own nearest when there are copies of it."""
    return neighbours[neighbours != itself][:k]
