"""Tables of more columns than rows: the map is learned in the span of the rows.

No training row says anything about directions outside of its span. So X = Z Vᵀ, where the columns
of V are orthonormal and as many as there are rows at the most. The map learns from Z, which has
fewer columns, and C of the rows is C Vᵀ. Weights outside of the span are 0, instead of where they
started.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from hopefold.fitting.plan_values import Plan
from hopefold.fitting.task import Learned, Task

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray

#: Directions in which the rows have a smaller share of their largest variance are rounding errors.
NEGLIGIBLE = 1e-9


@dataclass(frozen=True)
class RowSpan:
    """The span of some rows, by an orthonormal basis."""

    basis: Float[Tensor, "columns r"]

    @classmethod
    def of(cls, plan: Plan, task: Task, training: Int[ndarray, " t"]) -> RowSpan | None:
        """The span of the training rows, where the plan asks for it."""
        if not plan.in_row_span:
            return None
        x = task.rows.fetch(training).double()
        variances, directions = torch.linalg.eigh(x @ x.T)
        kept = variances > NEGLIGIBLE * variances.max()
        basis = (x.T @ (directions[:, kept] / variances[kept].sqrt())).float()
        task.sharding.group.broadcast([basis])
        return cls(basis)

    def coordinates(self, task: Task) -> Task:
        """The task with the coordinates of its rows in the basis."""
        return replace(task, rows=task.rows.in_basis(self.basis.numpy()))

    def in_columns(self, learned: Learned) -> Learned:
        """A map of coordinates as a map of the columns, with its exemplars."""
        map_: Any = copy.deepcopy(learned.map)
        first = map_.layers[0]
        first.C = nn.Parameter(first.C.detach() @ self.basis.T, requires_grad=False)
        assert learned.exemplars is not None
        exemplars: ndarray = np.ascontiguousarray(learned.exemplars @ self.basis.numpy().T)
        return replace(learned, map=map_, exemplars=exemplars)
