"""The maps x → y: linear, high-order (HOPE), sigmoid high-order (S-HOPE), stacked and deep.

The layers of high-order maps are in `layers`, their gradients in `backprop`.
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
    """y = P x. There is no bias, since distances do not depend on it."""

    def __init__(self, n_features: int, n_components: int) -> None:
        super().__init__()
        self.P = weights(n_components, n_features)

    def forward(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n d"]:
        """Return the projection. Masks are ignored."""
        return x @ self.P.T

    @torch.no_grad()
    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Initialize a random projection that has standard deviation 1 on the rows ``x``."""
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
        """The layers below the projection P, from the first to the last: here, this map itself."""
        return [self]

    def forward(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n d"]:
        """Apply eq. 4, or eq. 5 with sigmoids; with masks, apply dropout."""
        return self.hidden(x, masks) @ self.P.T

    @torch.no_grad()
    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Initialize random weights so that the points of ``x`` have standard deviation 1."""
        self.start_units(x, generator)
        self.P.normal_(generator=generator)
        self.P.div_(spread_of(self(x)))


class Products(HighOrder):
    """HOPE during training: y = P Π_o (C⁽ᵒ⁾x + c⁽ᵒ⁾), eq. 3, units are products of O sums.

    A product of O sums is a sum of 2^(O-1) powers, so `as_powers` can convert the result to the map
    of eq. 4 with ``n_factors`` powers. If ``n_factors`` is not a multiple of 2^(O-1), the remaining
    units are powers. C holds C⁽¹⁾ … C⁽ᴼ⁾ stacked vertically, then the factors of these powers.
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
        """Number of polynomial units: products and remaining powers."""
        return self.P.shape[1]

    def multiply(
        self, sums: Float[Tensor, "n sums"], out: Tensor | None = None
    ) -> Float[Tensor, "n units"]:
        """Return products of O weighted sums of features, then the remaining powers."""
        multiplied, left = self._apart(sums.T)
        return torch.cat([reduce(torch.mul, multiplied).T, left.T**self.order], dim=1, out=out)

    def backward_multiply(
        self, sums: Float[Tensor, "n sums"], gradient: Float[Tensor, "n units"]
    ) -> Float[Tensor, "n sums"]:
        """Return the gradient with respect to the sums; it overwrites the sums."""
        (multiplied, left), gradient = self._apart(sums.T), gradient.T
        product_gradient(multiplied, gradient[: self.n_products])
        power_derivative(left, self.order).mul_(gradient[self.n_products :])
        return sums

    @torch.no_grad()
    def as_powers(self) -> HighOrder:
        """Return the same function as a sum of powers.

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
        """Split rows of C, or values per row of C: O blocks, then the remaining powers."""
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
        # P before W and b: files and checkpoints store the weights in this order.
        HighOrder.__init__(self, n_features, n_components, order, n_factors, **dropout)
        self.W = weights(n_units, n_factors)
        self.b = weights(n_units)
        self.P = weights(n_components, n_units)


class Stacked(nn.Module):
    """S-HOPE with several layers: h ← σ(W (Ch + c)^O + b), starting from h = x, and y = P h.

    The last layer and P are an S-HOPE map of the output of the layers below. Input dropout applies
    to the features only, dropout of polynomial units to every layer.
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
        """The layers below the projection P, from the first to the last."""
        return [*self.below, self.top]

    @property
    def P(self) -> nn.Parameter:  # noqa: N802
        """The projection matrix of the last layer."""
        return self.top.P

    def hidden(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n units"]:
        """Return the sigmoid units of the last layer."""
        for layer in self.layers:
            x = layer.hidden(x, masks)
        return x

    def forward(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n d"]:
        """Return the projection of the last layer; with masks, apply dropout."""
        return self.hidden(x, masks) @ self.P.T

    @torch.no_grad()
    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Initialize random weights layer by layer, each on the output of the layers below."""
        for layer in self.layers[:-1]:
            layer.start_units(x, generator)
            x = layer.hidden(x)
        self.top.start(x, generator)


class Pressed(nn.Module):
    """A map during training, with spare coordinates whose scale is annealed to 0.

    y = (P h, height · R h), with h the hidden units of the map. The spare coordinates let classes
    move past each other that would block each other in the plane. At height 0 only the map is left.
    """

    def __init__(self, map_: HighOrder | Stacked, n_spare: int) -> None:
        super().__init__()
        self.map = map_
        self.R = weights(n_spare, map_.P.shape[1])
        self.height = 1.0

    def forward(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n more"]:
        """Return the coordinates of the map, then the spare coordinates times their height."""
        return self.map.hidden(x, masks) @ self.projection().T

    def projection(self) -> Float[Tensor, "more units"]:
        """Return P stacked on height · R."""
        return torch.cat([self.map.P, self.height * self.R])

    @torch.no_grad()
    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Initialize spare coordinates with standard deviation 1, as in the initialized map."""
        self.R.normal_(generator=generator)
        self.R.div_(spread_of(self.map.hidden(x) @ self.R.T))


class Deep(nn.Module):
    """Layers of tanh units, then a projection: h ← tanh(W h + b), y = P h.

    tanh(u) = 2σ(2u) − 1, so the set of functions is the same as with σ: shift and factor fold into
    the next layer. But the units are centered at 0, and gradients do not all have the same sign.
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
        """Return the units of the layer at this depth; by default, of the last layer."""
        units = drop(x, self.input_dropout, masks)
        for W, b in list(zip(self.W, self.b, strict=True))[:depth]:
            units = drop(torch.tanh(torch.addmm(b, units, W.T)), self.dropout, masks)
        return units

    def forward(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n d"]:
        """Return the projection of the last layer; with masks, apply dropout."""
        return self.hidden(x, masks) @ self.P.T

    @torch.no_grad()
    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Initialize random weights: inputs of each unit have mean 0, overall deviation is 1."""
        for depth in range(len(self.W)):
            self.start_layer(depth, x, generator)
        self.start_projection(x, generator)

    @torch.no_grad()
    def start_layer(
        self, depth: int, x: Float[Tensor, "n features"], generator: torch.Generator
    ) -> None:
        """Initialize the weights of one layer, given the layers below."""
        start_layer(self.W[depth], self.b[depth], self.hidden(x, depth=depth), generator)

    @torch.no_grad()
    def start_projection(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Initialize a projection of the last layer with standard deviation 1 on the rows ``x``."""
        self.P.normal_(generator=generator)
        self.P.div_(spread_of(self(x)))


class EncoderDecoder(nn.Module):
    """An autoencoder: a deep map (encoder) and a deep decoder."""

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
        """Return the embedding."""
        points: Tensor = self.encoder(x, masks)
        return points

    def reconstruct(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n features"]:
        """Encode and decode."""
        restored: Tensor = self.decoder(self(x, masks))
        return restored

    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Initialize random weights; reconstructions have the same spread as the rows ``x``."""
        self.encoder.start(x, generator)
        self.start_decoder(x, generator)

    @torch.no_grad()
    def start_decoder(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Initialize the decoder at random, for the embedding of ``x``."""
        self.decoder.start(self.encoder(x), generator)
        self.decoder.P.mul_(spread_of(x))
