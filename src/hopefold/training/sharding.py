"""The rows of a batch that belong to each process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from hopefold.training.distributed import SINGLE_PROCESS, ProcessGroup

if TYPE_CHECKING:
    from jaxtyping import Int
    from numpy import ndarray


@dataclass(frozen=True)
class Sharding:
    """Each process has an equal part of every batch, or the rows that it has read itself.

    In the second case process r has the rows from ``bounds[r]`` to ``bounds[r + 1]``.
    """

    group: ProcessGroup = SINGLE_PROCESS
    bounds: tuple[int, ...] | None = None

    def places(self, numbers: Int[ndarray, " n"]) -> list[Int[ndarray, " m"]]:
        """Return, for each process, the positions of its rows in ``numbers``."""
        if self.bounds is None:
            return np.array_split(np.arange(len(numbers)), self.group.size)
        owner = np.searchsorted(self.bounds, numbers, side="right") - 1
        return [np.flatnonzero(owner == rank) for rank in range(self.group.size)]

    def share(self, numbers: Int[ndarray, " n"]) -> tuple[ndarray, Callable[[Tensor], Tensor]]:
        """Return the positions of this process's rows, and a function that gathers all rows."""
        places = self.places(numbers)

        def gather(points: Tensor) -> Tensor:
            counts = [len(some) for some in places]
            order = torch.from_numpy(np.argsort(np.concatenate(places)))
            return self.group.all_gather_rows(points, counts)[order.to(points.device)]

        return places[self.group.rank], gather


#: A single process, which has all rows.
NOT_SHARDED = Sharding()
