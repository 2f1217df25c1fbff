"""From rows and labels to a map and its exemplars: the four choices of a method, put to work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from hopefold.core.exemplars import kmeans_per_class
from hopefold.core.neighbors import class_shares
from hopefold.core.objectives import (
    collapse_onto_exemplars,
    collapse_onto_pairs,
    spread_over_exemplars,
)
from hopefold.data.rows import Rows
from hopefold.estimators.embedding import embed
from hopefold.training.loop import Run, minimise
from hopefold.training.progress import Progress
from hopefold.training.settings import Training

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray

#: Rows that the first weights are fitted to, and rows of a class that joint exemplars start from.
START_ROWS = 250
START_ROWS_A_CLASS = 2_000

#: Training points that serve as references for the validation error of an epoch.
VALIDATION_REFERENCES = 5_000

EXEMPLARS = ("joint", "kmeans", None)
OBJECTIVES = {"collapse": collapse_onto_exemplars, "spread": spread_over_exemplars}


@dataclass(frozen=True)
class Task:
    """What is to be learned: the data in the map's scale, the references and the objective."""

    rows: Rows
    labels: Int[ndarray, " n"]
    class_weights: Float[ndarray, " classes"]
    exemplars: str | None
    n_exemplars: int
    objective: str
    conditional: bool
    n_neighbors: int | None
    device: torch.device
    seed: int

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_weights)


@dataclass(frozen=True)
class Learned:
    """A map, and its exemplars in the map's scale (none: training points are the references)."""

    map: nn.Module
    exemplars: ndarray | None
    labels: Int[ndarray, " z"]
    run: Run


def learn(
    task: Task,
    map_: nn.Module,
    training: Int[ndarray, " t"],
    held_out: Int[ndarray, " h"],
    settings: Training,
    progress: Progress,
) -> Learned:
    """Start the map and the exemplars, minimise the objective, and hand both back on the CPU."""
    random = np.random.RandomState(task.seed)
    generator = torch.Generator().manual_seed(task.seed)
    sample = np.sort(random.permutation(training)[:START_ROWS])
    map_.start(task.rows.fetch(sample), generator)  # type: ignore[operator]
    map_.to(task.device)

    exemplars, labels = start_exemplars(task, training, random)
    attempt = _Attempt(task, map_, training, exemplars, labels)

    groups = {"map": list(map_.parameters())}
    if task.exemplars == "joint":
        groups["exemplars"] = [attempt.exemplars]
    run = minimise(
        attempt.loss_onto_exemplars if task.exemplars == "joint" else attempt.loss_onto_pairs,
        groups,
        len(training),
        settings,
        generator,
        progress,
        mistakes=attempt.validation_on(held_out, random) if len(held_out) else None,
    )
    map_ = map_.cpu().requires_grad_(False)
    if task.exemplars is None:
        return Learned(map_, None, task.labels, run)
    return Learned(map_, attempt.exemplars.detach().cpu().numpy(), labels, run)


def hold_out(
    labels: Int[ndarray, " n"], fraction: float, keep: int, random: np.random.RandomState
) -> tuple[Int[ndarray, " t"], Int[ndarray, " h"]]:
    """A stratified split into training and held-out rows; a class keeps at least ``keep`` rows.

    Each class gives the whole part of its share; what is missing to the share of the table comes
    from the classes with the largest rest.
    """
    sizes = np.bincount(labels)
    most = np.maximum(sizes - keep, 0)
    numbers = np.minimum(np.floor(fraction * sizes).astype(int), most)
    rest = fraction * sizes - numbers + 1e-6 * random.rand(len(sizes))
    rest[numbers == most] = -1
    missing = min(round(fraction * len(labels)) - numbers.sum(), np.count_nonzero(rest >= 0))
    numbers[np.argsort(-rest, kind="stable")[: max(missing, 0)]] += 1
    shuffled = random.permutation(len(labels))
    by_class = [shuffled[labels[shuffled] == label][:n] for label, n in enumerate(numbers)]
    chosen = np.sort(np.concatenate(by_class))
    return np.setdiff1d(np.arange(len(labels)), chosen, assume_unique=True), chosen


def start_exemplars(
    task: Task, training: Int[ndarray, " t"], random: np.random.RandomState
) -> tuple[Float[Tensor, "z features"], Int[ndarray, " z"]]:
    """The k-means centres of each class among the training rows, in the map's scale."""
    if task.exemplars is None:
        return torch.empty(0, task.rows.n_features), np.empty(0, dtype=int)
    labels = task.labels[training]
    sizes = np.bincount(labels, minlength=task.n_classes)
    centres, exemplar_labels = kmeans_per_class(
        lambda members: task.rows.fetch_for_clustering(training[members]),
        labels,
        np.minimum(sizes, task.n_exemplars).tolist(),
        random,
        max_rows=START_ROWS_A_CLASS if task.exemplars == "joint" else None,
    )
    centres = (centres + task.rows.clustering_shift).astype(np.float32)
    return torch.from_numpy(centres), exemplar_labels


class _Attempt:
    """A map and exemplars on their way: the loss of a batch, and the mistakes on held-out rows."""

    def __init__(
        self,
        task: Task,
        map_: nn.Module,
        training: ndarray,
        exemplars: Tensor,
        exemplar_labels: ndarray,
    ) -> None:
        self.exemplars = nn.Parameter(exemplars.to(task.device))
        self._exemplar_labels = exemplar_labels
        self._task = task
        self._map = map_
        self._training = training
        self._masks = torch.Generator(device=task.device)
        self._targets = torch.from_numpy(exemplar_labels).to(task.device)
        weights = task.class_weights / task.class_weights[task.labels[training]].mean()
        self._weights = torch.from_numpy(weights).float().to(task.device)
        self._weighted = bool((task.class_weights != 1).any())
        self._batch: Tensor | None = None

    def loss_onto_exemplars(self, batch: Tensor, seed: int) -> Tensor:
        """The objective of a batch against the exemplars, with masks that the seed decides."""
        points, labels, weights = self._embed_batch(batch, seed)
        return OBJECTIVES[self._task.objective](
            points,
            labels,
            self._map(self.exemplars),
            self._targets,
            weights,
            self._weights[self._targets] if self._weighted else None,
        )

    def loss_onto_pairs(self, batch: Tensor, seed: int) -> Tensor:
        """The objective of all pairs of a batch, with masks that the seed decides."""
        points, labels, weights = self._embed_batch(batch, seed)
        return collapse_onto_pairs(points, labels, weights, conditional=self._task.conditional)

    def validation_on(
        self, held_out: ndarray, random: np.random.RandomState
    ) -> Callable[[], ndarray]:
        """How wrong the map, as it stands, is on each held-out row, by the rule of `predict`."""
        task = self._task
        weights = task.class_weights[task.labels[held_out]]
        neighbours = np.sort(random.permutation(self._training)[:VALIDATION_REFERENCES])

        @torch.no_grad()
        def mistakes() -> ndarray:
            if task.exemplars is None:
                references, labels = self._points(neighbours), task.labels[neighbours]
            else:
                references, labels = self._map(self.exemplars).cpu().numpy(), self._exemplar_labels
            points = self._points(held_out)
            if not (np.isfinite(points).all() and np.isfinite(references).all()):
                return np.full(len(held_out), np.nan)
            shares = class_shares(points, references, labels, task.class_weights, task.n_neighbors)
            return (shares.argmax(axis=1) != task.labels[held_out]) * (weights / weights.mean())

        return mistakes

    def _points(self, which: ndarray) -> ndarray:
        return embed(self._map, self._task.rows.subset(which), self._task.device)

    def _embed_batch(self, batch: Tensor, seed: int) -> tuple[Tensor, Tensor, Tensor | None]:
        if batch is not self._batch:  # a line search and taking turns come back to the same rows
            which = self._training[batch.numpy()]
            self._batch = batch
            self._labels = torch.from_numpy(self._task.labels[which]).to(self._task.device)
            self._rows = self._task.rows.fetch(which).to(self._task.device)
        points = self._map(self._rows, self._masks.manual_seed(seed))
        return points, self._labels, self._weights[self._labels] if self._weighted else None
