"""There and back through a high-order map: points, and the gradients to all that is learned.

With x the rows, the way forth is

    s = C x + c      z = sᴼ, or products of s      h = σ(W z + b), or z      y = P h

and from the gradient ∂y of a loss the way back is

    ∂P = ∂yᵀ h                      ∂h = ∂y P
    ∂W = ∂aᵀ z      ∂b = Σ ∂a       ∂a = ∂h h (1 − h)
    ∂C = ∂sᵀ x      ∂c = Σ ∂s       ∂z = ∂a W, which `multiply_back` takes to ∂s
                                    ∂x = ∂s C, for rows that learn

Exemplars learn, the rows of a batch do not: the last product, as large as the first one forth, is
made for the former alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hopefold.core.maps import HighOrder, Pressed, SigmoidHighOrder
from hopefold.core.masks import Masks

if TYPE_CHECKING:
    from jaxtyping import Float


class Passage:
    """A map in training, without autograd: `forth`, `back`, and then `to_rows` where needed.

    All of it lies in memory that is used again for the next batch.
    """

    def __init__(self, map_: HighOrder | Pressed) -> None:
        self.map = map_
        self._inner = map_.map if isinstance(map_, Pressed) else map_
        self._names = [name.removeprefix("map.") for name, _ in map_.named_parameters()]
        self._memory: dict[str, Tensor] = {}
        self._slopes: dict[str, Tensor] = {}

    def forth(
        self, rows: Float[Tensor, "n features"], masks: Masks | None = None
    ) -> Float[Tensor, "n d"]:
        """The points of the rows, as the map gives them; what the way back needs is kept."""
        map_, n_rows = self._inner, rows.shape[0]
        self._rows, self._input_mask = rows, _draw(rows, map_.input_dropout, masks)
        if self._input_mask is not None:
            self._rows = self.take("rows", rows.shape, rows)
            n_thinned = len(self._input_mask)
            torch.mul(rows[:n_thinned], self._input_mask, out=self._rows[:n_thinned])
            self._rows[n_thinned:] = rows[n_thinned:]
        self._sums = self.take("sums", (n_rows, map_.C.shape[0]), rows)
        torch.addmm(map_.c, self._rows, map_.C.T, out=self._sums)
        n_units = (map_.W if isinstance(map_, SigmoidHighOrder) else map_.P).shape[1]
        self._units = map_.multiply(self._sums, out=self.take("units", (n_rows, n_units), rows))
        self._mask = _draw(self._units, map_.dropout, masks)
        if self._mask is not None:
            self._units[: len(self._mask)].mul_(self._mask)
        self._hidden = self._units
        if isinstance(map_, SigmoidHighOrder):
            self._hidden = self.take("hidden", (n_rows, map_.W.shape[0]), rows)
            torch.addmm(map_.b, self._units, map_.W.T, out=self._hidden).sigmoid_()
        return self._hidden @ self._projection().T

    def back(self, gradient: Float[Tensor, "n d"], *, add: bool = False) -> None:
        """From the gradient to the points, once for a way forth, to those in `slopes`.

        They are added to those of the last way back, or take their place.
        """
        map_, P = self._inner, self._projection()
        self._put("P", gradient.T, self._hidden, add=add)
        if isinstance(map_, SigmoidHighOrder):
            rise = self.take("rise", self._hidden.shape, gradient)
            torch.mm(gradient, P, out=rise)
            rise.mul_(self._hidden.addcmul_(self._hidden, self._hidden, value=-1))
            self._put("W", rise.T, self._units, bias="b", add=add)
            gradient, P = rise, map_.W
        rise = torch.mm(gradient, P, out=self._units)
        if self._mask is not None:
            rise[: len(self._mask)].mul_(self._mask)
        self._rise = map_.multiply_back(self._sums, rise)
        self._put("C", self._rise.T, self._rows, bias="c", add=add)

    def to_rows(self, which: slice, out: Tensor | None = None) -> Float[Tensor, "w features"]:
        """After the way back: the gradient to certain rows."""
        gradient = torch.mm(self._rise[which], self._inner.C, out=out)
        if self._input_mask is not None and len(mask := self._input_mask[which]):
            gradient[: len(mask)].mul_(mask)
        return gradient

    @property
    def slopes(self) -> list[Tensor]:
        """The gradients to the weights, in the order of the map's parameters.

        The next way back writes over them.
        """
        slopes = dict(self._slopes)
        if isinstance(self.map, Pressed):
            slopes["P"], spare = slopes["P"].tensor_split([len(self._inner.P)])
            slopes["R"] = self.map.height * spare
        return [slopes[name] for name in self._names]

    def take(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Memory under this name, for as long as the name is not taken again; of any content."""
        n_numbers = math.prod(shape)
        held = self._memory.get(name)
        if held is None or held.shape[0] < n_numbers or held.dtype != like.dtype:
            held = self._memory[name] = like.new_empty(n_numbers)
        return held[:n_numbers].view(shape)

    def _put(
        self, name: str, gradient: Tensor, inputs: Tensor, *, bias: str = "", add: bool
    ) -> None:
        """The gradient to a matrix, from that to its outputs, and to the bias beside it."""
        if add:
            self._slopes[name].addmm_(gradient, inputs)
        else:
            out = self.take(f"slopes of {name}", (gradient.shape[0], inputs.shape[1]), gradient)
            self._slopes[name] = torch.mm(gradient, inputs, out=out)
        if bias:
            sums = gradient.sum(dim=1)
            self._slopes[bias] = self._slopes[bias].add_(sums) if add else sums

    def _projection(self) -> Tensor:
        return self.map.projection() if isinstance(self.map, Pressed) else self.map.P


def _draw(values: Tensor, rate: float, masks: Masks | None) -> Tensor | None:
    return masks.draw(values, rate) if masks is not None and rate else None
