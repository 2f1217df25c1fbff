"""What is dropped at random in training: some values of the rows of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Int

#: Places on a strip at which a mask may begin.
PLACES = 2**20

#: No rate is higher: something must be left to be enlarged.
HIGHEST = 1 - 2**-16


class MaskSampler:
    """Masks for all batches of a run, cut at random places from long strips of zeros and ones.

    Random numbers are what masks cost, so they are drawn once and used again: two batches may share
    values of a strip, but hardly ever for the same values of the same rows. The ones are enlarged,
    so that the mean is 1.
    """

    def __init__(self, seed: int, device: torch.device | str = "cpu") -> None:
        self._seed = seed
        self._generator = torch.Generator(device)
        self._strips: dict[float, Tensor] = {}

    def masks(self, seed: int, n_rows: int, places: Int[Tensor, " p"] | None = None) -> Masks:
        """Masks for a batch of so many rows, or for some of them; the seed alone decides."""
        return Masks(self, self._generator.manual_seed(seed), n_rows, places)

    def cut(self, n_values: int, rate: float, generator: torch.Generator) -> Tensor:
        """So many values from a place that the generator chooses; part of the strip, not a copy."""
        strip = self._strips.get(rate)
        if strip is None or len(strip) < n_values + PLACES:
            strip = self._strips[rate] = self._draw(n_values + PLACES, min(rate, HIGHEST))
        place = torch.randint(PLACES, (), generator=generator, device=strip.device)
        return strip.narrow(0, int(place), n_values)

    def _draw(self, n_values: int, rate: float) -> Tensor:
        generator = torch.Generator(self._generator.device).manual_seed(self._seed)
        strip = torch.empty(n_values, dtype=torch.float32, device=generator.device)
        return strip.bernoulli_(1 - rate, generator=generator).div_(1 - rate)


@dataclass(frozen=True)
class Masks:
    """Masks for the rows of a batch, or for those at some places of it.

    What a map is given below these rows, the exemplars, is not masked.
    """

    sampler: MaskSampler
    generator: torch.Generator
    n_rows: int
    places: Int[Tensor, " p"] | None = None

    @property
    def n_here(self) -> int:
        """Rows that are here."""
        return self.n_rows if self.places is None else len(self.places)

    def normal(self, *shape: int) -> Tensor:
        """Normal random numbers of a shape, for each row that is here."""
        device = self.generator.device
        drawn = torch.randn((self.n_rows, *shape), generator=self.generator, device=device)
        return drawn if self.places is None else drawn[self.places]

    def draw(self, values: Tensor, rate: float) -> Tensor:
        """Zeros for the share of the values to be dropped; the others are such that the mean is 1.

        Not to be written to.
        """
        values = values[: self.n_here]
        if self.places is None:
            return self.sampler.cut(values.numel(), rate, self.generator).view_as(values)
        width = values.shape[1]
        whole = self.sampler.cut(self.n_rows * width, rate, self.generator)
        return whole.view(self.n_rows, width)[self.places]


def drop(values: Tensor, rate: float, masks: Masks | None) -> Tensor:
    """Set a random share of the values to zero and enlarge the rest, so that the mean stays."""
    if masks is None or rate == 0:
        return values
    dropped = values[: masks.n_here] * masks.draw(values, rate)
    return torch.cat([dropped, values[masks.n_here :]]) if len(dropped) < len(values) else dropped
