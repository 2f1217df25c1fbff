r"""A map as a polynomial of its features: all that is above the first powers is linearized.

The polynomial units of the first layer are z = (Cx + c)^O, and the points are y = g(z). HOPE has
g(z) = P z, which is linear. S-HOPE has g(z) = P σ(Wz + b), and a stack has further layers in g.

Each sigmoid, and each power above z, is replaced by the line through its values at the middle row
and at the row. The product of the gradients of these lines, their multipliers, is a matrix J per
row, and

    y − y₀ = J (z − z₀),

where z₀ and y₀ belong to the middle row: nothing is lost. This is the Rescale rule of DeepLIFT
(Shrikumar et al., 2017), down to z. With tangents at the row, J is the Jacobian of g.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hopefold.core.interactions import BLOCK, Polynomial
from hopefold.core.layers import Sigmoids
from hopefold.core.maps import HighOrder, SigmoidHighOrder, Stacked

if TYPE_CHECKING:
    from jaxtyping import Float

#: The ridge of a regression on polynomial units, as a share of their mean square.
RIDGE = 0.01

#: Below this distance between both ends, the slope of a sigmoid is that of the tangent.
STILL = 1e-5


class Linearization:
    """HOPE, which is linear in its polynomial units, in float64."""

    def __init__(self, map_: HighOrder | Stacked) -> None:
        first = map_.layers[0]
        upper = first.W if isinstance(first, Sigmoids) else map_.P
        W, C, c = (weights.detach().double() for weights in (upper, first.C, first.c))
        #: The coordinates of HOPE, or the inputs of the first sigmoids, without b.
        self.inputs = Polynomial(W, C, c, first.order)
        self.P = map_.P.detach().double()

    def points(self, x: Float[Tensor, "n features"]) -> Float[Tensor, "n d"]:
        """Return the points of rows."""
        return self.inputs.at(x)

    def polynomial(
        self,
        rows: Iterable[Float[Tensor, "n features"]],
        middle: Float[Tensor, " features"] | None,
    ) -> Polynomial:
        """Return the polynomial with the mean multipliers of all blocks of rows.

        The lines start at the middle row. Without it, they are tangents at the rows themselves.
        """
        return self.inputs

    def polynomial_on(
        self,
        rows: Iterable[Float[Tensor, "n features"]],
        middle: Float[Tensor, " features"],
    ) -> Polynomial:
        """Return the polynomial that stands for the map on many rows; by default, `polynomial`."""
        return self.polynomial(rows, middle)

    def moves(
        self,
        x: Float[Tensor, "n features"],
        middle: Float[Tensor, " features"],
        parts: Float[Tensor, "terms inputs"],
    ) -> Float[Tensor, "n terms d"]:
        """Return the coefficients of terms for each row, given those in `inputs`."""
        return parts.expand(len(x), *parts.shape)


class OneLayer(Linearization):
    """S-HOPE with one layer."""

    def __init__(self, map_: SigmoidHighOrder) -> None:
        super().__init__(map_)
        self.b = map_.b.detach().double()

    def points(self, x: Float[Tensor, "n features"]) -> Float[Tensor, "n d"]:
        """Return the points of rows."""
        return (self.inputs.at(x) + self.b).sigmoid() @ self.P.T

    def derivatives(
        self, x: Float[Tensor, "n features"], middle: Float[Tensor, " features"] | None
    ) -> Float[Tensor, "n units"]:
        """Return the multipliers of the sigmoids."""
        start = None if middle is None else self.inputs.at(middle[None]) + self.b
        return sigmoid_slopes(self.inputs.at(x) + self.b, start)

    def polynomial(
        self,
        rows: Iterable[Float[Tensor, "n features"]],
        middle: Float[Tensor, " features"] | None,
    ) -> Polynomial:
        """Return the polynomial with the mean multipliers of all blocks of rows."""
        derivatives, n_rows = torch.zeros(()), 0
        for some in rows:
            derivatives = derivatives + self.derivatives(some, middle).sum(dim=0)
            n_rows += len(some)
        return replace(self.inputs, P=self.P * (derivatives / n_rows) @ self.inputs.P)

    def moves(
        self,
        x: Float[Tensor, "n features"],
        middle: Float[Tensor, " features"],
        parts: Float[Tensor, "terms inputs"],
    ) -> Float[Tensor, "n terms d"]:
        """Return the coefficients of terms for each row, given those in `inputs`."""
        derivatives = self.derivatives(x, middle)
        return torch.stack([(derivatives * weights) @ parts.T for weights in self.P], dim=2)


class SeveralLayers(Linearization):
    """S-HOPE with several layers."""

    def __init__(self, map_: Stacked) -> None:
        super().__init__(map_)
        first, *above = map_.layers
        assert isinstance(first, Sigmoids)
        self.b = first.b.detach().double()
        self.above = [_Layer(layer) for layer in above if isinstance(layer, Sigmoids)]
        widest = max(first.n_factors, *(max(one.W.shape + one.C.shape) for one in self.above))
        self._step = max(1, BLOCK // (widest * len(self.P)))

    def points(self, x: Float[Tensor, "n features"]) -> Float[Tensor, "n d"]:
        """Return the points of rows."""
        units = (self.inputs.at(x) + self.b).sigmoid()
        for layer in self.above:
            units = layer.inputs(layer.sums(units)).sigmoid()
        return units @ self.P.T

    def multipliers(
        self, x: Float[Tensor, "n features"], middle: Float[Tensor, " features"] | None
    ) -> Float[Tensor, "d n units"]:
        """Return the multipliers of the coordinates for the inputs of the first sigmoids.

        A forward pass of the row and of the middle row gives the slope of each power and sigmoid. A
        backward pass multiplies them, starting from P.
        """
        inputs = self.inputs.at(x) + self.b
        start = None if middle is None else self.inputs.at(middle[None]) + self.b
        sigmoids, powers = [sigmoid_slopes(inputs, start)], []
        for layer in self.above:
            sums = layer.sums(inputs.sigmoid())
            first = None if start is None else layer.sums(start.sigmoid())
            powers.append(power_slopes(sums, first, layer.order))
            inputs = layer.inputs(sums)
            start = None if first is None else layer.inputs(first)
            sigmoids.append(sigmoid_slopes(inputs, start))
        multipliers = self.P[:, None] * sigmoids.pop()
        for layer in reversed(self.above):
            multipliers = (multipliers @ layer.W * powers.pop()) @ layer.C * sigmoids.pop()
        return multipliers

    def polynomial(
        self,
        rows: Iterable[Float[Tensor, "n features"]],
        middle: Float[Tensor, " features"] | None,
    ) -> Polynomial:
        """Return the polynomial with the mean multipliers of all blocks of rows."""
        multipliers, n_rows = torch.zeros(()), 0
        for some in rows:
            for part in torch.split(some, self._step):
                multipliers = multipliers + self.multipliers(part, middle).sum(dim=1)
            n_rows += len(some)
        return replace(self.inputs, P=multipliers / n_rows @ self.inputs.P)

    def polynomial_on(
        self,
        rows: Iterable[Float[Tensor, "n features"]],
        middle: Float[Tensor, " features"],
    ) -> Polynomial:
        r"""Return the polynomial that is closest to the map on these rows, by ridge regression.

        With the mean multipliers :math:`\bar J`, :math:`\Delta z = z - z_0` and
        :math:`r = y - y_0 - \bar J \Delta z`, the factors of the powers are
        :math:`\bar J + \sum r \Delta z^T (\sum \Delta z \Delta z^T + \lambda)^{-1}`. The
        multipliers differ so much between rows that their mean alone would miss much of the map.
        """
        mean = self.polynomial(rows, middle)
        z0, y0 = self._powers(middle[None]), self.points(middle[None])
        squares, residuals = torch.zeros(()), torch.zeros(())
        for some in rows:
            for part in torch.split(some, self._step):
                z = self._powers(part) - z0
                squares = squares + z.T @ z
                residuals = residuals + z.T @ (self.points(part) - y0 - z @ mean.P.T)
        ridge = (RIDGE * squares.diagonal().mean()).clamp(min=torch.finfo(z0.dtype).tiny)
        squares = squares + ridge * torch.eye(len(squares), dtype=z0.dtype)
        correction, _ = torch.linalg.solve_ex(squares, residuals)
        return replace(mean, P=mean.P + correction.T)

    def _powers(self, x: Float[Tensor, "n features"]) -> Float[Tensor, "n factors"]:
        return (x @ self.inputs.A.T + self.inputs.a) ** self.inputs.order

    def moves(
        self,
        x: Float[Tensor, "n features"],
        middle: Float[Tensor, " features"],
        parts: Float[Tensor, "terms inputs"],
    ) -> Float[Tensor, "n terms d"]:
        """Return the coefficients of terms for each row, given those in `inputs`."""
        blocks = (self.multipliers(part, middle) @ parts.T for part in torch.split(x, self._step))
        return torch.cat([block.movedim(0, 2) for block in blocks])


class _Layer:
    """A layer above the first one, in float64: u ← W (Cσ(u) + c)^O + b."""

    def __init__(self, layer: Sigmoids) -> None:
        weights = (layer.C, layer.c, layer.W, layer.b)
        self.C, self.c, self.W, self.b = (one.detach().double() for one in weights)
        self.order = layer.order

    def sums(self, units: Float[Tensor, "n units"]) -> Float[Tensor, "n factors"]:
        return units @ self.C.T + self.c

    def inputs(self, sums: Float[Tensor, "n factors"]) -> Float[Tensor, "n units"]:
        """Return the inputs of the sigmoids."""
        return sums**self.order @ self.W.T + self.b


def linearize(map_: HighOrder | Stacked) -> Linearization:
    """Return the linearization of a map."""
    if isinstance(map_, Stacked):
        return SeveralLayers(map_)
    return OneLayer(map_) if isinstance(map_, SigmoidHighOrder) else Linearization(map_)


def sigmoid_slopes(
    inputs: Float[Tensor, "n units"], start: Float[Tensor, "1 units"] | None = None
) -> Float[Tensor, "n units"]:
    """Return (σ(a) − σ(a₀)) / (a − a₀) of each input a, or σ'(a) without a₀.

    It is the mean of σ' between both ends. At a itself, a saturated unit has a derivative near 0
    and would not contribute.
    """
    units = inputs.sigmoid()
    derivatives = units * (1 - units)
    if start is None:
        return derivatives
    way = inputs - start
    still = way.abs() < STILL
    return torch.where(still, derivatives, (units - start.sigmoid()) / way.masked_fill(still, 1))


def power_slopes(
    sums: Float[Tensor, "n factors"], start: Float[Tensor, "1 factors"] | None, order: int
) -> Float[Tensor, "n factors"]:
    """Return (sᴼ − s₀ᴼ) / (s − s₀) = Σ_k sᵏ s₀^(O−1−k) of each sum s, or O s^(O−1) without s₀."""
    if start is None:
        return order * sums ** (order - 1)
    multipliers = torch.ones_like(sums)
    last = torch.ones_like(start)
    for _ in range(order - 1):  # Horner's method
        last = last * start
        multipliers = multipliers * sums + last
    return multipliers
