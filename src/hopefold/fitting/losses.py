"""What a method minimises: the loss of a batch of rows under a map, whatever the two are.

Where the gradient is a formula all the way, from the objective through a high-order map, a loss
comes with it (`by_exemplars`, `by_pairs`); elsewhere autograd finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from hopefold.core.backprop import Passage
from hopefold.core.masks import Masks
from hopefold.core.neighborhoods import affinity_slopes, input_affinities, landmark_slopes
from hopefold.core.objectives import (
    exemplar_slopes,
    guess_classes,
    pair_slopes,
    shares_of_classes,
)
from hopefold.data.distortion import distort
from hopefold.data.scaling import Scale
from hopefold.training.optimizers import Known

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray

#: A row on which nothing pulls stays where it is.
NO_PULL = 1e-12


@dataclass(frozen=True)
class Whole:
    """A batch of which only some rows are here, in certain places; the others are elsewhere."""

    places: Int[Tensor, " n"]
    labels: Int[Tensor, " b"]
    weights: Float[Tensor, " b"] | None
    #: From the points of the rows that are here to those of all rows.
    gather: Callable[[Tensor], Tensor]

    @property
    def share(self) -> float:
        """Share of the rows that are here."""
        return len(self.places) / len(self.labels)


@dataclass(frozen=True)
class Belief:
    """How far guesses of classes are believed, from 0 to 1, and what is known of the classes."""

    strength: float
    #: The share of rows that each class has, and what a row of it weighs.
    expected: Float[Tensor, " classes"]
    weights: Float[Tensor, " classes"]


@dataclass(frozen=True)
class Batch:
    """Some training rows, and the exemplars as they stand (none: a method on pairs)."""

    numbers: Int[ndarray, " n"]
    #: The rows, and room for the exemplars below them.
    table: Float[Tensor, "n+z features"]
    labels: Int[Tensor, " n"]
    weights: Float[Tensor, " n"] | None
    exemplars: Float[Tensor, "z features"]
    #: 1, and 0 for a column that is constant: nothing is learned for it.
    varies: Float[Tensor, " features"]
    exemplar_labels: Int[Tensor, " z"]
    exemplar_weights: Float[Tensor, " z"] | None
    #: The rows of the whole batch, where some of them are in other processes.
    whole: Whole | None = None
    #: How near the rows are to the exemplars that have no class, where neighbours are to be kept.
    affinities: Float[Tensor, "n landmarks"] | None = None
    #: How far rows without a class are held to the one that the map takes them for.
    belief: Belief | None = None

    @property
    def x(self) -> Float[Tensor, "n features"]:
        """The rows."""
        return self.table[: len(self.labels)]

    @property
    def n_classed(self) -> int:
        """Exemplars that have a class: the first ones."""
        n_landmarks = 0 if self.affinities is None else self.affinities.shape[1]
        return len(self.exemplar_labels) - n_landmarks

    def without_landmarks(self) -> Batch:
        """The same with the exemplars that have a class."""
        labels, weights = self.exemplar_labels, self.exemplar_weights
        return replace(
            self,
            exemplar_labels=labels[: self.n_classed],
            exemplar_weights=None if weights is None else weights[: self.n_classed],
            affinities=None,
        )

    def with_rows(self, x: Float[Tensor, "n features"]) -> Batch:
        """The same with other rows, in other memory."""
        return replace(self, table=torch.cat([x, self.table[len(x) :]]))


#: The loss of a batch under a map; the masks decide what the map drops: nothing without any.
Loss = Callable[[Any, Batch, Masks | None], Tensor | Known]

#: From the points of rows and of exemplars below them to a loss, and its gradient to them: what is
#: here of them, such that all processes together have the whole.
Measure = Callable[[Tensor, Batch], tuple[Tensor, Tensor]]


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


def by_exemplars(*, spread: bool, nudge: float, structure: float = 0.0) -> Loss:
    """Collapse onto exemplars, or spread over them, through a high-order map; with its gradient.

    The share ``structure`` of the loss asks that rows, of whatever class, keep as near to the
    exemplars without a class as they are.
    """

    def collapse(points: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        weights = (batch.weights, batch.exemplar_weights)
        return exemplar_slopes(points, batch.labels, batch.exemplar_labels, *weights, spread=spread)

    def measure(points: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        if not batch.labels.shape[0]:
            return points.new_zeros(()), torch.zeros_like(points)
        of = partial(_with_structure, collapse, structure) if structure else collapse
        value, gradient = of(points, batch)
        if batch.whole is None:
            return value, gradient
        share = batch.whole.share
        return value * share, gradient.mul_(share)

    return _by_formulas(measure, nudge, with_exemplars=True)


def _with_structure(
    collapse: Measure, structure: float, points: Tensor, batch: Batch
) -> tuple[Tensor, Tensor]:
    """Of rows and exemplars that have a class, the collapse; of all rows, whom they are near to."""
    assert batch.affinities is not None
    n_rows, n_classed = batch.labels.shape[0], batch.n_classed
    y, classed, landmarks = points.tensor_split([n_rows, n_rows + n_classed])
    value, (to_rows, to_landmarks) = landmark_slopes(y, landmarks, batch.affinities)
    gradient = torch.cat([to_rows, torch.zeros_like(classed), to_landmarks]).mul_(structure)
    value = value * structure
    if n_classed and structure < 1:
        with_class = slice(n_rows + n_classed)
        loss, pulls = collapse(points[with_class], batch.without_landmarks())
        value = value + (1 - structure) * loss
        gradient[with_class].add_(pulls, alpha=1 - structure)
    return value, gradient


def _guessed(points: Float[Tensor, "n+z d"], batch: Batch) -> Batch:
    """The same, with the classes that a map gives to the rows without one.

    A class that is guessed more often than it is known is less likely, and the other way round:
    otherwise large classes would swallow small ones. Such a row counts for as much as its class is
    likelier than the next one, and as guesses are believed.
    """
    assert batch.belief is not None
    y, exemplars = points.tensor_split([len(batch.labels)])
    classed = exemplars[: batch.n_classed], batch.exemplar_labels[: batch.n_classed]
    whole = batch.whole
    shares = shares_of_classes(y if whole is None else whole.gather(y), *classed)
    often = shares[(batch if whole is None else whole).labels < 0].sum(dim=0)
    expected = batch.belief.expected * often.sum()
    factors = (expected + 1) / (often + 1)  # of few rows, nothing follows
    guesses, margins = guess_classes(shares if whole is None else shares[whole.places], factors)
    believed = batch.belief.strength * batch.belief.weights[guesses]
    known = batch.labels >= 0
    given = torch.ones_like(margins) if batch.weights is None else batch.weights
    return replace(
        batch,
        labels=torch.where(known, batch.labels, guesses),
        weights=torch.where(known, given, margins * believed),
    )


def by_pairs(
    *, conditional: bool, nudge: float, structure: float = 0.0, perplexity: float = 0.0
) -> Loss:
    """Collapse onto pairs through a high-order map; with its gradient.

    The share ``structure`` of the loss asks that rows of whatever class keep their neighbours in
    the batch.
    """

    def of_all(
        y: Tensor, x: Tensor | None, labels: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if x is None:
            value, (slopes,) = pair_slopes(y, labels, weights, conditional=conditional)
            return value, slopes
        value, (slopes,) = affinity_slopes(y, input_affinities(x, perplexity))
        value, slopes = value * structure, slopes * structure
        known = (labels >= 0).nonzero().squeeze(1)
        if len(known) and structure < 1:
            some = None if weights is None else weights[known]
            loss, (pull,) = pair_slopes(y[known], labels[known], some, conditional=conditional)
            value = value + (1 - structure) * loss
            slopes.index_add_(0, known, pull, alpha=1 - structure)
        return value, slopes

    def measure(points: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        whole, x = batch.whole, batch.x if structure else None
        if whole is None:
            return of_all(points, x, batch.labels, batch.weights)
        everywhere = whole.gather(points)
        x = None if x is None else whole.gather(x)
        value, slopes = of_all(everywhere, x, whole.labels, whole.weights)
        return value * whole.share, slopes[whole.places]

    return _by_formulas(measure, nudge, with_exemplars=False)


def _by_formulas(measure: Measure, nudge: float, *, with_exemplars: bool) -> Loss:
    """What is measured on the points, and the gradients to the map and the exemplars.

    With a nudge, the mean of that and of the same where each row is moved against it, by this
    length. The way in which the loss of a row rises fastest leads to what the row is mistaken for.
    A map that is to keep the row's place there, too, changes slowly around what it has seen.
    Exemplars, which are not moved, go forth once, and wait for the second way back.
    """
    passages: dict[Any, Passage] = {}
    last: list[Batch] = []  # and the same with guesses: a line search comes back to them

    @torch.inference_mode()
    def loss(map_: Any, batch: Batch, masks: Masks | None) -> Known:
        if map_ not in passages:
            passages[map_] = Passage(map_)
        passage, n_rows = passages[map_], batch.labels.shape[0]
        rows = batch.table if with_exemplars else batch.x
        if with_exemplars:
            torch.mul(batch.exemplars, batch.varies, out=rows[n_rows:])
        points = passage.forth(rows, masks)
        if batch.belief is not None:
            if not last or last[0] is not batch:
                last[:] = batch, _guessed(points, batch)
            batch = last[1]
        value, gradient = measure(points, batch)
        if nudge:
            on_exemplars = gradient[n_rows:]
            passage.back(gradient[:n_rows].div_(2))
            moved = _nudged(passage, rows, n_rows, nudge)
            anew = passage.forth(moved, new=slice(n_rows))
            other, gradient = measure(torch.cat([anew, points[n_rows:]]), batch)
            gradient[n_rows:].add_(on_exemplars)
            value, gradient = (value + other) / 2, gradient.div_(2)
        passage.back(gradient, add=nudge > 0)
        slopes = passage.slopes
        if with_exemplars:
            to_exemplars = passage.to_rows(slice(n_rows, None))
            slopes[batch.exemplars] = to_exemplars.mul_(batch.varies)
        return Known(value, slopes)

    return loss


def _nudged(
    passage: Passage, rows: Float[Tensor, "n+z features"], n_rows: int, length: float
) -> Float[Tensor, "n+z features"]:
    """The rows, the first of them moved uphill by this length, after a way back."""
    moved = passage.take("moved", rows.shape, rows)
    uphill = passage.to_rows(slice(n_rows), out=moved[:n_rows])
    steepness = torch.linalg.vector_norm(uphill, dim=1, keepdim=True).clamp_min_(NO_PULL)
    uphill.mul_(length / steepness).add_(rows[:n_rows])
    moved[n_rows:] = rows[n_rows:]
    return moved


def of_distorted_images(loss: Loss, image_shape: tuple[int, int], how: str, scale: Scale) -> Loss:
    """The same loss of images that are distorted at random.

    A pixel that is constant is 0 in the scale of the map. It is moved as what it is among the
    others, which share one scale, and what has moved to its place is 0 again.
    """
    varies = scale.gain != 0
    shift, gain = (values[varies][:1] for values in (scale.shift, scale.gain))
    constant = torch.from_numpy(np.where(varies, 0, (scale.shift - shift) * gain)).float()
    kept = torch.from_numpy(varies)

    def distorted(map_: Any, batch: Batch, masks: Masks | None) -> Tensor | Known:
        assert masks is not None
        x = batch.x + constant.to(batch.x.device)
        x = distort(x, image_shape, how, masks.normal) * kept.to(x.device)
        return loss(map_, batch.with_rows(x), masks)

    return distorted
