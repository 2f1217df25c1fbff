"""Cross-fitting: where there are few rows, each of them is held out once.

A tenth of a hundred rows says next to nothing about a map. So maps are learned without each fold of
the rows in turn, and evaluated on it; the map that is kept learns from all rows, by the same plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.fitting.held_out import calibrate, held_out_shares, with_temperature
from hopefold.fitting.runs import Runs
from hopefold.fitting.task import Learned, Task

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray


def deal(
    labels: Int[ndarray, " n"], n_folds: int, random: np.random.RandomState
) -> list[Int[ndarray, " f"]]:
    """Deal the rows out to folds, class by class. The only row of a class is in no fold."""
    shuffled = random.permutation(len(labels))
    shuffled = shuffled[np.bincount(labels)[labels[shuffled]] > 1]
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    folds = [np.sort(by_class[number::n_folds]) for number in range(n_folds)]
    return [fold for fold in folds if len(fold)]


@dataclass(frozen=True)
class OutOfFold:
    """What maps have said of rows that they were not learned from."""

    rows: Int[ndarray, " n"]
    #: The errors of each fold, epoch by epoch.
    errors: list[list[float]]
    sizes: list[int]
    #: The class shares of each row, in the order of the rows; ``None`` if some are no numbers.
    shares: Float[ndarray, "n classes"] | None

    def mean_errors(self, n_epochs: int) -> Float[ndarray, " epochs"]:
        """The error on all rows after each epoch.

        A limited time may have ended runs early: then, after the same share of the epochs.
        """
        done = np.arange(1, n_epochs + 1)
        each = [np.array(fold)[-(-done * len(fold) // n_epochs) - 1] for fold in self.errors]
        means: ndarray = np.average(each, axis=0, weights=self.sizes)
        return means

    def applied_to(self, learned: Learned, task: Task) -> Learned:
        """The same map, with the error, the temperature and the calibration error of the folds."""
        history: list[dict[str, Any]] = [dict(record) for record in learned.run.history]
        n_epochs = learned.plan.max_epochs if learned.run.interrupted else len(history)
        for record, error in zip(history, self.mean_errors(n_epochs), strict=False):
            record["validation_error"] = float(error)
        run = learned.run._replace(history=history)
        learned = replace(learned, run=run).evaluated_on(task, self.rows)
        if self.shares is None:
            return learned
        return with_temperature(learned, task, self.shares, self.rows)


def cross_fit(
    runs: Runs, task: Task, folds: list[ndarray], before_fold: Callable[[int], object]
) -> OutOfFold | Learned:
    """Learn a map without each fold in turn, and evaluate it on the fold.

    ``before_fold`` is called with the number of runs that are left, with that of all rows. If the
    user interrupts a run after an epoch, the result is its map, evaluated on its fold.
    """
    everything = np.arange(len(task.labels))
    errors, shares = [], []
    for number, fold in enumerate(folds, 1):
        training = np.setdiff1d(everything, fold, assume_unique=True)
        before_fold(len(folds) + 2 - number)
        stage = f", fold {number} of {len(folds)}"
        plan = runs.plan(task, len(training))
        learned = runs.run(plan, task, training, fold, stage=stage, is_fold=True)
        if learned.run.interrupted:
            return calibrate(learned, task, training, fold).evaluated_on(task, fold)
        errors.append([record["validation_error"] for record in learned.run.history])
        shares.append(held_out_shares(learned, task, training, fold))
    finite = None
    if all(one is not None for one in shares):
        finite = np.concatenate([one for one in shares if one is not None])
    sizes = [len(fold) for fold in folds]
    return OutOfFold(np.concatenate(folds), errors, sizes, finite)
