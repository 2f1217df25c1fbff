"""The state of `partial_fit`: a map and exemplars that learn from some rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from hopefold.fitting.build import Method, Start, start_exemplars
from hopefold.fitting.plan_values import Plan
from hopefold.fitting.task import Task
from hopefold.training.optimizers import Groups, Optimizer, make_optimizer
from hopefold.training.settings import Training

if TYPE_CHECKING:
    from jaxtyping import Int
    from numpy import ndarray

#: How far the exemplars of a class that no row has shown yet lie apart, in shares of the spread.
APART = 0.1


class IncrementalState:
    """A map, its exemplars, and what the optimizer remembers, between calls of `partial_fit`."""

    def __init__(
        self, plan: Plan, task: Task, map_: nn.Module, exemplars: ndarray, labels: ndarray
    ) -> None:
        self.map = map_.to(plan.device).requires_grad_()
        self.exemplars = nn.Parameter(torch.from_numpy(exemplars).float().to(plan.device))
        self.labels: Int[ndarray, " z"] = labels
        self.generator = torch.Generator().manual_seed(task.seed)
        self._optimizer: Optimizer | None = None
        #: The map that was published last: another one was fitted or loaded since.
        self.published: nn.Module | None = None
        #: The columns that the fit before has eliminated.
        self._eliminated: Tensor | None = None

    @classmethod
    def of_model(
        cls, method: Method, task: Task, map_: nn.Module, exemplars: ndarray, labels: ndarray
    ) -> IncrementalState:
        """From a fitted or loaded model on, with the dropout of the plan."""
        same: Any = method.make_map(task.rows.n_features)
        same.load_state_dict(map_.state_dict())
        state = cls(method.plan, task, same, exemplars, labels)
        state._eliminated = (same.layers[0].C == 0).all(dim=0)
        return state

    @classmethod
    def start(cls, method: Method, task: Task) -> IncrementalState:
        """From the first rows; exemplars of classes that they do not have start in the middle."""
        plan, everything = method.plan, np.arange(len(task.labels))
        random = np.random.RandomState(task.seed)
        map_ = method.make_learning_map(task.rows.n_features)
        generator = torch.Generator().manual_seed(task.seed)
        method.start_map(map_, Start(task, everything, random, generator))
        exemplars, labels = start_exemplars(plan, task, everything, random)
        unseen = np.repeat(np.setdiff1d(np.arange(task.n_classes), labels), plan.n_exemplars)
        middle = exemplars.mean(dim=0).numpy()
        step = APART * task.spread(everything) / np.sqrt(len(middle))
        somewhere = middle + step * random.normal(size=(len(unseen), len(middle)))
        together = np.concatenate([exemplars.numpy(), somewhere])
        return cls(plan, task, map_, together, np.concatenate([labels, unseen]))

    def optimizer(self, groups: Groups, settings: Training) -> Optimizer:
        """The optimizer, which remembers the calls before."""
        if self._optimizer is None:
            self._optimizer = make_optimizer(groups, settings)
        return self._optimizer

    @torch.no_grad()
    def leave_out_eliminated(self) -> None:
        """Set the weights of columns that were eliminated to 0 again."""
        if self._eliminated is not None:
            first: Any = self.map
            first.layers[0].C[:, self._eliminated] = 0

    def is_finite(self) -> bool:
        """Are all weights and exemplars numbers?"""
        return all(bool(v.isfinite().all()) for v in (*self.map.parameters(), self.exemplars))
