"""The settings of one training run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Training:
    """What the loop needs to know; a part of the plan of a fit."""

    max_epochs: int
    batch_size: int
    learning_rate: float
    optimizer: str
    batch_iterations: int
    weight_decay: float
    patience: int
    #: Share of the epochs in which groups of parameters take turns before they learn together.
    taking_turns: float = 0.2
    #: For a run without an end: the share of a run that every step counts as. ``None``: the steps
    #: of a run go from 0 to 1.
    constant_progress: float | None = None
    #: Does an epoch that diverges begin again with smaller steps?
    recovers: bool = True
