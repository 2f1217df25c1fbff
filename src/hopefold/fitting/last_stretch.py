"""The last stretch of a fit: some epochs on all rows, after the error on held-out rows is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import torch

from hopefold.errors import Diverged, InterruptedWarning, TimeLimitWarning, warn
from hopefold.fitting.build import Method
from hopefold.fitting.objective import Objective
from hopefold.fitting.plan_values import Plan, Request
from hopefold.fitting.task import Learned, Task
from hopefold.training.loop import Run, minimize, worse_beyond_chance
from hopefold.training.progress import Progress

if TYPE_CHECKING:
    from numpy import ndarray

#: Its share of the epochs, and its largest step as a share of the run's.
LAST_EPOCHS, LAST_RATE = 0.2, 0.3

#: Rows from which on those that were held out would hardly change the map.
MANY_ROWS = 20_000


@dataclass(frozen=True)
class LastStretch:
    """All rows, and what evaluates the map before it learns from those that were held out."""

    rows: ndarray
    evaluate: Callable[[Learned], Learned]


def goes_on(request: Request, plan: Plan) -> bool:
    """Does a fit go on from all rows, instead of learning anew from them?"""
    adam = plan.optimizer == "adam" and plan.max_bytes is None
    return request.defaults.is_high_order and adam and plan.exemplars == "joint"


def learn_the_rest(
    objective: Objective,
    method: Method,
    task: Task,
    everything: ndarray,
    generator: torch.Generator,
    time_spent: Callable[[], float] | None,
) -> bool:
    """Go on from all rows in a short last stretch, held-out rows among them; False if interrupted.

    The map stays as it was evaluated if it then misclassifies more of the rows that it was
    learned from, by more than chance.
    """
    if len(everything) > MANY_ROWS:
        return True
    plan, map_, before = method.plan, objective.map, objective.save()
    wrong_before = objective.training_errors()
    loss, rows = method.make_loss(task, everything), task.visits(everything)
    parts = (map_, map_, loss, rows, objective.exemplars, objective.exemplar_labels)
    whole = Objective(plan, task, *parts)
    settings = replace(
        plan.training(),
        max_epochs=max(1, round(LAST_EPOCHS * plan.max_epochs)),
        learning_rate=LAST_RATE * plan.learning_rate,
        taking_turns=0.0,
        recovers=False,
    )
    shuffle = partial(task.rows.shuffle, rows)
    try:
        with Progress(f"{plan.method}, all rows", settings.max_epochs, verbose=False) as bar:
            minimize(
                whole.loss,
                whole.groups,
                len(rows),
                settings,
                generator,
                bar,
                shuffle=shuffle,
                checkpoint=task.checkpoint,
                time_spent=time_spent,
            )
    except (Diverged, KeyboardInterrupt) as error:
        objective.restore(before)
        if isinstance(error, KeyboardInterrupt):
            warn(
                "the fit was interrupted before it went on from all rows: it returns the map that "
                "was learned without the held-out rows.",
                InterruptedWarning,
            )
        return not isinstance(error, KeyboardInterrupt)
    if worse_beyond_chance(objective.training_errors(), wrong_before):
        objective.restore(before)
    return True


def warn_of_early_end(run: Run, plan: Plan, *, resumes: bool) -> None:
    """Warn if the map is that of a run that was interrupted, or that has run out of time."""
    n_epochs, error = len(run.history), run.kept.get("validation_error")
    if n_epochs == plan.max_epochs or not (run.interrupted or run.out_of_time):
        return
    why, remedy = "was interrupted", "Fit again for a better one."
    if not run.interrupted:
        why, remedy = "has used up its time_limit", "Fit again without it for a better one."
    elif resumes:
        remedy = "Fit again with the same data, settings and checkpoint to resume."
    found = "" if error is None else f", whose held-out error is {error:.1%}"
    warn(
        f"the fit {why} after epoch {n_epochs} of {plan.max_epochs}: it returns the map of epoch "
        f"{run.epochs}{found}. {remedy}",
        InterruptedWarning if run.interrupted else TimeLimitWarning,
    )
