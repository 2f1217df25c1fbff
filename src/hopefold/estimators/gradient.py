"""Methods that learn their map by gradients, whatever the map and the loss."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import nn

from hopefold.estimators.base import SupervisedEmbedding
from hopefold.estimators.parameters import PASSING, TrainingParameters
from hopefold.fitting.learning import Learned, Start, Task, learn
from hopefold.fitting.losses import Loss
from hopefold.fitting.memory import check_memory
from hopefold.training.checkpoints import hold
from hopefold.training.progress import Progress

if TYPE_CHECKING:
    from numpy import ndarray

#: Rows that the first weights are fitted to.
START_ROWS = 250

#: Rows by which the data of a checkpoint are known again, besides the scale and all labels.
KNOWN_ROWS = 100


class GradientEmbedding(SupervisedEmbedding, TrainingParameters):
    """A map × a loss, minimised over mini-batches.

    A subclass says what both are in `_make_map` and `_make_loss`.
    """

    #: What a progress bar says besides the name of the method.
    _stage: ClassVar[str] = ""

    def _make_loss(self, task: Task, training: ndarray) -> Loss:
        raise NotImplementedError

    def sizes(self) -> dict[str, Any]:
        """The sizes of the map that a user can set, by name."""
        return {}

    @property
    def _n_layers(self) -> int:
        """High-order layers that a fit would stack."""
        return 1

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

    @contextmanager
    def _kept(
        self, task: Task, random: np.random.RandomState
    ) -> Iterator[tuple[Task, np.random.RandomState]]:
        if self.checkpoint is None:
            yield task, random
            return
        unseeded, world = self.random_state is None, task.dealing.world
        seed = random.randint(2**31) if unseeded else 0
        identity, minutes = self._identity(task), self.checkpoint_minutes
        with hold(self.checkpoint, identity, seed, minutes, world, anew=unseeded) as checkpoint:
            if unseeded:  # that of the fit that goes on here
                random = np.random.RandomState(checkpoint.seed)
                task = replace(task, seed=random.randint(2**31))
            yield replace(task, checkpoint=checkpoint), random
            checkpoint.finish()

    def _identity(self, task: Task) -> str:
        """What two fits share that must not be taken for each other: settings, rows and labels."""
        apart = (*PASSING, "verbose", "device", "random_state")
        settings = {k: v for k, v in self.get_params().items() if k not in apart}
        seed = None if self.random_state is None else task.seed
        digest = hashlib.sha256(repr((type(self).__name__, settings, seed, task.classes)).encode())
        n_rows = len(task.labels)
        sample = task.rows.fetch(np.linspace(0, n_rows - 1, min(n_rows, KNOWN_ROWS)).astype(int))
        arrays = (task.labels, task.class_weights, task.scale.shift, task.scale.gain)
        for array in (*arrays, sample.cpu().numpy()):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _learn_from(
        self, task: Task, training: ndarray, held_out: ndarray, like: Learned | None = None
    ) -> Learned:
        """Minimise over the training rows; the best epoch on the held-out rows is kept."""
        settings = self._settings(len(training), task.n_classes, sparse=task.rows.is_sparse)
        with torch.device("meta"):  # sizes alone
            map_ = self._map_to_learn(task.rows.n_features)
        pairs = self.exemplars != "joint"
        check_memory(
            map_,
            len(training),
            settings.batch_size,
            pairs=pairs,
            saved=self.checkpoint is not None,
            sizes=self.sizes(),
        )
        title = f"{type(self).__name__}{self._stage}"
        if like is not None:
            settings, title = replace(settings, max_epochs=like.run.epochs), f"{title}, all rows"
        verbose = self.verbose > 0 and task.dealing.world.is_first
        with Progress(title, settings.max_epochs, verbose=verbose) as progress:
            return learn(self, task, training, held_out, settings, progress)
