"""There and back through a high-order map: points, and the gradients to all that is learned.

With x the rows, or what the layer below gives, the way forth through a layer is

    s = C x + c      z = sᴼ, or products of s      h = σ(W z + b), or z

and from the last layer to the points it is y = P h. From the gradient ∂y of a loss the way back is

    ∂P = ∂yᵀ h                      ∂h = ∂y P, for the last layer

and then, through each layer from the last one down,

    ∂W = ∂aᵀ z      ∂b = Σ ∂a       ∂a = ∂h h (1 − h)
    ∂C = ∂sᵀ x      ∂c = Σ ∂s       ∂z = ∂a W, which `multiply_back` takes to ∂s
                                    ∂x = ∂s C, for the layer below, and for rows that learn

Exemplars learn, the rows of a batch do not: the last product, as large as the first one forth, is
made for the former alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hopefold.core.layers import Powers, Sigmoids
from hopefold.core.maps import HighOrder, Pressed, Stacked
from hopefold.core.masks import Masks

if TYPE_CHECKING:
    from jaxtyping import Float


ALL = slice(None)

#: Chosen once: to choose among its forms takes as long as a small work.
_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input


class Room:
    """Memory that is used again for the next batch, and the gradients to weights in it."""

    def __init__(self) -> None:
        self._memory: dict[str, Tensor] = {}
        self._taken: dict[str, Tensor] = {}
        #: By the names of the weights; the next way back writes over them.
        self.gradients: dict[str, Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Memory under this name, for as long as the name is not taken again; of any content."""
        taken = self._taken.get(name)
        if taken is not None and taken.shape == shape and taken.dtype == like.dtype:
            return taken
        n_numbers = math.prod(shape)
        held = self._memory.get(name)
        if held is None or held.shape[0] < n_numbers or held.dtype != like.dtype:
            held = self._memory[name] = like.new_empty(n_numbers)
        self._taken[name] = held[:n_numbers].view(shape)
        return self._taken[name]

    def put(self, name: str, rise: Tensor, inputs: Tensor, *, bias: str = "", add: bool) -> None:
        """The gradient to a matrix, from that to what it makes of inputs, and to its bias."""
        if add:
            self.gradients[name].addmm_(rise.T, inputs)
        else:
            out = self.take(f"slopes of {name}", (rise.shape[1], inputs.shape[1]), rise)
            self.gradients[name] = torch.mm(rise.T, inputs, out=out)
        if bias:
            sums = rise.sum(dim=0)
            self.gradients[bias] = self.gradients[bias].add_(sums) if add else sums


class LayerPassage(Room):
    """Through one layer and back: `forth`, `back`, and then `to_rows` where needed."""

    def __init__(self, layer: Powers) -> None:
        super().__init__()
        self.layer = layer

    def forth(
        self,
        rows: Float[Tensor, "n features"],
        masks: Masks | None = None,
        new: slice = ALL,
    ) -> Float[Tensor, "n units"]:
        """What the layer gives for the rows; what the way back needs is kept.

        Of rows that are not new, it was made the last time.
        """
        layer, n_rows = self.layer, rows.shape[0]
        self._rows, self._input_mask = rows, _draw(rows, layer.input_dropout, masks)
        if self._input_mask is not None:
            self._rows = self.take("rows", rows.shape, rows)
            n_thinned = self._input_mask.shape[0]
            torch.mul(rows[:n_thinned], self._input_mask, out=self._rows[:n_thinned])
            self._rows[n_thinned:] = rows[n_thinned:]
        self._sums = self.take("sums", (n_rows, layer.C.shape[0]), rows)
        sums = _part(self._sums, new)
        torch.addmm(layer.c, _part(self._rows, new), layer.C.T, out=sums)
        self._units = self.take("units", (n_rows, layer.n_factors), rows)
        units = layer.multiply(sums, out=_part(self._units, new))
        self._mask = _draw(self._units, layer.dropout, masks)
        if self._mask is not None:
            self._units[: self._mask.shape[0]].mul_(self._mask)
        self._hidden = self._units
        if isinstance(layer, Sigmoids):
            self._hidden = self.take("hidden", (n_rows, layer.W.shape[0]), rows)
            torch.addmm(layer.b, units, layer.W.T, out=_part(self._hidden, new)).sigmoid_()
        return self._hidden

    def room_for_rise(self, n_rows: int) -> Float[Tensor, "r units"]:
        """Where the gradient to what the layer gives has to be for the way back."""
        if isinstance(self.layer, Sigmoids):
            return self.take("rise", (n_rows, self._hidden.shape[1]), self._hidden)
        return _part(self._units, slice(n_rows))  # which nobody needs any more

    def back(self, rise: Float[Tensor, "r units"], *, add: bool) -> None:
        """From the gradient to what the layer gives, which is lost, to those in `gradients`."""
        layer, n_rows = self.layer, rise.shape[0]
        kept = (self._hidden, self._units, self._sums, self._rows)
        hidden, units, sums, rows = (_part(values, slice(n_rows)) for values in kept)
        if isinstance(layer, Sigmoids):
            _sigmoid_backward(rise, hidden, grad_input=rise)
            self.put("W", rise, units, bias="b", add=add)
            rise = torch.mm(rise, layer.W, out=units)
        if self._mask is not None:
            rise[: self._mask.shape[0]].mul_(self._mask)
        self._rise = layer.multiply_back(sums, rise)
        self.put("C", self._rise, rows, bias="c", add=add)

    def to_rows(self, which: slice, out: Tensor | None = None) -> Float[Tensor, "w features"]:
        """After the way back: the gradient to certain rows."""
        gradient = torch.mm(self._rise[which], self.layer.C, out=out)
        if self._input_mask is not None and len(mask := self._input_mask[which]):
            gradient[: len(mask)].mul_(mask)
        return gradient


class Passage(Room):
    """A map in training, without autograd: `forth`, `back`, and then `to_rows` where needed.

    All of it lies in memory that is used again for the next batch.
    """

    def __init__(self, map_: HighOrder | Stacked | Pressed) -> None:
        super().__init__()
        self.map = map_
        self._inner = map_.map if isinstance(map_, Pressed) else map_
        self._layers = [LayerPassage(layer) for layer in self._inner.layers]
        homes: dict[Tensor, tuple[Room, str]] = {}
        for passage in self._layers:
            homes |= {weights: (passage, n) for n, weights in passage.layer.named_parameters()}
        homes[self._inner.P] = self, "P"
        if isinstance(map_, Pressed):
            homes[map_.R] = self, "R"
        self._homes = {weights: homes[weights] for weights in map_.parameters()}

    def forth(
        self,
        rows: Float[Tensor, "n features"],
        masks: Masks | None = None,
        new: slice = ALL,
    ) -> Float[Tensor, "m d"]:
        """The points of the new rows, as the map gives them; what the way back needs is kept.

        That of other rows was kept the last time, and their way back has not been taken yet.
        """
        for layer in self._layers:
            rows = layer.forth(rows, masks, new)
        self._hidden = rows
        return _part(self._hidden, new) @ self._projection().T

    def back(self, gradient: Float[Tensor, "r d"], *, add: bool = False) -> None:
        """From the gradient to the first points, once for a way forth, to those in `slopes`.

        They are added to those of the last way back, or take their place.
        """
        n_rows = gradient.shape[0]
        self.put("projection", gradient, _part(self._hidden, slice(n_rows)), add=add)
        *below, top = self._layers
        rise = torch.mm(gradient, self._projection(), out=top.room_for_rise(n_rows))
        top.back(rise, add=add)
        for layer in reversed(below):
            rise = top.to_rows(slice(None), out=layer.room_for_rise(n_rows))
            layer.back(rise, add=add)
            top = layer

    def to_rows(self, which: slice, out: Tensor | None = None) -> Float[Tensor, "w features"]:
        """After the way back: the gradient to certain rows."""
        return self._layers[0].to_rows(which, out)

    @property
    def slopes(self) -> dict[Tensor, Tensor]:
        """The gradients to the weights, in the order of the map's parameters.

        The next way back writes over them.
        """
        own = self.gradients
        own["P"] = own["projection"]
        if isinstance(self.map, Pressed):
            own["P"], own["R"] = own["projection"].tensor_split([len(self._inner.P)])
            own["R"] = self.map.height * own["R"]
        return {weights: room.gradients[name] for weights, (room, name) in self._homes.items()}

    def _projection(self) -> Tensor:
        return self.map.projection() if isinstance(self.map, Pressed) else self.map.P


def _part(values: Tensor, which: slice) -> Tensor:
    """Some rows; where they are all, no view is made, which takes as long as a small work."""
    return values if which.stop in (None, values.shape[0]) and not which.start else values[which]


def _draw(values: Tensor, rate: float, masks: Masks | None) -> Tensor | None:
    return masks.draw(values, rate) if masks is not None and rate else None
