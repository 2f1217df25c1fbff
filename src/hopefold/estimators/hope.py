"""HOPE and S-HOPE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from torch import nn

from hopefold.core.maps import HighOrder, Pressed, Products, SigmoidHighOrder, Stacked
from hopefold.data import validation
from hopefold.data.scaling import Scale
from hopefold.estimators.explaining import Explaining
from hopefold.estimators.gradient import START_ROWS
from hopefold.estimators.parameters import number
from hopefold.estimators.structured import Structured
from hopefold.fitting.layer_sizes import (
    Layers,
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
    n_components : int, default=2
        Dimensions of the map.
    order : int, default=4
        Maximum number of features in a product. 1 gives a linear map.
    n_factors : int or "auto", default="auto"
        Number of weighted sums whose powers a coordinate consists of. ``"auto"``: 1,200, or as many
        as ``max_bytes`` allows.
    tied : bool, default=False
        Learn powers of one sum from the start, as in the paper. Otherwise the fit learns products
        of ``order`` different sums, which are fewer, and converts each of them to ``2 ** (order -
        1)`` powers.
    exemplars : {"joint", "kmeans", None}, default="joint"
        The references that new rows are compared with. ``"joint"``: exemplars that start from
        k-means and are learned together with the map. ``"kmeans"``: the map is learned on pairs of
        rows, and the references are the k-means centres of each class in the input space, mapped.
        ``None``: the map is learned on pairs, and the references are all embedded training rows.
    n_exemplars : int, default=2
        Exemplars per class. A class with fewer rows gets one exemplar per row.
    validation_fraction : float, default=0.1
        Fraction of the rows that is held out, stratified by class. The error on these rows is
        reported. A method that learns in epochs keeps the last epoch whose error is not
        significantly above the lowest one. 0 turns validation off.
    refit : bool, default=True
        After validation, train again on all rows, for the selected number of epochs.
    scale : {"auto", "standard", "range", None}, default="auto"
        How columns are scaled. ``"standard"``: each column to mean 0 and standard deviation 1.
        ``"range"``: the whole table to [0, 1]. ``"auto"``: ``"range"`` if all columns share one
        range, as pixels do; sparse columns are divided by their largest magnitude; otherwise
        ``"standard"``. ``None``: not at all. Exemplars are returned in the original units.
    n_neighbors : int or "auto", default="auto"
        Neighbours that vote in `predict`. ``"auto"``: 5. If classes tie, the class of the nearest
        neighbour wins.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the objective, in the validation error and in `predict`.
    device : str or torch.device, default="auto"
        Where to compute. ``"auto"``: a GPU if there is one, otherwise the CPU.
    random_state : int, RandomState or None, default=None
        Seed of all random numbers. The same int gives the same result.
    verbose : int, default=0
        1 shows a progress bar.
    max_epochs : int or "auto", default="auto"
        Maximum number of epochs. ``"auto"``: enough for about 2,000 steps, between 70 and 100 (50
        and 100 with ``adversarial``; 100 for a map with few factors). More than 10 classes get up
        to three times as many. If these make more than 20,000 steps there are fewer epochs, but at
        least 10. The optimizers ``"cg"`` and ``"lbfgs"`` get 50.
    batch_size : int or "auto", default="auto"
        Rows per step. ``"auto"``: at most 250 with joint exemplars and 1,000 with pairs, fewer for
        small data; 5,000 for the optimizers ``"cg"`` and ``"lbfgs"``.
    learning_rate : float or "auto", default="auto"
        Largest learning rate of Adam: a linear warm-up over the first tenth of the training, then a
        cosine decay. ``"auto"``: 0.001 for HOPE and 0.002 for S-HOPE; with fewer than 100 features
        0.002 and 0.006, divided by the number of layers; larger for a map with few factors.
    optimizer : {"adam", "cg", "lbfgs"}, default="adam"
        ``"cg"``: the paper's, conjugate gradient on each batch. ``"lbfgs"``: L-BFGS on each batch.
    batch_iterations : int, default=3
        Iterations of ``"cg"`` or ``"lbfgs"`` on each batch.
    patience : int or "auto", default="auto"
        Stop after so many epochs without a lower validation error. ``"auto"``: half of
        ``max_epochs``, at least 10.
    weight_decay : float, default=0.0
        Decoupled weight decay of the map (Adam only).
    checkpoint : path or None, default=None
        File for the state of the fit, written at the end of epochs. After a crash or Ctrl-C, the
        same fit resumes from this file and ends with the same weights.
    checkpoint_minutes : float, default=5.0
        After so many minutes, the checkpoint is also written in the middle of an epoch.
    objective : {"collapse", "spread"}, default="collapse"
        ``"collapse"`` pulls a row onto all exemplars of its class. ``"spread"`` pulls it onto any
        of them, so that exemplars of a class can lie apart (``exemplars="joint"`` only).
    conditional : bool, default=False
        Normalise the pairwise objective per row instead of over all pairs of a batch. The objective
        on exemplars is always normalised per row.
    structure : float or "auto", default="auto"
        Weight of the neighbours in the loss, from 0 to 1, regardless of class: 0 collapses classes
        and hides their inner structure. ``"auto"``: 0 if all labels are known, 1 if there are none.
        If some are missing: 0.1, or 0 if there are at least 50 labels per class, unless another of
        0, 0.1 and 0.5 has a significantly lower error on held-out rows.
    perplexity : float, default=5.0
        Approximate number of neighbours that a row keeps: among the landmarks, or in a batch if
        ``exemplars`` is not ``"joint"``. Used if ``structure`` is above 0.
    n_landmarks : int or "auto", default="auto"
        Number of landmarks: k-means centres of all rows, to which rows keep their distances. Used
        if ``structure`` is above 0; without labels, the landmarks are the exemplars. ``"auto"``:
        one for 8 rows, at most 1,000, and more than the perplexity needs.
    missing_label : number, str, None or (), default=()
        The value in y that marks a missing label. Rows without a label keep their neighbours
        (``structure``) and, with joint exemplars, learn from pseudo-labels weighted by their
        confidence. None and NaN are the same marker. ``()``: no label is missing, and NaN in y is
        an error.
    input_dropout : float or "auto", default="auto"
        Fraction of the features that is dropped at random in training. ``"auto"``: 0.001 times the
        number of features, at most 0.25, less for a map with few factors; 0 with ``augment``.
    dropout : float or "auto", default="auto"
        Fraction of the polynomial units that is dropped at random in training. ``"auto"``: 0.3 for
        S-HOPE with fewer than 100 features, less for a map with few factors; otherwise 0.
    adversarial : float or "auto", default=0.0
        Radius of an L2-normalised adversarial perturbation, below 1: a fraction of the
        root-mean-square distance of the rows from their mean. The loss is the mean over the rows
        and over the same rows moved by this radius along the gradient of their own loss (Goodfellow
        et al., 2015); for rows with pseudo-labels see Miyato et al. (2018). ``"auto"``: 0.1 for 100
        features or more, and for fewer features that share one range, as pixels do; otherwise 0. It
        is 0 for sparse rows, with ``augment``, and for the optimizers ``"cg"`` and ``"lbfgs"``.
        Where some labels are missing, ``"auto"`` is 0.2 with Adam; where only neighbours are
        learned, it is 0.
    spare_components : int, default=0
        Additional dimensions of the map during training, so that classes can move past each other.
        They are shrunk to zero in the course of the training, and the learned map does not have
        them.
    max_bytes : int or None, default=None
        Maximum size of the model file, including the exemplars, the scaling and all names. Sizes
        that are ``"auto"`` are selected for it. Weights and exemplars are stored in int8, or in
        float16 if int8 raises the error on the held-out rows (without held-out rows, always in
        int8).
    augment : {"affine", "elastic", None}, default=None
        Random distortion of the images in each epoch. ``"affine"``: small rotations, scalings,
        shears and shifts. ``"elastic"``: local warps in addition. Needs ``image_shape``.
    image_shape : (int, int) or None, default=None
        Height and width of the images, for ``augment``.

    Attributes
    ----------
    map_ : torch.nn.Module
        The learned map, for rows scaled by ``scale_``.
    exemplars_ : ndarray of shape (n_references, n_features) or None
        The exemplars in the units of the training data.
    exemplar_labels_, exemplar_embedding_ : ndarray or None
        The classes of the exemplars, and their points in the map.
    reference_embedding_, reference_labels_ : ndarray
        The points that `predict` compares with: the exemplars, or all training rows.
    classes_, class_weight_ : ndarray
        The sorted labels and their weights. Empty for a map learned without labels.
    validation_error_ : float or None
        Error on the held-out rows in the selected epoch, before the refit. Rows are weighted by
        ``class_weight``.
    trustworthiness_ : float or None
        Trustworthiness of the neighbours in the map, from 0 to 1, on held-out rows. ``None`` unless
        neighbours are part of the loss and at least 36 rows are held out.
    train_error_ : float
        Error on the training rows. The smaller it is compared with ``validation_error_``, the more
        the map overfits.
    n_iter_ : int
        The selected number of epochs.
    history_ : list of dict
        One record per epoch: epoch, loss, learning_rate, validation_error.
    scale_ : Scale
        The scaling of the columns.
    columns_ : hopefold.data.columns.Columns or None
        How the columns of a table become features, if the model was fitted to a table.
    precision_ : {"float32", "float16", "int8"}
        How a model file stores the weights and the exemplars.
    n_features_in_, feature_names_in_ : int, ndarray of str
        As in scikit-learn.
    structure_ : float
        The weight of the neighbours in the loss.

    References
    ----------
    .. [1] M. R. Min, H. Guo and D. Song. A Shallow High-Order Parametric Approach to Data
       Visualization and Compression. arXiv:1608.04689, 2016.
    .. [2] I. J. Goodfellow, J. Shlens and C. Szegedy. Explaining and Harnessing Adversarial
       Examples. ICLR, 2015.
    .. [3] T. Miyato, S. Maeda, M. Koyama and S. Ishii. Virtual Adversarial Training: A
       Regularization Method for Supervised and Semi-Supervised Learning. IEEE Transactions on
       Pattern Analysis and Machine Intelligence, 2018.

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

    # Parameters, written by `make parameters`.
    n_components: int = field(default=2, kw_only=False)
    order: int = 4
    n_factors: int | str = "auto"
    tied: bool = False
    exemplars: str | None = "joint"
    n_exemplars: int = 2
    validation_fraction: float = 0.1
    refit: bool = True
    scale: str | None = "auto"
    n_neighbors: int | str = "auto"
    class_weight: Any = None
    device: Any = "auto"
    random_state: Any = None
    verbose: int = 0
    max_epochs: int | str = "auto"
    batch_size: int | str = "auto"
    learning_rate: float | str = "auto"
    optimizer: str = "adam"
    batch_iterations: int = 3
    patience: int | str = "auto"
    weight_decay: float = 0.0
    checkpoint: Any = None
    checkpoint_minutes: float = 5.0
    objective: str = "collapse"
    conditional: bool = False
    structure: float | str = "auto"
    perplexity: float = 5.0
    n_landmarks: int | str = "auto"
    missing_label: Any = ()
    input_dropout: float | str = "auto"
    dropout: float | str = "auto"
    adversarial: float | str = 0.0
    spare_components: int = 0
    max_bytes: int | None = None
    augment: str | None = None
    image_shape: tuple[int, int] | None = None
    # End of the parameters.

    _most_factors: ClassVar = 1_200
    _steps: ClassVar = (2e-3, 1e-3)

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
    n_components : int, default=2
        Dimensions of the map.
    order : int or tuple of int, default=2
        Maximum number of features in a product of a polynomial unit: one number for all layers, or
        a tuple with one per layer.
    n_factors : int, tuple of int or "auto", default="auto"
        Polynomial units per layer. ``"auto"``: 400, or about as many as ``max_bytes`` allows.
    n_units : int, tuple of int or "auto", default="auto"
        Sigmoid units. A tuple such as ``(400, 400)`` stacks layers: each multiplies the outputs of
        the layer below. ``"auto"``: 600; with ``max_bytes``, two or three per polynomial unit;
        ``(400, 400)`` without labels if there are 100 features or more, and for more than 10
        classes and fewer features if its error on held-out rows is significantly lower after a
        quarter of the epochs.
    exemplars : {"joint", "kmeans", None}, default="joint"
        The references that new rows are compared with. ``"joint"``: exemplars that start from
        k-means and are learned together with the map. ``"kmeans"``: the map is learned on pairs of
        rows, and the references are the k-means centres of each class in the input space, mapped.
        ``None``: the map is learned on pairs, and the references are all embedded training rows.
    n_exemplars : int, default=2
        Exemplars per class. A class with fewer rows gets one exemplar per row.
    validation_fraction : float, default=0.1
        Fraction of the rows that is held out, stratified by class. The error on these rows is
        reported. A method that learns in epochs keeps the last epoch whose error is not
        significantly above the lowest one. 0 turns validation off.
    refit : bool, default=True
        After validation, train again on all rows, for the selected number of epochs.
    scale : {"auto", "standard", "range", None}, default="auto"
        How columns are scaled. ``"standard"``: each column to mean 0 and standard deviation 1.
        ``"range"``: the whole table to [0, 1]. ``"auto"``: ``"range"`` if all columns share one
        range, as pixels do; sparse columns are divided by their largest magnitude; otherwise
        ``"standard"``. ``None``: not at all. Exemplars are returned in the original units.
    n_neighbors : int or "auto", default="auto"
        Neighbours that vote in `predict`. ``"auto"``: 5. If classes tie, the class of the nearest
        neighbour wins.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the objective, in the validation error and in `predict`.
    device : str or torch.device, default="auto"
        Where to compute. ``"auto"``: a GPU if there is one, otherwise the CPU.
    random_state : int, RandomState or None, default=None
        Seed of all random numbers. The same int gives the same result.
    verbose : int, default=0
        1 shows a progress bar.
    max_epochs : int or "auto", default="auto"
        Maximum number of epochs. ``"auto"``: enough for about 2,000 steps, between 70 and 100 (50
        and 100 with ``adversarial``; 100 for a map with few factors). More than 10 classes get up
        to three times as many. If these make more than 20,000 steps there are fewer epochs, but at
        least 10. The optimizers ``"cg"`` and ``"lbfgs"`` get 50.
    batch_size : int or "auto", default="auto"
        Rows per step. ``"auto"``: at most 250 with joint exemplars and 1,000 with pairs, fewer for
        small data; 5,000 for the optimizers ``"cg"`` and ``"lbfgs"``.
    learning_rate : float or "auto", default="auto"
        Largest learning rate of Adam: a linear warm-up over the first tenth of the training, then a
        cosine decay. ``"auto"``: 0.001 for HOPE and 0.002 for S-HOPE; with fewer than 100 features
        0.002 and 0.006, divided by the number of layers; larger for a map with few factors.
    optimizer : {"adam", "cg", "lbfgs"}, default="adam"
        ``"cg"``: the paper's, conjugate gradient on each batch. ``"lbfgs"``: L-BFGS on each batch.
    batch_iterations : int, default=3
        Iterations of ``"cg"`` or ``"lbfgs"`` on each batch.
    patience : int or "auto", default="auto"
        Stop after so many epochs without a lower validation error. ``"auto"``: half of
        ``max_epochs``, at least 10.
    weight_decay : float, default=0.0
        Decoupled weight decay of the map (Adam only).
    checkpoint : path or None, default=None
        File for the state of the fit, written at the end of epochs. After a crash or Ctrl-C, the
        same fit resumes from this file and ends with the same weights.
    checkpoint_minutes : float, default=5.0
        After so many minutes, the checkpoint is also written in the middle of an epoch.
    objective : {"collapse", "spread"}, default="collapse"
        ``"collapse"`` pulls a row onto all exemplars of its class. ``"spread"`` pulls it onto any
        of them, so that exemplars of a class can lie apart (``exemplars="joint"`` only).
    conditional : bool, default=False
        Normalise the pairwise objective per row instead of over all pairs of a batch. The objective
        on exemplars is always normalised per row.
    structure : float or "auto", default="auto"
        Weight of the neighbours in the loss, from 0 to 1, regardless of class: 0 collapses classes
        and hides their inner structure. ``"auto"``: 0 if all labels are known, 1 if there are none.
        If some are missing: 0.1, or 0 if there are at least 50 labels per class, unless another of
        0, 0.1 and 0.5 has a significantly lower error on held-out rows.
    perplexity : float, default=5.0
        Approximate number of neighbours that a row keeps: among the landmarks, or in a batch if
        ``exemplars`` is not ``"joint"``. Used if ``structure`` is above 0.
    n_landmarks : int or "auto", default="auto"
        Number of landmarks: k-means centres of all rows, to which rows keep their distances. Used
        if ``structure`` is above 0; without labels, the landmarks are the exemplars. ``"auto"``:
        one for 8 rows, at most 1,000, and more than the perplexity needs.
    missing_label : number, str, None or (), default=()
        The value in y that marks a missing label. Rows without a label keep their neighbours
        (``structure``) and, with joint exemplars, learn from pseudo-labels weighted by their
        confidence. None and NaN are the same marker. ``()``: no label is missing, and NaN in y is
        an error.
    input_dropout : float or "auto", default="auto"
        Fraction of the features that is dropped at random in training. ``"auto"``: 0.001 times the
        number of features, at most 0.25, less for a map with few factors; 0 with ``augment``.
    dropout : float or "auto", default="auto"
        Fraction of the polynomial units that is dropped at random in training. ``"auto"``: 0.3 for
        S-HOPE with fewer than 100 features, less for a map with few factors; otherwise 0.
    adversarial : float or "auto", default="auto"
        Radius of an L2-normalised adversarial perturbation, below 1: a fraction of the
        root-mean-square distance of the rows from their mean. The loss is the mean over the rows
        and over the same rows moved by this radius along the gradient of their own loss (Goodfellow
        et al., 2015); for rows with pseudo-labels see Miyato et al. (2018). ``"auto"``: 0.1 for 100
        features or more, and for fewer features that share one range, as pixels do; otherwise 0. It
        is 0 for sparse rows, with ``augment``, and for the optimizers ``"cg"`` and ``"lbfgs"``.
        Where some labels are missing, ``"auto"`` is 0.2 with Adam; where only neighbours are
        learned, it is 0.
    spare_components : int, default=2
        Additional dimensions of the map during training, so that classes can move past each other.
        They are shrunk to zero in the course of the training, and the learned map does not have
        them.
    max_bytes : int or None, default=None
        Maximum size of the model file, including the exemplars, the scaling and all names. Sizes
        that are ``"auto"`` are selected for it. Weights and exemplars are stored in int8, or in
        float16 if int8 raises the error on the held-out rows (without held-out rows, always in
        int8).
    augment : {"affine", "elastic", None}, default=None
        Random distortion of the images in each epoch. ``"affine"``: small rotations, scalings,
        shears and shifts. ``"elastic"``: local warps in addition. Needs ``image_shape``.
    image_shape : (int, int) or None, default=None
        Height and width of the images, for ``augment``.

    Attributes
    ----------
    map_ : torch.nn.Module
        The learned map, for rows scaled by ``scale_``.
    exemplars_ : ndarray of shape (n_references, n_features) or None
        The exemplars in the units of the training data.
    exemplar_labels_, exemplar_embedding_ : ndarray or None
        The classes of the exemplars, and their points in the map.
    reference_embedding_, reference_labels_ : ndarray
        The points that `predict` compares with: the exemplars, or all training rows.
    classes_, class_weight_ : ndarray
        The sorted labels and their weights. Empty for a map learned without labels.
    validation_error_ : float or None
        Error on the held-out rows in the selected epoch, before the refit. Rows are weighted by
        ``class_weight``.
    trustworthiness_ : float or None
        Trustworthiness of the neighbours in the map, from 0 to 1, on held-out rows. ``None`` unless
        neighbours are part of the loss and at least 36 rows are held out.
    train_error_ : float
        Error on the training rows. The smaller it is compared with ``validation_error_``, the more
        the map overfits.
    n_iter_ : int
        The selected number of epochs.
    history_ : list of dict
        One record per epoch: epoch, loss, learning_rate, validation_error.
    scale_ : Scale
        The scaling of the columns.
    columns_ : hopefold.data.columns.Columns or None
        How the columns of a table become features, if the model was fitted to a table.
    precision_ : {"float32", "float16", "int8"}
        How a model file stores the weights and the exemplars.
    n_features_in_, feature_names_in_ : int, ndarray of str
        As in scikit-learn.
    structure_ : float
        The weight of the neighbours in the loss.

    References
    ----------
    .. [1] M. R. Min, H. Guo and D. Song. A Shallow High-Order Parametric Approach to Data
       Visualization and Compression. arXiv:1608.04689, 2016.
    .. [2] I. J. Goodfellow, J. Shlens and C. Szegedy. Explaining and Harnessing Adversarial
       Examples. ICLR, 2015.
    .. [3] T. Miyato, S. Maeda, M. Koyama and S. Ishii. Virtual Adversarial Training: A
       Regularization Method for Supervised and Semi-Supervised Learning. IEEE Transactions on
       Pattern Analysis and Machine Intelligence, 2018.

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

    # Parameters, written by `make parameters`.
    n_components: int = field(default=2, kw_only=False)
    order: int | tuple[int, ...] = 2
    n_factors: int | str | tuple[int, ...] = "auto"
    n_units: int | str | tuple[int, ...] = "auto"
    exemplars: str | None = "joint"
    n_exemplars: int = 2
    validation_fraction: float = 0.1
    refit: bool = True
    scale: str | None = "auto"
    n_neighbors: int | str = "auto"
    class_weight: Any = None
    device: Any = "auto"
    random_state: Any = None
    verbose: int = 0
    max_epochs: int | str = "auto"
    batch_size: int | str = "auto"
    learning_rate: float | str = "auto"
    optimizer: str = "adam"
    batch_iterations: int = 3
    patience: int | str = "auto"
    weight_decay: float = 0.0
    checkpoint: Any = None
    checkpoint_minutes: float = 5.0
    objective: str = "collapse"
    conditional: bool = False
    structure: float | str = "auto"
    perplexity: float = 5.0
    n_landmarks: int | str = "auto"
    missing_label: Any = ()
    input_dropout: float | str = "auto"
    dropout: float | str = "auto"
    adversarial: float | str = "auto"
    spare_components: int = 2
    max_bytes: int | None = None
    augment: str | None = None
    image_shape: tuple[int, int] | None = None
    # End of the parameters.

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
