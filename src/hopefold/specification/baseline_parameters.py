"""Parameters of the baselines."""

from __future__ import annotations

from functools import partial

from hopefold import checks
from hopefold.specification import choices
from hopefold.specification.parameter import Parameter, override
from hopefold.specification.shared_parameters import (
    CLASS_WEIGHT,
    CLASS_WEIGHT_IN_PREDICT,
    EXEMPLARS,
    LEARNING_RATE,
    N_COMPONENTS,
    PERPLEXITY,
    SHARED,
    TRAINED,
)

_SHARE = partial(checks.check_number, low=0, high=1)
_AT_LEAST_ONE = partial(checks.check_whole, at_least=1)

LDA = override(SHARED, CLASS_WEIGHT_IN_PREDICT)

LPP = override(
    LDA,
    Parameter(
        "graph",
        "str",
        "class",
        '{"class", "neighbors"}',
        """``"class"`` joins all rows of a class, each pair with the weight 1 / size of the class
        (the directions are then those of LDA). ``"neighbors"`` joins nearest neighbors regardless
        of class.""",
        partial(checks.check_choice, choices=choices.GRAPHS),
    ),
    Parameter(
        "n_graph_neighbors",
        "int",
        5,
        "int",
        'Neighbors of a row in the graph ``"neighbors"``.',
        _AT_LEAST_ONE,
    ),
)

#: Linear maps learned by gradients.
MCML = override(TRAINED, LEARNING_RATE.but(default=0.01))

NCA = override(
    MCML,
    Parameter(
        "solver",
        "str",
        "auto",
        '{"auto", "exact", "batches"}',
        """``"exact"``: scikit-learn's, on all pairs of rows. ``"batches"``: the same objective on
        the pairs of mini-batches. ``"auto"``: exact for up to 2,000 rows.""",
        partial(checks.check_choice, choices=choices.SOLVERS),
    ),
    Parameter("max_iter", "int", 50, "int", "Iterations of the exact solver.", _AT_LEAST_ONE),
    CLASS_WEIGHT.but(
        prose="""Weights of the classes in the validation error and in `predict`. The map depends on
        them with the solver ``"batches"`` only."""
    ),
)

LMNN = override(
    TRAINED,
    LEARNING_RATE.but(default=0.001),
    Parameter("n_targets", "int", 3, "int", "Target neighbors per row.", _AT_LEAST_ONE),
    Parameter(
        "pull",
        "float",
        0.5,
        "float",
        "Weight of the pull term. The push term has the weight ``1 - pull``.",
        _SHARE,
    ),
)

SNC = override(
    MCML,
    N_COMPONENTS.but(default=50),
    EXEMPLARS.but(
        default="joint",
        kind='{"joint"}',
        prose="Prototypes start from k-means and are learned together with the map.",
        check=partial(checks.check_choice, choices=("joint",)),
    ),
    Parameter(
        "n_neighbors",
        "int | str",
        "auto",
        'int or "auto"',
        """Prototypes that vote in `predict`. ``"auto"``: the nearest one decides. With
        ``class_weight``, which a single vote cannot use, each class gets the sum of the Student
        kernel over its prototypes.""",
        partial(checks.check_whole_or_auto, at_least=1),
    ),
)

#: Deep maps of sigmoids.
DEEP = override(
    TRAINED,
    LEARNING_RATE.but(default=0.002),
    Parameter(
        "hidden_layer_sizes",
        "Sequence[int]",
        (500, 500, 2000),
        "sequence of int",
        "Sigmoid units of each layer.",
        checks.check_hidden_layers,
    ),
    Parameter(
        "pretraining_epochs",
        "int",
        5,
        "int",
        """Epochs in which each layer is pre-trained as a denoising autoencoder with a quarter of
        its inputs missing. 0: random weights.""",
        partial(checks.check_whole, at_least=0),
    ),
    Parameter(
        "input_dropout",
        "float",
        0.0,
        "float",
        "Fraction of the features that is dropped at random in training.",
        _SHARE,
    ),
    Parameter(
        "dropout",
        "float",
        0.0,
        "float",
        "Fraction of the hidden units that is dropped at random in training.",
        _SHARE,
    ),
)

AUTOENCODER = override(
    DEEP,
    CLASS_WEIGHT_IN_PREDICT,
    next(one for one in DEEP if one.name == "hidden_layer_sizes").but(
        default=(1000, 500, 250),
        prose="Sigmoid units of each layer of the encoder. The decoder has them in reverse order.",
    ),
)

PARAMETRIC_TSNE = override(DEEP, CLASS_WEIGHT_IN_PREDICT, PERPLEXITY)
