"""What every supervised embedding has in common: validate → encode → learn → publish."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from os import PathLike
from textwrap import indent
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn

from hopefold.core.neighbors import class_shares, nearest
from hopefold.data.rows import Rows
from hopefold.data.scaling import SCALES, learn_scale
from hopefold.errors import InvalidParameter, RareClassWarning
from hopefold.estimators import checks
from hopefold.estimators.embedding import embed, resolve_device
from hopefold.estimators.learning import EXEMPLARS, OBJECTIVES, Learned, Task, hold_out, learn
from hopefold.training.optimizers import OPTIMIZERS
from hopefold.training.progress import Progress
from hopefold.training.settings import Training

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray


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
class SupervisedEmbedding(
    ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator
):
    """A map learned from labels, the references it is read against, and the scikit-learn contract.

    The fields are the constructor's arguments, as scikit-learn wants them: assigned, not looked at.
    A subclass adds its own and builds its map in `_make_map`.
    """

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

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the map, and the exemplars, from labelled rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            The features. A CSR matrix is never made dense as a whole.
        y : array-like of shape (n_rows,)
            The labels, of any dtype.

        Returns
        -------
        self

        """
        X, y = checks.check_rows(self, X, y, fitting=True)
        self._check_parameters()
        self.classes_, labels = np.unique(y, return_inverse=True)
        checks.check_classes(self.classes_, len(labels))
        self._warn_of_rare_classes(labels)
        random = check_random_state(self.random_state)
        self.class_weight_ = checks.check_class_weight(self.class_weight, self.classes_, y)
        self.scale_ = learn_scale(X, self.scale)
        task = Task(
            rows=Rows.prepare(X, self.scale_),
            labels=labels,
            class_weights=self.class_weight_,
            exemplars=self.exemplars,
            n_exemplars=self.n_exemplars,
            objective=self.objective,
            conditional=self.conditional,
            n_neighbors=self._resolve_n_neighbors(),
            device=resolve_device(self.device),
            seed=random.randint(2**31),
        )
        self._publish(self._learn(task, random), task)
        return self

    def transform(self, X: Any) -> Float[ndarray, "n d"]:
        """Embed rows: float32 of shape (n_rows, n_components).

        A row gives the same point alone or in any batch.
        """
        return self._embed(X)

    def predict_proba(self, X: Any) -> Float[ndarray, "n classes"]:
        """Probabilities of the classes, in the order of ``classes_``.

        The Student kernel's mass of each class's references, or the share of the nearest
        references' votes, as ``n_neighbors`` says.
        """
        return class_shares(
            self._embed(X),
            self.reference_embedding_,
            np.searchsorted(self.classes_, self.reference_labels_),
            self.class_weight_,
            self._resolve_n_neighbors(),
        )

    def predict(self, X: Any) -> ndarray:
        """The most probable class of each row, in the labels' own dtype."""
        decisions = self.predict_proba(X).argmax(axis=1)
        labels: ndarray = self.classes_[decisions]
        return labels

    def kneighbors(self, X: Any, n_neighbors: int = 5) -> tuple[ndarray, ndarray]:
        """The nearest references of each row in the embedding: distances and indices.

        Indices count exemplars, or the training rows if there are no exemplars.
        """
        points = self._embed(X)
        checks.check_whole("n_neighbors", n_neighbors, at_least=1)
        n_references = len(self.reference_embedding_)
        if n_neighbors > n_references:
            raise InvalidParameter(
                f"n_neighbors={n_neighbors}, but there are {n_references} references: "
                f"ask for at most {n_references}, or fit with more exemplars."
            )
        return nearest(points, self.reference_embedding_, n_neighbors)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file, atomically; `hopefold.load` reads it."""
        from hopefold.estimators.files import save

        save(self, path)

    @property
    def exemplar_embedding_(self) -> Any:
        """Where the exemplars lie in the map; ``None`` if there are none."""
        return None if self.exemplars_ is None else self.reference_embedding_

    @property
    def exemplar_labels_(self) -> Any:
        """The classes of the exemplars; ``None`` if there are none."""
        return None if self.exemplars_ is None else self.reference_labels_

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _make_map(self, n_features: int) -> nn.Module:
        raise NotImplementedError

    def _embed(self, X: Any) -> ndarray:
        check_is_fitted(self)
        X = checks.check_rows(self, X, fitting=False)
        return embed(self.map_, Rows(X, self.scale_), resolve_device(self.device))

    def _learn(self, task: Task, random: np.random.RandomState) -> Learned:
        """Choose the number of epochs on held-out rows; then, if asked, learn from all rows."""
        everything = np.arange(len(task.labels))
        training, held_out = everything, everything[:0]
        if self.validation_fraction > 0:
            training, held_out = hold_out(
                task.labels, self.validation_fraction, self.n_exemplars, random
            )
        settings = self._settings(len(training))
        title = type(self).__name__
        with Progress(title, settings.max_epochs, verbose=self.verbose > 0) as progress:
            map_ = self._make_map(task.rows.n_features)
            learned = learn(task, map_, training, held_out, settings, progress)
        self.n_iter_, self.history_ = learned.run
        if not len(held_out):
            self.validation_error_ = None
            return learned
        self.validation_error_ = self.history_[self.n_iter_ - 1]["validation_error"]
        if not self.refit:
            return learned
        with Progress(f"{title}, all rows", self.n_iter_, verbose=self.verbose > 0) as progress:
            map_ = self._make_map(task.rows.n_features)
            settings = replace(settings, max_epochs=self.n_iter_)
            return learn(task, map_, everything, held_out[:0], settings, progress)

    def _publish(self, learned: Learned, task: Task) -> None:
        self.map_ = learned.map
        references = task.rows
        self.exemplars_: Any = None
        if learned.exemplars is not None:
            self.exemplars_ = self.scale_.undo(learned.exemplars)
            references = Rows(self.exemplars_, self.scale_)
        self.reference_embedding_ = embed(self.map_, references, task.device)
        self.reference_labels_ = self.classes_[learned.labels]

    def _settings(self, n_rows: int) -> Training:
        batch_size = _number(self.batch_size, self._batch_size(n_rows))
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

    def _batch_size(self, n_rows: int) -> int:
        """Small enough for a score of steps an epoch, large enough for matrix products to pay."""
        if self.optimizer != "adam":
            return 5_000
        smallest, largest = (32, 250) if self.exemplars == "joint" else (64, 1_000)
        return min(max(n_rows // 20, smallest), largest)

    def _epochs(self, steps: float) -> int:
        """Enough epochs of so many steps."""
        return 50 if self.optimizer != "adam" else min(max(round(2_000 / steps), 30), 100)

    def _resolve_n_neighbors(self) -> int | None:
        if self.n_neighbors == "auto":
            return 5 if self.exemplars is None else None
        return int(self.n_neighbors)

    def _warn_of_rare_classes(self, labels: ndarray) -> None:
        if self.exemplars is None:
            return
        sizes = np.bincount(labels)
        rare = np.flatnonzero(sizes < self.n_exemplars)
        if len(rare):
            names = self.classes_.tolist()
            named = ", ".join(f"{names[k]!r} ({sizes[k]})" for k in rare[:5])
            named += f" and {len(rare) - 5} more" if len(rare) > 5 else ""
            warnings.warn(
                f"fewer rows than n_exemplars={self.n_exemplars} in class {named}: "
                "each gets as many exemplars as it has rows.",
                RareClassWarning,
                stacklevel=3,
            )

    def _check_parameters(self) -> None:
        """Every parameter that all methods share; a subclass adds its own."""
        checks.check_whole("n_components", self.n_components, at_least=1)
        checks.check_whole("n_exemplars", self.n_exemplars, at_least=1)
        checks.check_whole("batch_iterations", self.batch_iterations, at_least=1)
        checks.check_whole("verbose", self.verbose, at_least=0)
        for name, at_least in [
            ("max_epochs", 1),
            ("batch_size", 2),
            ("patience", 1),
            ("n_neighbors", 1),
        ]:
            if getattr(self, name) != "auto":
                checks.check_whole(name, getattr(self, name), at_least=at_least)
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


def _number(value: int | str, auto: int) -> int:
    return auto if value == "auto" else int(value)
