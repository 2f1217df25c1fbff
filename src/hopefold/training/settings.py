"""The settings of one training run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Training:
    """What the loop needs to know. Users see these as flat parameters of an estimator."""

    max_epochs: int
    batch_size: int
    learning_rate: float
    optimizer: str
    batch_iterations: int
    weight_decay: float
    patience: int
    #: Share of the epochs in which groups of parameters take turns before they learn together.
    taking_turns: float = 0.2
