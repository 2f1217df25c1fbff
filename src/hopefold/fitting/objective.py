"""The loss of a run as the training loop sees it: of row numbers, a seed and the progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from hopefold.core.maps import Pressed
from hopefold.core.masks import MaskSampler
from hopefold.fitting.batch import Batch, GlobalBatch, PseudoLabeling
from hopefold.fitting.held_out import evaluate, training_sample
from hopefold.fitting.losses import Loss
from hopefold.fitting.plan_values import Plan
from hopefold.fitting.task import Task
from hopefold.training.optimizers import Groups, LossWithGradients

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray

#: Share of the run after which spare coordinates are flat, and after which pseudo-labels count in
#: full.
FLAT, CONFIDENT = 0.8, 0.5

#: Training points that serve as references for the validation error of an epoch.
VALIDATION_REFERENCES = 5_000


class Objective:
    """A map and exemplars that are being learned, and the loss of a batch of rows under them.

    ``learning_map`` is what is optimized: ``map_`` itself, or a map around it with spare
    coordinates. Batches are fetched into one buffer; a batch is valid until the next is fetched.
    """

    def __init__(
        self,
        plan: Plan,
        task: Task,
        map_: nn.Module,
        learning_map: nn.Module,
        loss: Loss,
        training: ndarray,
        exemplars: Tensor,
        exemplar_labels: ndarray,
    ) -> None:
        self._plan, self._task, self._loss = plan, task, loss
        self._device = torch.device(plan.device)
        if not isinstance(exemplars, nn.Parameter):
            exemplars = nn.Parameter(exemplars.to(self._device))
        self.exemplars: nn.Parameter = exemplars
        self.exemplar_labels = exemplar_labels
        self.map, self._learning_map = map_, learning_map
        self.rows = training
        self._sampler = MaskSampler(task.seed, self._device)
        self._varies = torch.from_numpy(task.varies).float().to(self._device)
        size = (0, task.rows.n_features)
        self._table = torch.empty(size, dtype=torch.float32, device=self._device)
        self._targets = torch.from_numpy(exemplar_labels).to(self._device)
        labeled = task.labeled(training)
        weights = task.class_weights
        if len(labeled):
            weights = weights / weights[task.labels[labeled]].mean()
        self._weights = torch.from_numpy(weights).float().to(self._device)
        self._is_weighted = bool((weights != 1).any())
        sizes = np.bincount(task.labels[labeled], minlength=task.n_classes)
        self._expected = torch.from_numpy(sizes / max(1, len(labeled))).float().to(self._device)
        self._numbers: Tensor | None = None

    @property
    def groups(self) -> Groups:
        """What is optimized, by name."""
        groups = {"map": list(self._learning_map.parameters())}
        if self._plan.exemplars == "joint":
            groups["exemplars"] = [self.exemplars]
        return groups

    def loss(self, numbers: Tensor, seed: int, done: float) -> Tensor | LossWithGradients:
        """The loss of the rows with these numbers, with masks that the seed decides."""
        if numbers is not self._numbers:  # a line search and groups in turn come back to the same
            self._numbers, self._batch = numbers, self._next(self.rows[numbers.numpy()])
            if self._plan.pseudo_labels:
                strength = min(1.0, done / CONFIDENT)
                labeling = PseudoLabeling(strength, self._expected, self._weights)
                self._batch = replace(self._batch, pseudo_labeling=labeling)
        if isinstance(self._learning_map, Pressed):
            self._learning_map.height = max(0.0, 1 - done / FLAT)
        whole, group = self._batch.whole, self._task.sharding.group
        masks = self._sampler.masks(seed, numbers.shape[0], whole.places if whole else None)
        loss = self._loss(self._learning_map, self._batch, masks)
        if group.size > 1:
            assert isinstance(loss, LossWithGradients)  # checked before the fit
            group.all_reduce([loss.value, *loss.gradients.values()])
        return loss

    def learned_exemplars(self) -> Float[Tensor, "z features"]:
        """The exemplars as they stand; nothing is learned for a column that is constant."""
        return self.exemplars * self._varies

    def save(self) -> list[Tensor]:
        """Copies of the weights of the map and of the exemplars."""
        return [parameter.detach().clone() for parameter in self._parameters()]

    @torch.no_grad()
    def restore(self, saved: list[Tensor]) -> None:
        """Set the map and the exemplars to what `save` has returned."""
        for parameter, value in zip(self._parameters(), saved, strict=True):
            parameter.copy_(value)

    def _parameters(self) -> list[nn.Parameter]:
        return [*self.map.parameters(), self.exemplars]

    def training_errors(self) -> ndarray:
        """`misclassified` rows of a sample of the training rows."""
        rows = training_sample(self._task, self.rows)
        return self.validation_on(rows, np.random.RandomState(0))()

    def validation_on(
        self, held_out: ndarray, random: np.random.RandomState
    ) -> Callable[[], ndarray]:
        """A function that gives the misclassified held-out rows of the map as it stands."""
        plan, task, references = self._plan, self._task, self.rows[:0]
        if plan.exemplars is None:
            references = np.unique(task.labeled(self.rows))
            references = np.sort(random.permutation(references)[:VALIDATION_REFERENCES])

        def now() -> ndarray:
            exemplars, labels = self.learned_exemplars(), self.exemplar_labels
            if (labels < 0).any():
                exemplars, labels = exemplars[torch.from_numpy(labels >= 0)], labels[labels >= 0]
            return evaluate(plan, task, self.map, exemplars, labels, references, held_out)

        return now

    def _next(self, which: ndarray) -> Batch:
        """A batch, or the rows of it that this process has."""
        sharding = self._task.sharding
        if sharding.group.size == 1:
            return self._fetch(which)
        places, gather = sharding.share(which)
        labels = torch.from_numpy(self._task.labels[which]).to(self._device)
        weights = self._weights[labels] if self._is_weighted else None  # of no class: any
        here = torch.from_numpy(places).to(self._device)
        whole = GlobalBatch(here, labels, weights, gather)
        return replace(self._fetch(which[places]), whole=whole)

    def _fetch(self, which: ndarray) -> Batch:
        """Rows that this process has, in the buffer of the last ones."""
        task, n_rows, n_exemplars = self._task, len(which), self.exemplars.shape[0]
        if self._table.shape[0] < n_rows + n_exemplars:
            self._table = self._table.new_empty(n_rows + n_exemplars, task.rows.n_features)
        if self._device.type == "cpu":
            task.rows.here(which, out=self._table[:n_rows])
        else:
            self._table[:n_rows] = task.rows.here(which)
        labels = torch.from_numpy(task.labels[which]).to(self._device)
        x = self._table[:n_rows]
        return Batch(
            numbers=which,
            table=self._table[: n_rows + n_exemplars],
            labels=labels,
            weights=self._weights[labels] if self._is_weighted else None,
            exemplars=self.exemplars,
            varies=self._varies,
            exemplar_labels=self._targets,
            exemplar_weights=self._weights[self._targets] if self._is_weighted else None,
            affinities=task.landmarks.affinities(x, which) if task.landmarks else None,
        )
