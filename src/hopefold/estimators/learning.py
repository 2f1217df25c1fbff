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
from hopefold.training.loop import Run, minimise
from hopefold.training.progress import Progress
from hopefold.training.settings import Training

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray

#: Rows that are looked at to find a start: for the weights, and for the k-means of a class.
START_ROWS = 2_000

#: Training points that serve as references for the validation error of an epoch.
VALIDATION_REFERENCES = 10_000

#: Numbers of a table that are embedded at once while validating.
BLOCK = 2**22

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
    """A map, its exemplars in the map's scale (none: training points are the references)."""

    map: nn.Module
    exemplars: Tensor | None
    exemplar_labels: Int[ndarray, " z"] | None
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
    sample = random.permutation(training)[:START_ROWS]
    map_.start(task.rows.fetch(np.sort(sample)), generator)  # type: ignore[operator]
    map_.to(task.device)
    exemplars, exemplar_labels = _start_exemplars(task, training, random)

    groups = {"map": list(map_.parameters())}
    if task.exemplars == "joint":
        assert exemplars is not None
        groups["exemplars"] = [exemplars]
    run = minimise(
        _loss(task, map_, training, exemplars, exemplar_labels),
        groups,
        len(training),
        settings,
        generator,
        progress,
        validation_error=_validator(
            task, map_, training, held_out, exemplars, exemplar_labels, random
        )
        if len(held_out)
        else None,
    )
    return Learned(
        map_.cpu().requires_grad_(False),
        None if exemplars is None else exemplars.detach().cpu(),
        exemplar_labels,
        run,
    )


def hold_out(
    labels: Int[ndarray, " n"], fraction: float, keep: int, random: np.random.RandomState
) -> tuple[Int[ndarray, " t"], Int[ndarray, " h"]]:
    """A stratified split into training and held-out rows; a class keeps at least ``keep`` rows."""
    held_out = []
    for label in range(labels.max() + 1):
        members = random.permutation(np.flatnonzero(labels == label))
        n_held_out = min(round(fraction * len(members)), max(0, len(members) - keep))
        held_out.append(members[:n_held_out])
    chosen = np.sort(np.concatenate(held_out))
    return np.setdiff1d(np.arange(len(labels)), chosen, assume_unique=True), chosen


def _start_exemplars(
    task: Task, training: ndarray, random: np.random.RandomState
) -> tuple[nn.Parameter | None, ndarray | None]:
    if task.exemplars is None:
        return None, None
    labels = task.labels[training]
    sizes = np.bincount(labels, minlength=task.n_classes)
    centres, exemplar_labels = kmeans_per_class(
        lambda members: task.rows.fetch_for_clustering(training[members]),
        labels,
        np.minimum(sizes, task.n_exemplars).tolist(),
        random,
        max_rows=START_ROWS if task.exemplars == "joint" else None,
    )
    centres = (centres + task.rows.clustering_shift).astype(np.float32)
    return nn.Parameter(torch.from_numpy(centres).to(task.device)), exemplar_labels


def _loss(
    task: Task,
    map_: nn.Module,
    training: ndarray,
    exemplars: nn.Parameter | None,
    exemplar_labels: ndarray | None,
) -> Callable[[Tensor, int], Tensor]:
    """The objective of a batch of training rows, with random masks that a seed decides."""
    weighted = bool((task.class_weights != 1).any())
    weights = task.class_weights / task.class_weights[task.labels[training]].mean()
    weights = torch.from_numpy(weights).float().to(task.device)
    masks = torch.Generator(device=task.device)
    objective = OBJECTIVES[task.objective]

    def of_batch(batch: Tensor, seed: int) -> tuple[Tensor, Tensor, Tensor | None]:
        which = training[batch.numpy()]
        labels = torch.from_numpy(task.labels[which]).to(task.device)
        y = map_(task.rows.fetch(which).to(task.device), masks.manual_seed(seed))
        return y, labels, weights[labels] if weighted else None

    def onto_pairs(batch: Tensor, seed: int) -> Tensor:
        return collapse_onto_pairs(*of_batch(batch, seed), conditional=task.conditional)

    if task.exemplars != "joint":
        return onto_pairs

    targets = torch.from_numpy(exemplar_labels).to(task.device)
    target_weights = weights[targets] if weighted else None

    def onto_exemplars(batch: Tensor, seed: int) -> Tensor:
        y, labels, w = of_batch(batch, seed)
        return objective(y, labels, map_(exemplars), targets, w, target_weights)

    return onto_exemplars


def _validator(
    task: Task,
    map_: nn.Module,
    training: ndarray,
    held_out: ndarray,
    exemplars: nn.Parameter | None,
    exemplar_labels: ndarray | None,
    random: np.random.RandomState,
) -> Callable[[], float]:
    """The held-out error of the map as it stands, by the same rule as `predict`."""
    labels = task.labels[held_out]
    weights = task.class_weights[labels]
    references = np.sort(random.permutation(training)[:VALIDATION_REFERENCES])

    def points(which: ndarray) -> ndarray:
        blocks = np.array_split(which, -(-len(which) * task.rows.n_features // BLOCK))
        return np.concatenate(
            [map_(task.rows.fetch(block).to(task.device)).cpu().numpy() for block in blocks]
        )

    @torch.no_grad()
    def validation_error() -> float:
        if exemplars is None or exemplar_labels is None:
            embedded, targets = points(references), task.labels[references]
        else:
            embedded, targets = map_(exemplars).cpu().numpy(), exemplar_labels
        shares = class_shares(
            points(held_out), embedded, targets, task.class_weights, task.n_neighbors
        )
        return float(np.average(shares.argmax(axis=1) != labels, weights=weights))

    return validation_error
