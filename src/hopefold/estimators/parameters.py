"""The fields that estimators share; what they mean and may be is in `hopefold.specification`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sklearn.base import BaseEstimator

from hopefold import checks
from hopefold.specification import CHECKPOINT_PARAMETERS, check_parameters, method_of
from hopefold.training.settings import Training

#: Settings that leave no trace in what is learned.
PASSING = CHECKPOINT_PARAMETERS


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters(BaseEstimator):
    """The constructor's arguments, as scikit-learn wants them: assigned, and looked at in fit.

    These are what every method has.
    """

    n_components: int = field(default=2, kw_only=False)
    exemplars: str | None = None
    n_exemplars: int = 2
    validation_fraction: float = 0.1
    refit: bool = True
    scale: str | None = "auto"
    n_neighbors: int | str = "auto"
    class_weight: Any = None
    device: Any = "auto"
    random_state: Any = None
    verbose: int = 0

    def _check_parameters(self) -> None:
        method = method_of(type(self))
        values = {one.name: getattr(self, one.name) for one in method.parameters}
        check_parameters(method.name, values)

    def _resolve_n_neighbors(self, *, with_exemplars: bool) -> int | None:
        """How many neighbours vote; ``None``: the kernel decides."""
        checks.check_whole_or_auto("n_neighbors", self.n_neighbors, at_least=1)
        return number(self.n_neighbors, 5)


@dataclass(kw_only=True, eq=False, repr=False)
class TrainingParameters(Parameters):
    """What a method that learns by gradients has besides."""

    max_epochs: int | str = "auto"
    batch_size: int | str = "auto"
    learning_rate: float | str = 3e-3
    optimizer: str = "adam"
    batch_iterations: int = 3
    patience: int | str = "auto"
    weight_decay: float = 0.0
    checkpoint: Any = None
    checkpoint_minutes: float = 5.0

    def _settings(self, n_rows: int, n_classes: int, *, sparse: bool) -> Training:
        batch_size = number(self.batch_size, self._batch_size(n_rows, sparse=sparse))
        epochs = number(self.max_epochs, self._epochs(n_rows / batch_size, n_classes))
        return Training(
            max_epochs=epochs,
            batch_size=batch_size,
            learning_rate=self._step(),
            optimizer=self.optimizer,
            batch_iterations=self.batch_iterations,
            weight_decay=self.weight_decay,
            patience=number(self.patience, max(10, epochs // 2)),
        )

    def _step(self) -> float:
        """The largest step of Adam."""
        return float(self.learning_rate)

    def _batch_size(self, n_rows: int, *, sparse: bool) -> int:
        """Small enough for a score of steps an epoch, large enough for matrix products to pay."""
        if self.optimizer != "adam":  # a batch of sparse rows is made dense
            return min(5_000, max(n_rows // 4, 32)) if sparse else 5_000
        smallest, largest = (32, 250) if self.exemplars == "joint" else (64, 1_000)
        return min(max(n_rows // 20, smallest), largest)

    def _epochs(self, steps: float, n_classes: int) -> int:
        """Enough epochs of so many steps."""
        return 50 if self.optimizer != "adam" else min(max(round(2_000 / steps), 30), 100)


def number(value: int | str, auto: int) -> int:
    """What was asked for, or what ``"auto"`` stands for."""
    return auto if value == "auto" else int(value)
