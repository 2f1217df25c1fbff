"""Forward and backward pass of a high-order map: points, and gradients of weights and exemplars.

With x the rows, or the output of the layer below, the forward pass of a layer is

    s = C x + c      z = sᴼ, or products of s      h = σ(W z + b), or z

and the points are y = P h, with h of the last layer. Given the gradient ∂y of a loss, the backward
pass is

    ∂P = ∂yᵀ h                      ∂h = ∂y P, for the last layer

and then, for each layer from the last to the first,

    ∂W = ∂aᵀ z      ∂b = Σ ∂a       ∂a = ∂h h (1 − h)
        ∂C = ∂sᵀ x      ∂c = Σ ∂s       ∂s from ∂z = ∂a W, by `backward_multiply`
                                        ∂x = ∂s C, for the layer below, and for exemplars

Exemplars are learned, and the rows of a batch are not. So the last product, as large as the first
one of the forward pass, is computed only for the exemplars.
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

#: Looked up once: overload resolution takes as long as a small operation.
_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input


class Workspace:
    """Named buffers that are reused for the next batch."""

    def __init__(self) -> None:
        self._memory: dict[str, Tensor] = {}
        self._taken: dict[str, Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Return the uninitialized buffer of this name; the next call overwrites it."""
        taken = self._taken.get(name)
        if taken is not None and taken.shape == shape and taken.dtype == like.dtype:
            return taken
        n_numbers = math.prod(shape)
        held = self._memory.get(name)
        if held is None or held.shape[0] < n_numbers or held.dtype != like.dtype:
            held = self._memory[name] = like.new_empty(n_numbers)
        self._taken[name] = held[:n_numbers].view(shape)
        return self._taken[name]


class Gradients:
    """The gradients of weights by name. The next backward pass overwrites them."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.by_name: dict[str, Tensor] = {}

    def put(
        self, name: str, grad_output: Tensor, inputs: Tensor, *, bias: str = "", add: bool
    ) -> None:
        """Set or add to the gradient of a weight matrix and its bias, given that of its outputs."""
        found = self.by_name
        if add:
            found[name].addmm_(grad_output.T, inputs)
        else:
            shape = (grad_output.shape[1], inputs.shape[1])
            out = self._workspace.take(f"gradient of {name}", shape, grad_output)
            found[name] = torch.mm(grad_output.T, inputs, out=out)
        if bias:
            sums = grad_output.sum(dim=0)
            found[bias] = found[bias].add_(sums) if add else sums


class LayerBackprop:
    """One layer: call `forward`, then `backward`, then `grad_rows` if it is needed."""

    def __init__(self, layer: Powers) -> None:
        self.layer = layer
        self._workspace = Workspace()
        self.gradients = Gradients(self._workspace)

    def forward(
        self,
        rows: Float[Tensor, "n features"],
        masks: Masks | None = None,
        new: slice = ALL,
    ) -> Float[Tensor, "n units"]:
        """Return the output of the layer, and keep what the backward pass needs.

        Only the ``new`` rows are computed. The outputs of the others are those of the last call.
        """
        layer, n_rows, take = self.layer, rows.shape[0], self._workspace.take
        self._rows, self._input_mask = rows, _draw(rows, layer.input_dropout, masks)
        if self._input_mask is not None:
            self._rows = take("rows", rows.shape, rows)
            n_masked = self._input_mask.shape[0]
            torch.mul(rows[:n_masked], self._input_mask, out=self._rows[:n_masked])
            self._rows[n_masked:] = rows[n_masked:]
        self._sums = take("sums", (n_rows, layer.C.shape[0]), rows)
        sums = _part(self._sums, new)
        torch.addmm(layer.c, _part(self._rows, new), layer.C.T, out=sums)
        self._units = take("units", (n_rows, layer.n_factors), rows)
        units = layer.multiply(sums, out=_part(self._units, new))
        self._mask = _draw(self._units, layer.dropout, masks)
        if self._mask is not None:
            self._units[: self._mask.shape[0]].mul_(self._mask)
        self._hidden = self._units
        if isinstance(layer, Sigmoids):
            self._hidden = take("hidden", (n_rows, layer.W.shape[0]), rows)
            torch.addmm(layer.b, units, layer.W.T, out=_part(self._hidden, new)).sigmoid_()
        return self._hidden

    def grad_output_buffer(self, n_rows: int) -> Float[Tensor, "r units"]:
        """Return the buffer in which `backward` expects the gradient of the layer's output."""
        if isinstance(self.layer, Sigmoids):
            shape = (n_rows, self._hidden.shape[1])
            return self._workspace.take("grad output", shape, self._hidden)
        return _part(self._units, slice(n_rows))  # no longer needed

    def backward(self, grad_output: Float[Tensor, "r units"], *, add: bool) -> None:
        """Compute the gradients of the weights; ``grad_output`` is overwritten."""
        layer, n_rows = self.layer, grad_output.shape[0]
        kept = (self._hidden, self._units, self._sums, self._rows)
        hidden, units, sums, rows = (_part(values, slice(n_rows)) for values in kept)
        grad = grad_output
        if isinstance(layer, Sigmoids):
            _sigmoid_backward(grad, hidden, grad_input=grad)
            self.gradients.put("W", grad, units, bias="b", add=add)
            grad = torch.mm(grad, layer.W, out=units)
        if self._mask is not None:
            grad[: self._mask.shape[0]].mul_(self._mask)
        self._grad_sums = layer.backward_multiply(sums, grad)
        self.gradients.put("C", self._grad_sums, rows, bias="c", add=add)

    def grad_rows(self, which: slice, out: Tensor | None = None) -> Float[Tensor, "w features"]:
        """Return the gradient with respect to some rows, after `backward`."""
        gradient = torch.mm(self._grad_sums[which], self.layer.C, out=out)
        if self._input_mask is not None and len(mask := self._input_mask[which]):
            gradient[: len(mask)].mul_(mask)
        return gradient


class MapBackprop:
    """A map without autograd: call `forward`, then `backward`, then `grad_rows` if it is needed.

    All buffers are reused for the next batch.
    """

    def __init__(self, map_: HighOrder | Stacked | Pressed) -> None:
        self.map = map_
        self.workspace = Workspace()
        self._own = Gradients(self.workspace)
        self._inner = map_.map if isinstance(map_, Pressed) else map_
        self._layers = [LayerBackprop(layer) for layer in self._inner.layers]
        homes: dict[Tensor, tuple[Gradients, str]] = {}
        for one in self._layers:
            homes |= {weights: (one.gradients, n) for n, weights in one.layer.named_parameters()}
        homes[self._inner.P] = self._own, "P"
        if isinstance(map_, Pressed):
            homes[map_.R] = self._own, "R"
        self._homes = {weights: homes[weights] for weights in map_.parameters()}

    def forward(
        self,
        rows: Float[Tensor, "n features"],
        masks: Masks | None = None,
        new: slice = ALL,
    ) -> Float[Tensor, "m d"]:
        """Return the points of the new rows, and keep what the backward pass needs.

        What the last call kept of the other rows stays, for a backward pass through all rows.
        """
        for layer in self._layers:
            rows = layer.forward(rows, masks, new)
        self._hidden = rows
        return _part(self._hidden, new) @ self._projection().T

    def backward(self, gradient: Float[Tensor, "r d"], *, add: bool = False) -> None:
        """Compute `gradients`, given the gradient of the first points; once per forward pass.

        The gradients are added to those of the last backward pass, or replace them.
        """
        n_rows = gradient.shape[0]
        self._own.put("projection", gradient, _part(self._hidden, slice(n_rows)), add=add)
        *below, top = self._layers
        out = top.grad_output_buffer(n_rows)
        top.backward(torch.mm(gradient, self._projection(), out=out), add=add)
        for layer in reversed(below):
            layer.backward(top.grad_rows(ALL, out=layer.grad_output_buffer(n_rows)), add=add)
            top = layer

    def grad_rows(self, which: slice, out: Tensor | None = None) -> Float[Tensor, "w features"]:
        """Return the gradient with respect to some rows, after `backward`."""
        return self._layers[0].grad_rows(which, out)

    @property
    def gradients(self) -> dict[Tensor, Tensor]:
        """The gradients of the weights, in the order of the map's parameters.

        The next backward pass overwrites them.
        """
        own = self._own.by_name
        own["P"] = own["projection"]
        if isinstance(self.map, Pressed):
            own["P"], own["R"] = own["projection"].tensor_split([len(self._inner.P)])
            own["R"] = self.map.height * own["R"]
        return {weights: home.by_name[name] for weights, (home, name) in self._homes.items()}

    def _projection(self) -> Tensor:
        return self.map.projection() if isinstance(self.map, Pressed) else self.map.P


def _part(values: Tensor, which: slice) -> Tensor:
    """Index rows. All rows need no view, which costs as much as a small operation."""
    return values if which.stop in (None, values.shape[0]) and not which.start else values[which]


def _draw(values: Tensor, rate: float, masks: Masks | None) -> Tensor | None:
    return masks.draw(values, rate) if masks is not None and rate else None
