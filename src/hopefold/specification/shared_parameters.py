"""Parameters and attributes that several methods share."""

from __future__ import annotations

import math
from functools import partial

from hopefold import checks
from hopefold.specification import choices
from hopefold.specification.parameter import Attribute, Parameter

N_COMPONENTS = Parameter(
    "n_components",
    "int",
    2,
    "int",
    "Dimensions of the map.",
    partial(checks.check_whole, at_least=1),
)

EXEMPLARS = Parameter(
    "exemplars",
    "str | None",
    None,
    '{"kmeans", None}',
    """The references that new rows are compared with. ``"kmeans"``: the k-means centers of each
    class in the input space, mapped. ``None``: all embedded training rows.""",
    partial(checks.check_choice, choices=choices.EXEMPLARS),
)

CLASS_WEIGHT = Parameter(
    "class_weight",
    "Any",
    None,
    'dict, "balanced" or None',
    "Weights of the classes in the objective, in the validation error and in `predict`.",
)

#: The same, for methods that learn the map without weights.
CLASS_WEIGHT_IN_PREDICT = CLASS_WEIGHT.but(
    prose="""Weights of the classes in the validation error and in `predict`. The map does not
    depend on them."""
)

REFIT = Parameter(
    "refit",
    "bool",
    True,
    "bool",
    "After validation, train again on all rows, for the selected number of epochs.",
    partial(checks.check_choice, choices=choices.BOOLEANS),
)

#: The parameters of every method.
VALIDATION_FRACTION = Parameter(
    "validation_fraction",
    "float",
    0.1,
    "float",
    """Fraction of the rows that is held out, stratified by class. The error on these rows is
    reported. A method that learns in epochs keeps the last epoch whose error is not significantly
    above the lowest one. 0 turns validation off.""",
    partial(checks.check_number, low=0, high=1),
)

SHARED = (
    N_COMPONENTS,
    EXEMPLARS,
    Parameter(
        "n_exemplars",
        "int",
        2,
        "int",
        "Exemplars per class. A class with fewer rows gets one exemplar per row.",
        partial(checks.check_whole, at_least=1),
    ),
    VALIDATION_FRACTION,
    REFIT,
    Parameter(
        "scale",
        "str | None",
        "auto",
        '{"auto", "standard", "range", None}',
        """How columns are scaled. ``"standard"``: each column to mean 0 and standard deviation 1.
        ``"range"``: the whole table to [0, 1]. ``"auto"``: ``"range"`` if all columns share one
        range, as pixels do; sparse columns are divided by their largest magnitude; otherwise
        ``"standard"``. ``None``: not at all. Exemplars are returned in the original units.""",
        partial(checks.check_choice, choices=choices.SCALES),
    ),
    Parameter(
        "n_neighbors",
        "int | str",
        "auto",
        'int or "auto"',
        """Neighbors that vote in `predict`. ``"auto"``: 5. If classes tie, the class of the
        nearest neighbor wins.""",
        partial(checks.check_whole_or_auto, at_least=1),
    ),
    CLASS_WEIGHT,
    Parameter(
        "device",
        "Any",
        "auto",
        "str or torch.device",
        'Where to compute. ``"auto"``: a GPU if there is one, otherwise the CPU.',
    ),
    Parameter(
        "random_state",
        "Any",
        None,
        "int, RandomState or None",
        "Seed of all random numbers. The same int gives the same result.",
    ),
    Parameter(
        "verbose",
        "int",
        0,
        "int",
        "1 shows a progress bar.",
        partial(checks.check_whole_or_bool, at_least=0),
    ),
)

LEARNING_RATE = Parameter(
    "learning_rate",
    "float",
    0.003,
    "float",
    """Largest learning rate of Adam: a linear warm-up over the first tenth of the training,
    then a cosine decay.""",
    partial(checks.check_number, low=0, high=math.inf, open_low=True),
)

MAX_EPOCHS = Parameter(
    "max_epochs",
    "int | str",
    "auto",
    'int or "auto"',
    """Maximum number of epochs. ``"auto"``: enough for about 2,000 steps, between 30 and 100;
    50 for the optimizers ``"cg"`` and ``"lbfgs"``.""",
    partial(checks.check_whole_or_auto, at_least=1),
)

PATIENCE = Parameter(
    "patience",
    "int | str",
    "auto",
    'int or "auto"',
    """Stop after so many epochs without a lower validation error. ``"auto"``: half of
    ``max_epochs``, at least 10.""",
    partial(checks.check_whole_or_auto, at_least=1),
)

WEIGHT_DECAY = Parameter(
    "weight_decay",
    "float",
    0.0,
    "float",
    "Decoupled weight decay of the matrices of the map (Adam only).",
    partial(checks.check_number, low=0, high=math.inf),
)

#: In addition, the parameters of methods that learn by gradients.
TRAINED = (
    *SHARED,
    MAX_EPOCHS,
    Parameter(
        "batch_size",
        "int | str",
        "auto",
        'int or "auto"',
        """Rows per step. ``"auto"``: at most 250 with joint exemplars and 1,000 with pairs, fewer
        for small data; 5,000 for the optimizers ``"cg"`` and ``"lbfgs"``.""",
        partial(checks.check_whole_or_auto, at_least=2),
    ),
    LEARNING_RATE,
    Parameter(
        "optimizer",
        "str",
        "adam",
        '{"adam", "cg", "lbfgs"}',
        """``"cg"``: the paper's, conjugate gradient on each batch. ``"lbfgs"``: L-BFGS on each
        batch.""",
        partial(checks.check_choice, choices=choices.OPTIMIZERS),
    ),
    Parameter(
        "batch_iterations",
        "int",
        3,
        "int",
        'Iterations of ``"cg"`` or ``"lbfgs"`` on each batch.',
        partial(checks.check_whole, at_least=1),
    ),
    PATIENCE,
    WEIGHT_DECAY,
    Parameter(
        "checkpoint",
        "Any",
        None,
        "path or None",
        """File for the state of the fit, written at the end of epochs. After a crash or Ctrl-C,
        the same fit resumes from this file and ends with the same weights.""",
        checks.check_path,
    ),
    Parameter(
        "checkpoint_minutes",
        "float",
        5.0,
        "float",
        "After so many minutes, the checkpoint is also written in the middle of an epoch.",
        partial(checks.check_number, low=0, high=math.inf),
    ),
)

#: Parameters that do not change what is learned: where and how often a checkpoint is written.
CHECKPOINT_PARAMETERS = ("checkpoint", "checkpoint_minutes")

PERPLEXITY = Parameter(
    "perplexity",
    "float",
    30.0,
    "float",
    "Approximate number of neighbors of a row in a batch.",
    partial(checks.check_number, low=1, high=math.inf, open_low=True),
)

#: The attributes of every fitted estimator.
ATTRIBUTES = (
    Attribute("map_", "torch.nn.Module", "The learned map, for rows scaled by ``scale_``."),
    Attribute(
        "exemplars_",
        "ndarray of shape (n_references, n_features) or None",
        "The exemplars in the units of the training data.",
    ),
    Attribute(
        "exemplar_labels_, exemplar_embedding_",
        "ndarray or None",
        "The classes of the exemplars, and their points in the map.",
    ),
    Attribute(
        "reference_embedding_, reference_labels_",
        "ndarray",
        "The points that `predict` compares with: the exemplars, or all training rows.",
    ),
    Attribute(
        "classes_, class_weight_",
        "ndarray",
        "The sorted labels and their weights. Empty for a map learned without labels.",
    ),
    Attribute(
        "validation_error_",
        "float or None",
        """Error on the held-out rows, before they are learned from. Rows are weighted by
        ``class_weight``. With Adam, they choose neither the epoch nor any setting.""",
    ),
    Attribute(
        "n_held_out_, validation_interval_",
        "int, (float, float) or None",
        """The number of rows that ``validation_error_`` was measured on, and its 95 % confidence
        interval. With fewer than 280 rows, it may be all rows: see ``validation_fraction``.""",
    ),
    Attribute(
        "temperature_",
        "float",
        """Temperature of the probabilities, learned from the held-out rows: the kernel's
        probabilities to the power of ``1 / temperature_``, divided by their sum. 1 where neighbors
        vote, or if fewer than 20 rows are held out.""",
    ),
    Attribute(
        "calibration_error_",
        "float or None",
        """Expected calibration error of the probabilities on the held-out rows, each half at the
        temperature of the other. Rows are weighted by ``class_weight``. ``None`` without held-out
        rows.""",
    ),
    Attribute(
        "trustworthiness_",
        "float or None",
        """Trustworthiness of the neighbors in the map, from 0 to 1, on held-out rows. ``None``
        unless neighbors are part of the loss and at least 36 rows are held out.""",
    ),
    Attribute(
        "train_error_",
        "float",
        """Error on the training rows. The smaller it is compared with ``validation_error_``, the
        more the map overfits.""",
    ),
    Attribute("n_iter_", "int", "The selected number of epochs."),
    Attribute(
        "interrupted_",
        "bool",
        "Whether Ctrl-C has ended the fit early: then the map is the best one until then.",
    ),
    Attribute(
        "history_",
        "list of dict",
        "One record per epoch: epoch, loss, learning_rate, validation_error.",
    ),
    Attribute("scale_", "Scale", "The scaling of the columns."),
    Attribute(
        "columns_",
        "hopefold.data.columns.Columns or None",
        "How the columns of a table become features, if the model was fitted to a table.",
    ),
    Attribute(
        "precision_",
        '{"float32", "float16", "int8"}',
        "How a model file stores the weights and the exemplars.",
    ),
    Attribute("n_features_in_, feature_names_in_", "int, ndarray of str", "As in scikit-learn."),
)
