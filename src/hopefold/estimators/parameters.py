"""What users can set: declared, told and checked once for all estimators."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields
from textwrap import indent
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from hopefold import checks
from hopefold.data.scaling import SCALES
from hopefold.training.optimizers import OPTIMIZERS
from hopefold.training.settings import Training

#: What a parameter takes, and what it does. ``{parameters}`` in a class's docstring becomes these,
#: with the class's own defaults, but for those that the docstring tells itself.
PROSE = {
    "n_components": ("int", "Dimensions of the map."),
    "exemplars": (
        '{"kmeans", None}',
        """What new rows are compared with. ``"kmeans"``: the k-means centres of each class in the
input space, mapped. ``None``: all embedded training rows.""",
    ),
    "n_exemplars": (
        "int",
        "Exemplars a class. A class with fewer rows gets as many as it has rows.",
    ),
    "validation_fraction": (
        "float",
        """Share of the rows, stratified, that is held out: their error is told, and a method that
learns in epochs keeps the last one that is no worse, beyond chance, than the one with the
fewest mistakes. 0 turns validation off.""",
    ),
    "refit": (
        "bool",
        "After validation, train again on all rows, for the number of epochs chosen.",
    ),
    "scale": (
        '{"auto", "standard", "range", None}',
        """``"standard"``: each column to mean 0 and deviation 1. ``"range"``: the whole table to
[0, 1]. ``"auto"``: ``"range"`` where columns share one range as pixels do, sparse columns
divided by their largest magnitude, else ``"standard"``. Exemplars come back in the original
units.""",
    ),
    "n_neighbors": (
        'int or "auto"',
        'Neighbours that vote in `predict`. ``"auto"``: 5. Among tied classes the nearest wins.',
    ),
    "class_weight": (
        'dict, "balanced" or None',
        "Weights of the classes in the objective, in the validation error and in `predict`.",
    ),
    "device": ("str or torch.device", '``"auto"`` takes a GPU where there is one.'),
    "random_state": ("int, RandomState or None", "Every random choice comes from it."),
    "verbose": ("int", "1 shows a progress bar."),
    "max_epochs": (
        'int or "auto"',
        """Passes over the rows, at the most. ``"auto"``: about 2,000 steps, in 30 to 100 passes;
50 for the optimizers ``"cg"`` and ``"lbfgs"``.""",
    ),
    "batch_size": (
        'int or "auto"',
        """Rows a step. ``"auto"``: at most 250 with joint exemplars, 1,000 with pairs, fewer for
small data; 5,000 for the optimizers ``"cg"`` and ``"lbfgs"``.""",
    ),
    "learning_rate": (
        "float",
        "Largest step of Adam: warmed up over the first tenth, then lowered along a cosine.",
    ),
    "optimizer": (
        '{"adam", "cg", "lbfgs"}',
        '``"cg"`` is the paper\'s: conjugate gradient on each batch.',
    ),
    "batch_iterations": ("int", 'Iterations of ``"cg"`` or ``"lbfgs"`` on each batch.'),
    "patience": (
        'int or "auto"',
        """Epochs without a better validation error after which the fit stops. ``"auto"``: half of
``max_epochs``, at least 10.""",
    ),
    "weight_decay": ("float", "Decoupled weight decay of the map (Adam only)."),
    "checkpoint": (
        "path or None",
        """A file for how far the fit has come, written at the end of epochs. After a crash or
Ctrl-C, the same fit goes on from there and ends with the same weights.""",
    ),
    "checkpoint_minutes": (
        "float",
        "After so many minutes, the checkpoint is written in the midst of an epoch, too.",
    ),
    "input_dropout": ("float", "Share of the features that are dropped at random in training."),
    "dropout": ("float", "Share of the hidden units that are dropped at random in training."),
}

#: Settings that leave no trace in what is learned: where a fit writes how far it has come.
PASSING = ("checkpoint", "checkpoint_minutes")

ATTRIBUTES = """
Attributes
----------
map_ : torch.nn.Module
    The learned map, in the scale of ``scale_``.
exemplars_ : ndarray of shape (n_references, n_features) or None
    The exemplars in the units of the training data.
exemplar_labels_, exemplar_embedding_ : ndarray or None
    Their classes, and where they lie in the map.
reference_embedding_, reference_labels_ : ndarray
    What `predict` compares with: the exemplars, or all training rows.
classes_, class_weight_ : ndarray
    The labels, sorted, and how much each weighs; empty for a map learned without labels.
validation_error_ : float or None
    Error on the held-out rows of the epoch that was kept, from before any refit; rows count as
    ``class_weight`` says.
trustworthiness_ : float or None
    How far neighbours in the map are neighbours among the rows, from 0 to 1, on held-out rows;
    where neighbours were to be kept (``structure``) and at least 36 rows were held out.
train_error_ : float
    The same on the training rows themselves: how far it lies below ``validation_error_`` tells
    how much the map flatters.
n_iter_ : int
    The number of epochs kept.
history_ : list of dict
    One record an epoch: epoch, loss, learning_rate, validation_error.
scale_ : Scale
    The scale that the map was learned in.
columns_ : hopefold.data.columns.Columns or None
    How the columns of a table become features, if the model was fitted on a table.
precision_ : {"float32", "float16", "int8"}
    How a file keeps the weights and the exemplars.
n_features_in_, feature_names_in_
    As in scikit-learn."""


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

    #: What ``exemplars`` may be.
    _exemplar_choices: ClassVar[tuple[str | None, ...]] = ("kmeans", None)
    #: What a family of methods tells in words of its own, as `PROSE` does.
    _prose: ClassVar[dict[str, tuple[str, str]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__ and "{parameters}" in cls.__doc__:
            prose = _tell_parameters(cls) + ATTRIBUTES
            cls.__doc__ = cls.__doc__.replace("{parameters}", indent(prose, "    ").lstrip())

    def _check_parameters(self) -> None:
        """Every parameter that all methods share; a subclass adds its own."""
        checks.check_whole("n_components", self.n_components, at_least=1)
        checks.check_whole("n_exemplars", self.n_exemplars, at_least=1)
        if not isinstance(self.verbose, bool | np.bool_):
            checks.check_whole("verbose", self.verbose, at_least=0)
        checks.check_whole_or_auto("n_neighbors", self.n_neighbors, at_least=1)
        checks.check_number("validation_fraction", self.validation_fraction, 0, 1)
        checks.check_choice("exemplars", self.exemplars, self._exemplar_choices)
        checks.check_choice("scale", self.scale, SCALES)
        checks.check_choice("refit", self.refit, (True, False))

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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_whole("batch_iterations", self.batch_iterations, at_least=1)
        for name, at_least in [("max_epochs", 1), ("batch_size", 2), ("patience", 1)]:
            checks.check_whole_or_auto(name, getattr(self, name), at_least=at_least)
        self._check_step()
        checks.check_number("weight_decay", self.weight_decay, 0, np.inf)
        checks.check_choice("optimizer", self.optimizer, OPTIMIZERS)
        checks.check_path("checkpoint", self.checkpoint)
        checks.check_number("checkpoint_minutes", self.checkpoint_minutes, 0, np.inf)

    def _check_step(self) -> None:
        checks.check_number("learning_rate", self.learning_rate, 0, np.inf, open_low=True)

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


def _tell_parameters(cls: type[Parameters]) -> str:
    """The prose of all inherited parameters that the class's docstring does not tell itself."""
    told = set(re.findall(r"^\s*(\w+) : ", cls.__doc__ or "", flags=re.M))
    known = PROSE | cls._prose
    entries = []
    for parameter in fields(cls):
        if parameter.name in told or parameter.name not in known:
            continue
        kind, prose = known[parameter.name]
        default = getattr(cls, parameter.name)
        shown = json.dumps(default) if isinstance(default, str) else repr(default)
        entries.append(f"{parameter.name} : {kind}, default={shown}\n{indent(prose, '    ')}")
    return "\n".join(entries) + "\n"


def number(value: int | str, auto: int) -> int:
    """What was asked for, or what ``"auto"`` stands for."""
    return auto if value == "auto" else int(value)
