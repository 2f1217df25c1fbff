"""What a loss is evaluated on: some training rows, and the exemplars as they stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray


@dataclass(frozen=True)
class GlobalBatch:
    """The whole of a batch of which each process has some rows: this one's, at ``places``."""

    places: Int[Tensor, " n"]
    labels: Int[Tensor, " b"]
    weights: Float[Tensor, " b"] | None
    #: From the points of this process's rows to those of all rows.
    gather: Callable[[Tensor], Tensor]

    @property
    def share(self) -> float:
        """Share of the rows that this process has."""
        return len(self.places) / len(self.labels)


@dataclass(frozen=True)
class PseudoLabeling:
    """How rows without a label are held to the class that the map predicts for them.

    ``strength`` grows from 0 to 1 during the run. Predictions are aligned with the known shares of
    the classes (distribution alignment, as in ReMixMatch; Berthelot et al., 2020).
    """

    strength: float
    #: The share of rows that each class has, and the weight of a row of it.
    expected: Float[Tensor, " classes"]
    weights: Float[Tensor, " classes"]


@dataclass(frozen=True)
class Batch:
    """Some training rows, and the exemplars as they stand (none for a method on pairs)."""

    numbers: Int[ndarray, " n"]
    #: The batch's own memory: the rows, and below them space for the exemplars; see `stacked`.
    table: Float[Tensor, "n+z features"]
    labels: Int[Tensor, " n"]
    weights: Float[Tensor, " n"] | None
    exemplars: Float[Tensor, "z features"]
    #: 1, and 0 for a column that is constant: nothing is learned for it.
    varies: Float[Tensor, " features"]
    exemplar_labels: Int[Tensor, " z"]
    exemplar_weights: Float[Tensor, " z"] | None
    #: The whole batch, where other processes have some of its rows.
    whole: GlobalBatch | None = None
    #: How near the rows are to the exemplars without a class (landmarks), to preserve structure.
    affinities: Float[Tensor, "n landmarks"] | None = None
    #: How rows without a label are learned from; ``None``: they are not.
    pseudo_labeling: PseudoLabeling | None = None

    @property
    def x(self) -> Float[Tensor, "n features"]:
        """The rows."""
        return self.table[: len(self.labels)]

    def stacked(self) -> Float[Tensor, "n+z features"]:
        """The rows, and below them the exemplars as they stand now."""
        torch.mul(self.exemplars, self.varies, out=self.table[self.labels.shape[0] :])
        return self.table

    @property
    def n_classed(self) -> int:
        """Number of exemplars that have a class: the first ones."""
        n_landmarks = 0 if self.affinities is None else self.affinities.shape[1]
        return len(self.exemplar_labels) - n_landmarks

    def without_landmarks(self) -> Batch:
        """The same batch with only the exemplars that have a class."""
        labels, weights = self.exemplar_labels, self.exemplar_weights
        return replace(
            self,
            exemplar_labels=labels[: self.n_classed],
            exemplar_weights=None if weights is None else weights[: self.n_classed],
            affinities=None,
        )

    def with_rows(self, x: Float[Tensor, "n features"]) -> Batch:
        """The same batch with other rows, in memory of its own."""
        return replace(self, table=torch.cat([x, self.table[len(x) :]]))
