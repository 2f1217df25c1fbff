"""Parameters of HOPE and S-HOPE."""

from __future__ import annotations

import math
from functools import partial

from hopefold import checks
from hopefold.specification import choices, rules
from hopefold.specification.parameter import Attribute, Parameter, override
from hopefold.specification.shared_parameters import (
    ATTRIBUTES,
    EXEMPLARS,
    LEARNING_RATE,
    MAX_EPOCHS,
    PATIENCE,
    PERPLEXITY,
    REFIT,
    TRAINED,
    VALIDATION_FRACTION,
    WEIGHT_DECAY,
)

_SHARE_OR_AUTO = partial(checks.check_number_or_auto, low=0, high=1)
_FLAG = partial(checks.check_choice, choices=choices.BOOLEANS)


def _check_image_shape(_name: str, value: object) -> None:
    if value is not None:
        checks.check_image_shape(value)


_ORDER = Parameter(
    "order",
    "int",
    4,
    "int",
    "Maximum number of features in a product. 1 gives a linear map.",
    partial(checks.check_whole, at_least=1, at_most=choices.MAX_ORDER),
)

_N_FACTORS = Parameter(
    "n_factors",
    "int | str",
    "auto",
    'int or "auto"',
    """Number of weighted sums whose powers a coordinate consists of. ``"auto"``: 1,200, or as
    many as ``max_bytes`` allows.""",
    partial(checks.check_whole_or_auto, at_least=1),
)

_ADVERSARIAL = Parameter(
    "adversarial",
    "float | str",
    0.0,
    'float or "auto"',
    """Radius of an L2-normalized adversarial perturbation, below 1: a fraction of the
    root-mean-square distance of the rows from their mean. The loss is the mean over the rows and
    over the same rows moved by this radius along the gradient of their own loss (Goodfellow et al.,
    2015); for rows with pseudo-labels see Miyato et al. (2018). ``"auto"``: 0.15 for two layers and
    pixels (49 columns or more of one range); for one layer, 0.1 for pixels and for 100 features or
    more; otherwise 0. It is 0 for sparse rows, with ``augment``, and for the optimizers ``"cg"``
    and ``"lbfgs"``. Where some labels are missing, ``"auto"`` is 0.2 with Adam; where only
    neighbors are learned, it is 0.""",
    _SHARE_OR_AUTO,
)

_SPARE_COMPONENTS = Parameter(
    "spare_components",
    "int",
    0,
    "int",
    """Additional dimensions of the map during training, so that classes can move past each
    other. They are shrunk to zero in the course of the training, and the learned map does not
    have them.""",
    partial(checks.check_whole, at_least=0),
)

_CHANGED = (
    EXEMPLARS.but(
        default="joint",
        kind='{"joint", "kmeans", None}',
        prose="""The references that new rows are compared with. ``"joint"``: exemplars that start
        from k-means and are learned together with the map. ``"kmeans"``: the map is learned on
        pairs of rows, and the references are the k-means centers of each class in the input space,
        mapped. ``None``: the map is learned on pairs, and the references are all embedded training
        rows.""",
        check=partial(checks.check_choice, choices=choices.EXEMPLARS_OR_JOINT),
    ),
    VALIDATION_FRACTION.but(
        annotation="float | str",
        default="auto",
        kind='float or "auto"',
        prose="""Fraction of the rows that is held out, stratified by class. The error on these rows
        is reported. ``"auto"``: 0.1. For fewer than 280 rows with labels, cross-fitting: each row
        is held out once, in 3 to 5 folds, ``validation_error_`` is the error on all of them, and
        the map is then learned from all rows by the same plan (with Adam, and unless ``refit``,
        ``patience``, ``structure`` or ``max_bytes`` say otherwise). 0 turns validation off.""",
        check=_SHARE_OR_AUTO,
    ),
    MAX_EPOCHS.but(
        prose="""Maximum number of epochs. ``"auto"``, for labels and two layers: 60 up to 6,000
        rows, fewer for more rows, two thirds of them with ``adversarial``, a third for sparse rows
        with 250 features or more, but at least 18 (11 with ``adversarial``). One layer, HOPE and
        rows without labels: enough for about 2,000 steps, between 70 and 100 (50 and 100 with
        ``adversarial``; 100 for a map with few factors); if these make more than 20,000 steps,
        fewer, but at least 10. More than 10 classes get up to three times as many. The optimizers
        ``"cg"`` and ``"lbfgs"`` get 50. See ``effort``.""",
    ),
    LEARNING_RATE.but(
        annotation="float | str",
        default="auto",
        kind='float or "auto"',
        prose="""Largest learning rate of Adam: a linear warm-up over the first tenth of the
        training, then a cosine decay. ``"auto"``: 0.004 for labels and two layers, less for more
        than 200 units, 0.008 for sparse rows with 250 features or more. Otherwise 0.001 for HOPE
        and 0.002 for S-HOPE; with fewer than 100 features 0.002 and 0.006, divided by the number
        of layers. Larger for a map with few factors.""",
        check=partial(checks.check_number_or_auto, low=0, high=math.inf, open_low=True),
    ),
    REFIT.but(
        prose="""After validation, learn from all rows. With Adam and joint exemplars, the fit goes
        on for a fifth of the epochs with a third of the learning rate, and keeps the map as it was
        evaluated if the training error rises; not for more than 20,000 rows, which would hardly
        change it. Otherwise, a second fit on all rows.""",
    ),
    PATIENCE.but(
        prose="""Stop after so many epochs without a lower validation error, and keep the best
        epoch. ``"auto"``: with Adam, never: the last epoch is kept, so that the rows that the error
        is reported on choose nothing. Otherwise half of ``max_epochs``, at least 10.""",
    ),
    WEIGHT_DECAY.but(
        annotation="float | str",
        default="auto",
        kind='float or "auto"',
        prose="""Decoupled weight decay of the matrices of the map (Adam only). ``"auto"``: 0,
        unless 0.3 or 1 has a significantly lower loss on a part of the training rows. They are
        compared where columns have ranges of their own, for 250 to 10,000 rows, all with labels,
        and joint exemplars.""",
        check=partial(checks.check_number_or_auto, low=0, high=math.inf),
    ),
)

#: What HOPE and S-HOPE have and other methods do not.
_ADDED = (
    Parameter(
        "time_limit",
        "float | None",
        None,
        "float or None",
        """Seconds that the fit may take, comparisons and the last stretch included. A fit that
        needs longer anneals its learning rate within the limit, ends with the map that it has, and
        warns (``TimeLimitWarning``). Such a fit is not repeated bit for bit.""",
        partial(checks.check_number_or_none, low=0, high=math.inf, open_low=True),
    ),
    Parameter(
        "effort",
        "str",
        "balanced",
        '{"fast", "balanced", "best"}',
        """How much time to spend. ``"fast"``: a third of the epochs; with labels, also no
        comparison of columns and settings, and half of the widths of S-HOPE. ``"best"``: three
        times as many epochs; with labels, also twice the widths of S-HOPE. Settings that are given
        explicitly override it.""",
        partial(checks.check_choice, choices=choices.EFFORTS),
    ),
    Parameter(
        "select_columns",
        "str | bool",
        "auto",
        '"auto" or False',
        """Eliminate columns that do not matter. ``"auto"``: small maps are learned from part of the
        training rows, each without the least important columns of the one before, and the columns
        of the one with the lowest loss on the other rows are kept, if it is significantly lower
        than with all columns. Tried for dense tables with all labels and joint exemplars, for 1,000
        rows or 200 columns or more; not for pixels. The map ignores the other columns
        (``column_gains_``). False: all columns are kept.""",
        partial(checks.check_choice, choices=choices.AUTO_OR_FALSE),
    ),
    Parameter(
        "objective",
        "str",
        "collapse",
        '{"collapse", "spread"}',
        """``"collapse"`` pulls a row onto all exemplars of its class. ``"spread"`` pulls it onto
        any of them, so that exemplars of a class can lie apart (``exemplars="joint"`` only).""",
        partial(checks.check_choice, choices=choices.OBJECTIVES),
    ),
    Parameter(
        "conditional",
        "bool",
        False,
        "bool",
        """Normalize the pairwise objective per row instead of over all pairs of a batch. The
        objective on exemplars is always normalized per row.""",
        _FLAG,
    ),
    Parameter(
        "structure",
        "float | str",
        "auto",
        'float or "auto"',
        """Weight of the neighbors in the loss, from 0 to 1, regardless of class: 0 collapses
        classes and hides their inner structure. ``"auto"``: 0 if all labels are known, 1 if there
        are none. If some are missing: 0.1, or 0 if there are at least 50 labels per class, unless
        another of 0, 0.1 and 0.5 has a significantly lower error on held-out rows.""",
        checks.check_share_or_auto,
    ),
    PERPLEXITY.but(
        default=5.0,
        prose="""Approximate number of neighbors that a row keeps: among the landmarks, or in a
        batch if ``exemplars`` is not ``"joint"``. Used if ``structure`` is above 0.""",
    ),
    Parameter(
        "n_landmarks",
        "int | str",
        "auto",
        'int or "auto"',
        """Number of landmarks: k-means centers of all rows, to which rows keep their distances.
        Used if ``structure`` is above 0; without labels, the landmarks are the exemplars.
        ``"auto"``: one for 8 rows, at most 1,000, and more than the perplexity needs.""",
        partial(checks.check_whole_or_auto, at_least=2),
    ),
    Parameter(
        "missing_label",
        "Any",
        (),
        "number, str, None or ()",
        """The value in y that marks a missing label. Rows without a label keep their neighbors
        (``structure``) and, with joint exemplars, learn from pseudo-labels weighted by their
        confidence. None and NaN are the same marker. ``()``: no label is missing, and NaN in y is
        an error.""",
        checks.check_missing_label,
    ),
    Parameter(
        "input_dropout",
        "float | str",
        "auto",
        'float or "auto"',
        """Fraction of the features that is dropped at random in training. ``"auto"``: 0.001 times
        the number of features, at most 0.25, less for a map with few factors; for two
        layers 0.1 of pixels, and 0.5 of 250 sparse features or more; 0 with ``augment``.""",
        _SHARE_OR_AUTO,
    ),
    Parameter(
        "dropout",
        "float | str",
        "auto",
        'float or "auto"',
        """Fraction of the polynomial units that is dropped at random in training. ``"auto"``: for
        S-HOPE with fewer than 100 features, 0.1 for labels and two layers, otherwise 0.3, less for
        a map with few factors; for HOPE and more features 0.""",
        _SHARE_OR_AUTO,
    ),
    _ADVERSARIAL,
    _SPARE_COMPONENTS,
    Parameter(
        "max_bytes",
        "int | None",
        None,
        "int or None",
        """Maximum size of the model file, including the exemplars, the scaling and all names. Sizes
        that are ``"auto"`` are selected for it. Weights and exemplars are stored in int8, or in
        float16 if int8 raises the error on the held-out rows (without held-out rows, always in
        int8).""",
        partial(checks.check_whole_or_none, at_least=1),
    ),
    Parameter(
        "augment",
        "str | None",
        None,
        '{"affine", "elastic", None}',
        """Random distortion of the images in each epoch. ``"affine"``: small rotations, scalings,
        shears and shifts. ``"elastic"``: local warps in addition. Needs ``image_shape``.""",
        partial(checks.check_choice, choices=(*choices.DISTORTIONS, None)),
    ),
    Parameter(
        "image_shape",
        "tuple[int, int] | None",
        None,
        "(int, int) or None",
        "Height and width of the images, for ``augment``.",
        _check_image_shape,
    ),
)

_SHARED_BY_BOTH = (*override(TRAINED, *_CHANGED), *_ADDED)

HOPE = override(
    _SHARED_BY_BOTH,
    _ORDER,
    _N_FACTORS,
    Parameter(
        "tied",
        "bool",
        False,
        "bool",
        """Learn powers of one sum from the start, as in the paper. Otherwise the fit learns
        products of ``order`` different sums, which are fewer, and converts each of them to
        ``2 ** (order - 1)`` powers.""",
        _FLAG,
    ),
)

SHOPE = override(
    _SHARED_BY_BOTH,
    _ORDER.but(
        annotation="int | tuple[int, ...]",
        default=2,
        kind="int or tuple of int",
        prose="""Maximum number of features in a product of a polynomial unit: one number for all
        layers, or a tuple with one per layer.""",
        check=partial(checks.check_layer_sizes, at_most=choices.MAX_ORDER, auto=False),
    ),
    _N_FACTORS.but(
        annotation="int | str | tuple[int, ...]",
        kind='int, tuple of int or "auto"',
        prose="""Polynomial units per layer. ``"auto"``: as many as sigmoid units, for labels and
        two layers; otherwise 400, or about as many as ``max_bytes`` allows.""",
        check=checks.check_layer_sizes,
    ),
    Parameter(
        "n_units",
        "int | str | tuple[int, ...]",
        "auto",
        'int, tuple of int or "auto"',
        """Sigmoid units. A tuple such as ``(400, 400)`` stacks layers: each multiplies the outputs
        of the layer below. ``"auto"``, if all rows have labels: ``(100, 100)``, from 4,000 rows on
        ``(200, 200)``, for 30 million numbers ``(300, 300)``, or 200 if one layer has a
        significantly lower loss on a part of the training rows. Without labels ``(400, 400)`` for
        100 features or more. Otherwise, for pairs and with ``augment``: 600; with ``max_bytes``,
        two or three per polynomial unit.""",
        checks.check_layer_sizes,
    ),
    _ADVERSARIAL.but(default="auto"),
    _SPARE_COMPONENTS.but(default=2),
)

HOPE_RULES = (rules.check_augment, rules.check_spread)
SHOPE_RULES = (rules.check_layers, *HOPE_RULES)

HIGH_ORDER_ATTRIBUTES = (
    *ATTRIBUTES,
    Attribute("structure_", "float", "The weight of the neighbors in the loss."),
)

HIGH_ORDER_REFERENCES = (
    """M. R. Min, H. Guo and D. Song. A Shallow High-Order Parametric Approach to Data Visualization
    and Compression. arXiv:1608.04689, 2016.""",
    """I. J. Goodfellow, J. Shlens and C. Szegedy. Explaining and Harnessing Adversarial Examples.
    ICLR, 2015.""",
    """T. Miyato, S. Maeda, M. Koyama and S. Ishii. Virtual Adversarial Training: A Regularization
    Method for Supervised and Semi-Supervised Learning. IEEE Transactions on Pattern Analysis and
    Machine Intelligence, 2018.""",
)
