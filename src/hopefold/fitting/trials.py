"""Alternatives on trial: runs of a part of the epochs, evaluated on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.fitting.alternatives import for_trial
from hopefold.fitting.held_out import split
from hopefold.fitting.plan import resolve
from hopefold.fitting.plan_values import Request
from hopefold.fitting.runs import Runs
from hopefold.fitting.task import Task

if TYPE_CHECKING:
    Decided = Mapping[str, tuple[Any, str]]


def best_of(
    runs: Runs,
    request: Request,
    tried: Sequence[Decided],
    tasks: Sequence[Task],
    random: np.random.RandomState,
) -> int:
    """Which alternative misclassifies the fewest held-out rows, after a part of the epochs.

    It is the first one unless another is better by more than chance: few labels are held out where
    few are known.
    """
    usual = resolve(request, tasks[0].facts(), tried[0])
    training, held_out = split(usual, tasks[0], random)
    if not len(held_out):
        return 0
    errors = []
    for decided, task in zip(tried, tasks, strict=True):
        facts = task.facts(len(training))
        epochs = for_trial(resolve(request, facts, decided), len(training))
        plan = resolve(request, facts, {**decided, "max_epochs": epochs})
        errors.append(runs.run(plan, task, training, held_out, stage=", trial").run.late_error)
    fewest = min(errors)
    chance = np.sqrt((errors[0] + fewest) / len(held_out))
    return errors.index(fewest) if errors[0] - fewest > chance else 0
