"""The maps x → y: linear, high-order (HOPE), sigmoid high-order (S-HOPE) and deep.

The paper appends a 1 to every x. Here that 1 is the bias ``c`` of the factors, so ``(Cx + c)^O``
holds the products of *up to* O features, not only of exactly O.

A map called with a generator drops inputs and polynomial units at random, as in training; called
without one it is the plain equation. No hidden train/eval switch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from jaxtyping import Float


class Linear(nn.Module):
    """y = P x. No bias: distances do not see it."""

    def __init__(self, n_features: int, n_components: int) -> None:
        super().__init__()
        self.P = _weights(n_components, n_features)

    def forward(
        self, x: Float[Tensor, "n features"], generator: torch.Generator | None = None
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
        self, x: Float[Tensor, "n features"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "n factors"]:
        """The polynomial units: one power of a weighted sum of features for each factor."""
        x = drop(x, self.input_dropout, generator)
        return drop(torch.addmm(self.c, x, self.C.T) ** self.order, self.dropout, generator)

    def forward(
        self, x: Float[Tensor, "n features"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "n d"]:
        """Eq. 4; with a generator, thinned at random."""
        return self.interactions(x, generator) @ self.P.T

    @torch.no_grad()
    def start(self, x: Float[Tensor, "n features"], generator: torch.Generator) -> None:
        """Draw random weights such that Cx + c has variance 1 on the rows ``x``, and y too."""
        self._start_units(x, generator)
        self.P.normal_(generator=generator)
        self.P.div_(_spread(self(x)))

    def _start_units(self, x: Tensor, generator: torch.Generator) -> None:
        squared_norm = x.square().sum(dim=1).mean() + 1
        self.C.normal_(generator=generator).div_(squared_norm.sqrt())
        self.c.normal_(generator=generator).div_(squared_norm.sqrt())


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

    def forward(
        self, x: Float[Tensor, "n features"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "n d"]:
        """Eq. 5; with a generator, thinned at random."""
        units = torch.sigmoid(torch.addmm(self.b, self.interactions(x, generator), self.W.T))
        return units @ self.P.T

    def _start_units(self, x: Tensor, generator: torch.Generator) -> None:
        """As for HOPE, and such that the sigmoids' inputs have mean square 1."""
        super()._start_units(x, generator)
        mean_square = gaussian_moment(2 * self.order) * self.W.shape[1]
        self.W.normal_(generator=generator).div_(math.sqrt(mean_square))
        self.b.zero_()


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
        generator: torch.Generator | None = None,
        *,
        depth: int | None = None,
    ) -> Float[Tensor, "n units"]:
        """The units of the layer at this depth; by default, of the last one."""
        units = drop(x, self.input_dropout, generator)
        for W, b in list(zip(self.W, self.b, strict=True))[:depth]:
            units = drop(torch.tanh(torch.addmm(b, units, W.T)), self.dropout, generator)
        return units

    def forward(
        self, x: Float[Tensor, "n features"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "n d"]:
        """The projection of the last layer; with a generator, thinned at random."""
        return self.hidden(x, generator) @ self.P.T

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
        W, b, units = self.W[depth], self.b[depth], self.hidden(x, depth=depth)
        W.normal_(generator=generator)
        W.div_(_spread(units @ W.T))
        b.copy_(-(units @ W.T).mean(dim=0))

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
        self, x: Float[Tensor, "n features"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "n d"]:
        """The way there."""
        points: Tensor = self.encoder(x, generator)
        return points

    def reconstruct(
        self, x: Float[Tensor, "n features"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "n features"]:
        """There and back."""
        restored: Tensor = self.decoder(self(x, generator))
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


def _weights(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(*shape, dtype=torch.float32))


def drop(values: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Set a random share of the values to zero and enlarge the rest, so that the mean stays."""
    if generator is None or rate == 0:
        return values
    kept = torch.empty_like(values).bernoulli_(1 - rate, generator=generator)
    return values * kept.div_(1 - rate)


def gaussian_moment(power: int) -> int:
    """E[u^power] of a standard normal u, for an even power: 1, 3, 15, 105 for 2, 4, 6, 8."""
    return math.prod(range(1, power, 2))


def _spread(y: Tensor) -> Tensor:
    """Standard deviation over the rows, averaged over the coordinates; 1 where nothing varies."""
    spread = y.std(dim=0, correction=0).mean()
    return torch.where(spread > 0, spread, torch.ones_like(spread))
