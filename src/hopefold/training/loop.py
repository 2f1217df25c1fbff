"""The one training loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hopefold.errors import Diverged
from hopefold.training.optimizers import Groups, make_optimizer, one_cycle
from hopefold.training.progress import Progress
from hopefold.training.settings import Training

#: One epoch, as plain data: epoch, loss, learning_rate and, where known, validation_error.
Record = dict[str, Any]


class Run(NamedTuple):
    """What became of a training run: the number of epochs kept, and all that were tried."""

    epochs: int
    history: list[Record]


def minimise(
    loss_of: Callable[[Tensor, int], Tensor],
    groups: Groups,
    n_rows: int,
    settings: Training,
    generator: torch.Generator,
    progress: Progress,
    *,
    validation_error: Callable[[], float] | None = None,
) -> Run:
    """Lower the loss over shuffled mini-batches, and leave the parameters at their best.

    ``loss_of`` takes the numbers of the rows of a batch, and a seed for its random masks: the same
    arguments give the same loss, as a line search must be able to expect. With a ``validation_error`` the best epoch
    is the one in which it is lowest (the last of equals), and the run stops when it has not
    improved for ``settings.patience`` epochs. Without, all epochs are run and the last is kept.
    """
    optimizer = make_optimizer(groups, settings)
    best = _Best(groups)
    history: list[Record] = []
    n_batches = -(-n_rows // settings.batch_size)

    for epoch in range(1, settings.max_epochs + 1):
        total = torch.zeros(())
        shuffled = torch.randperm(n_rows, generator=generator).tensor_split(n_batches)
        seeds = torch.randint(2**62, (n_batches,), generator=generator).tolist()
        for number, batch in enumerate(shuffled):
            done = (epoch - 1 + number / n_batches) / settings.max_epochs
            closure = partial(loss_of, batch, seeds[number])
            for turn in _turns(tuple(groups), done, settings):
                loss = optimizer.step(closure, turn, done)
            total = total + loss.cpu() * (len(batch) / n_rows)

        record: Record = {
            "epoch": epoch,
            "loss": _finite(float(total), epoch, settings),
            "learning_rate": settings.learning_rate * one_cycle(done),
        }
        if validation_error is not None:
            record["validation_error"] = validation_error()
            best.offer(epoch, record["validation_error"])
        history.append(record)
        progress.advance(record)
        if validation_error is not None and epoch - best.improved_in >= settings.patience:
            break

    if validation_error is None:
        return Run(len(history), history)
    best.restore()
    return Run(best.epoch, history)


class _Best:
    """The parameters of the epoch with the lowest validation error, the last of equals."""

    def __init__(self, groups: Groups) -> None:
        self._parameters = [parameter for group in groups.values() for parameter in group]
        self._error = math.inf
        self.epoch = self.improved_in = 0

    def offer(self, epoch: int, error: float) -> None:
        if error < self._error:
            self.improved_in = epoch
        if error <= self._error:
            self.epoch, self._error = epoch, error
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


def _finite(loss: float, epoch: int, settings: Training) -> float:
    if math.isfinite(loss):
        return loss
    remedy = (
        f"lower learning_rate (now {settings.learning_rate:g})"
        if settings.optimizer == "adam"
        else "use optimizer='adam'"
    )
    raise Diverged(
        f"the fit diverged in epoch {epoch} (the loss is {loss}): {remedy}, "
        "lower order, or leave scale at 'auto'."
    )
