"""Methods that learn their map by gradients, whatever the map and the loss."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from hopefold.estimators.base import SupervisedEmbedding
from hopefold.estimators.learning import Learned, Start, Task, learn
from hopefold.estimators.losses import Loss
from hopefold.estimators.memory import check_memory
from hopefold.estimators.parameters import TrainingParameters
from hopefold.training.progress import Progress

if TYPE_CHECKING:
    from numpy import ndarray

#: Rows that the first weights are fitted to.
START_ROWS = 250


class GradientEmbedding(SupervisedEmbedding, TrainingParameters):
    """A map × a loss, minimised over mini-batches.

    A subclass says what both are in `_make_map` and `_make_loss`.
    """

    def _make_loss(self, task: Task, training: ndarray) -> Loss:
        raise NotImplementedError

    def sizes(self) -> dict[str, int]:
        """The sizes of the map that a user can set, by name."""
        return {}

    def _map_to_learn(self, n_features: int) -> nn.Module:
        """The map as it is learned: the one that is kept, or another form of it."""
        return self._make_map(n_features)

    def _start_map(self, map_: Any, start: Start) -> None:
        """Draw the first weights, so that a sample of the rows spreads as it should."""
        map_.start(start.fetch(START_ROWS), start.generator)

    def _finish(self, map_: Any) -> nn.Module:
        """The map as it is kept."""
        return map_

    def _with_spare(self, map_: Any, start: Start) -> nn.Module:
        """The map that is learned: the map itself, or one around it that has more coordinates."""
        return map_

    def _learn_from(
        self, task: Task, training: ndarray, held_out: ndarray, like: Learned | None = None
    ) -> Learned:
        """Minimise over the training rows; the best epoch on the held-out rows is kept."""
        settings = self._settings(len(training), task.n_classes, sparse=task.rows.is_sparse)
        with torch.device("meta"):  # sizes alone
            map_ = self._map_to_learn(task.rows.n_features)
        pairs = self.exemplars != "joint"
        check_memory(map_, len(training), settings.batch_size, pairs=pairs, sizes=self.sizes())
        title = type(self).__name__
        if like is not None:
            settings, title = replace(settings, max_epochs=like.run.epochs), f"{title}, all rows"
        with Progress(title, settings.max_epochs, verbose=self.verbose > 0) as progress:
            return learn(self, task, training, held_out, settings, progress)
