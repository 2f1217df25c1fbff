"""The one training loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hopefold.errors import Diverged
from hopefold.training.optimizers import Groups, Known, make_optimizer, one_cycle
from hopefold.training.progress import Progress
from hopefold.training.settings import Training

#: One epoch, as plain data: epoch, loss, learning_rate and, where known, validation_error.
Record = dict[str, Any]


class Run(NamedTuple):
    """What became of a training run: the number of epochs kept, and all that were tried."""

    epochs: int
    history: list[Record]

    @property
    def kept(self) -> Record:
        """The epoch whose parameters were kept."""
        return self.history[self.epochs - 1]

    @property
    def late_error(self) -> float:
        """The mean validation error of the last fifth of the epochs: none of them was chosen."""
        late = self.history[-max(1, len(self.history) // 5) :]
        return sum(record["validation_error"] for record in late) / len(late)


def minimise(
    loss_of: Callable[[Tensor, int, float], Tensor | Known],
    groups: Groups,
    n_rows: int,
    settings: Training,
    generator: torch.Generator,
    progress: Progress,
    *,
    mistakes: Callable[[], np.ndarray] | None = None,
    shuffle: Callable[[torch.Generator], Tensor] | None = None,
) -> Run:
    """Lower the loss over shuffled mini-batches, and leave the parameters at their best.

    ``loss_of`` takes the numbers of the rows of a batch, a seed for its random masks, and how much
    of the run is done: the same arguments give the same loss, as a line search must be able to
    expect. ``mistakes`` tells how wrong each held-out row is at the moment: then the best epoch is
    kept, and the run stops when nothing has improved for ``settings.patience`` epochs. Without, the
    last epoch is kept. ``shuffle`` gives the order of the rows in an epoch; any, without.
    """
    optimizer = make_optimizer(groups, settings)
    best = _Best(groups)
    history: list[Record] = []
    n_batches = -(-n_rows // settings.batch_size)
    first = math.nan

    for epoch in range(1, settings.max_epochs + 1):
        total = torch.zeros(())
        order = shuffle(generator) if shuffle else torch.randperm(n_rows, generator=generator)
        seeds = torch.randint(2**62, (n_batches,), generator=generator).tolist()
        for number, batch in enumerate(order.tensor_split(n_batches)):
            done = (epoch - 1 + (number + 0.5) / n_batches) / settings.max_epochs
            closure = partial(loss_of, batch, seeds[number], done)
            for turn in _turns(tuple(groups), done, settings):
                loss = optimizer.step(closure, turn, done)
            total = total + loss.cpu() * (len(batch) / n_rows)
            first = float(loss) if not history and number == 0 else first

        record: Record = {"epoch": epoch, "loss": _finite(float(total), epoch, settings)}
        if settings.optimizer == "adam":
            record["learning_rate"] = settings.learning_rate * one_cycle(done)
        if mistakes is not None:
            wrong = mistakes()
            record["validation_error"] = _finite(float(wrong.mean()), epoch, settings)
            best.offer(epoch, wrong)
        history.append(record)
        progress.advance(record)
        if mistakes is not None and epoch - best.improved_in >= settings.patience:
            progress.stop_early()
            break

    kept = len(history)
    if mistakes is not None:
        kept = best.epoch
        best.restore()
    if not all(parameter.isfinite().all() for group in groups.values() for parameter in group):
        raise _diverged("its weights are no longer numbers", kept, settings)
    if (loss_now := history[kept - 1]["loss"]) > 10 * (first + 1):
        raise _diverged(f"the loss rose from {first:.3g} to {loss_now:.3g}", kept, settings)
    return Run(kept, history)


def worse_beyond_chance(mistakes: np.ndarray, fewer: np.ndarray) -> bool:
    """Do the mistakes on some rows exceed others on the same rows by more than chance would?

    By more than the root of the number of rows on which the two differ. What is not a number is
    worse than anything.
    """
    more = mistakes - fewer
    return not more.sum() <= np.linalg.norm(more)


class _Best:
    """The parameters of the last epoch that is not worse on held-out rows than the best one.

    Few held-out rows make the lowest error a matter of luck, and an early stroke of luck would end
    the training before the learning rate has come down. So an epoch counts as worse only when it is
    so beyond chance.
    """

    def __init__(self, groups: Groups) -> None:
        self._parameters = [parameter for group in groups.values() for parameter in group]
        self._fewest = np.array([np.inf])
        self.epoch = self.improved_in = 0

    def offer(self, epoch: int, mistakes: np.ndarray) -> None:
        if mistakes.mean() < self._fewest.mean():
            self._fewest, self.improved_in = mistakes, epoch
        if not worse_beyond_chance(mistakes, self._fewest):
            self.epoch = epoch
            self._saved = [parameter.detach().clone() for parameter in self._parameters]

    @torch.no_grad()
    def restore(self) -> None:
        for parameter, value in zip(self._parameters, self._saved, strict=True):
            parameter.copy_(value)


def _turns(names: tuple[str, ...], done: float, settings: Training) -> list[tuple[str, ...]]:
    """At first each group takes a step while the others wait; later all move together."""
    if done < settings.taking_turns:
        return [(name,) for name in names]
    return [names]


def _finite(value: float, epoch: int, settings: Training) -> float:
    if not math.isfinite(value):
        raise _diverged(f"the loss is {value}", epoch, settings)
    return value


def _diverged(what: str, epoch: int, settings: Training) -> Diverged:
    remedies = ["use optimizer='adam'", "lower order where there is one", "leave scale at 'auto'"]
    if settings.optimizer == "adam":
        remedies[0] = f"lower learning_rate (now {settings.learning_rate:g})"
        if settings.weight_decay:
            remedies.insert(1, f"lower weight_decay (now {settings.weight_decay:g})")
    advice = f"{', '.join(remedies[:-1])}, or {remedies[-1]}"
    return Diverged(f"the fit diverged in epoch {epoch} ({what}): {advice}.")
