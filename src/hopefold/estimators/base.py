"""What every supervised embedding has in common: validate → encode → learn → publish."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import nn

from hopefold import checks
from hopefold.core.neighbors import class_shares, decide, nearest
from hopefold.data import validation
from hopefold.data.columns import Columns
from hopefold.data.disk import chunks, is_on_disk
from hopefold.data.rows import Rows
from hopefold.data.scaling import Scale
from hopefold.data.streams import is_stream, read_rows
from hopefold.data.tables import as_table
from hopefold.errors import (
    HopefoldError,
    InvalidInput,
    InvalidParameter,
    MissingPackage,
    NotEnoughMemory,
    NoValidationWarning,
)
from hopefold.estimators.fit_input import take_in
from hopefold.estimators.parameters import PASSING, Parameters
from hopefold.fitting import chance
from hopefold.fitting.learning import Learned, Task, hold_out, mistakes, trust_held_out
from hopefold.fitting.memory import what_was_wanted
from hopefold.inference import dask_arrays
from hopefold.inference.embedding import Placing, embed, resolve_device
from hopefold.training.distributed import this_world

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from matplotlib.figure import Figure
    from numpy import ndarray


class SupervisedEmbedding(
    ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, Parameters
):
    """A map learned from labels, the references it is read against, and the scikit-learn contract.

    A subclass adds its own parameters, says in `_make_map` what its map is, and learns it in
    `_learn_from`.
    """

    #: How the columns of a table become features; ``None`` for a model that was given arrays.
    columns_: Columns | None = None

    #: Does the method learn from rows alone where there is no y?
    _learns_without_labels: ClassVar[bool] = False

    #: Can several processes learn one map, each from a share of the rows?
    _learns_in_parts: ClassVar[bool] = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map, and the exemplars, from labelled rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), a table, or a stream
            The features. A CSR matrix is never made dense as a whole, and a `numpy.memmap` is never
            read as a whole. A table is what `hopefold.data.tables.read_table` gives. A stream is a
            Parquet file or a folder of them (its path, or a pyarrow dataset), or an object that
            gives batches (X, y) each time it is iterated over.
        y : array-like of shape (n_rows,), or str
            The labels, of any dtype; the name of the label column in a Parquet file; left out for
            a stream of batches.

        Returns
        -------
        self

        """
        before = dict(self.__dict__)
        try:
            return self._fit(X, y)
        except BaseException as error:  # a fit that fails or is stopped leaves the model as it was
            self.__dict__ = before
            lacking = isinstance(error, MemoryError | RuntimeError) and what_was_wanted(error)
            if not lacking or isinstance(error, HopefoldError):
                raise
            raise NotEnoughMemory(
                f"there is not enough memory for this fit ({lacking}): give fewer rows, lower "
                "batch_size or the sizes of the map, or give a numpy.memmap or a Parquet file, "
                "which is never read as a whole."
            ) from error

    def _fit(self, X: Any, y: Any) -> Self:
        world = this_world()
        if world.size > 1 and not self._learns_in_parts:
            raise InvalidParameter(
                f"{type(self).__name__} learns in one process, and there are {world.size}: start "
                "it without torchrun, or use HOPE or S-HOPE."
            )
        given = take_in(self, X, y, world)
        self.columns_ = given.columns
        self._check_parameters()
        classes, labels = given.classes()
        if self.exemplars is not None and len(classes):
            sizes = np.bincount(labels[given.labelled])
            validation.warn_of_rare_classes(classes, sizes, self.n_exemplars)
        random = given.seed(self.random_state)
        scale = given.learn_scale(self._how_to_scale())
        names, columns = getattr(self, "feature_names_in_", None), self._columns_to_learn(scale)
        rows = given.prepare(scale, names, columns)
        weights = np.empty(0)
        if given.y is not None:
            weights = validation.check_class_weight(self.class_weight, classes, given.y)
        task = self._task(rows, scale, labels, classes, weights, random)
        world.agree("seeds", task.seed)
        task = replace(task, dealing=given.dealing)
        with (
            torch.inference_mode(False),  # whatever the caller is in
            torch.enable_grad(),
            self._kept(task, random) as (kept_task, chances),
        ):
            learner, what = self._learner(kept_task, chances)
            learned = learner._learn(what, chances)
        self._publish(learned, task)
        if self.refit and self.validation_error_ is not None and self.train_error_ is not None:
            n_held_out = self.validation_fraction * np.count_nonzero(given.labelled)
            chance.warn_of_bad_refit(self.train_error_, self.validation_error_, n_held_out)
        self.seen_: Any = given.sketch()
        self.n_rows_: int | None = len(labels)
        return self

    def _task(
        self,
        rows: Rows,
        scale: Scale,
        labels: ndarray,
        classes: ndarray,
        class_weights: ndarray,
        random: np.random.RandomState,
    ) -> Task:
        return Task(
            rows=rows,
            scale=scale,
            labels=labels,
            classes=classes,
            class_weights=class_weights,
            exemplars=self.exemplars,
            n_exemplars=self.n_exemplars,
            n_neighbors=self._resolve_n_neighbors(with_exemplars=self.exemplars is not None),
            device=resolve_device(self.device),
            seed=random.randint(2**31),
        )

    def transform(self, X: Any) -> Float[ndarray, "n d"]:
        """Embed rows, or a stream of them: float32 of shape (n_rows, n_components).

        A row gives the same point alone or in any batch. Of a dask array or a dask dataframe the
        points are a dask array, lazy, in the same blocks of rows.
        """
        if dask_arrays.is_lazy(X):
            return dask_arrays.answer(self, "transform", X)
        return self._embed(X)

    def predict_proba(self, X: Any) -> Float[ndarray, "n classes"]:
        """Probabilities of the classes, in the order of ``classes_``.

        The Student kernel's mass of each class's references, or the share of the nearest
        references' votes, as ``n_neighbors`` says.
        """
        if dask_arrays.is_lazy(X):
            return dask_arrays.answer(self, "predict_proba", X)
        return class_shares(self._embed(X), *self._references())

    def predict(self, X: Any) -> ndarray:
        """The most probable class of each row, in the labels' own dtype."""
        if dask_arrays.is_lazy(X):
            return dask_arrays.answer(self, "predict", X)
        decisions = decide(self._embed(X), *self._references())
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
        from hopefold.persistence.model_files import save

        save(self, path)

    def plot(self, X: Any, y: Any = None) -> Figure:
        """Draw the map of labelled rows, with mistaken ones crossed; notebooks show it.

        A map that was learned without labels is drawn without them, too.

        Returns a matplotlib figure, whose ``savefig`` writes PNG, SVG and PDF.
        """
        check_is_fitted(self)
        try:
            from hopefold.report.figures import draw_map
        except ImportError as error:
            raise MissingPackage(
                f"a map is drawn with {error.name}, which is not installed: "
                "pip install 'hopefold[cli]'."
            ) from error
        points, labels = self._embed(X), None if y is None else np.asarray(y)
        if labels is None and len(self.classes_):
            raise InvalidInput(
                "give y, the labels of the rows: the map is drawn with its mistakes."
            )
        if labels is not None and labels.shape != (len(points),):
            raise InvalidInput(f"there are {len(points)} rows and labels of shape {labels.shape}.")
        if points.shape[1] != 2:
            raise InvalidParameter(
                f"a map of two dimensions can be drawn, but this one has {points.shape[1]}: "
                "fit with n_components=2."
            )
        if not len(self.classes_):
            title = f"{type(self).__name__}, learned without labels: {len(points):,} rows"
            return draw_map(points, labels, title=title)
        mistaken = self.classes_[decide(points, *self._references())] != labels
        title = f"{type(self).__name__}: {mistaken.sum():,} of {len(points):,} rows mistaken"
        return draw_map(points, labels, self.exemplar_embedding_, mistaken, title=title)

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
        return int(self.reference_embedding_.shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "map_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _how_to_scale(self) -> str | None:
        return self.scale

    def _columns_to_learn(self, _scale: Scale) -> Int[ndarray, " c"] | None:
        """The columns that the map is learned from; ``None``: all, as far as they are dense."""
        return None

    def _make_map(self, n_features: int) -> nn.Module:
        raise NotImplementedError

    def _with_sizes_of(self, _weights: Mapping[str, Any]) -> Self:
        """The same method; sizes that are free are those of a map that it has learned."""
        return self

    def _embed(self, X: Any) -> ndarray:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # raises what scikit-learn's users expect
        table = as_table(X, self.columns_)
        if table is not None:
            validation.check_names(self, table.names)
            points = self._embed_batch(table.X)
        elif is_stream(X) or is_on_disk(X):
            points = np.concatenate([self._embed_batch(batch) for batch in self._batches(X)])
        else:
            X = validation.check_rows(self, X, fitting=False, finite=False)
            alarm = partial(validation.check_finite, self, X)
            points = self._placing().embed(X, resolve_device(self.device), alarm)
        validation.check_points(points)
        return points

    def _batches(self, X: Any) -> Iterator[ndarray]:
        return (
            chunks(X) if is_on_disk(X) else read_rows(X, getattr(self, "feature_names_in_", None))
        )

    def _embed_batch(self, X: Any) -> ndarray:
        validation.check_batch(self, X)
        return self._placing().embed(X, resolve_device(self.device))

    def _placing(self) -> Placing:
        """The map and the scale, ready for rows; made once for what was learned."""
        placing: Placing | None = self.__dict__.get("_ready")
        if placing is None or placing.map is not self.map_ or placing.scale is not self.scale_:
            placing = self._ready = Placing(self.map_, self.scale_)
        return placing

    def __getstate__(self) -> dict[str, Any]:
        """What was learned, without what can be made of it again."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_ready"}

    def _references(self) -> tuple[ndarray, ndarray, ndarray, int | None]:
        """What new points are judged by: where the references lie, their classes and weights."""
        if not len(self.classes_):
            raise InvalidInput(
                f"this {type(self).__name__} was learned without labels, so it names no classes: "
                "use transform, or fit with y."
            )
        return (
            self.reference_embedding_,
            np.searchsorted(self.classes_, self.reference_labels_),
            self.class_weight_,
            self._resolve_n_neighbors(with_exemplars=self.exemplars_ is not None),
        )

    @contextmanager
    def _kept(
        self, task: Task, random: np.random.RandomState
    ) -> Iterator[tuple[Task, np.random.RandomState]]:
        """What is learned from, with a checkpoint where the method has one."""
        yield task, random

    def _learner(self, task: Task, _random: np.random.RandomState) -> tuple[Self, Task]:
        """What learns, with all decided that the rows decide, and what from."""
        return self, task

    def _learn(self, task: Task, random: np.random.RandomState) -> Learned:
        """Learn with some rows held out, to know the error; then, if asked, from all rows."""
        if not task.is_labelled:
            return self._learn_without_labels(task, random)
        everything = task.heard()
        training, held_out = everything, everything[:0]
        if self.validation_fraction > 0:
            training, held_out = self._hold_out(task, random)
            if not len(held_out):
                warnings.warn(
                    "no row could be held out, so there is no validation error: give more rows, "
                    "fewer exemplars, or validation_fraction=0.",
                    NoValidationWarning,
                    stacklevel=4,
                )
        learned = self._learn_from(task, training, held_out)
        if task.structure:
            unseen = np.setdiff1d(everything, training, assume_unique=True)
            learned = replace(learned, trustworthiness=trust_held_out(task, learned.map, unseen))
        if len(held_out):
            chance.warn_of_chance(learned.run.late_error, task.shares(held_out), len(held_out))
        if not (self.refit and len(held_out)):
            return learned
        again = self._learn_from(task, everything, held_out[:0], like=learned)
        return replace(again, run=learned.run, trustworthiness=learned.trustworthiness)

    def _hold_out(self, task: Task, random: np.random.RandomState) -> tuple[ndarray, ndarray]:
        """Rows to learn from, and rows with a label to judge by.

        Of rows without a label as large a share is in neither: neighbours are judged by them, too.
        """
        everything = task.heard()
        known = task.known(everything)
        keep = self.n_exemplars if self.exemplars else 1
        _, places = hold_out(task.labels[known], self.validation_fraction, keep, random)
        held_out = known[places]
        unknown = np.setdiff1d(everything, known, assume_unique=True)
        n_aside = round(self.validation_fraction * len(unknown))
        aside = random.permutation(unknown)[:n_aside] if n_aside else unknown[:0]
        apart = np.concatenate([held_out, aside])
        return np.setdiff1d(everything, apart, assume_unique=True), held_out

    def _learn_without_labels(self, task: Task, random: np.random.RandomState) -> Learned:
        """Nothing is chosen on held-out rows: the map is learned once, and told how it does."""
        n_held_out = round(self.validation_fraction * len(task.labels))
        held_out, training = np.split(random.permutation(len(task.labels)), [n_held_out])
        learned = self._learn_from(task, np.sort(training), held_out[:0])
        return replace(learned, trustworthiness=trust_held_out(task, learned.map, held_out))

    def _learn_from(
        self, task: Task, training: ndarray, held_out: ndarray, like: Learned | None = None
    ) -> Learned:
        """A map and its exemplars from the training rows, with the error on the held-out rows.

        What held-out rows have decided before is taken from ``like``: the number of epochs, and how
        coarse numbers may be.
        """
        raise NotImplementedError

    def _publish(self, learned: Learned, task: Task) -> None:
        """Set what was learned."""
        classes, scale = task.classes, task.scale
        exemplars, references, which = None, task.rows, None
        whole, labels = learned.with_all_columns(task.rows.columns, len(scale.gain)), learned.labels
        map_ = learned.map
        if whole.exemplars is not None:
            exemplars = scale.undo(whole.exemplars)
            references, map_ = Rows(exemplars, scale), whole.map
        elif task.is_labelled:
            which = task.known(np.arange(len(labels)))
            labels = labels[which]
        self.reference_embedding_ = references.each(
            lambda rows: embed(map_, rows, task.device), which
        )
        self.reference_labels_: Any = classes[labels] if task.is_labelled else None
        self.exemplars_: Any = exemplars
        self.map_, self.scale_, self.precision_ = whole.map, scale, learned.precision
        self._placing()  # now: transform leaves the model as it is
        self.classes_, self.class_weight_ = classes, task.class_weights
        self.n_iter_, self.history_ = learned.run
        self.validation_error_ = learned.run.kept.get("validation_error")
        self.train_error_: float | None = self._train_error(learned, task)
        self.trustworthiness_: float | None = learned.trustworthiness
        self.settings_: dict[str, Any] = {
            f.name: f.default if f.name in PASSING else getattr(self, f.name) for f in fields(self)
        }

    def _train_error(self, learned: Learned, task: Task) -> float | None:
        """How the references judge the rows that the map was learned from, where they can."""
        if not task.is_labelled:
            return None
        known = task.known(np.arange(len(task.labels)))
        references, labels = self.reference_embedding_, learned.labels
        if learned.exemplars is not None:
            points = task.rows.each(lambda rows: embed(learned.map, rows, task.device), known)
        else:
            points, labels = references, labels[known]
        return float(mistakes(task, known, points, references, labels).mean())
