"""The layers of high-order maps: powers of weighted sums, and sigmoids of such powers.

The paper appends a 1 to every x. Here that 1 is the bias ``c`` of the factors, so ``(Cx + c)^O``
contains the products of *up to* O features, not only of exactly O.

A layer that is called with masks applies dropout to inputs and polynomial units, as in training.
Without masks it is deterministic. There is no train/eval mode.
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
        """Number of polynomial units."""
        return len(self.c)

    def interactions(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n factors"]:
        """Return the polynomial units: for each factor, one power of a weighted sum of features."""
        sums = torch.addmm(self.c, drop(x, self.input_dropout, masks), self.C.T)
        return drop(self.multiply(sums), self.dropout, masks)

    def hidden(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n units"]:
        """Return the output of the layer: here, the polynomial units."""
        return self.interactions(x, masks)

    def multiply(
        self, sums: Float[Tensor, "n sums"], out: Tensor | None = None
    ) -> Float[Tensor, "n units"]:
        """Compute the polynomial units from the weighted sums."""
        if self.order == 2:  # the same result, faster
            return torch.mul(sums, sums, out=out)
        return torch.pow(sums, self.order, out=out)

    def backward_multiply(
        self, sums: Float[Tensor, "n sums"], gradient: Float[Tensor, "n units"]
    ) -> Float[Tensor, "n sums"]:
        """Return the gradient with respect to the sums; it overwrites the sums."""
        return power_derivative(sums, self.order).mul_(gradient)

    @torch.no_grad()
    def start_units(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Initialize the weights at random: Cx + c = 1 + v, with v small and around 0.

        With v of standard deviation 1/O on the rows ``x``, (1 + v)^O is close to exp(Ov): low
        orders dominate the polynomial at first, and the higher ones can be learned.
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
        """Number of polynomial units."""
        return self.W.shape[1]

    def hidden(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n units"]:
        """Return the sigmoid units."""
        return torch.addmm(self.b, self.interactions(x, masks), self.W.T).sigmoid_()

    @torch.no_grad()
    def start_units(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Initialize the weights; the input of each sigmoid has mean 0, and overall deviation 1."""
        super().start_units(x, generator)
        start_layer(self.W, self.b, self.interactions(x), generator)


def power_derivative(sums: Tensor, order: int) -> Tensor:
    """Return the derivative O uᴼ⁻¹ of the power uᴼ; it overwrites u."""
    return (sums if order == 2 else sums.pow_(order - 1)).mul_(order)


def product_gradient(factors: Float[Tensor, "o ..."], gradient: Tensor) -> None:
    """Replace each factor by its gradient: the gradient of the product times the other factors."""
    first, *rest = factors
    after = [*accumulate(rest[::-1], torch.mul)][::-1]
    for factor, others in zip_longest((first, *rest), after):
        slope = gradient if others is None else gradient * others
        gradient = gradient * factor
        factor.copy_(slope)


def weights(*shape: int) -> nn.Parameter:
    """Return an uninitialized parameter."""
    return nn.Parameter(torch.empty(*shape, dtype=torch.float32))


def start_layer(W: Tensor, b: Tensor, units: Tensor, generator: torch.Generator) -> None:
    """Initialize weights: each input of the next layer has mean 0, overall deviation 1."""
    W.normal_(generator=generator)
    W.div_(spread_of(units @ W.T))
    b.copy_(-(units @ W.T).mean(dim=0))


def spread_of(y: Tensor) -> Tensor:
    """Return the standard deviation over rows, averaged over coordinates; 1 for constant input."""
    spread = y.std(dim=0, correction=0).mean()
    return torch.where(spread > 0, spread, torch.ones_like(spread))
