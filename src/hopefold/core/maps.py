"""The maps x → y: linear, high-order (HOPE), sigmoid high-order (S-HOPE) and deep.

The paper appends a 1 to every x. Here that 1 is the bias ``c`` of the factors, so ``(Cx + c)^O``
holds the products of *up to* O features, not only of exactly O.

A map called with masks drops inputs and polynomial units at random, as in training; called without
it is the plain equation. No hidden train/eval switch. How gradients come back through high-order
maps is in `passages`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from hopefold.core.masks import Masks, drop

if TYPE_CHECKING:
    from jaxtyping import Float


class Linear(nn.Module):
    """y = P x. No bias: distances do not see it."""

    def __init__(self, n_features: int, n_components: int) -> None:
        super().__init__()
        self.P = _weights(n_components, n_features)

    def forward(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n d"]:
        """The projection; there is nothing to drop."""
        return x @ self.P.T

    @torch.no_grad()
    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Draw a random projection in which the rows ``x`` spread to standard deviation 1."""
        self.P.normal_(generator=generator)
        self.P.div_(_spread(self(x)))


class HighOrder(nn.Module):
    """HOPE: y = P (Cx + c)^O, eq. 4. Linear in all products of up to O features."""

    def __init__(
        self,
        n_features: int,
        n_components: int,
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
        self.C = _weights(n_factors, n_features)
        self.c = _weights(n_factors)
        self.P = _weights(n_components, n_factors)

    def interactions(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n factors"]:
        """The polynomial units: one power of a weighted sum of features for each factor."""
        sums = torch.addmm(self.c, drop(x, self.input_dropout, masks), self.C.T)
        return drop(self.multiply(sums), self.dropout, masks)

    def hidden(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n units"]:
        """What P projects: here the polynomial units themselves."""
        return self.interactions(x, masks)

    def forward(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n d"]:
        """Eq. 4, and with sigmoids eq. 5; with masks, thinned at random."""
        return self.hidden(x, masks) @ self.P.T

    def multiply(
        self, sums: Float[Tensor, "n sums"], out: Tensor | None = None
    ) -> Float[Tensor, "n units"]:
        """From weighted sums to polynomial units."""
        return torch.pow(sums, self.order, out=out)

    def multiply_back(
        self, sums: Float[Tensor, "n sums"], gradient: Float[Tensor, "n units"]
    ) -> Float[Tensor, "n sums"]:
        """The gradient to the sums, from that to the units; it takes the place of the sums."""
        return slope_of_power(sums, self.order).mul_(gradient)

    @torch.no_grad()
    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Draw random weights: Cx + c = 1 + v, with v around 0 and so small that y is tame.

        With v of deviation 1/O on the rows ``x``, (1 + v)^O is close to exp(Ov): a polynomial in
        which low orders lead and the higher ones are there to be learned. y spreads to 1.
        """
        self._start_units(x, generator)
        self.P.normal_(generator=generator)
        self.P.div_(_spread(self(x)))

    def _start_units(self, x: Tensor, generator: torch.Generator) -> None:
        mean = x.mean(dim=0)
        self.C.normal_(generator=generator)
        self.C.div_(self.order * _spread((x - mean) @ self.C.T))
        self.c.copy_(1 - self.C @ mean)


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
        self.P = _weights(n_components, n_products + n_left)

    def multiply(
        self, sums: Float[Tensor, "n sums"], out: Tensor | None = None
    ) -> Float[Tensor, "n units"]:
        """A product of O weighted sums of features each, then powers."""
        multiplied, left = self._apart(sums.T)
        return torch.cat([reduce(torch.mul, multiplied).T, left.T**self.order], dim=1, out=out)

    def multiply_back(
        self, sums: Float[Tensor, "n sums"], gradient: Float[Tensor, "n units"]
    ) -> Float[Tensor, "n sums"]:
        """The gradient to the sums, from that to the units; it takes the place of the sums."""
        (multiplied, left), gradient = self._apart(sums.T), gradient.T
        slope_of_product(multiplied, gradient[: self.n_products])
        slope_of_power(left, self.order).mul_(gradient[self.n_products :])
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
        for weights, value in zip(map_.parameters(), (C, c, P), strict=True):
            weights.copy_(value)
        return map_

    def _apart(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of C, or what comes of them: O blocks, one for each place, and the left-over."""
        cut = self.order * self.n_products
        return rows[:cut].reshape(self.order, self.n_products, *rows.shape[1:]), rows[cut:]


class SigmoidHighOrder(HighOrder):
    """S-HOPE: y = P σ(W (Cx + c)^O + b), eq. 5."""

    def __init__(
        self,
        n_features: int,
        n_components: int,
        order: int,
        n_factors: int,
        n_units: int,
        *,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(
            n_features, n_components, order, n_factors, input_dropout=input_dropout, dropout=dropout
        )
        self.W = _weights(n_units, n_factors)
        self.b = _weights(n_units)
        self.P = _weights(n_components, n_units)

    def hidden(
        self, x: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n units"]:
        """The sigmoid units."""
        return torch.addmm(self.b, self.interactions(x, masks), self.W.T).sigmoid_()

    def _start_units(self, x: Tensor, generator: torch.Generator) -> None:
        """As for HOPE; the input of a sigmoid has mean 0, those of all of them spread 1."""
        super()._start_units(x, generator)
        _start_layer(self.W, self.b, self.interactions(x), generator)


class Pressed(nn.Module):
    """A map on its way, with spare coordinates above the plane that are pressed flat.

    y = (P h, height · R h), with h the hidden units of the map. Classes that would block each
    other's way in the plane pass each other while there is height; at height 0 the map is left.
    """

    def __init__(self, map_: HighOrder, n_spare: int) -> None:
        super().__init__()
        self.map = map_
        self.R = _weights(n_spare, map_.P.shape[1])
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
        self.R.div_(_spread(self.map.hidden(x) @ self.R.T))


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
        self.W = nn.ParameterList([_weights(*shape) for shape in zip(widths, sizes, strict=False)])
        self.b = nn.ParameterList([_weights(width) for width in widths])
        self.P = _weights(n_components, sizes[-1])

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
        _start_layer(self.W[depth], self.b[depth], self.hidden(x, depth=depth), generator)

    @torch.no_grad()
    def start_projection(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Draw a projection of the last layer in which the rows ``x`` spread to deviation 1."""
        self.P.normal_(generator=generator)
        self.P.div_(_spread(self(x)))


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
        self.decoder.P.mul_(_spread(x))


def slope_of_power(sums: Tensor, order: int) -> Tensor:
    """What a power uᴼ rises by, O uᴼ⁻¹, in the place of u."""
    return (sums if order == 2 else sums.pow_(order - 1)).mul_(order)


def slope_of_product(factors: Float[Tensor, "o ..."], gradient: Tensor) -> None:
    """The gradient to each factor: that to the product times all other factors, in its place."""
    first, *rest = factors
    after = [*accumulate(rest[::-1], torch.mul)][::-1]
    for factor, others in zip_longest((first, *rest), after):
        slope = gradient if others is None else gradient * others
        gradient = gradient * factor
        factor.copy_(slope)


def _weights(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(*shape, dtype=torch.float32))


def _start_layer(W: Tensor, b: Tensor, units: Tensor, generator: torch.Generator) -> None:
    """Draw weights such that the next layer's inputs have mean 0 each, and spread 1."""
    W.normal_(generator=generator)
    W.div_(_spread(units @ W.T))
    b.copy_(-(units @ W.T).mean(dim=0))


def _spread(y: Tensor) -> Tensor:
    """Standard deviation over the rows, averaged over the coordinates; 1 where nothing varies."""
    spread = y.std(dim=0, correction=0).mean()
    return torch.where(spread > 0, spread, torch.ones_like(spread))
