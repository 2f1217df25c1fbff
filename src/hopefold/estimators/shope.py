"""S-HOPE: sigmoids of polynomials of the features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from hopefold.estimators.high_order_embedding import HighOrderEmbedding
from hopefold.fitting.high_order import SHOPEMethod


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
        Polynomial units per layer. ``"auto"``: as many as sigmoid units, for labels and two layers;
        otherwise 400, or about as many as ``max_bytes`` allows.
    n_units : int, tuple of int or "auto", default="auto"
        Sigmoid units. A tuple such as ``(400, 400)`` stacks layers: each multiplies the outputs of
        the layer below. ``"auto"``, if all rows have labels: ``(100, 100)``, from 4,000 rows on
        ``(200, 200)``, for 30 million numbers ``(300, 300)``, or 200 if one layer has a
        significantly lower loss on a part of the training rows. Without labels ``(400, 400)`` for
        100 features or more. Otherwise, for pairs and with ``augment``: 600; with ``max_bytes``,
        two or three per polynomial unit.
    exemplars : {"joint", "kmeans", None}, default="joint"
        The references that new rows are compared with. ``"joint"``: exemplars that start from
        k-means and are learned together with the map. ``"kmeans"``: the map is learned on pairs of
        rows, and the references are the k-means centers of each class in the input space, mapped.
        ``None``: the map is learned on pairs, and the references are all embedded training rows.
    n_exemplars : int, default=2
        Exemplars per class. A class with fewer rows gets one exemplar per row.
    validation_fraction : float or "auto", default="auto"
        Fraction of the rows that is held out, stratified by class. The error on these rows is
        reported. ``"auto"``: 0.1. For fewer than 280 rows with labels, cross-fitting: each row is
        held out once, in 3 to 5 folds, ``validation_error_`` is the error on all of them, and the
        map is then learned from all rows by the same plan (with Adam, and unless ``refit``,
        ``patience``, ``structure`` or ``max_bytes`` say otherwise). 0 turns validation off.
    refit : bool, default=True
        After validation, learn from all rows. With Adam and joint exemplars, the fit goes on for a
        fifth of the epochs with a third of the learning rate, and keeps the map as it was evaluated
        if the training error rises; not for more than 20,000 rows, which would hardly change it.
        Otherwise, a second fit on all rows.
    scale : {"auto", "standard", "range", None}, default="auto"
        How columns are scaled. ``"standard"``: each column to mean 0 and standard deviation 1.
        ``"range"``: the whole table to [0, 1]. ``"auto"``: ``"range"`` if all columns share one
        range, as pixels do; sparse columns are divided by their largest magnitude; otherwise
        ``"standard"``. ``None``: not at all. Exemplars are returned in the original units.
    n_neighbors : int or "auto", default="auto"
        Neighbors that vote in `predict`. ``"auto"``: 5. If classes tie, the class of the nearest
        neighbor wins.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the objective, in the validation error and in `predict`.
    device : str or torch.device, default="auto"
        Where to compute. ``"auto"``: a GPU if there is one, otherwise the CPU.
    random_state : int, RandomState or None, default=None
        Seed of all random numbers. The same int gives the same result.
    verbose : int, default=0
        1 shows a progress bar.
    max_epochs : int or "auto", default="auto"
        Maximum number of epochs. ``"auto"``, for labels and two layers: 60 up to 6,000 rows, fewer
        for more rows, two thirds of them with ``adversarial``, a third for sparse rows with 250
        features or more, but at least 18 (11 with ``adversarial``). One layer, HOPE and rows
        without labels: enough for about 2,000 steps, between 70 and 100 (50 and 100 with
        ``adversarial``; 100 for a map with few factors); if these make more than 20,000 steps,
        fewer, but at least 10. More than 10 classes get up to three times as many. The optimizers
        ``"cg"`` and ``"lbfgs"`` get 50. See ``effort``.
    batch_size : int or "auto", default="auto"
        Rows per step. ``"auto"``: at most 250 with joint exemplars and 1,000 with pairs, fewer for
        small data; 5,000 for the optimizers ``"cg"`` and ``"lbfgs"``.
    learning_rate : float or "auto", default="auto"
        Largest learning rate of Adam: a linear warm-up over the first tenth of the training, then a
        cosine decay. ``"auto"``: 0.004 for labels and two layers, less for more than 200 units,
        0.008 for sparse rows with 250 features or more. Otherwise 0.001 for HOPE and 0.002 for
        S-HOPE; with fewer than 100 features 0.002 and 0.006, divided by the number of layers.
        Larger for a map with few factors.
    optimizer : {"adam", "cg", "lbfgs"}, default="adam"
        ``"cg"``: the paper's, conjugate gradient on each batch. ``"lbfgs"``: L-BFGS on each batch.
    batch_iterations : int, default=3
        Iterations of ``"cg"`` or ``"lbfgs"`` on each batch.
    patience : int or "auto", default="auto"
        Stop after so many epochs without a lower validation error, and keep the best epoch.
        ``"auto"``: with Adam, never: the last epoch is kept, so that the rows that the error is
        reported on choose nothing. Otherwise half of ``max_epochs``, at least 10.
    weight_decay : float or "auto", default="auto"
        Decoupled weight decay of the matrices of the map (Adam only). ``"auto"``: 0, unless 0.3 or
        1 has a significantly lower loss on a part of the training rows. They are compared where
        columns have ranges of their own, for 250 to 10,000 rows, all with labels, and joint
        exemplars.
    checkpoint : path or None, default=None
        File for the state of the fit, written at the end of epochs. After a crash or Ctrl-C, the
        same fit resumes from this file and ends with the same weights.
    checkpoint_minutes : float, default=5.0
        After so many minutes, the checkpoint is also written in the middle of an epoch.
    time_limit : float or None, default=None
        Seconds that the fit may take, comparisons and the last stretch included. A fit that needs
        longer anneals its learning rate within the limit, ends with the map that it has, and warns
        (``TimeLimitWarning``). Such a fit is not repeated bit for bit.
    effort : {"fast", "balanced", "best"}, default="balanced"
        How much time to spend. ``"fast"``: a third of the epochs; with labels, also no comparison
        of columns and settings, and half of the widths of S-HOPE. ``"best"``: three times as many
        epochs; with labels, also twice the widths of S-HOPE. Settings that are given explicitly
        override it.
    select_columns : "auto" or False, default="auto"
        Eliminate columns that do not matter. ``"auto"``: small maps are learned from part of the
        training rows, each without the least important columns of the one before, and the columns
        of the one with the lowest loss on the other rows are kept, if it is significantly lower
        than with all columns. Tried for dense tables with all labels and joint exemplars, for 1,000
        rows or 200 columns or more; not for pixels. The map ignores the other columns
        (``column_gains_``). False: all columns are kept.
    objective : {"collapse", "spread"}, default="collapse"
        ``"collapse"`` pulls a row onto all exemplars of its class. ``"spread"`` pulls it onto any
        of them, so that exemplars of a class can lie apart (``exemplars="joint"`` only).
    conditional : bool, default=False
        Normalize the pairwise objective per row instead of over all pairs of a batch. The objective
        on exemplars is always normalized per row.
    structure : float or "auto", default="auto"
        Weight of the neighbors in the loss, from 0 to 1, regardless of class: 0 collapses classes
        and hides their inner structure. ``"auto"``: 0 if all labels are known, 1 if there are none.
        If some are missing: 0.1, or 0 if there are at least 50 labels per class, unless another of
        0, 0.1 and 0.5 has a significantly lower error on held-out rows.
    perplexity : float, default=5.0
        Approximate number of neighbors that a row keeps: among the landmarks, or in a batch if
        ``exemplars`` is not ``"joint"``. Used if ``structure`` is above 0.
    n_landmarks : int or "auto", default="auto"
        Number of landmarks: k-means centers of all rows, to which rows keep their distances. Used
        if ``structure`` is above 0; without labels, the landmarks are the exemplars. ``"auto"``:
        one for 8 rows, at most 1,000, and more than the perplexity needs.
    missing_label : number, str, None or (), default=()
        The value in y that marks a missing label. Rows without a label keep their neighbors
        (``structure``) and, with joint exemplars, learn from pseudo-labels weighted by their
        confidence. None and NaN are the same marker. ``()``: no label is missing, and NaN in y is
        an error.
    input_dropout : float or "auto", default="auto"
        Fraction of the features that is dropped at random in training. ``"auto"``: 0.001 times the
        number of features, at most 0.25, less for a map with few factors; for two layers 0.1 of
        pixels, and 0.5 of 250 sparse features or more; 0 with ``augment``.
    dropout : float or "auto", default="auto"
        Fraction of the polynomial units that is dropped at random in training. ``"auto"``: for
        S-HOPE with fewer than 100 features, 0.1 for labels and two layers, otherwise 0.3, less for
        a map with few factors; for HOPE and more features 0.
    adversarial : float or "auto", default="auto"
        Radius of an L2-normalized adversarial perturbation, below 1: a fraction of the
        root-mean-square distance of the rows from their mean. The loss is the mean over the rows
        and over the same rows moved by this radius along the gradient of their own loss (Goodfellow
        et al., 2015); for rows with pseudo-labels see Miyato et al. (2018). ``"auto"``: 0.15 for
        two layers and pixels (49 columns or more of one range); for one layer, 0.1 for pixels and
        for 100 features or more; otherwise 0. It is 0 for sparse rows, with ``augment``, and for
        the optimizers ``"cg"`` and ``"lbfgs"``. Where some labels are missing, ``"auto"`` is 0.2
        with Adam; where only neighbors are learned, it is 0.
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
        Error on the held-out rows, before they are learned from. Rows are weighted by
        ``class_weight``. With Adam, they choose neither the epoch nor any setting.
    n_held_out_, validation_interval_ : int, (float, float) or None
        The number of rows that ``validation_error_`` was measured on, and its 95 % confidence
        interval. With fewer than 280 rows, it may be all rows: see ``validation_fraction``.
    temperature_ : float
        Temperature of the probabilities, learned from the held-out rows: the kernel's probabilities
        to the power of ``1 / temperature_``, divided by their sum. 1 where neighbors vote, or if
        fewer than 20 rows are held out.
    calibration_error_ : float or None
        Expected calibration error of the probabilities on the held-out rows, each half at the
        temperature of the other. Rows are weighted by ``class_weight``. ``None`` without held-out
        rows.
    trustworthiness_ : float or None
        Trustworthiness of the neighbors in the map, from 0 to 1, on held-out rows. ``None`` unless
        neighbors are part of the loss and at least 36 rows are held out.
    train_error_ : float
        Error on the training rows. The smaller it is compared with ``validation_error_``, the more
        the map overfits.
    n_iter_ : int
        The selected number of epochs.
    interrupted_ : bool
        Whether Ctrl-C has ended the fit early: then the map is the best one until then.
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
        The weight of the neighbors in the loss.

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
    validation_fraction: float | str = "auto"
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
    weight_decay: float | str = "auto"
    checkpoint: Any = None
    checkpoint_minutes: float = 5.0
    time_limit: float | None = None
    effort: str = "balanced"
    select_columns: str | bool = "auto"
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

    method: ClassVar = SHOPEMethod
