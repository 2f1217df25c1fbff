"""Dropout masks for the rows of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Int

#: Number of offsets in a strip at which a mask can begin.
PLACES = 2**20

#: The largest dropout rate.
HIGHEST = 1 - 2**-16


class MaskSampler:
    """Dropout masks for all batches of a run, cut at random offsets from long strips.

    Most of the cost of a mask is its random numbers. They are drawn once per strip and reused:
    masks of two batches may share values, but rarely for the same values of the same rows. Ones are
    scaled so that the mean is 1 (inverted dropout).
    """

    def __init__(self, seed: int, device: torch.device | str = "cpu") -> None:
        self._seed = seed
        self._generator = torch.Generator(device)
        self._strips: dict[float, Tensor] = {}

    def masks(self, seed: int, n_rows: int, places: Int[Tensor, " p"] | None = None) -> Masks:
        """Return the masks of a batch, or of some of its rows; the seed determines them."""
        return Masks(self, self._generator.manual_seed(seed), n_rows, places)

    def cut(self, n_values: int, rate: float, generator: torch.Generator) -> Tensor:
        """Return a view of ``n_values`` of the strip, at an offset drawn from the generator."""
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
    """Dropout masks for the rows of a batch, or for those at ``places`` in it.

    Exemplars, which follow these rows in the input of a map, are not masked.
    """

    sampler: MaskSampler
    generator: torch.Generator
    n_rows: int
    places: Int[Tensor, " p"] | None = None

    @property
    def n_here(self) -> int:
        """Number of rows in this process."""
        return self.n_rows if self.places is None else len(self.places)

    def normal(self, *shape: int) -> Tensor:
        """Draw standard normal numbers of a shape, for each row in this process."""
        device = self.generator.device
        drawn = torch.randn((self.n_rows, *shape), generator=self.generator, device=device)
        return drawn if self.places is None else drawn[self.places]

    def draw(self, values: Tensor, rate: float) -> Tensor:
        """Return a mask: 0 for dropped values, the others scaled so that the mean is 1.

        The mask is shared and must not be modified.
        """
        values = values[: self.n_here]
        if self.places is None:
            return self.sampler.cut(values.numel(), rate, self.generator).view_as(values)
        width = values.shape[1]
        whole = self.sampler.cut(self.n_rows * width, rate, self.generator)
        return whole.view(self.n_rows, width)[self.places]


def drop(values: Tensor, rate: float, masks: Masks | None) -> Tensor:
    """Apply dropout: zero a random share of the values and scale up the others."""
    if masks is None or rate == 0:
        return values
    dropped = values[: masks.n_here] * masks.draw(values, rate)
    return torch.cat([dropped, values[masks.n_here :]]) if len(dropped) < len(values) else dropped
