"""What is compared on rows that are neither learned from nor reported on: columns, layers, decay.

Small maps are learned from three quarters of the training rows; the other quarter compares them.
The rows that the fit reports its error on take no part, so that error stays honest.

Columns are eliminated step by step (recursive feature elimination; Guyon et al., 2002): a small map
of one layer is learned, the columns that move its points least are dropped, and so on. Fewer
columns are kept only where they are better by more than chance. A map of all columns may hide that
a handful matters: it memorizes its rows before it finds a product of two columns among twenty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from hopefold.core.backprop import MapBackprop
from hopefold.core.calibration import fit_temperature, log_shares, temper
from hopefold.core.neighbors import class_shares
from hopefold.fitting.alternatives import FEWEST_COLUMNS
from hopefold.fitting.held_out import points_of, stratified_split
from hopefold.fitting.runs import Runs
from hopefold.fitting.task import Learned, Task

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray

    Decided = Mapping[str, tuple[Any, str]]

#: The most rows of a comparison, and the share of them that compares.
MOST_ROWS, COMPARING = 10_000, 0.25

#: The share of the columns that a step keeps: of many, and of at most `MANY` columns.
KEEP_OF_MANY, KEEP, MANY = 0.5, 0.6, 64

#: The sigmoid units of the small map of one layer in which columns are ranked, and its epochs.
SMALL_MAP, SMALL_EPOCHS = 64, 30

#: Standard errors by which fewer columns, or another map, must be better; those by which a step is
#: so much worse than the best one that no more columns are dropped; and those by which still fewer
#: columns may be worse than the best.
BETTER, MUCH_WORSE, AS_GOOD = 2.0, 4.0, 0.5

#: The same for weight decay, which costs little where it is not needed.
BETTER_DECAY = 1.0

#: The log-loss, in nats, below which labels are not noisy, so that no decay can pay.
CLEAR = 0.1

#: The share of the epochs in a comparison of settings, and how many times larger its batches are.
COMPARED_EPOCHS, LARGER_BATCHES = 2 / 3, 2

#: Rows over which the gradient of the points is averaged.
GRADIENT_ROWS = 2_000


@dataclass(frozen=True)
class Candidate:
    """A map that was learned for comparison: from which columns, and its losses on other rows."""

    task: Task
    learned: Learned
    losses: Float[ndarray, " c"]


class Selection:
    """Comparisons of maps on a part of the training rows."""

    def __init__(
        self,
        runs: Runs,
        task: Task,
        training: Int[ndarray, " t"],
        random: np.random.RandomState,
        small_factors: int,
        time_spent: Callable[[], float] | None,
    ) -> None:
        self._runs, self._small_factors = runs, small_factors
        self._time_spent = time_spent or (lambda: 0.0)
        self._small: Candidate | None = None
        rows = training
        if len(rows) > MOST_ROWS:
            rows = np.sort(random.permutation(rows)[:MOST_ROWS])
        keep = 2  # rows of a class
        learning, comparing = stratified_split(task.labels[rows], COMPARING, keep, random)
        self._learning, self._comparing = rows[learning], rows[comparing]
        self._step = max(1, len(self._learning) // GRADIENT_ROWS)

    def choose_columns(self, task: Task) -> Task:
        """The task with the columns that matter, where fewer are better by more than chance."""
        path = [self._learn_small(task)]
        best = self._small = path[0]
        while (n_columns := path[-1].task.rows.n_features) > FEWEST_COLUMNS:
            share = KEEP_OF_MANY if n_columns > MANY else KEEP
            n_kept = max(FEWEST_COLUMNS, int(share * n_columns))
            x = path[-1].task.rows.fetch(self._learning[:: self._step])
            importance = column_importance(path[-1].learned.map, x)
            kept = np.sort(np.argsort(-importance, kind="stable")[:n_kept])
            path.append(self._learn_small(path[-1].task.with_columns(kept)))
            if path[-1].losses.mean() < best.losses.mean():
                best = path[-1]
            if worse_by(path[-1], best) > MUCH_WORSE or self._time_spent() >= 1:
                break
        if worse_by(path[0], best) < BETTER:
            return task
        self._small = next(one for one in path[::-1] if worse_by(one, best) <= AS_GOOD)
        return self._small.task

    def choose_map(
        self, task: Task, decays: Sequence[float], one_layer: Decided | None
    ) -> dict[str, tuple[Any, str]]:
        """Which settings are better than the usual ones by more than chance; {}: none.

        One layer is tried where a small map of one layer is better than the usual map. A larger
        weight decay is tried only if the one before it has lowered the loss; none where labels are
        clear.
        """
        chosen: dict[str, tuple[Any, str]] = {}
        if not decays and not (one_layer and self._small):
            return chosen
        usual = best = self._learn(task, chosen)
        if one_layer and self._small and worse_by(usual, self._small) > BETTER:
            candidate = self._learn(task, one_layer)
            if worse_by(usual, candidate) > BETTER:
                usual, best, chosen = candidate, candidate, dict(one_layer)
        decided = dict(chosen)
        noisy = usual.losses.mean() > CLEAR
        for decay in decays if noisy and self._time_spent() < 1 else ():
            tried = {**decided, "weight_decay": (decay, "a lower loss on compared rows")}
            candidate = self._learn(task, tried)
            if candidate.losses.mean() >= best.losses.mean():
                break
            if worse_by(usual, candidate) > BETTER_DECAY:
                best, chosen = candidate, tried
        if decays:
            why = "labels are clear" if not noisy else "no other has a lower loss on compared rows"
            chosen.setdefault("weight_decay", (0.0, why))
        return chosen

    def _learn_small(self, task: Task) -> Candidate:
        why = "a small map that ranks columns"
        epochs = min(SMALL_EPOCHS, self._runs.plan(task, len(self._learning)).max_epochs)
        settings: dict[str, Any] = {
            "n_units": SMALL_MAP,
            "n_factors": self._small_factors,
            "max_epochs": epochs,
            "adversarial": 0.0,
        }
        return self._learn(task, {name: (value, why) for name, value in settings.items()})

    def _learn(self, task: Task, decided: Decided) -> Candidate:
        plan = self._runs.plan(task, len(self._learning), **decided)
        if "max_epochs" not in decided:
            epochs = max(1, round(COMPARED_EPOCHS * plan.max_epochs)), "a comparison"
            decided = {**decided, "max_epochs": epochs}
        decided = {"batch_size": (LARGER_BATCHES * plan.batch_size, "a comparison"), **decided}
        plan = self._runs.plan(task, len(self._learning), **decided)
        nothing = self._learning[:0]
        learned = self._runs.run(plan, task, self._learning, nothing, stage=", comparison")
        return Candidate(task, learned, log_losses(learned, task, self._comparing))


def worse_by(one: Candidate, other: Candidate) -> float:
    """By how many standard errors one candidate's losses exceed another's, row by row."""
    more = one.losses - other.losses
    deviation = float(more.std())
    return float(more.mean()) / deviation * len(more) ** 0.5 if deviation else 0.0


def log_losses(learned: Learned, task: Task, which: Int[ndarray, " w"]) -> Float[ndarray, " w"]:
    """The log-loss of each of these rows, at the temperature that is best for them."""
    assert learned.exemplars is not None
    exemplars = torch.from_numpy(learned.exemplars).to(learned.plan.device)
    with torch.no_grad():
        references = learned.map.to(learned.plan.device)(exemplars).cpu().numpy()
    points = points_of(learned.plan, task, learned.map, which)
    shares = class_shares(points, references, learned.labels, task.class_weights, None)
    own = task.labels[which]
    temperature = fit_temperature(shares, own, np.ones(len(own)))
    losses: ndarray = -log_shares(temper(shares, temperature))[np.arange(len(own)), own]
    return losses


@torch.no_grad()
def column_importance(map_: Any, x: Float[Tensor, "n columns"]) -> Float[ndarray, " columns"]:
    """The mean length of the gradient of the points, times the deviation of each column."""
    backprop = MapBackprop(map_)
    squares = torch.zeros_like(x)
    for coordinate in range(map_.P.shape[0]):
        points = backprop.forward(x)
        gradient = torch.zeros_like(points)
        gradient[:, coordinate] = 1
        backprop.backward(gradient)
        squares += backprop.grad_rows(slice(None)).square()
    lengths: ndarray = (squares.sqrt().mean(dim=0) * x.std(dim=0)).numpy()
    return lengths
