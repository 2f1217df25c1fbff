"""The base class of all estimators: validate, plan, train, publish; transform, predict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import nn

from hopefold.core.neighbors import class_shares, decide, nearest
from hopefold.data import labels as label_checks
from hopefold.data import validation
from hopefold.data.columns import Columns
from hopefold.data.disk import is_on_disk
from hopefold.data.rows import Rows
from hopefold.data.streams import is_stream, read_batches
from hopefold.data.tables import as_table
from hopefold.errors import InvalidInput, InvalidParameter, MissingPackage
from hopefold.estimators.fit_input import FitInput, file_texts, n_fill_bytes, read_fit_input
from hopefold.estimators.rollback import unchanged_on_failure
from hopefold.fitting.build import Method
from hopefold.fitting.chance import error_interval, warn_of_bad_refit
from hopefold.fitting.held_out import training_error
from hopefold.fitting.plan import resolve
from hopefold.fitting.plan_values import Facts, Plan, Request
from hopefold.fitting.task import Learned, Task, columns_to_learn
from hopefold.fitting.trainer import Trainer
from hopefold.inference import dask_arrays
from hopefold.inference.embedding import ScaledMap, embed, resolve_device
from hopefold.specification import CHECKPOINT_PARAMETERS, check_parameters, method_of
from hopefold.training.distributed import current_process_group

if TYPE_CHECKING:
    from jaxtyping import Float
    from matplotlib.figure import Figure
    from numpy import ndarray


class SupervisedEmbedding(
    ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator
):
    """A map learned from labels, with its references, and the scikit-learn API.

    A subclass declares its parameters as dataclass fields and names its `Method`, which defines the
    map and the loss.
    """

    #: What is learned, and how.
    method: ClassVar[type[Method]]

    #: How the columns of a table are converted to features; ``None`` if fitted on arrays.
    columns_: Columns | None = None

    #: Every setting of the fit, with the reason; ``None`` for a model file without a plan.
    plan_: Plan | None = None

    #: Of the class probabilities; 1 in a model file of an earlier version.
    temperature_: float = 1.0

    #: Whether Ctrl-C ended the fit early.
    interrupted_: bool = False

    #: Expected calibration error on held-out rows; ``None`` if none were held out.
    calibration_error_: float | None = None

    if TYPE_CHECKING:  # every subclass declares them
        exemplars: str | None
        n_exemplars: int
        class_weight: Any
        device: Any
        random_state: Any
        verbose: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map, and the exemplars, from labeled rows.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features), a table, or a stream
            The features. A CSR matrix is never made dense as a whole, and a `numpy.memmap` is never
            read as a whole. A table is what `hopefold.data.tables.read_table` returns. A stream is
            a Parquet file or a folder of them (its path, or a pyarrow dataset), or an object that
            yields batches (X, y) each time it is iterated over.
        y : array-like of shape (n_rows,), or str
            The labels, of any dtype; the name of the label column in a Parquet file; left out for
            a stream of batches.

        Returns
        -------
        self

        """
        with unchanged_on_failure(self):
            return self._fit(X, y)

    def _fit(self, X: Any, y: Any) -> Self:
        group = current_process_group()
        if group.size > 1 and not self.method.learns_in_parallel:
            raise InvalidParameter(
                f"{type(self).__name__} learns in one process, and there are {group.size}: start "
                "it without torchrun, or use HOPE or S-HOPE."
            )
        given = read_fit_input(self, X, y, group)
        self.columns_ = given.columns
        request = self.request()
        task, random = self._task(request, given)
        trainer = Trainer(request, self.method, verbose=self.verbose > 0)
        learned, task = trainer.fit(task, random)
        self._publish(learned, task)
        errors = self.train_error_, self.validation_error_
        if learned.plan.refit and None not in errors:
            warn_of_bad_refit(*errors, learned.n_held_out)
        self.seen_: Any = given.sketch()
        self.n_rows_: int | None = len(task.labels)
        return self

    def request(self) -> Request:
        """Return the method and its parameters, validated."""
        method, parameters = method_of(type(self)), self.get_params(deep=False)
        check_parameters(method.name, {one.name: parameters[one.name] for one in method.parameters})
        return Request(method.name, parameters)

    def _task(self, request: Request, given: FitInput) -> tuple[Task, np.random.RandomState]:
        """Return the data in the scale of the map, and the random state of the fit."""
        resolve_device(self.device)  # raise early if it is unavailable
        classes, labels = given.classes()
        if self.exemplars is not None and len(classes):
            sizes = np.bincount(labels[given.labeled])
            label_checks.warn_of_rare_classes(classes, sizes, self.n_exemplars)
        random = given.seed(self.random_state)
        scale = given.learn_scale(request.scale)
        names = getattr(self, "feature_names_in_", None)
        rows = given.prepare(scale, names, columns_to_learn(request, scale))
        weights = np.empty(0)
        if given.y is not None:
            weights = label_checks.check_class_weight(self.class_weight, classes, given.y)
        task = Task(
            rows=rows,
            scale=scale,
            labels=labels,
            classes=classes,
            class_weights=weights,
            seed=random.randint(2**31),
            sharding=given.sharding,
            file_texts=file_texts(self, classes, weights),
            n_fill_bytes=n_fill_bytes(self),
        )
        given.group.agree("seeds", task.seed)
        return task, random

    def transform(self, X: Any) -> Float[ndarray, "n d"]:
        """Embed rows, or a stream of rows: float32 of shape (n_rows, n_components).

        The point of a row does not depend on the other rows. For a dask array or dataframe the
        result is a lazy dask array, in the same blocks of rows.
        """
        if dask_arrays.is_lazy(X):
            return dask_arrays.answer(self, "transform", X)
        return self._embed(X)

    def predict_proba(self, X: Any) -> Float[ndarray, "n classes"]:
        """Return the probabilities of the classes, in the order of ``classes_``.

        They are the Student kernel's mass of each class's references, at the temperature that suits
        the held-out rows, or the votes of the nearest references, depending on ``n_neighbors``.
        """
        if dask_arrays.is_lazy(X):
            return dask_arrays.answer(self, "predict_proba", X)
        return class_shares(self._embed(X), *self.references(), self.temperature_)

    def predict(self, X: Any) -> ndarray:
        """Return the most probable class of each row, in the dtype of the labels."""
        if dask_arrays.is_lazy(X):
            return dask_arrays.answer(self, "predict", X)
        decisions = decide(self._embed(X), *self.references())
        labels: ndarray = self.classes_[decisions]
        return labels

    def kneighbors(self, X: Any, n_neighbors: int = 5) -> tuple[ndarray, ndarray]:
        """Return the nearest references of each row in the embedding: distances and indices.

        Indices refer to exemplars, or to training rows if there are no exemplars.
        """
        from hopefold.checks import check_whole

        points = self._embed(X)
        check_whole("n_neighbors", n_neighbors, at_least=1)
        n_references = len(self.reference_embedding_)
        if n_neighbors > n_references:
            raise InvalidParameter(
                f"n_neighbors={n_neighbors}, but there are {n_references} references: "
                f"ask for at most {n_references}, or fit with more exemplars."
            )
        return nearest(points, self.reference_embedding_, n_neighbors)

    def references(self) -> tuple[ndarray, ndarray, ndarray, int | None]:
        """Return the references that classify points, as `hopefold.core.neighbors` takes them.

        The embedding of the references, their class numbers, the weights of the classes, and how
        many neighbors vote (``None``: the Student kernel's mass decides).
        """
        if not len(self.classes_):
            raise InvalidInput(
                f"this {type(self).__name__} was learned without labels, so it names no classes: "
                "use transform, or fit with y."
            )
        return (
            self.reference_embedding_,
            np.searchsorted(self.classes_, self.reference_labels_),
            self.class_weight_,
            self.request().votes(with_exemplars=self.exemplars_ is not None),
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file, atomically; `hopefold.load` reads it."""
        from hopefold.persistence.model_files import save

        save(self, path)

    def plot(self, X: Any, y: Any = None) -> Figure:
        """Draw the map of labeled rows, with misclassified ones crossed; notebooks show it.

        A map that was learned without labels can be drawn without them, too.

        Returns a matplotlib figure, whose ``savefig`` writes PNG, SVG and PDF.
        """
        check_is_fitted(self)
        try:
            from hopefold.report.figures import plot_model
        except ImportError as error:
            raise MissingPackage(
                f"a map is drawn with {error.name}, which is not installed: "
                "pip install 'hopefold[cli]'."
            ) from error
        return plot_model(self, self._embed(X), y)

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

    def empty_map(self, weights: Mapping[str, Any]) -> nn.Module:
        """The map of a fitted model without its weights; sizes that are "auto" are theirs."""
        n = self.n_features_in_
        facts = Facts(n_features=n, n_columns=n, n_classes=1, n_labeled=1)  # all rows have a label
        plan = resolve(self.request(), facts, self.method.sizes_of(weights))
        return self.method(plan).make_map(self.n_features_in_)

    def restore_plan(self, plain: Any) -> None:
        """Set ``plan_`` to what `Plan.as_plain` has given."""
        self.plan_ = Plan.from_plain(method_of(type(self)).name, plain)

    def _embed(self, X: Any) -> ndarray:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # raises what scikit-learn's users expect
        table, device = as_table(X, self.columns_), resolve_device(self.device)
        if table is not None:
            validation.check_names(self, table.names)
            validation.check_batch(self, table.X)
            points = self._scaled_map().embed(table.X, device)
        elif is_stream(X) or is_on_disk(X):
            points = np.concatenate([*self._embed_batches(X, device)])
        else:
            X = validation.check_rows(self, X, fitting=False, finite=False)
            on_non_finite = partial(validation.check_finite, self, X)
            points = self._scaled_map().embed(X, device, on_non_finite)
        validation.check_points(points)
        return points

    def _embed_batches(self, X: Any, device: torch.device) -> Iterator[ndarray]:
        for batch in read_batches(X, getattr(self, "feature_names_in_", None)):
            validation.check_batch(self, batch)
            yield self._scaled_map().embed(batch, device)

    def _scaled_map(self) -> ScaledMap:
        """The map and the scale, ready for rows; made once for what was learned."""
        ready: ScaledMap | None = self.__dict__.get("_ready")
        if ready is None or ready.map is not self.map_ or ready.scale is not self.scale_:
            ready = self._ready = ScaledMap(self.map_, self.scale_)
        return ready

    def __getstate__(self) -> dict[str, Any]:
        """What was learned, without what can be made of it again."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_ready"}

    def _publish(self, learned: Learned, task: Task) -> None:
        """Set what was learned."""
        plan, classes, scale = learned.plan, task.classes, task.scale
        exemplars, references, which = None, task.rows, None
        whole, labels = learned.with_all_columns(task.rows.columns, len(scale.gain)), learned.labels
        map_ = learned.map
        if whole.exemplars is not None:
            exemplars = scale.undo(whole.exemplars)
            references, map_ = Rows(exemplars, scale), whole.map
        elif task.is_labeled:
            which = task.labeled(np.arange(len(labels)))
            labels = labels[which]
        device = torch.device(plan.device)
        self.reference_embedding_ = references.each(lambda rows: embed(map_, rows, device), which)
        self.reference_labels_: Any = classes[labels] if task.is_labeled else None
        self.exemplars_: Any = exemplars
        self.map_, self.scale_, self.precision_ = whole.map, scale, learned.precision
        self._scaled_map()  # now: transform leaves the model as it is
        self.classes_, self.class_weight_ = classes, task.class_weights
        self.n_iter_, self.history_ = learned.run.epochs, learned.run.history
        self.interrupted_ = learned.run.interrupted
        self.validation_error_ = learned.run.kept.get("validation_error")
        self.n_held_out_: int | None = learned.n_held_out or None
        self.validation_interval_: tuple[float, float] | None = None
        if self.validation_error_ is not None and learned.n_effective:
            interval = error_interval(self.validation_error_, learned.n_effective)
            self.validation_interval_ = interval
        self.train_error_: float | None = training_error(learned, task, self.reference_embedding_)
        self.trustworthiness_: float | None = learned.trustworthiness
        self.temperature_ = learned.temperature
        self.calibration_error_ = learned.calibration_error
        self.structure_: float = plan.structure
        self.plan_ = plan
        specified = method_of(type(self)).parameters
        self.settings_: dict[str, Any] = {
            one.name: one.default if one.name in CHECKPOINT_PARAMETERS else getattr(self, one.name)
            for one in specified
        }
