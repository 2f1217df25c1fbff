"""HOPE and S-HOPE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from torch import nn

from hopefold import checks
from hopefold.core.maps import HighOrder, Pressed, Products, SigmoidHighOrder, Stacked
from hopefold.data import validation
from hopefold.data.distortion import DISTORTIONS
from hopefold.data.scaling import Scale
from hopefold.errors import InvalidParameter
from hopefold.estimators.explaining import Explaining
from hopefold.estimators.gradient import START_ROWS
from hopefold.estimators.parameters import number
from hopefold.estimators.structured import Structured
from hopefold.fitting.layer_sizes import (
    MOST_ORDER,
    Layers,
    check_layers,
    is_several,
    sizes_of_layers,
    told,
)
from hopefold.fitting.learning import Learned, Start, Task
from hopefold.fitting.losses import Loss, by_exemplars, by_pairs, of_distorted_images
from hopefold.fitting.size_budget import COLUMNS_AT_ONCE, is_handy, learn_within_budget

if TYPE_CHECKING:
    from jaxtyping import Int
    from numpy import ndarray

#: The most features that are dropped in training, and how many there must be for that: the more
#: there are, the more of them others can stand in for.
INPUT_DROPOUT = 0.25
MANY_FEATURES = 250

#: Fewer features are few. Then units are dropped, and steps are larger. Rows are not nudged, as
#: that would move them to where others are, unless they are images.
FEW_FEATURES = 100

#: The largest step of S-HOPE where neighbours are to be kept, by one layer.
STRUCTURE_STEP = 6e-3

#: The layers that S-HOPE stacks of itself: without labels, where there are more than few features;
#: with many classes and few features, where they judge held-out rows better than one layer does.
TWO_LAYERS = (400, 400)

#: How far a row is nudged, in shares of the spread of all rows.
NUDGE = 0.1

#: A map of fewer factors is small: it drops less and takes larger steps. One of so many times fewer
#: learns longer.
USUAL_FACTORS = 400
SMALL = 2

#: Classes that find their places in a plane in the usual number of passes. More need more.
MANY_CLASSES = 10

#: Steps after which no data need more epochs than a few.
MANY_STEPS = 20_000

OBJECTIVES = ("collapse", "spread")


@dataclass(kw_only=True, eq=False, repr=False)
class HighOrderEmbedding(Explaining, Structured):
    """What HOPE and S-HOPE share: joint exemplars or pairs, and products of features."""

    _learns_in_parts: ClassVar = True

    exemplars: str | None = "joint"
    objective: str = "collapse"
    conditional: bool = False
    input_dropout: float | str = "auto"
    dropout: float | str = "auto"
    adversarial: float | str = 0.0
    spare_components: int = 0
    learning_rate: float | str = "auto"
    order: int | tuple[int, ...] = 2
    n_factors: int | str | tuple[int, ...] = "auto"
    max_bytes: int | None = None
    augment: str | None = None
    image_shape: tuple[int, int] | None = None

    #: Polynomial units, where the budget does not say otherwise, and how many of them are dropped.
    _most_factors: ClassVar[int] = USUAL_FACTORS
    _most_dropout: ClassVar[float] = 0.0
    #: The largest step of Adam for few features, and for many.
    _steps: ClassVar[tuple[float, float]] = (2e-3, 2e-3)
    _exemplar_choices: ClassVar = ("joint", "kmeans", None)
    _prose: ClassVar = Structured._prose | {
        "exemplars": (
            '{"joint", "kmeans", None}',
            """What new rows are compared with. ``"joint"``: exemplars that start from k-means and
are learned together with the map. ``"kmeans"``: the map is learned on pairs of rows, and
the k-means centres of each class in the input space are mapped. ``None``: learned on pairs,
and all embedded training rows are kept.""",
        ),
        "n_neighbors": (
            'int or "auto"',
            """Neighbours that vote in `predict`. ``"auto"``: the Student kernel's mass of the
exemplars, or 5 training rows where there are no exemplars. Among tied classes the nearest
wins.""",
        ),
        "objective": (
            '{"collapse", "spread"}',
            """``"collapse"`` pulls a row onto all exemplars of its class; ``"spread"`` to any of
them, so that they may lie apart (``exemplars="joint"`` only).""",
        ),
        "max_epochs": (
            'int or "auto"',
            """Passes over the rows, at the most. ``"auto"``: about 2,000 steps, in 70 to 100
passes (50 to 100 where rows are nudged, 100 for a small map), up to three times as many for more
than 10 classes, and fewer, down to 10, where these make more than 20,000 steps; 50 for the
optimizers ``"cg"`` and ``"lbfgs"``.""",
        ),
        "learning_rate": (
            'float or "auto"',
            """Largest step of Adam: warmed up over the first tenth, then lowered along a cosine.
``"auto"``: 0.001 for HOPE and 0.002 for S-HOPE; 0.002 and 0.006 where there are fewer than 100
features (divided by the number of layers); larger for a small map.""",
        ),
        "input_dropout": (
            'float or "auto"',
            """Share of the features that are dropped at random in training. ``"auto"``: a
thousandth for each feature that there is, 0.25 at the most, less where there are few factors;
none with ``augment``.""",
        ),
        "dropout": (
            'float or "auto"',
            """Share of the polynomial units that are dropped at random in training. ``"auto"``: 0.3
for S-HOPE where there are fewer than 100 features, less where there are few factors; else
none.""",
        ),
        "adversarial": (
            'float or "auto"',
            """How far a row is moved towards what it could be mistaken for, in shares of the spread
of all rows, below 1: the map learns to keep its place. ``"auto"``: 0.1 for 100 features or
more, and for fewer that share one range, as pixels do; none else, for sparse rows, with
``augment``, and for the optimizers ``"cg"`` and ``"lbfgs"``.""",
        ),
        "spare_components": (
            "int",
            """Dimensions that the map has besides in training, so that classes can pass each other:
they are pressed flat on the way, and the learned map does not have them.""",
        ),
        "augment": (
            '{"affine", "elastic", None}',
            """Distort images anew whenever they are learned from: ``"affine"`` turns, stretches and
moves them a little, ``"elastic"`` warps them besides. Needs ``image_shape``.""",
        ),
        "image_shape": ("(int, int) or None", "Height and width of the images, for ``augment``."),
        "max_bytes": (
            "int or None",
            """The most bytes that the saved model may have, with its exemplars, its scale and all
names. Sizes that are ``"auto"`` are chosen for it, and weights and exemplars are kept in int8, or
in float16 where int8 costs accuracy on the held-out rows (without held-out rows, always in
int8).""",
        ),
        "conditional": (
            "bool",
            """Normalise the pairwise objective row by row instead of over all pairs of a batch. The
objective on exemplars is always so.""",
        ),
    }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("input_dropout", "dropout", "adversarial"):
            checks.check_number_or_auto(name, getattr(self, name), 0, 1)
        checks.check_whole("spare_components", self.spare_components, at_least=0)
        self._check_sizes()
        if self.max_bytes is not None:
            checks.check_whole("max_bytes", self.max_bytes, at_least=1)
        checks.check_choice("objective", self.objective, OBJECTIVES)
        checks.check_choice("conditional", self.conditional, (True, False))
        checks.check_choice("augment", self.augment, (*DISTORTIONS, None))
        if self.image_shape is not None:
            checks.check_image_shape(self.image_shape)
        if self.augment is not None and self.image_shape is None:
            raise InvalidParameter(
                f"augment={self.augment!r} needs the shape of the images: set image_shape, "
                "e.g. (28, 28)."
            )
        if self.objective == "spread" and self.exemplars != "joint":
            raise InvalidParameter(
                f"objective='spread' lets joint exemplars lie apart, but exemplars="
                f"{self.exemplars!r}: set exemplars='joint', or objective='collapse'."
            )

    def _check_sizes(self) -> None:
        checks.check_whole("order", self.order, at_least=1, at_most=MOST_ORDER)
        checks.check_whole_or_auto("n_factors", self.n_factors, at_least=1)

    def _check_step(self) -> None:
        checks.check_number_or_auto("learning_rate", self.learning_rate, 0, np.inf, open_low=True)

    def _resolve_n_neighbors(self, *, with_exemplars: bool) -> int | None:
        if self.n_neighbors == "auto" and with_exemplars:
            return None
        return super()._resolve_n_neighbors(with_exemplars=with_exemplars)

    def _how_to_scale(self) -> str | None:
        return "range" if self.augment and self.scale == "auto" else self.scale

    def _columns_to_learn(self, scale: Scale) -> Int[ndarray, " c"] | None:
        """Constant ones would be multiplied for nothing; images that are distorted are whole."""
        if self.augment is not None or self.max_bytes is not None:  # a file has all columns
            return None
        columns = scale.columns_that_vary(multiple=COLUMNS_AT_ONCE)
        return columns if len(columns) < len(scale.gain) else None

    def _epochs(self, steps: float, n_classes: int) -> int:
        """More than others need, as inputs are dropped; fewer where there are very many rows."""
        usual = super()._epochs(steps, n_classes)
        if self.optimizer != "adam":
            return usual
        fewest = 50 if self.adversarial else 70  # a nudged row counts twice
        if self._smallness > SMALL:
            fewest = 100
        crowded = min(max(1, n_classes / MANY_CLASSES), 3)
        return round(min(crowded * max(usual, fewest), max(MANY_STEPS / steps, 10)))

    def _step(self) -> float:
        if self.learning_rate != "auto":
            return super()._step()
        many = self.n_features_in_ >= FEW_FEATURES
        step = self._steps[many] if many else self._steps[many] / self._n_layers
        return step * self._smallness ** (1 / 3)

    def _dropout(self, n_features: int) -> dict[str, float]:
        """What the map drops in training: features where others can stand in for them, units else.

        The fewer factors there are, the less of both.
        """
        inputs = 0.0 if self.augment else INPUT_DROPOUT * min(1, n_features / MANY_FEATURES)
        in_all = getattr(self, "n_features_in_", n_features)  # with those that are constant
        units = self._most_dropout if in_all < FEW_FEATURES else 0.0
        auto = {"input_dropout": inputs, "dropout": units}
        auto = {name: share / self._smallness**0.5 for name, share in auto.items()}
        asked = {name: getattr(self, name) for name in auto}
        return auto | {name: share for name, share in asked.items() if share != "auto"}

    @property
    def _n_factors(self) -> int:
        """Factors of the map; of its narrowest layer, where it has several."""
        assert not isinstance(self.n_factors, tuple)
        return number(self.n_factors, self._most_factors)

    @property
    def _smallness(self) -> float:
        """How many times fewer factors there are than usual; 1 for more."""
        return max(1.0, USUAL_FACTORS / self._n_factors)

    def sizes(self) -> dict[str, Any]:
        """The sizes of the map, as far as data and budget do not say otherwise."""
        return {"n_factors": self._n_factors}

    def _smaller(self) -> Iterator[Self]:
        """The same method without a budget, with ever smaller sizes as far as they are free."""
        if self.n_factors != "auto":
            yield self._with(max_bytes=None)
            return
        for n_factors in range(self._n_factors, 0, -1):
            yield self._with(n_factors=n_factors, max_bytes=None)

    def _with_sizes_of(self, weights: Mapping[str, Any]) -> Self:
        free = self.n_factors == "auto"
        return self._with(n_factors=len(weights["c"])) if free else self

    def _learn_from(
        self, task: Task, training: ndarray, held_out: ndarray, like: Learned | None = None
    ) -> Learned:
        if self.max_bytes is None:
            return super()._learn_from(task, training, held_out, like)
        return learn_within_budget(self, self.max_bytes, task, training, held_out, like)

    def _usual(self, task: Task) -> dict[str, Any]:
        return {"adversarial": self._adversarial(task)}

    def _adversarial(self, task: Task) -> float:
        """Rows are nudged where they have many features, or are images; counts of words are not."""
        if self.adversarial != "auto":
            return float(self.adversarial)
        many = task.n_features >= FEW_FEATURES
        pixels = self.scale is not None and task.scale.is_one and task.n_features > 1
        asked = self.augment is None and self.optimizer == "adam" and not task.rows.is_sparse
        return NUDGE if asked and (many or pixels) else 0.0

    def _with_spare(self, map_: Any, start: Start) -> nn.Module:
        if not self.spare_components:
            return map_
        pressed = Pressed(map_, self.spare_components)
        pressed.start(start.fetch(START_ROWS), start.generator)
        return pressed

    def _make_loss(self, task: Task, training: ndarray) -> Loss:
        nudge = self._adversarial(task)
        nudge *= task.spread(training) if nudge else 0
        keep = {"nudge": nudge, "structure": task.structure}
        if self.exemplars == "joint":
            loss = by_exemplars(spread=self.objective == "spread", **keep)
        else:
            loss = by_pairs(conditional=self.conditional, perplexity=self.perplexity, **keep)
        if self.augment is None:
            return loss
        assert self.image_shape is not None
        validation.check_one_scale(task.scale, self.augment)
        validation.check_pixels(self.image_shape, task.rows.n_features)
        return of_distorted_images(loss, self.image_shape, self.augment, task.scale)


@dataclass(kw_only=True, eq=False, repr=False)
class HOPE(HighOrderEmbedding):
    """High-order parametric embedding: a map that is linear in products of features.

    ``y = P (Cx)^O``: each coordinate is a polynomial of degree ``order`` in the features, learned
    so that classes collapse, with a few synthetic exemplars that stand in for the whole data set.

    Parameters
    ----------
    order : int, default=4
        Most features that are multiplied with each other. 1 is a linear map.
    n_factors : int or "auto", default="auto"
        Powers of weighted sums that a coordinate is made of. ``"auto"``: 1,200, or as many as
        ``max_bytes`` allows.
    tied : bool, default=False
        Learn powers from the start, as the paper does. Otherwise products of ``order`` different
        sums are learned, which are fewer, and turned into ``2 ** (order - 1)`` powers each.
    {parameters}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import HOPE
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HOPE(random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (150, 2)
    >>> model.exemplars_.shape, model.exemplar_labels_
    ((6, 4), array([0, 0, 1, 1, 2, 2]))

    """

    order: int = 4
    n_factors: int | str = "auto"
    tied: bool = False

    _most_factors: ClassVar = 1_200
    _steps: ClassVar = (2e-3, 1e-3)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_choice("tied", self.tied, (True, False))

    def _make_map(self, n_features: int) -> nn.Module:
        return self._map(HighOrder, n_features)

    def _map_to_learn(self, n_features: int) -> nn.Module:
        return self._map(HighOrder if self.tied else Products, n_features)

    def _map(self, kind: type[HighOrder], n_features: int) -> nn.Module:
        dropout = self._dropout(n_features)
        return kind(n_features, self.n_components, self.order, self._n_factors, **dropout)

    def _learn_from(
        self, task: Task, training: ndarray, held_out: ndarray, like: Learned | None = None
    ) -> Learned:
        learned = super()._learn_from(task, training, held_out, like)
        return replace(learned, map=self._finish(learned.map))

    def _finish(self, map_: Any) -> nn.Module:
        return map_.as_powers() if isinstance(map_, Products) else map_


@dataclass(kw_only=True, eq=False, repr=False)
class SHOPE(HighOrderEmbedding):
    """Sigmoid high-order parametric embedding: a shallow map from products of features.

    ``y = P σ(W (Cx)^O + b)``, learned so that classes collapse, with a few synthetic exemplars
    that stand in for the whole data set. Several layers of such sigmoids can be stacked.

    Parameters
    ----------
    order : int or tuple of int, default=2
        Most features that are multiplied with each other in a polynomial unit; of stacked layers,
        one number for each, or one for all.
    n_factors : int, tuple of int or "auto", default="auto"
        Polynomial units, of each layer. ``"auto"``: 400, or about as many as ``max_bytes`` allows.
    n_units : int, tuple of int or "auto", default="auto"
        Sigmoid units. A tuple stacks layers, such as ``(400, 400)``: each multiplies what the one
        below it gives. ``"auto"``: 600, and with ``max_bytes`` two or three for a polynomial unit;
        ``(400, 400)`` without labels where there are 100 features or more, and for more than 10
        classes and fewer features where it judges held-out rows better, beyond chance, after a
        quarter of the passes.
    {parameters}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import SHOPE
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SHOPE(random_state=0).fit(X, y)
    >>> model.predict(X[:3])
    array([0, 0, 0])
    >>> model.score(X, y) > 0.95
    True

    """

    n_units: int | str | tuple[int, ...] = "auto"
    adversarial: float | str = "auto"
    spare_components: int = 2

    #: Sigmoid units, where the budget does not say otherwise.
    _most_units: ClassVar[int] = 600
    _most_dropout: ClassVar = 0.3
    _steps: ClassVar = (6e-3, 2e-3)

    def _usual_with_structure(self, task: Task) -> dict[str, Any]:
        """Steps are larger; one layer can do with all features, more of them learn too much."""
        usual, n_layers = super()._usual_with_structure(task), self._n_layers
        if self._may_stack and not task.is_labelled and task.n_features >= FEW_FEATURES:
            usual["n_units"], n_layers = TWO_LAYERS, len(TWO_LAYERS)
        usual["learning_rate"] = STRUCTURE_STEP / n_layers
        return usual if n_layers > 1 else usual | {"input_dropout": 0.0}

    def _learner(self, task: Task, random: np.random.RandomState) -> tuple[Self, Task]:
        learner, task = super()._learner(task, random)
        classes_decide = (task.labels >= 0).all() and not task.structure
        crowded = task.n_classes > MANY_CLASSES and task.n_features < FEW_FEATURES
        if not (classes_decide and crowded and learner._may_stack):
            return learner, task
        tried = [(learner, task), (learner._with(n_units=TWO_LAYERS), task)]
        return tried[learner._best_of(tried, random)]

    @property
    def _may_stack(self) -> bool:
        """Is the number of layers left to the fit?"""
        asked = is_several(self.order) or is_several(self.n_factors) or self.max_bytes is not None
        return self.n_units == "auto" and not asked

    def _check_sizes(self) -> None:
        check_layers(self.order, self.n_factors, self.n_units)

    @property
    def _layers(self) -> Layers:
        asked = self.order, self.n_factors, self.n_units
        return Layers.of(*asked, self._most_factors, self._most_units)

    @property
    def _n_layers(self) -> int:
        return len(self._layers.n_units)

    @property
    def _n_factors(self) -> int:
        return min(self._layers.n_factors)

    def sizes(self) -> dict[str, Any]:
        """Those of HOPE, and the number of sigmoid units; of several layers, of each."""
        return {"n_factors": told(self._layers.n_factors), "n_units": told(self._layers.n_units)}

    def _smaller(self) -> Iterator[Self]:
        for smaller in super()._smaller():
            if self.n_units != "auto":
                yield smaller
                continue
            free = self.n_factors == "auto"
            if free and not is_handy(smaller._n_factors):  # more units instead
                continue
            least = min(self._most_units, 2 * smaller._n_factors) if free else 1
            most = min(self._most_units, 3 * smaller._n_factors)
            for n_units in range(most, least - 1, -1):
                if is_handy(n_units) or n_units == least:
                    yield smaller._with(n_units=n_units)

    def _with_sizes_of(self, weights: Mapping[str, Any]) -> Self:
        sized = self
        if self.n_units == "auto":
            sized = self._with(n_units=told(sizes_of_layers(weights, "b")))
        if self.n_factors == "auto":
            sized = sized._with(n_factors=told(sizes_of_layers(weights, "c")))
        return sized

    def _make_map(self, n_features: int) -> nn.Module:
        orders, n_factors, n_units = self._layers
        dropout = self._dropout(n_features)
        if self._n_layers > 1:
            return Stacked(n_features, self.n_components, orders, n_factors, n_units, **dropout)
        return SigmoidHighOrder(
            n_features, self.n_components, orders[0], n_factors[0], n_units[0], **dropout
        )
