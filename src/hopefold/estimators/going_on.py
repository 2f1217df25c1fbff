"""Learning from some rows at a time, as they come, with no end in sight."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import nn

from hopefold.data import validation
from hopefold.data.fingerprints import sketch
from hopefold.data.rows import Rows
from hopefold.data.scaling import learn_scale
from hopefold.errors import Diverged, InvalidInput, InvalidParameter
from hopefold.estimators.gradient import GradientEmbedding
from hopefold.fitting.learning import Attempt, Learned, Start, Task, mistakes, start_exemplars
from hopefold.inference.embedding import embed
from hopefold.training.distributed import this_world
from hopefold.training.loop import Run
from hopefold.training.optimizers import make_optimizer

if TYPE_CHECKING:
    from jaxtyping import Int
    from numpy import ndarray

#: Steps are as large as in the middle of a run: nobody knows when the last one is.
MIDDLE = 0.5

#: How far the exemplars of a class that no row has shown yet lie apart, in shares of the spread.
APART = 0.1


class Way:
    """A map and its exemplars on their way, and what the optimizer remembers of it."""

    def __init__(
        self, map_: nn.Module, exemplars: ndarray, labels: Int[ndarray, " z"], task: Task
    ) -> None:
        self.map = map_.to(task.device).requires_grad_()
        self.exemplars = nn.Parameter(torch.from_numpy(exemplars).float().to(task.device))
        self.labels = labels
        self.generator = torch.Generator().manual_seed(task.seed)
        self.optimizer: Any = None
        self.published: nn.Module | None = None


class Incremental(GradientEmbedding):
    """A gradient method with joint exemplars that can go on learning from more rows."""

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn from some more rows, in one pass over them.

        The first call starts the map, and the scale is that of its rows; on a fitted or loaded
        model, it goes on from there. ``validation_error_`` is the error on the new rows before they
        were learned from.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            The features.
        y : array-like of shape (n_rows,)
            The labels.
        classes : array-like, optional
            All labels that there will ever be, for the first call; by default those in its ``y``.

        Returns
        -------
        self

        """
        before = dict(self.__dict__)
        try:
            with torch.inference_mode(False), torch.enable_grad():
                return self._go_on(X, y, classes)
        except BaseException:
            before.pop("_going_on", None)  # the way may have gone on: go on from the model itself
            self.__dict__ = before
            raise

    def _go_on(self, X: Any, y: Any, classes: Any) -> Self:
        self._check_parameters()
        self._check_going_on()
        if (size := this_world().size) > 1:
            raise InvalidParameter(f"partial_fit learns in one process, and there are {size}: fit.")
        if y is None:
            raise InvalidInput("partial_fit requires y to be passed, but the target y is None.")
        going = self.__sklearn_is_fitted__()
        if going and not len(self.classes_):
            raise InvalidInput(
                "this model was learned without labels, and partial_fit goes on with classes: fit "
                "with y first."
            )
        if going:
            X, y = validation.check_more_rows(self, X, y)
            known, scale, weights = self.classes_, self.scale_, self.class_weight_
        else:
            X, y = validation.check_rows(self, X, y, fitting=True)
            known = np.unique(y if classes is None else classes)
            scale = learn_scale(X, self._how_to_scale())
            weights = validation.check_class_weight(self.class_weight, known, y)
        labels = validation.check_known_classes(known, y, classes)
        random = validation.check_seed(self.random_state)
        names = getattr(self, "feature_names_in_", None)
        task = self._task(Rows.prepare(X, scale, names), scale, labels, known, weights, random)
        history = [dict(record) for record in self.history_] if going else []
        record: dict[str, Any] = {"epoch": len(history) + 1}
        if going:
            record["validation_error"] = self._error_before(task)
        way = self._way(task, going=going)
        everything = np.arange(len(labels))
        loss = self._make_loss(task, everything)
        attempt = Attempt(task, way.map, way.map, loss, everything, way.exemplars, way.labels)
        record["loss"] = self._pass_over(attempt, way, task)
        if not all(weights.isfinite().all() for weights in (*way.map.parameters(), way.exemplars)):
            raise Diverged(
                "the map diverged on these rows, which are not learned from: look for values "
                "beyond all others among them, or lower learning_rate."
            )
        history.append(record)
        map_ = self._finish(copy.deepcopy(way.map).cpu().requires_grad_(False))
        exemplars = attempt.learned_exemplars().detach().cpu().numpy()
        self._publish(Learned(map_, exemplars, way.labels, Run(len(history), history)), task)
        way.published, self._going_on = self.map_, way
        self.seen_ = sketch(X, self.seen_ if going else None)
        self.n_rows_ = len(labels) + ((self.n_rows_ or 0) if going else 0)
        return self

    def _way(self, task: Task, *, going: bool) -> Way:
        way: Way | None = self.__dict__.get("_going_on")
        if going and way is not None and way.published is self.map_:
            return way
        if going:
            labels = np.searchsorted(self.classes_, self.reference_labels_)
            return Way(copy.deepcopy(self.map_), self.scale_.apply(self.exemplars_), labels, task)
        return self._first_way(task)

    def _first_way(self, task: Task) -> Way:
        """A map and exemplars that start from these rows; unseen classes start in the middle."""
        everything, random = np.arange(len(task.labels)), np.random.RandomState(task.seed)
        map_ = self._map_to_learn(task.rows.n_features)
        start = Start(task, everything, random, torch.Generator().manual_seed(task.seed))
        self._start_map(map_, start)
        exemplars, labels = start_exemplars(task, everything, random)
        unseen = np.repeat(np.setdiff1d(np.arange(task.n_classes), labels), task.n_exemplars)
        middle = exemplars.mean(dim=0).numpy()
        step = APART * task.spread(everything) / np.sqrt(len(middle))
        somewhere = middle + step * random.normal(size=(len(unseen), len(middle)))
        together = np.concatenate([exemplars.numpy(), somewhere])
        return Way(map_, together, np.concatenate([labels, unseen]), task)

    def _pass_over(self, attempt: Attempt, way: Way, task: Task) -> float:
        """One pass over the rows; the mean loss on the way."""
        n_rows = len(task.labels)
        settings = self._settings(n_rows, task.n_classes, sparse=task.rows.is_sparse)
        if way.optimizer is None:
            groups = {"map": list(way.map.parameters()), "exemplars": [way.exemplars]}
            way.optimizer = make_optimizer(groups, settings)
        order = torch.randperm(n_rows, generator=way.generator)
        total = 0.0
        for batch in order.tensor_split(-(-n_rows // settings.batch_size)):
            seed = int(torch.randint(2**62, (), generator=way.generator))
            closure = partial(attempt.loss, batch, seed, MIDDLE)
            value = way.optimizer.step(closure, ("map", "exemplars"), MIDDLE)
            total += float(value) * len(batch) / n_rows
        return total

    def _error_before(self, task: Task) -> float:
        everything = np.arange(len(task.labels))
        points = embed(self.map_, task.rows, task.device)
        references, labels, *_ = self._references()
        return float(mistakes(task, everything, points, references, labels).mean())

    def _check_going_on(self) -> None:
        alone: dict[str, Any] = {"exemplars": "joint", "optimizer": "adam", "max_bytes": None}
        alone["missing_label"] = ()
        if getattr(self, "structure", "auto") != "auto":
            alone["structure"] = 0
        for name, needed in alone.items():
            if getattr(self, name, needed) != needed:
                raise InvalidParameter(
                    f"partial_fit learns from some rows at a time, but {name}="
                    f"{getattr(self, name)!r} needs all of them: set {name}={needed!r}, or use fit."
                )
        if self.class_weight == "balanced":
            raise InvalidParameter(
                "class_weight='balanced' needs all rows at once: give partial_fit a dict from "
                "label to weight."
            )

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_going_on"}
