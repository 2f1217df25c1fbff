"""What is dropped at random in training: some values of the rows of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

#: A chance is a whole number of so many: 16 random bits decide whether a value is dropped.
CHANCES = 2**16


@dataclass(frozen=True)
class Masks:
    """Chances for the first rows of what a map is given; those below, the exemplars, stay whole."""

    generator: torch.Generator
    n_rows: int

    def draw(self, values: Tensor, rate: float) -> Tensor:
        """Zeros for the share of the values to be dropped; the others are such that the mean is 1.

        Four values share a random number of 64 bits: random numbers are what masks cost.
        """
        dropped = min(round(rate * CHANCES), CHANCES - 1)
        mask = torch.ones_like(values)
        drawn = mask[: self.n_rows]
        bits = torch.empty(-(-drawn.numel() // 4), dtype=torch.int64, device=values.device)
        bits.random_(-(2**63), None, generator=self.generator)
        drawn.copy_(bits.view(torch.int16)[: drawn.numel()].view_as(drawn))
        drawn.ge_(dropped - CHANCES // 2).mul_(CHANCES / (CHANCES - dropped))
        return mask


def drop(values: Tensor, rate: float, masks: Masks | None) -> Tensor:
    """Set a random share of the values to zero and enlarge the rest, so that the mean stays."""
    if masks is None or rate == 0:
        return values
    return values * masks.draw(values, rate)
