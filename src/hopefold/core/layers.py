"""The layers of high-order maps: powers of weighted sums, and sigmoids of such powers.

The paper appends a 1 to every x. Here that 1 is the bias ``c`` of the factors, so ``(Cx + c)^O``
holds the products of *up to* O features, not only of exactly O.

A layer called with masks drops inputs and polynomial units at random, as in training; called
without it is the plain equation. No hidden train/eval switch.
"""

from __future__ import annotations

from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from hopefold.core.masks import Masks, drop

if TYPE_CHECKING:
    from jaxtyping import Float


class Powers(nn.Module):
    """Polynomial units: (Cx + c)^O."""

    def __init__(
        self,
        n_features: int,
        order: int,
        n_factors: int,
        *,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.order = order
        self.input_dropout = input_dropout
        self.dropout = dropout
        self.C = weights(n_factors, n_features)
        self.c = weights(n_factors)

    @property
    def n_factors(self) -> int:
        """How many polynomial units there are."""
        return len(self.c)

    def interactions(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n factors"]:
        """The polynomial units: one power of a weighted sum of features for each factor."""
        sums = torch.addmm(self.c, drop(x, self.input_dropout, masks), self.C.T)
        return drop(self.multiply(sums), self.dropout, masks)

    def hidden(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n units"]:
        """What the layer gives: here the polynomial units themselves."""
        return self.interactions(x, masks)

    def multiply(
        self, sums: Float[Tensor, "n sums"], out: Tensor | None = None
    ) -> Float[Tensor, "n units"]:
        """From weighted sums to polynomial units."""
        if self.order == 2:  # the same bits, sooner
            return torch.mul(sums, sums, out=out)
        return torch.pow(sums, self.order, out=out)

    def backward_multiply(
        self, sums: Float[Tensor, "n sums"], gradient: Float[Tensor, "n units"]
    ) -> Float[Tensor, "n sums"]:
        """The gradient to the sums, from that to the units; it takes the place of the sums."""
        return power_derivative(sums, self.order).mul_(gradient)

    @torch.no_grad()
    def start_units(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Draw random weights: Cx + c = 1 + v, with v around 0 and so small that powers are tame.

        With v of deviation 1/O on the rows ``x``, (1 + v)^O is close to exp(Ov): a polynomial in
        which low orders lead and the higher ones are there to be learned.
        """
        mean = x.mean(dim=0)
        self.C.normal_(generator=generator)
        self.C.div_(self.order * spread_of((x - mean) @ self.C.T))
        self.c.copy_(1 - self.C @ mean)


class Sigmoids(Powers):
    """Sigmoid units of polynomial units: σ(W (Cx + c)^O + b)."""

    def __init__(
        self, n_features: int, order: int, n_factors: int, n_units: int, **dropout: float
    ) -> None:
        super().__init__(n_features, order, n_factors, **dropout)
        self.W = weights(n_units, n_factors)
        self.b = weights(n_units)

    @property
    def n_factors(self) -> int:
        """How many polynomial units there are."""
        return self.W.shape[1]

    def hidden(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n units"]:
        """The sigmoid units."""
        return torch.addmm(self.b, self.interactions(x, masks), self.W.T).sigmoid_()

    @torch.no_grad()
    def start_units(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """As polynomial units; the input of a sigmoid has mean 0, those of all of them spread 1."""
        super().start_units(x, generator)
        start_layer(self.W, self.b, self.interactions(x), generator)


def power_derivative(sums: Tensor, order: int) -> Tensor:
    """What a power uᴼ rises by, O uᴼ⁻¹, in the place of u."""
    return (sums if order == 2 else sums.pow_(order - 1)).mul_(order)


def product_gradient(factors: Float[Tensor, "o ..."], gradient: Tensor) -> None:
    """The gradient to each factor: that to the product times all other factors, in its place."""
    first, *rest = factors
    after = [*accumulate(rest[::-1], torch.mul)][::-1]
    for factor, others in zip_longest((first, *rest), after):
        slope = gradient if others is None else gradient * others
        gradient = gradient * factor
        factor.copy_(slope)


def weights(*shape: int) -> nn.Parameter:
    """Weights of a map, of any content."""
    return nn.Parameter(torch.empty(*shape, dtype=torch.float32))


def start_layer(W: Tensor, b: Tensor, units: Tensor, generator: torch.Generator) -> None:
    """Draw weights such that the next layer's inputs have mean 0 each, and spread 1."""
    W.normal_(generator=generator)
    W.div_(spread_of(units @ W.T))
    b.copy_(-(units @ W.T).mean(dim=0))


def spread_of(y: Tensor) -> Tensor:
    """Standard deviation over the rows, averaged over the coordinates; 1 where nothing varies."""
    spread = y.std(dim=0, correction=0).mean()
    return torch.where(spread > 0, spread, torch.ones_like(spread))
