"""The shared part of HOPE and S-HOPE: incremental learning, scores, and explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from hopefold.core.interactions import Term
from hopefold.core.maps import HighOrder
from hopefold.data import labels as label_checks
from hopefold.data import validation
from hopefold.data.fingerprints import sketch
from hopefold.data.rows import Rows
from hopefold.data.scaling import learn_scale
from hopefold.data.streams import is_stream
from hopefold.data.tables import as_table
from hopefold.errors import Diverged, InvalidInput, InvalidParameter
from hopefold.estimators.base import SupervisedEmbedding
from hopefold.estimators.rollback import unchanged_on_failure
from hopefold.explain.explainer import Explainer
from hopefold.explain.term_tables import Explanation, Interactions
from hopefold.fitting.held_out import misclassified
from hopefold.fitting.incremental import IncrementalState
from hopefold.fitting.landmarks import trust
from hopefold.fitting.plan_values import Request
from hopefold.fitting.task import Task
from hopefold.fitting.trainer import Trainer
from hopefold.inference.dask_arrays import is_lazy
from hopefold.inference.embedding import embed, resolve_device
from hopefold.training.distributed import current_process_group
from hopefold.training.loop import Run

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray


class HighOrderEmbedding(SupervisedEmbedding):
    """A map that is a polynomial of its features, or close to one."""

    map_: HighOrder

    if TYPE_CHECKING:  # every subclass declares it
        missing_label: Any

    @property
    def column_gains_(self) -> Float[ndarray, " features"]:
        """The norm of each column's weights, divided by the largest; 0: the map ignores it."""
        check_is_fitted(self)
        norms = self.map_.layers[0].C.detach().double().norm(dim=0)
        gains: ndarray = (norms / norms.max().clamp_min(1e-300)).numpy()
        return gains

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn from more rows, in one pass over them.

        The first call starts the map, in the scale of its rows; a fitted or loaded model is
        updated. ``validation_error_`` is the error on the new rows before they are learned from.
        ``temperature_`` stays as it was in the fit; it is 1 without one.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            The features.
        y : array-like of shape (n_rows,)
            The labels.
        classes : array-like, optional
            All labels that can occur, for the first call; by default those in its ``y``.

        Returns
        -------
        self

        """
        state = self.__dict__.get("_incremental")
        try:
            with unchanged_on_failure(self):
                return self._partial_fit(X, y, classes, state)
        except BaseException:
            self.__dict__.pop("_incremental", None)  # which may have changed
            raise

    def _partial_fit(self, X: Any, y: Any, classes: Any, state: IncrementalState | None) -> Self:
        request = self.request()
        check_incremental(request)
        if (size := current_process_group().size) > 1:
            raise InvalidParameter(f"partial_fit learns in one process, and there are {size}: fit.")
        resolve_device(self.device)
        is_first = not self.__sklearn_is_fitted__()
        task, X = self._incremental_task(request, X, y, classes, is_first=is_first)
        history = [] if is_first else [dict(record) for record in self.history_]
        record: dict[str, Any] = {"epoch": len(history) + 1}
        if not is_first:
            record["validation_error"] = self._error_on(task)
        decided = {} if is_first else self.method.sizes_of(self.map_.state_dict())
        decided["validation_fraction"] = 0.0, "new rows are evaluated before they are learned from"
        trainer = Trainer(request, self.method, decided=decided)
        method = self.method(trainer.plan(task))
        if is_first:
            state = IncrementalState.start(method, task)
        elif state is None or state.published is not self.map_:
            labels = np.searchsorted(self.classes_, self.reference_labels_)
            exemplars = self.scale_.apply(self.exemplars_)
            state = IncrementalState.of_model(method, task, self.map_, exemplars, labels)
        wrong = (
            "the map diverged on these rows, so they are not learned from: look for outliers "
            "among them, or lower learning_rate."
        )
        try:
            learned = trainer.fit_more(task, state)
        except Diverged as error:
            raise Diverged(wrong) from error
        if not state.is_finite():
            raise Diverged(wrong)
        history.append(record | {"loss": learned.run.kept["loss"]})
        learned = replace(
            learned,
            run=Run(len(history), history),
            temperature=self.temperature_,
        )
        if not is_first:
            learned = learned.evaluated_on(task, np.arange(len(task.labels)))
        self._publish(learned, task)
        state.published, self._incremental = self.map_, state
        self.seen_ = sketch(X, None if is_first else self.seen_)
        self.n_rows_ = len(task.labels) + (0 if is_first else self.n_rows_ or 0)
        return self

    def _incremental_task(
        self, request: Request, X: Any, y: Any, classes: Any, *, is_first: bool
    ) -> tuple[Task, Any]:
        """Return the new rows in the scale of the map, and in the original units."""
        if y is None:
            raise InvalidInput("partial_fit requires y to be passed, but the target y is None.")
        if not is_first and not len(self.classes_):
            raise InvalidInput(
                "this model was learned without labels, and partial_fit needs classes: fit "
                "with y first."
            )
        if is_first:
            X, y = validation.check_rows(self, X, y, fitting=True)
            known = np.unique(y if classes is None else classes)
            scale = learn_scale(X, request.scale)
            weights = label_checks.check_class_weight(self.class_weight, known, y)
        else:
            X, y = validation.check_more_rows(self, X, y)
            known, scale, weights = self.classes_, self.scale_, self.class_weight_
        labels = label_checks.check_known_classes(known, y, classes)
        random = validation.check_seed(self.random_state)
        names = getattr(self, "feature_names_in_", None)
        rows, seed = Rows.prepare(X, scale, names), random.randint(2**31)
        return Task(rows, scale, labels, known, weights, seed), X

    def _error_on(self, task: Task) -> float:
        """Return the error of the current model on rows before they are learned from."""
        everything = np.arange(len(task.labels))
        points = embed(self.map_, task.rows, resolve_device(self.device))
        references, labels, _, votes = self.references()
        return float(misclassified(task, votes, everything, points, references, labels).mean())

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on rows with a label.

        Without y, for a map that was learned without labels: the trustworthiness of neighbors.
        """
        if y is None:
            return self._trust(X)
        if isinstance(X, str | PathLike):
            return float(super().score(X, y, sample_weight))
        if not label_checks.is_marker(self.missing_label):
            label_checks.check_sortable(y, remedy="leave those rows out.")
            return float(super().score(X, y, sample_weight))
        _, known = label_checks.split_labels(y, self.missing_label, _num_samples(X))
        if not known.any():
            raise InvalidInput(
                f"all {len(known)} labels are missing: there is nothing to evaluate on."
            )
        which = np.flatnonzero(known)
        labels = _safe_indexing(y, which)
        weights = None if sample_weight is None else _safe_indexing(sample_weight, which)
        return float(super().score(_safe_indexing(X, which), labels, weights))

    def _trust(self, X: Any) -> float:
        if is_stream(X) or is_lazy(X):
            raise InvalidInput("neighbors are looked for among rows in memory: give an array.")
        points = self.transform(X)
        if len(self.classes_):
            raise InvalidInput("score needs the labels of the rows: give y.")
        table = as_table(X, self.columns_)
        X = validation.check_rows(self, X, fitting=False) if table is None else table.X
        found = trust(Rows(X, self.scale_), np.arange(len(points)), lambda some: points[some])
        if found is None:
            raise InvalidInput(
                f"{len(points)} rows have no neighbors to evaluate by: give 3 or more."
            )
        return found

    def interactions(
        self,
        top: int = 20,
        X: Any = None,
        y: Any = None,
        *,
        order: int | None = None,
        units: str = "standard",
        slope: str = "mean",
        feature_names: Sequence[str] | None = None,
    ) -> Interactions:
        """Return the products of features with the largest weight on the map.

        The coefficients are exact, and so is the selection among all products of up to ``order``
        features. If searching all of them took too long, ``note`` says among how many features the
        selection is exact. A product is listed once, whatever the order of its features.

        For S-HOPE, each sigmoid is replaced by a line. Its slope is averaged over ``X`` (give the
        rows of one class for what drives the map there), or by default over the exemplars. With
        several layers, the powers above the first layer are replaced by lines, too, so a product
        has at most as many factors as the order of the first layer. Give ``X`` in this case: the
        mean of the lines is then corrected by a regression, to be closest to the map on these rows.

        Parameters
        ----------
        top : int, default=20
            The number of products.
        X : array-like of shape (n_rows, n_features), a table or a stream, optional
            Rows on which products are ranked by the standard deviation of their contributions, with
            shifts per class. Exact among the 10,000 products with the largest coefficients. Without
            rows, products are ranked by the norm of their coefficients over the coordinates.
        y : array-like of shape (n_rows,), optional
            The labels of the rows. Default: those that the model predicts.
        order : int, optional
            Only products of this number of factors; a square has two. Default: any number, up to
            the order of the map, or of its first layer.
        units : {"standard", "data"}, default="standard"
            ``"standard"``: features are counted in standard deviations from their mean, so that
            coefficients of different columns can be compared. Mean and deviation are those of
            ``X``; without ``X`` those of the training rows if the map has learned in that scale,
            and otherwise those of the exemplars. ``"data"``: coefficients are those of the features
            as they are in the data.
        slope : {"mean", "local"}, default="mean"
            For S-HOPE. ``"mean"``: the slope of a sigmoid is its mean between the mean row and the
            row, so terms add up to the position of the row. ``"local"``: the slope at the row
            itself: the effect of small changes, often close to zero.
        feature_names : sequence of str, optional
            Names of the columns. Default: those that the model was fitted with, else x0, x1, ….

        Examples
        --------
        >>> import numpy as np
        >>> from hopefold import HOPE
        >>> X = np.random.RandomState(0).normal(size=(500, 5))
        >>> y = X[:, 1] * X[:, 3] > 0
        >>> HOPE(order=2, random_state=0).fit(X, y).interactions(top=1).names
        ('x1 × x3',)

        """
        check_is_fitted(self)
        return Explainer(self).interactions(
            top, X, y, order=order, units=units, slope=slope, feature_names=feature_names
        )

    def explain(
        self,
        x: Any,
        top: int = 10,
        *,
        order: int | None = None,
        units: str = "standard",
        slope: str = "mean",
        feature_names: Sequence[str] | None = None,
    ) -> Explanation:
        """Return the terms that add up to the point of a row in the map.

        The sum is exact for HOPE. For S-HOPE, each sigmoid is replaced by a line, and so is each
        power above the first layer. The error is the remainder: zero with the mean slope, and
        nearly the whole point with the slope at the row.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features)
            The row.
        top : int, default=10
            The number of terms that are listed.
        order : int, optional
            List only products of this number of factors; all else is in ``others``.
        units, slope, feature_names
            As in `interactions`, without X.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from hopefold import HOPE
        >>> X, y = load_iris(return_X_y=True)
        >>> model = HOPE(random_state=0).fit(X, y)
        >>> why = model.explain(X[0])
        >>> parts = why.constant + why.values.sum(axis=0) + why.others + why.remainder
        >>> bool(np.allclose(parts, model.transform(X[:1])[0], atol=1e-4))
        True

        """
        check_is_fitted(self)
        return Explainer(self).explain(
            x, top, order=order, units=units, slope=slope, feature_names=feature_names
        )

    def contributions(self, X: Any, terms: Sequence[Term]) -> Float[ndarray, "n terms d"]:
        """Return how far each of the given terms moves each row, in standard deviations.

        ``terms`` are tuples of column indices, e.g. those from `interactions`.
        """
        check_is_fitted(self)
        return Explainer(self).contributions(X, terms)

    @property
    def feature_importances_(self) -> Float[ndarray, " features"]:
        """The importance of each feature for the map: the norm of all terms that contain it.

        In standard deviations, as in `interactions` without X; the values sum to 1. A column that
        was constant in training has importance 0, unless the model was fitted with ``scale=None``.
        """
        check_is_fitted(self)
        return Explainer(self).feature_importances()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_incremental"}


def check_incremental(request: Request) -> None:
    """Raise an error for parameters that need all rows at once."""
    asked = request.parameters
    needed: dict[str, Any] = {"exemplars": "joint", "optimizer": "adam", "max_bytes": None}
    needed["missing_label"] = ()
    if asked["structure"] != "auto":
        needed["structure"] = 0
    for name, value in needed.items():
        if asked[name] != value:
            raise InvalidParameter(
                f"partial_fit learns from some rows at a time, but {name}={asked[name]!r} needs "
                f"all of them: set {name}={value!r}, or use fit."
            )
    if asked["class_weight"] == "balanced":
        raise InvalidParameter(
            "class_weight='balanced' needs all rows at once: give partial_fit a dict from label to "
            "weight."
        )
