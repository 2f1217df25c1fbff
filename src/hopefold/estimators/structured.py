"""Maps that keep neighbours: learned without labels, with some of them, or with all."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from hopefold.data import validation
from hopefold.data.rows import Rows
from hopefold.data.streams import is_stream
from hopefold.data.tables import as_table
from hopefold.errors import InvalidInput, InvalidParameter
from hopefold.estimators.gradient import GradientEmbedding
from hopefold.fitting.landmarks import (
    check_perplexity,
    find_landmarks,
    number_of_landmarks,
    trust,
)
from hopefold.fitting.learning import Task
from hopefold.inference.dask_arrays import is_lazy

if TYPE_CHECKING:
    from numpy import ndarray

#: Shares of the loss that are tried where some labels are missing, the usual one first: where there
#: are few labels a class, and where there are more.
TRIED_FEW, TRIED_MORE = (0.1, 0.0, 0.5), (0.0, 0.1, 0.5)

#: The part of the passes that a trial has, and the most rows that it may visit, one by one.
TRIAL, TRIAL_VISITS = 1 / 4, 1_000_000

#: Labels a class from which on there are not few.
FEW_LABELS = 50

#: How far rows are nudged where some labels are missing: what a map takes a row for is to hold
#: around the row, too.
NUDGE_OF_GUESSES = 0.2

#: The fewest and the most rows of a batch that is compared with landmarks.
BATCHES = 64, 500


@dataclass(kw_only=True, eq=False, repr=False)
class Structured(GradientEmbedding):
    """A gradient method with a share of its loss for neighbours, whatever their classes."""

    structure: float | str = "auto"
    perplexity: float = 5.0
    n_landmarks: int | str = "auto"
    missing_label: Any = ()

    _learns_without_labels: ClassVar = True

    def _learner(self, task: Task, random: np.random.RandomState) -> tuple[Self, Task]:
        shares = self._shares(task)
        self.structure_: float = shares[0]
        prepared = self._prepared(task, shares)
        if shares == (0.0,):
            return prepared, task
        if not task.scale.gain.any():
            raise InvalidInput("no column of X varies: there are no neighbours to keep.")
        if getattr(self, "max_bytes", None) is not None:
            raise InvalidParameter(
                f"max_bytes={self.max_bytes} is for maps that classes alone decide: leave it out, "
                "or give labels and structure=0."
            )
        task = prepared._with_landmarks(task, random)
        if len(shares) > 1:
            tried = [(prepared, _with_share(task, share)) for share in shares]
            self.structure_ = shares[prepared._best_of(tried, random)]
        return prepared, _with_share(task, self.structure_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows that are judged rightly; those whose label is missing do not count.

        Without y, of a map that was learned without labels: how far neighbours can be trusted.
        """
        if y is None:
            return self._trust(X)
        if isinstance(X, str | PathLike):
            return float(super().score(X, y, sample_weight))
        if not validation.is_marker(self.missing_label):
            validation.check_sortable(y, remedy="leave those rows out.")
            return float(super().score(X, y, sample_weight))
        _, known = validation.split_labels(y, self.missing_label, _num_samples(X))
        if not known.any():
            raise InvalidInput(
                f"all {len(known)} labels are missing: there is nothing to judge by."
            )
        which = np.flatnonzero(known)
        labels = _safe_indexing(y, which)
        weights = None if sample_weight is None else _safe_indexing(sample_weight, which)
        return float(super().score(_safe_indexing(X, which), labels, weights))

    def _trust(self, X: Any) -> float:
        if is_stream(X) or is_lazy(X):
            raise InvalidInput("neighbours are looked for among rows in memory: give an array.")
        points = self.transform(X)
        if len(self.classes_):
            raise InvalidInput("score needs the labels of the rows: give y.")
        table = as_table(X, self.columns_)
        X = validation.check_rows(self, X, fitting=False) if table is None else table.X
        found = trust(Rows(X, self.scale_), np.arange(len(points)), lambda some: points[some])
        if found is None:
            raise InvalidInput(
                f"{len(points)} rows have no neighbours to judge by: give 3 or more."
            )
        return found

    def _shares(self, task: Task) -> tuple[float, ...]:
        """What the share of the loss may be."""
        if not task.is_labelled:
            if self.class_weight is not None:
                raise InvalidParameter(
                    f"class_weight={self.class_weight!r}, but there are no labels: leave it out, "
                    "or give y."
                )
            if self.structure not in ("auto", 1):
                raise InvalidParameter(
                    f"structure={self.structure!r} leaves a share of the loss to labels, but there "
                    "are none: leave it 'auto', or give y."
                )
            return (1.0,)
        if self.structure != "auto":
            return (float(self.structure),)
        if (task.labels >= 0).all():
            return (0.0,)
        few = (task.labels >= 0).sum() < FEW_LABELS * task.n_classes
        order = TRIED_FEW if few else TRIED_MORE
        tried = tuple(share for share in order if share or task.is_guessing)
        return tried if self.validation_fraction > 0 else tried[:1]

    def _usual(self, _task: Task) -> dict[str, Any]:
        """What ``"auto"`` stands for where classes alone decide, as far as it takes the rows."""
        return {}

    def _usual_with_structure(self, _task: Task) -> dict[str, Any]:
        """What ``"auto"`` stands for where neighbours are to be kept."""
        return {"adversarial": 0.0}

    def _prepared(self, task: Task, shares: tuple[float, ...]) -> Self:
        """The same, with what is ``"auto"`` decided for these rows, and what is to be learned."""
        decided = self._usual(task)
        if task.is_guessing:
            decided = {"adversarial": NUDGE_OF_GUESSES if self.optimizer == "adam" else 0.0}
        elif any(shares):
            decided = self._usual_with_structure(task)
            if self.optimizer == "adam" and self.exemplars == "joint":
                smallest, largest = BATCHES
                decided["batch_size"] = min(max(len(task.labels) // 20, smallest), largest)
        free = [name for name in decided if getattr(self, name) == "auto"]
        return self._with(**{name: decided[name] for name in free})

    def _with_landmarks(self, task: Task, random: np.random.RandomState) -> Task:
        n_rows = len(task.labels)
        if self.exemplars is None or (self.exemplars == "kmeans" and task.is_labelled):
            batch_size = self._settings(n_rows, task.n_classes, sparse=False).batch_size
            n_others = min(batch_size, n_rows) - 1
            check_perplexity(self.perplexity, n_others, "the rows of a batch", "raise batch_size")
            return task
        n_landmarks = number_of_landmarks(self.n_landmarks, n_rows, self.perplexity)
        if n_landmarks > n_rows:
            raise InvalidParameter(
                f"n_landmarks={n_landmarks}, but there are {n_rows} rows: ask for fewer, or leave "
                "it 'auto'."
            )
        remedy = "raise n_landmarks" if n_landmarks < n_rows else "give more rows"
        check_perplexity(self.perplexity, n_landmarks, f"{n_landmarks} landmarks", remedy)
        landmarks = find_landmarks(task.rows, n_landmarks, self.perplexity, task.device, random)
        task.dealing.world.level([landmarks.centres, landmarks.precisions])
        return replace(task, landmarks=landmarks)

    def _best_of(self, tried: Sequence[tuple[Self, Task]], random: np.random.RandomState) -> int:
        """Which of them judges held-out rows best, after a part of the passes.

        It is the first one unless another is better by more than chance: few labels are held out
        where few are known. Where none are to be, nothing is tried.
        """
        if not self.validation_fraction:
            return 0
        training, held_out = self._hold_out(tried[0][1], random)
        if not len(held_out):
            return 0
        errors = [method._trial(task, training, held_out) for method, task in tried]
        fewest = min(errors)
        chance = np.sqrt((errors[0] + fewest) / len(held_out))
        return errors.index(fewest) if errors[0] - fewest > chance else 0

    def _trial(self, task: Task, training: ndarray, held_out: ndarray) -> float:
        """The error on held-out rows after a part of the passes."""
        settings = self._settings(len(training), task.n_classes, sparse=task.rows.is_sparse)
        passes = min(TRIAL * settings.max_epochs, TRIAL_VISITS / len(training))
        trial = self._with(max_epochs=max(1, round(passes)), _stage=", trial")
        return trial._learn_from(task, training, held_out).run.late_error

    def _with(self, **changes: Any) -> Self:
        changed = copy.copy(self)
        for name, value in changes.items():
            setattr(changed, name, value)
        return changed


def _with_share(task: Task, share: float) -> Task:
    """The task where neighbours have this share of the loss: if none, there are no landmarks."""
    return replace(task, structure=share, landmarks=task.landmarks if share else None)
