"""From a plan to what it names: the map and where it starts, the exemplars, the loss."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from hopefold.core.exemplars import kmeans_per_class
from hopefold.fitting.losses import Loss
from hopefold.fitting.objective import Objective
from hopefold.fitting.plan_values import Plan
from hopefold.fitting.task import UNKNOWN, Learned, Task
from hopefold.training.loop import Run

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray

#: Rows that the first weights are fitted to.
START_ROWS = 250

#: Rows of a class that k-means sees: where its centers are what joint exemplars start from, and
#: where they are what is kept.
START_ROWS_PER_CLASS, MOST_ROWS_PER_CLASS = 2_000, 100_000


@dataclass(frozen=True)
class Start:
    """What a map starts from: the rows it may see, and the random numbers."""

    task: Task
    training: Int[ndarray, " t"]
    random: np.random.RandomState
    generator: torch.Generator
    verbose: bool = False

    def sample(self, n_rows: int) -> Int[ndarray, " s"]:
        """Numbers of some training rows at random, at most so many."""
        return np.sort(self.random.permutation(self.training)[:n_rows])

    def fetch(self, n_rows: int) -> Float[Tensor, "s features"]:
        """Some training rows at random, at most so many."""
        return self.task.rows.fetch(self.sample(n_rows))


class Method:
    """What a fit asks of a method: its map, how the map starts, and its loss.

    A method that learns by gradients defines `make_map` and `make_loss`; one that is solved in one
    go defines `make_map` and `solve`, and `is_solved`.
    """

    #: Does the method learn from rows alone where there are no labels?
    learns_without_labels: ClassVar[bool] = False

    #: Can several processes learn one map, each from a share of the rows?
    learns_in_parallel: ClassVar[bool] = False

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def make_map(self, n_features: int) -> nn.Module:
        """The map that is kept, with weights that are not set yet."""
        raise NotImplementedError

    def make_learning_map(self, n_features: int) -> nn.Module:
        """The map as it is learned: the one that is kept, or another form of it (`finish`)."""
        return self.make_map(n_features)

    def start_map(self, map_: Any, start: Start) -> None:
        """Draw the first weights, so that a sample of the rows spreads as it should."""
        map_.start(start.fetch(START_ROWS), start.generator)

    def add_spare_components(self, map_: nn.Module, start: Start) -> nn.Module:
        """The map that is optimized: the map itself, or one around it with more coordinates."""
        return map_

    def make_loss(self, task: Task, training: Int[ndarray, " t"]) -> Loss:
        """The loss of a batch."""
        raise NotImplementedError

    def finish(self, map_: Any) -> nn.Module:
        """The map as it is kept."""
        return map_

    @property
    def is_solved(self) -> bool:
        """Is the map found in one go, without the training loop?"""
        return False

    def solve(self, task: Task, training: ndarray, held_out: ndarray) -> Learned:
        """Find the map in one go."""
        raise NotImplementedError

    @property
    def sizes(self) -> dict[str, Any]:
        """The sizes of the map that a user can set, by name."""
        return {}

    @classmethod
    def sizes_of(cls, _weights: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
        """The sizes of a map that was learned, as decided settings of a plan."""
        return {}


def build(method: Method, start: Start) -> Objective:
    """The map, the exemplars and the loss of a run, all where they start."""
    plan, task, training = method.plan, start.task, start.training
    map_ = method.make_learning_map(task.rows.n_features)
    method.start_map(map_, start)
    learning_map = method.add_spare_components(map_, start).to(plan.device)
    exemplars, labels = start_exemplars(plan, task, training, start.random)
    loss = method.make_loss(task, training)
    rows = task.visits(training)
    objective = Objective(plan, task, map_, learning_map, loss, rows, exemplars, labels)
    group = task.sharding.group
    group.broadcast([*learning_map.state_dict().values(), objective.exemplars])
    return objective


def learned_so_far(method: Method, task: Task, objective: Objective, run: Run) -> Learned:
    """The map and the exemplars of an objective as they stand, on the CPU."""
    map_ = method.finish(copy.deepcopy(objective.map).cpu().requires_grad_(False))
    if method.plan.exemplars is None:
        return Learned(map_, None, task.labels, run, method.plan)
    exemplars = objective.learned_exemplars().detach().cpu().numpy()
    labels = objective.exemplar_labels
    if task.is_labeled:  # landmarks are not needed any more
        exemplars, labels = exemplars[labels >= 0], labels[labels >= 0]
    return Learned(map_, exemplars, labels, run, method.plan)


def start_exemplars(
    plan: Plan, task: Task, training: Int[ndarray, " t"], random: np.random.RandomState
) -> tuple[Float[Tensor, "z features"], Int[ndarray, " z"]]:
    """The k-means centers of each class among the training rows, then the landmarks."""
    nothing = torch.empty(0, task.rows.n_features), np.empty(0, dtype=int)
    if plan.exemplars is None:
        return nothing
    centers, labels = nothing
    if task.is_labeled:
        centers, labels = _centers_of_classes(plan, task, training, random)
    if task.landmarks is not None:
        more = task.landmarks.centers.cpu()
        centers, labels = torch.cat([centers, more]), np.append(labels, [UNKNOWN] * len(more))
    return centers, labels


def _centers_of_classes(
    plan: Plan, task: Task, training: Int[ndarray, " t"], random: np.random.RandomState
) -> tuple[Float[Tensor, "z features"], Int[ndarray, " z"]]:
    training = task.labeled(training)
    labels = task.labels[training]
    sizes = np.bincount(labels, minlength=task.n_classes)
    centers, exemplar_labels = kmeans_per_class(
        lambda members: task.rows.fetch_for_clustering(training[members]),
        labels,
        np.minimum(sizes, plan.n_exemplars).tolist(),
        random,
        max_rows=START_ROWS_PER_CLASS if plan.exemplars == "joint" else MOST_ROWS_PER_CLASS,
    )
    centers = (centers + task.rows.clustering_shift).astype(np.float32)
    return torch.from_numpy(centers), exemplar_labels
