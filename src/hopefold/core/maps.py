"""The maps x → y: linear, high-order (HOPE), sigmoid high-order (S-HOPE), stacked and deep.

What high-order maps are made of is in `layers`, the gradients of high-order maps in `backprop`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from hopefold.core.layers import (
    Powers,
    Sigmoids,
    power_derivative,
    product_gradient,
    spread_of,
    start_layer,
    weights,
)
from hopefold.core.masks import Masks, drop

if TYPE_CHECKING:
    from jaxtyping import Float


class Linear(nn.Module):
    """y = P x. No bias: distances do not see it."""

    def __init__(self, n_features: int, n_components: int) -> None:
        super().__init__()
        self.P = weights(n_components, n_features)

    def forward(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n d"]:
        """The projection; there is nothing to drop."""
        return x @ self.P.T

    @torch.no_grad()
    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Draw a random projection in which the rows ``x`` spread to standard deviation 1."""
        self.P.normal_(generator=generator)
        self.P.div_(spread_of(self(x)))


class HighOrder(Powers):
    """HOPE: y = P (Cx + c)^O, eq. 4. Linear in all products of up to O features."""

    def __init__(
        self, n_features: int, n_components: int, order: int, n_factors: int, **dropout: float
    ) -> None:
        super().__init__(n_features, order, n_factors, **dropout)
        self.P = weights(n_components, n_factors)

    @property
    def layers(self) -> list[Powers]:
        """What leads to the units that P projects, the first layer first: the map is one layer."""
        return [self]

    def forward(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n d"]:
        """Eq. 4, and with sigmoids eq. 5; with masks, thinned at random."""
        return self.hidden(x, masks) @ self.P.T

    @torch.no_grad()
    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Draw random weights such that the rows ``x`` spread to standard deviation 1."""
        self.start_units(x, generator)
        self.P.normal_(generator=generator)
        self.P.div_(spread_of(self(x)))


class Products(HighOrder):
    """HOPE on its way: y = P Π_o (C⁽ᵒ⁾x + c⁽ᵒ⁾), eq. 3, a product of O different sums for a unit.

    A product of O sums is a sum of 2^(O-1) powers, so that in the end `as_powers` gives the map of
    eq. 4 with ``n_factors`` powers. Those that are left over, as products need that many each, are
    powers from the start. C holds C⁽¹⁾ … C⁽ᴼ⁾ below each other, then the left-over factors.
    """

    def __init__(
        self, n_features: int, n_components: int, order: int, n_factors: int, **dropout: float
    ) -> None:
        n_products, n_left = divmod(n_factors, 2 ** (order - 1))
        super().__init__(n_features, n_components, order, order * n_products + n_left, **dropout)
        self.n_products = n_products
        self.P = weights(n_components, n_products + n_left)

    @property
    def n_factors(self) -> int:
        """How many polynomial units there are: products, and powers that are left over."""
        return self.P.shape[1]

    def multiply(
        self, sums: Float[Tensor, "n sums"], out: Tensor | None = None
    ) -> Float[Tensor, "n units"]:
        """A product of O weighted sums of features each, then powers."""
        multiplied, left = self._apart(sums.T)
        return torch.cat([reduce(torch.mul, multiplied).T, left.T**self.order], dim=1, out=out)

    def backward_multiply(
        self, sums: Float[Tensor, "n sums"], gradient: Float[Tensor, "n units"]
    ) -> Float[Tensor, "n sums"]:
        """The gradient to the sums, from that to the units; it takes the place of the sums."""
        (multiplied, left), gradient = self._apart(sums.T), gradient.T
        product_gradient(multiplied, gradient[: self.n_products])
        power_derivative(left, self.order).mul_(gradient[self.n_products :])
        return sums

    @torch.no_grad()
    def as_powers(self) -> HighOrder:
        """The same function as a sum of powers.

        By the polarisation identity 2^(O-1) O! u₁u₂…u_O = Σ_s s₂…s_O (u₁ + s₂u₂ + … + s_O u_O)^O,
        over all signs s.
        """
        signs = torch.cartesian_prod(torch.ones(1), *[torch.tensor([1.0, -1.0])] * (self.order - 1))
        signs = signs.reshape(-1, self.order).double()
        shrink = (len(signs) * math.factorial(self.order)) ** (-1 / self.order)
        C, c = (
            torch.cat([torch.tensordot(shrink * signs, multiplied, 1).flatten(0, 1), left])
            for multiplied, left in map(self._apart, (self.C.double(), self.c.double()))
        )
        P = self.P[:, : self.n_products].double()
        P = torch.cat([torch.kron(signs.prod(dim=1), P), self.P[:, self.n_products :]], dim=1)
        map_ = HighOrder(C.shape[1], len(P), self.order, len(c))
        for parameter, value in zip(map_.parameters(), (C, c, P), strict=True):
            parameter.copy_(value)
        return map_

    def _apart(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of C, or what comes of them: O blocks, one for each place, and the left-over."""
        cut = self.order * self.n_products
        return rows[:cut].reshape(self.order, self.n_products, *rows.shape[1:]), rows[cut:]


class SigmoidHighOrder(Sigmoids, HighOrder):
    """S-HOPE: y = P σ(W (Cx + c)^O + b), eq. 5."""

    def __init__(
        self,
        n_features: int,
        n_components: int,
        order: int,
        n_factors: int,
        n_units: int,
        **dropout: float,
    ) -> None:
        # P before W and b: files and checkpoints know the weights in this order.
        HighOrder.__init__(self, n_features, n_components, order, n_factors, **dropout)
        self.W = weights(n_units, n_factors)
        self.b = weights(n_units)
        self.P = weights(n_components, n_units)


class Stacked(nn.Module):
    """S-HOPE with several layers: h ← σ(W (Ch + c)^O + b), from h = x on, and y = P h.

    The last layer and P are an S-HOPE map of what the layers below it give. Only features are
    dropped as inputs, polynomial units in every layer.
    """

    def __init__(
        self,
        n_features: int,
        n_components: int,
        orders: Sequence[int],
        n_factors: Sequence[int],
        n_units: Sequence[int],
        *,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        *below, top = zip((n_features, *n_units[:-1]), orders, n_factors, n_units, strict=True)
        inputs = (input_dropout, *[0.0] * (len(below) - 1))
        self.below = nn.ModuleList(
            Sigmoids(*sizes, input_dropout=rate, dropout=dropout)
            for sizes, rate in zip(below, inputs, strict=True)
        )
        self.top = SigmoidHighOrder(top[0], n_components, *top[1:], dropout=dropout)

    @property
    def layers(self) -> list[Powers]:
        """What leads to the units that P projects, the first layer first."""
        return [*self.below, self.top]

    @property
    def P(self) -> nn.Parameter:  # noqa: N802
        """The projection of the last layer's units."""
        return self.top.P

    def hidden(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n units"]:
        """The sigmoid units of the last layer."""
        for layer in self.layers:
            x = layer.hidden(x, masks)
        return x

    def forward(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n d"]:
        """The projection of the last layer; with masks, thinned at random."""
        return self.hidden(x, masks) @ self.P.T

    @torch.no_grad()
    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Draw random weights layer by layer, each for what the layers below it give."""
        for layer in self.layers[:-1]:
            layer.start_units(x, generator)
            x = layer.hidden(x)
        self.top.start(x, generator)


class Pressed(nn.Module):
    """A map on its way, with spare coordinates above the plane that are pressed flat.

    y = (P h, height · R h), with h the hidden units of the map. Classes that would block each
    other's way in the plane pass each other while there is height; at height 0 the map is left.
    """

    def __init__(self, map_: HighOrder | Stacked, n_spare: int) -> None:
        super().__init__()
        self.map = map_
        self.R = weights(n_spare, map_.P.shape[1])
        self.height = 1.0

    def forward(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n more"]:
        """The coordinates of the map, then the spare ones as high as they still are."""
        return self.map.hidden(x, masks) @ self.projection().T

    def projection(self) -> Float[Tensor, "more units"]:
        """P, and R below it as high as the spare coordinates still are."""
        return torch.cat([self.map.P, self.height * self.R])

    @torch.no_grad()
    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Draw spare coordinates that spread to deviation 1, as those of the started map do."""
        self.R.normal_(generator=generator)
        self.R.div_(spread_of(self.map.hidden(x) @ self.R.T))


class Deep(nn.Module):
    """Layers of sigmoids, then a projection: h ← tanh(W h + b), y = P h.

    tanh(u) = 2σ(2u) − 1: the same functions as with σ, whose shift and factor fold into the next
    layer, but units are centred at 0, and gradients do not all push one way.
    """

    def __init__(
        self,
        n_features: int,
        widths: Sequence[int],
        n_components: int,
        *,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.input_dropout = input_dropout
        self.dropout = dropout
        sizes = [n_features, *widths]
        self.W = nn.ParameterList([weights(*shape) for shape in zip(widths, sizes, strict=False)])
        self.b = nn.ParameterList([weights(width) for width in widths])
        self.P = weights(n_components, sizes[-1])

    def hidden(
        self,
        x: Float[Tensor, "n features"],
        masks: Masks | None = None,
        *,
        depth: int | None = None,
    ) -> Float[Tensor, "n units"]:
        """The units of the layer at this depth; by default, of the last one."""
        units = drop(x, self.input_dropout, masks)
        for W, b in list(zip(self.W, self.b, strict=True))[:depth]:
            units = drop(torch.tanh(torch.addmm(b, units, W.T)), self.dropout, masks)
        return units

    def forward(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n d"]:
        """The projection of the last layer; with masks, thinned at random."""
        return self.hidden(x, masks) @ self.P.T

    @torch.no_grad()
    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Draw random weights: the inputs of a unit have mean 0, those of a layer spread 1."""
        for depth in range(len(self.W)):
            self.start_layer(depth, x, generator)
        self.start_projection(x, generator)

    @torch.no_grad()
    def start_layer(
        self, depth: int, x: Float[Tensor, "n features"], generator: torch.Generator
    ) -> None:
        """Draw the weights of one layer, given the layers below it."""
        start_layer(self.W[depth], self.b[depth], self.hidden(x, depth=depth), generator)

    @torch.no_grad()
    def start_projection(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Draw a projection of the last layer in which the rows ``x`` spread to deviation 1."""
        self.P.normal_(generator=generator)
        self.P.div_(spread_of(self(x)))


class EncoderDecoder(nn.Module):
    """A deep map, and a deep way back from it."""

    def __init__(
        self,
        n_features: int,
        widths: Sequence[int],
        n_components: int,
        *,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder = Deep(
            n_features, widths, n_components, input_dropout=input_dropout, dropout=dropout
        )
        self.decoder = Deep(n_components, widths[::-1], n_features)

    def forward(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n d"]:
        """The way there."""
        points: Tensor = self.encoder(x, masks)
        return points

    def reconstruct(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n features"]:
        """There and back."""
        restored: Tensor = self.decoder(self(x, masks))
        return restored

    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Random weights; what comes back spreads as the rows ``x`` do."""
        self.encoder.start(x, generator)
        self.start_decoder(x, generator)

    @torch.no_grad()
    def start_decoder(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Random weights of the way back, for the points where the encoder puts ``x``."""
        self.decoder.start(self.encoder(x), generator)
        self.decoder.P.mul_(spread_of(x))
