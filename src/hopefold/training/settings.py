"""The settings of one training run."""

from __future__ import annotations

from dataclasses import dataclass

#: The usual share of the epochs in which the map and the exemplars take turns.
TAKING_TURNS = 0.2


@dataclass(frozen=True)
class Training:
    """The settings of the training loop; a part of the plan of a fit."""

    max_epochs: int
    batch_size: int
    learning_rate: float
    optimizer: str
    batch_iterations: int
    weight_decay: float
    #: Stop after so many epochs without improvement, and keep the best one. ``None``: go on to the
    #: end, and keep the last epoch, so that the held-out error is free of selection bias.
    patience: int | None
    #: Share of the epochs in which groups of parameters alternate before they are learned together.
    taking_turns: float = TAKING_TURNS
    #: For a run of unknown length: the constant progress of each step. ``None``: the progress goes
    #: from 0 to 1.
    constant_progress: float | None = None
    #: Whether an epoch that diverges is repeated with a smaller learning rate.
    recovers: bool = True
    #: Whether a run that is interrupted (Ctrl-C) after an epoch ends with the best map so far.
    keeps_interrupted: bool = False
