"""The loss of a batch of rows under a map: what the trainer minimizes.

A loss is called as ``loss(map_, batch, masks)``. For high-order maps the gradient is a formula all
the way from the objective to the first weight, and comes with the value (`HighOrderLoss`); for all
other maps autograd computes it (`onto_exemplars`, `onto_pairs`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

from hopefold.core.backprop import MapBackprop
from hopefold.core.masks import Masks
from hopefold.core.neighborhoods import (
    affinity_loss_and_gradient,
    input_affinities,
    landmark_loss_and_gradient,
)
from hopefold.core.objectives import (
    class_probabilities,
    exemplar_loss_and_gradient,
    pair_loss_and_gradient,
    pseudo_labels,
)
from hopefold.data.distortion import distort
from hopefold.data.scaling import Scale
from hopefold.fitting.batch import Batch
from hopefold.training.optimizers import LossWithGradients

if TYPE_CHECKING:
    from jaxtyping import Float

#: A row whose gradient is smaller is not perturbed.
NO_GRADIENT = 1e-12

#: The loss of a batch under a map; the masks decide what the map drops: nothing without any.
Loss = Callable[[Any, Batch, Masks | None], Tensor | LossWithGradients]


class PointLoss(Protocol):
    """From points of rows, and of exemplars below them, to a loss and its gradient.

    Of a batch that is shared between processes it is this process's part: the parts sum to the
    loss of the whole batch.
    """

    @property
    def has_exemplars(self) -> bool:
        """Are there points of exemplars below those of the rows?"""

    def __call__(self, points: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The loss, and its gradient with respect to the points."""


def onto_exemplars(objective: Callable[..., Tensor]) -> Loss:
    """The loss of an objective between the points of a batch and those of the exemplars."""

    def loss(map_: Any, batch: Batch, masks: Masks | None) -> Tensor:
        exemplars = map_(batch.exemplars * batch.varies)
        labels, weights = batch.exemplar_labels, batch.exemplar_weights
        points = map_(batch.x, masks)
        return objective(points, batch.labels, exemplars, labels, batch.weights, weights)

    return loss


def onto_pairs(objective: Callable[..., Tensor]) -> Loss:
    """The loss of an objective between all points of a batch."""

    def loss(map_: Any, batch: Batch, masks: Masks | None) -> Tensor:
        return objective(map_(batch.x, masks), batch.labels, batch.weights)

    return loss


@dataclass(frozen=True)
class ExemplarLoss:
    """Collapse onto exemplars, or spread over them, and preserve structure to a share.

    The share ``structure`` of the loss asks that rows, of whatever class, stay as near to the
    exemplars without a class (landmarks) as they are.
    """

    spread: bool
    structure: float = 0.0
    has_exemplars: bool = True

    def __call__(self, points: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The loss and its gradient."""
        if not batch.labels.shape[0]:
            return points.new_zeros(()), torch.zeros_like(points)
        of = self._with_structure if self.structure else self._of_classes
        value, gradient = of(points, batch)
        if batch.whole is None:
            return value, gradient
        share = batch.whole.share
        return value * share, gradient.mul_(share)

    def _of_classes(self, points: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        return exemplar_loss_and_gradient(
            points,
            batch.labels,
            batch.exemplar_labels,
            batch.weights,
            batch.exemplar_weights,
            spread=self.spread,
        )

    def _with_structure(self, points: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The loss of classes on exemplars that have one, that of structure on the landmarks."""
        assert batch.affinities is not None
        n_rows, n_classed, structure = batch.labels.shape[0], batch.n_classed, self.structure
        y, classed, landmarks = points.tensor_split([n_rows, n_rows + n_classed])
        value, grads = landmark_loss_and_gradient(y, landmarks, batch.affinities)
        gradient = torch.cat([grads[0], torch.zeros_like(classed), grads[1]]).mul_(structure)
        value = value * structure
        if n_classed and structure < 1:
            with_class = slice(n_rows + n_classed)
            loss, grad = self._of_classes(points[with_class], batch.without_landmarks())
            value = value + (1 - structure) * loss
            gradient[with_class].add_(grad, alpha=1 - structure)
        return value, gradient


@dataclass(frozen=True)
class PairLoss:
    """Collapse onto pairs, and preserve structure to a share.

    The share ``structure`` of the loss asks that rows, of whatever class, keep their neighbors in
    the batch.
    """

    conditional: bool
    structure: float = 0.0
    perplexity: float = 0.0
    has_exemplars: bool = False

    def __call__(self, points: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The loss and its gradient."""
        whole, x = batch.whole, batch.x if self.structure else None
        if whole is None:
            return self._of_all(points, x, batch.labels, batch.weights)
        everywhere = whole.gather(points)
        x = None if x is None else whole.gather(x)
        value, gradient = self._of_all(everywhere, x, whole.labels, whole.weights)
        return value * whole.share, gradient[whole.places]

    def _of_all(
        self, y: Tensor, x: Tensor | None, labels: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if x is None:
            value, (gradient,) = pair_loss_and_gradient(
                y, labels, weights, conditional=self.conditional
            )
            return value, gradient
        structure = self.structure
        value, (gradient,) = affinity_loss_and_gradient(y, input_affinities(x, self.perplexity))
        value, gradient = value * structure, gradient * structure
        known = (labels >= 0).nonzero().squeeze(1)
        if len(known) and structure < 1:
            some = None if weights is None else weights[known]
            loss, (grad,) = pair_loss_and_gradient(
                y[known], labels[known], some, conditional=self.conditional
            )
            value = value + (1 - structure) * loss
            gradient.index_add_(0, known, grad, alpha=1 - structure)
        return value, gradient


class HighOrderLoss:
    """A loss on points, through a high-order map, with the gradients of weights and exemplars.

    With a ``radius``, it is the mean of the loss and of the same loss where each row is moved by
    the radius along its L2-normalized gradient: adversarial training (Goodfellow et al., 2015;
    Miyato et al., 2018). The map then changes slowly around the rows that it has seen.

    An instance belongs to one run. Its state is the workspace of the map's backward pass, and the
    last batch with its pseudo-labels, which a line search comes back to. The gradients that a call
    returns are valid until the next call.
    """

    def __init__(self, point_loss: PointLoss, *, radius: float = 0.0) -> None:
        self._point_loss = point_loss
        self._radius = radius
        self._backprop: MapBackprop | None = None
        self._last: Batch | None = None
        self._pseudo_labeled: Batch | None = None

    @torch.inference_mode()
    def __call__(self, map_: Any, batch: Batch, masks: Masks | None) -> LossWithGradients:
        """Forward, the loss of the points, where asked the adversarial points, backward."""
        if self._backprop is None or self._backprop.map is not map_:
            self._backprop = MapBackprop(map_)
        backprop, has_exemplars = self._backprop, self._point_loss.has_exemplars
        rows = batch.stacked() if has_exemplars else batch.x
        points = backprop.forward(rows, masks)
        if batch.pseudo_labeling is not None:
            batch = self._with_pseudo_labels(points, batch)
        value, gradient = self._point_loss(points, batch)
        if self._radius:
            value, gradient = self._adversarial(rows, points, batch, value, gradient)
        backprop.backward(gradient, add=self._radius > 0)
        gradients = backprop.gradients
        if has_exemplars:
            of_exemplars = backprop.grad_rows(slice(batch.labels.shape[0], None))
            gradients[batch.exemplars] = of_exemplars.mul_(batch.varies)
        return LossWithGradients(value, gradients)

    def _adversarial(
        self, rows: Tensor, points: Tensor, batch: Batch, value: Tensor, gradient: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The mean of this loss and of that of the perturbed rows.

        Exemplars are not perturbed: they go forward once, and wait for the second backward pass.
        """
        assert self._backprop is not None
        n_rows = batch.labels.shape[0]
        of_exemplars = gradient[n_rows:]
        self._backprop.backward(gradient[:n_rows].div_(2))
        perturbed = self._perturb(rows, n_rows)
        moved = self._backprop.forward(perturbed, new=slice(n_rows))
        other, gradient = self._point_loss(torch.cat([moved, points[n_rows:]]), batch)
        gradient[n_rows:].add_(of_exemplars)
        return (value + other) / 2, gradient.div_(2)

    def _perturb(
        self, rows: Float[Tensor, "n+z features"], n_rows: int
    ) -> Float[Tensor, "n+z features"]:
        """After a backward pass: the first rows moved along their gradient, the others as is."""
        assert self._backprop is not None
        moved = self._backprop.workspace.take("perturbed", rows.shape, rows)
        step = self._backprop.grad_rows(slice(n_rows), out=moved[:n_rows])
        norms = torch.linalg.vector_norm(step, dim=1, keepdim=True).clamp_min_(NO_GRADIENT)
        step.mul_(self._radius / norms).add_(rows[:n_rows])
        moved[n_rows:] = rows[n_rows:]
        return moved

    def _with_pseudo_labels(self, points: Tensor, batch: Batch) -> Batch:
        if self._last is not batch or self._pseudo_labeled is None:
            self._last, self._pseudo_labeled = batch, add_pseudo_labels(points, batch)
        return self._pseudo_labeled


def add_pseudo_labels(points: Float[Tensor, "n+z d"], batch: Batch) -> Batch:
    """The same batch, with the classes that the map predicts for the rows without a label.

    A class that is predicted more often than it is known becomes less likely, and the other way
    round (distribution alignment): otherwise large classes would swallow small ones. A row counts
    for as much as its class is likelier than the next one, times the strength of pseudo-labels.
    """
    labeling, whole = batch.pseudo_labeling, batch.whole
    assert labeling is not None
    y, exemplars = points.tensor_split([len(batch.labels)])
    classed = exemplars[: batch.n_classed], batch.exemplar_labels[: batch.n_classed]
    shares = class_probabilities(y if whole is None else whole.gather(y), *classed)
    predicted = shares[(batch if whole is None else whole).labels < 0].sum(dim=0)
    expected = labeling.expected * predicted.sum()
    factors = (expected + 1) / (predicted + 1)  # of few rows, nothing follows
    labels, margins = pseudo_labels(shares if whole is None else shares[whole.places], factors)
    confidence = labeling.strength * labeling.weights[labels]
    known = batch.labels >= 0
    given = torch.ones_like(margins) if batch.weights is None else batch.weights
    return replace(
        batch,
        labels=torch.where(known, batch.labels, labels),
        weights=torch.where(known, given, margins * confidence),
    )


def of_distorted_images(loss: Loss, image_shape: tuple[int, int], how: str, scale: Scale) -> Loss:
    """The same loss of images that are distorted at random.

    A pixel that is constant is 0 in the scale of the map. It is moved as what it is among the
    others, which share one scale, and what has moved to its place is 0 again.
    """
    varies = scale.gain != 0
    shift, gain = (values[varies][:1] for values in (scale.shift, scale.gain))
    constant = torch.from_numpy(np.where(varies, 0, (scale.shift - shift) * gain)).float()
    kept = torch.from_numpy(varies)

    def distorted(map_: Any, batch: Batch, masks: Masks | None) -> Tensor | LossWithGradients:
        assert masks is not None
        x = batch.x + constant.to(batch.x.device)
        x = distort(x, image_shape, how, masks.normal) * kept.to(x.device)
        return loss(map_, batch.with_rows(x), masks)

    return distorted
