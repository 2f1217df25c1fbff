"""The one training loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hopefold.errors import Diverged, SmallerStepWarning, warn
from hopefold.training.checkpoints import Checkpoint, State
from hopefold.training.optimizers import Groups, LossWithGradients, Optimizer, make_optimizer
from hopefold.training.progress import Progress
from hopefold.training.settings import Training

#: One epoch as plain data: epoch, loss, learning_rate and, with held-out rows, validation_error.
Record = dict[str, Any]


class Run(NamedTuple):
    """The result of a training run: the number of epochs kept, and the records of all epochs."""

    epochs: int
    history: list[Record]
    #: Whether the run was interrupted, and ended early.
    interrupted: bool = False
    #: Whether it has used up its time, and ended early.
    out_of_time: bool = False

    @property
    def kept(self) -> Record:
        """The record of the epoch whose parameters were kept."""
        return self.history[self.epochs - 1]

    @property
    def late_error(self) -> float:
        """The mean validation error of the last fifth of the epochs, free of selection bias."""
        late = self.history[-max(1, len(self.history) // 5) :]
        return sum(record["validation_error"] for record in late) / len(late)


def minimize(
    loss_of: Callable[[Tensor, int, float], Tensor | LossWithGradients],
    groups: Groups,
    n_rows: int,
    settings: Training,
    generator: torch.Generator,
    progress: Progress,
    *,
    misclassified: Callable[[], np.ndarray] | None = None,
    shuffle: Callable[[torch.Generator], Tensor] | None = None,
    checkpoint: Checkpoint | None = None,
    optimizer: Optimizer | None = None,
    time_spent: Callable[[], float] | None = None,
) -> Run:
    """Minimize the loss over shuffled mini-batches, and leave the best parameters in place.

    ``loss_of`` takes the row indices of a batch, a seed for its dropout masks, and the progress of
    the run from 0 to 1. It is deterministic in these arguments, as a line search requires.
    ``misclassified`` returns the weight of each held-out row that is currently misclassified, and 0
    for the others. If there is a ``settings.patience``, too, the best epoch is kept, and the run
    stops after so many epochs without improvement. Otherwise the last epoch is kept. ``shuffle``
    returns the order of the rows in an epoch; by default, a random permutation. A run that is in
    the ``checkpoint`` resumes from there, with bitwise the same result. Pass an ``optimizer`` to
    continue with its state. ``time_spent`` returns the share of the run's time that has passed: the
    learning rate is annealed within that time, and the run ends with it.
    """
    if shuffle is None:
        shuffle = partial(_any_order, n_rows)
    if optimizer is None:
        optimizer = make_optimizer(groups, settings)
    descent = Descent(
        loss_of, groups, n_rows, settings, generator, shuffle, misclassified, optimizer, time_spent
    )
    saved = checkpoint.next_run() if checkpoint else None
    if saved is not None:
        descent.restore_state(saved)
        for record in descent.history:
            progress.advance(record)
    if checkpoint is None:
        descent.run(progress)
    elif saved is None or not saved.plain["over"]:
        with checkpoint.heeding_interrupts():
            descent.run(progress, checkpoint)
    run = descent.end()
    if checkpoint is not None and not run.interrupted:
        checkpoint.end_run(descent.state(over=True))
    return run


class Descent:
    """A training run: the parameters, and all other state that the next step depends on."""

    def __init__(
        self,
        loss_of: Callable[[Tensor, int, float], Tensor | LossWithGradients],
        groups: Groups,
        n_rows: int,
        settings: Training,
        generator: torch.Generator,
        shuffle: Callable[[torch.Generator], Tensor],
        misclassified: Callable[[], np.ndarray] | None,
        optimizer: Optimizer,
        time_spent: Callable[[], float] | None,
    ) -> None:
        self._time_spent = time_spent or _no_limit
        self._loss_of, self._groups, self._n_rows = loss_of, groups, n_rows
        self._settings, self._generator = settings, generator
        self._shuffle, self._misclassified = shuffle, misclassified
        self._parameters = [parameter for group in groups.values() for parameter in group]
        self._optimizer = optimizer
        self._n_batches = -(-n_rows // settings.batch_size)
        self._best = _Best(self._parameters)
        self._chooses = misclassified is not None and settings.patience is not None
        self._first = math.nan
        self._begin_epoch()
        self.history: list[Record] = []
        self._interrupted = self._out_of_time = False

    def run(self, progress: Progress, checkpoint: Checkpoint | None = None) -> None:
        """Run all epochs; one that diverges is undone and repeated with a smaller learning rate."""
        good = self.state()
        while not self._is_over():
            try:
                record = self._epoch(checkpoint)
            except Diverged as error:
                begun_well = math.isfinite(self._first)
                self.restore_state(good)
                if not (begun_well and self._settings.recovers and self._optimizer.slow_down()):
                    raise
                warn(
                    f"{str(error).partition(':')[0]}; the epoch is repeated with a quarter of the "
                    "learning rate.",
                    SmallerStepWarning,
                )
                good = self.state()
                continue
            except KeyboardInterrupt:
                if not (self.history and self._settings.keeps_interrupted):
                    raise
                self.restore_state(good)
                self._interrupted = True
                break
            progress.advance(record)
            good = self.state()
            if checkpoint is not None:
                checkpoint.offer(partial(State, *good), epoch_is_over=True)
        if len(self.history) < self._settings.max_epochs:
            self._out_of_time = self._time_spent() >= 1
            progress.stop_early()

    def end(self) -> Run:
        """Set the parameters to the best ones, and return the result."""
        kept, settings = len(self.history), self._settings
        if self._chooses or (self._interrupted and self._best.epoch):
            kept = self._best.epoch
            self._best.restore()
        if (loss_now := self.history[kept - 1]["loss"]) > 10 * (self._first + 1):
            raise _diverged(
                f"the loss rose from {self._first:.3g} to {loss_now:.3g}", kept, settings
            )
        return Run(kept, self.history, self._interrupted, self._out_of_time)

    def state(self, *, over: bool = False) -> State:
        """Return everything that is needed to resume from here."""
        plain = {
            "over": over,
            "batches": self._batches,
            "first": self._first if self.history or self._batches else None,
            "history": list(self.history),
            "best": [self._best.epoch, self._best.improved_in],
        }
        tensors = {
            "generator": self._generator_state,
            "total": self._total.clone(),
            "fewest": torch.from_numpy(self._best.fewest),
        }
        for number, parameter in enumerate(self._parameters):
            tensors[f"parameter.{number}"] = parameter.detach().clone()
        for number, saved in enumerate(self._best.saved):  # never modified, so no copy is needed
            tensors[f"best.{number}"] = saved
        memory = self._optimizer.memory()
        return State(plain, tensors | {f"memory.{name}": v for name, v in memory.items()})

    @torch.no_grad()
    def restore_state(self, state: State) -> None:
        """Restore a state returned by `state`."""
        plain, tensors = state
        for number, parameter in enumerate(self._parameters):
            parameter.copy_(tensors[f"parameter.{number}"])
        self._optimizer.remember(
            {name[7:]: value for name, value in tensors.items() if name.startswith("memory.")}
        )
        self._best.epoch, self._best.improved_in = plain["best"]
        self._best.fewest = tensors["fewest"].numpy()
        self._best.saved = [
            torch.empty_like(parameter).copy_(tensors[f"best.{number}"])
            for number, parameter in enumerate(self._parameters)
            if f"best.{number}" in tensors
        ]
        self.history = [dict(record) for record in plain["history"]]
        self._first = math.nan if plain["first"] is None else plain["first"]
        self._generator.set_state(tensors["generator"])
        self._begin_epoch()
        self._batches, self._total = plain["batches"], tensors["total"].clone()

    def _begin_epoch(self) -> None:
        """Save the random state, from which an incomplete epoch restarts without its batches."""
        self._generator_state = self._generator.get_state()
        self._batches, self._total = 0, torch.zeros(())

    def _is_over(self) -> bool:
        epochs, patience = len(self.history), self._settings.patience
        if self._chooses and patience is not None and epochs - self._best.improved_in >= patience:
            return epochs > 0
        return epochs == self._settings.max_epochs or (epochs > 0 and self._time_spent() >= 1)

    def _epoch(self, checkpoint: Checkpoint | None) -> Record:
        epoch, settings, n_batches = len(self.history) + 1, self._settings, self._n_batches
        order = self._shuffle(self._generator)
        seeds = torch.randint(2**62, (n_batches,), generator=self._generator).tolist()
        batches = order.tensor_split(n_batches)
        visited = sum(len(batch) for batch in batches[: self._batches])
        for number in range(self._batches, n_batches):
            spent = self._time_spent()
            if spent >= 1 and visited:
                self._total.mul_(self._n_rows / visited)
                break
            visited += len(batches[number])
            done = max(spent, (epoch - 1 + (number + 0.5) / n_batches) / settings.max_epochs)
            if settings.constant_progress is not None:
                done = settings.constant_progress
            closure = partial(self._loss_of, batches[number], seeds[number], done)
            for turn in _turns(tuple(self._groups), done, settings):
                loss = self._optimizer.step(closure, turn, done)
            self._total.add_(loss.cpu(), alpha=len(batches[number]) / self._n_rows)
            self._first = float(loss) if epoch == 1 and number == 0 else self._first
            self._batches = number + 1
            if checkpoint is not None and self._batches < n_batches:  # the last one: see `run`
                checkpoint.offer(self.state, epoch_is_over=False)

        record: Record = {"epoch": epoch, "loss": _finite(float(self._total), epoch, settings)}
        if not all(parameter.isfinite().all() for parameter in self._parameters):
            raise _diverged("its weights are no longer numbers", epoch, settings)
        if self._optimizer.rate is not None:
            record["learning_rate"] = self._optimizer.rate
        if self._misclassified is not None:
            wrong = self._misclassified()
            record["validation_error"] = _finite(float(wrong.mean()), epoch, settings)
            self._best.offer(epoch, wrong)
        self.history.append(record)
        self._begin_epoch()
        return record


def _no_limit() -> float:
    return 0.0


def _any_order(n_rows: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(n_rows, generator=generator)


def worse_beyond_chance(misclassified: np.ndarray, fewer: np.ndarray) -> bool:
    """Return whether errors exceed other errors on the same rows by more than chance.

    The threshold is the square root of the number of rows on which the two differ. NaN is worse
    than any value.
    """
    more = misclassified - fewer
    return not more.sum() <= np.linalg.norm(more)


class _Best:
    """The parameters of the last epoch whose held-out error is not worse than that of the best one.

    With few held-out rows, the lowest error is a matter of luck, and an early lucky epoch would
    stop the training before the learning rate has decreased. So an epoch counts as worse only if
    the difference exceeds chance.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = parameters
        self.fewest = np.array([np.inf])
        self.saved: list[Tensor] = []
        self.epoch = self.improved_in = 0

    def offer(self, epoch: int, misclassified: np.ndarray) -> None:
        if misclassified.mean() < self.fewest.mean():
            self.fewest, self.improved_in = misclassified, epoch
        if not worse_beyond_chance(misclassified, self.fewest):
            self.epoch = epoch
            self.saved = [parameter.detach().clone() for parameter in self._parameters]

    @torch.no_grad()
    def restore(self) -> None:
        for parameter, value in zip(self._parameters, self.saved, strict=True):
            parameter.copy_(value)


def _turns(names: tuple[str, ...], done: float, settings: Training) -> list[tuple[str, ...]]:
    """Return the groups of parameters per step: first they alternate, later all step together."""
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
