"""What users can set: declared, told and checked once for all estimators."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import indent
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from hopefold.data.scaling import SCALES
from hopefold.errors import InvalidParameter
from hopefold.estimators import checks
from hopefold.estimators.learning import EXEMPLARS, OBJECTIVES
from hopefold.training.optimizers import OPTIMIZERS
from hopefold.training.settings import Training

#: What all estimators take, told once; ``{parameters}`` in a class's docstring becomes this.
PARAMETERS = """n_exemplars : int, default=2
    Exemplars a class. A class with fewer rows gets as many as it has rows.
exemplars : {"joint", "kmeans", None}, default="joint"
    What new rows are compared with. ``"joint"``: exemplars that start from k-means and are learned
    together with the map. ``"kmeans"``: the map is learned on pairs of rows, and the k-means
    centres of each class in the input space are mapped. ``None``: learned on pairs, and all
    embedded training rows are kept.
objective : {"collapse", "spread"}, default="collapse"
    ``"collapse"`` pulls a row onto all exemplars of its class; ``"spread"`` to any of them, so that
    they may lie apart (``exemplars="joint"`` only).
conditional : bool, default=False
    Normalise the pairwise objective row by row instead of over all pairs of a batch. The objective
    on exemplars is always so.
max_epochs : int or "auto", default="auto"
    Passes over the rows, at the most. ``"auto"``: about 2,000 steps, in 30 to 100 passes; 50 for
    the optimizers ``"cg"`` and ``"lbfgs"``.
batch_size : int or "auto", default="auto"
    Rows a step. ``"auto"``: at most 250 with joint exemplars, 1,000 with pairs, fewer for small
    data; 5,000 for the optimizers ``"cg"`` and ``"lbfgs"``.
learning_rate : float, default=0.003
    Largest step of Adam: warmed up over the first tenth, then lowered along a cosine.
optimizer : {"adam", "cg", "lbfgs"}, default="adam"
    ``"cg"`` is the paper's: conjugate gradient on each batch.
batch_iterations : int, default=3
    Iterations of ``"cg"`` or ``"lbfgs"`` on each batch.
patience : int or "auto", default="auto"
    Epochs without a better validation error after which the fit stops. ``"auto"``: half of
    ``max_epochs``, at least 10.
weight_decay : float, default=0
    Decoupled weight decay of the map (Adam only).
input_dropout : float, default=0.05 (SHOPE) or 0 (HOPE)
    Share of the features that are dropped at random in training.
dropout : float, default=0
    Share of the polynomial units that are dropped at random in training.
validation_fraction : float, default=0.1
    Share of the rows, stratified, that is held out to choose the epoch: the last one that is no
    worse, beyond chance, than the one with the fewest mistakes. 0 turns validation off.
refit : bool, default=True
    After validation, train again on all rows for the number of epochs chosen.
scale : {"auto", "standard", "range", None}, default="auto"
    ``"standard"``: each column to mean 0 and deviation 1. ``"range"``: the whole table to [0, 1].
    ``"auto"``: ``"range"`` where columns share one range as pixels do, sparse columns divided by
    their largest magnitude, else ``"standard"``. Exemplars come back in the original units.
n_neighbors : int or "auto", default="auto"
    Neighbours that vote in `predict`. ``"auto"``: the Student kernel's mass of the exemplars, or 5
    training rows where there are no exemplars. Among tied classes the nearest wins.
class_weight : dict, "balanced" or None, default=None
    Weights of the classes in the objective, in the validation error and in `predict`.
device : str or torch.device, default="auto"
    ``"auto"`` takes a GPU where there is one.
random_state : int, RandomState or None, default=None
    Every random choice comes from it.
verbose : int, default=0
    1 shows a progress bar.

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
    The labels, sorted, and how much each weighs.
validation_error_ : float or None
    Error on the held-out rows of the epoch that was kept, from before any refit.
n_iter_ : int
    The number of epochs kept.
history_ : list of dict
    One record an epoch: epoch, loss, learning_rate, validation_error.
scale_ : Scale
    The scale that the map was learned in.
n_features_in_, feature_names_in_
    As in scikit-learn."""


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters(BaseEstimator):
    """The constructor's arguments, as scikit-learn wants them: assigned, and looked at in fit."""

    n_components: int = field(default=2, kw_only=False)
    exemplars: str | None = "joint"
    n_exemplars: int = 2
    objective: str = "collapse"
    conditional: bool = False
    max_epochs: int | str = "auto"
    batch_size: int | str = "auto"
    learning_rate: float = 3e-3
    optimizer: str = "adam"
    batch_iterations: int = 3
    patience: int | str = "auto"
    weight_decay: float = 0.0
    input_dropout: float = 0.0
    dropout: float = 0.0
    validation_fraction: float = 0.1
    refit: bool = True
    scale: str | None = "auto"
    n_neighbors: int | str = "auto"
    class_weight: Any = None
    device: Any = "auto"
    random_state: Any = None
    verbose: int = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            cls.__doc__ = cls.__doc__.replace("{parameters}", indent(PARAMETERS, "    ").lstrip())

    def _check_parameters(self) -> None:
        """Every parameter that all methods share; a subclass adds its own."""
        checks.check_whole("n_components", self.n_components, at_least=1)
        checks.check_whole("n_exemplars", self.n_exemplars, at_least=1)
        checks.check_whole("batch_iterations", self.batch_iterations, at_least=1)
        if not isinstance(self.verbose, bool | np.bool_):
            checks.check_whole("verbose", self.verbose, at_least=0)
        for name, at_least in [
            ("max_epochs", 1),
            ("batch_size", 2),
            ("patience", 1),
            ("n_neighbors", 1),
        ]:
            checks.check_whole_or_auto(name, getattr(self, name), at_least=at_least)
        checks.check_number("learning_rate", self.learning_rate, 0, np.inf, open_low=True)
        checks.check_number("weight_decay", self.weight_decay, 0, np.inf)
        for name in ("input_dropout", "dropout", "validation_fraction"):
            checks.check_number(name, getattr(self, name), 0, 1)
        checks.check_choice("optimizer", self.optimizer, OPTIMIZERS)
        checks.check_choice("exemplars", self.exemplars, EXEMPLARS)
        checks.check_choice("objective", self.objective, tuple(OBJECTIVES))
        checks.check_choice("scale", self.scale, SCALES)
        for name in ("conditional", "refit"):
            checks.check_choice(name, getattr(self, name), (True, False))
        if self.objective == "spread" and self.exemplars != "joint":
            raise InvalidParameter(
                f"objective='spread' lets joint exemplars lie apart, but exemplars="
                f"{self.exemplars!r}: set exemplars='joint', or objective='collapse'."
            )

    def _settings(self, n_rows: int, *, sparse: bool) -> Training:
        batch_size = _number(self.batch_size, self._batch_size(n_rows, sparse=sparse))
        epochs = _number(self.max_epochs, self._epochs(n_rows / batch_size))
        return Training(
            max_epochs=epochs,
            batch_size=batch_size,
            learning_rate=float(self.learning_rate),
            optimizer=self.optimizer,
            batch_iterations=self.batch_iterations,
            weight_decay=self.weight_decay,
            patience=_number(self.patience, max(10, epochs // 2)),
        )

    def _batch_size(self, n_rows: int, *, sparse: bool) -> int:
        """Small enough for a score of steps an epoch, large enough for matrix products to pay."""
        if self.optimizer != "adam":  # a batch of sparse rows is made dense
            return min(5_000, max(n_rows // 4, 32)) if sparse else 5_000
        smallest, largest = (32, 250) if self.exemplars == "joint" else (64, 1_000)
        return min(max(n_rows // 20, smallest), largest)

    def _epochs(self, steps: float) -> int:
        """Enough epochs of so many steps."""
        return 50 if self.optimizer != "adam" else min(max(round(2_000 / steps), 30), 100)

    def _resolve_n_neighbors(self, *, with_exemplars: bool) -> int | None:
        """How many neighbours vote; ``None``: the kernel decides."""
        checks.check_whole_or_auto("n_neighbors", self.n_neighbors, at_least=1)
        if self.n_neighbors == "auto":
            return None if with_exemplars else 5
        return int(self.n_neighbors)


def _number(value: int | str, auto: int) -> int:
    return auto if value == "auto" else int(value)
