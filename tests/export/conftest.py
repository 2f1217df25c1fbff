"""Small models of every kind that can be exported, each fitted once."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_iris

from hopefold import HOPE, SHOPE
from hopefold.baselines import LDA, Autoencoder, DeepNCA

QUICK = {"max_epochs": 2, "random_state": 0}
SMALL = {"n_factors": 6, "n_units": 5, **QUICK}

KINDS = {
    "HOPE": lambda: HOPE(n_factors=16, **QUICK),
    "HOPE of an odd order": lambda: HOPE(order=3, n_factors=7, tied=True, **QUICK),
    "linear HOPE": lambda: HOPE(order=1, n_factors=4, **QUICK),
    "S-HOPE": lambda: SHOPE(**SMALL),
    "calibrated": lambda: SHOPE(validation_fraction=0.3, **SMALL),
    "calibrated, weights": lambda: HOPE(
        validation_fraction=0.3, class_weight={0: 1, 1: 5, 2: 2}, n_factors=16, **QUICK
    ),
    "S-HOPE of two layers": lambda: SHOPE(n_factors=6, n_units=(5, 4), order=(3, 2), **QUICK),
    "three dimensions": lambda: SHOPE(n_components=3, order=5, **SMALL),
    "pairs, conditional": lambda: HOPE(exemplars=None, conditional=True, n_factors=4, **QUICK),
    "k-means, weights": lambda: SHOPE(exemplars="kmeans", class_weight={0: 1, 1: 5, 2: 2}, **SMALL),
    "a weighted vote": lambda: SHOPE(n_neighbors=3, class_weight={0: 1, 1: 5, 2: 2}, **SMALL),
    "a vote of more than there are": lambda: SHOPE(n_neighbors=50, **SMALL),
    "unscaled": lambda: SHOPE(scale=None, **SMALL),
    "one range": lambda: SHOPE(scale="range", **SMALL),
    "int8": lambda: SHOPE(max_bytes=6_000, **QUICK),
    "LDA": LDA,
    "DeepNCA": lambda: DeepNCA(hidden_layer_sizes=(6, 5), **QUICK),
    "Autoencoder": lambda: Autoencoder(hidden_layer_sizes=(6, 5), **QUICK),
}


@cache
def fitted(kind):
    """A model of iris; a column that is always 7 is added, to which no map listens."""
    X, y = load_iris(return_X_y=True)
    return KINDS[kind]().fit(np.c_[X, np.full(len(X), 7.0)], y)


@pytest.fixture(scope="session")
def model_of():
    """The model of a kind."""
    return fitted


@pytest.fixture(params=KINDS)
def model(request):
    return fitted(request.param)


@pytest.fixture(scope="session")
def shope():
    return fitted("S-HOPE")


@pytest.fixture(params=[0.4, 3.0, 20.0])
def tempered(request):
    """A model whose probabilities have another temperature than 1."""
    model = copy.copy(fitted("calibrated"))
    assert model.temperature_ != 1
    model.temperature_ = request.param
    return model


@pytest.fixture(scope="session", params=["joint", None], ids=["landmarks", "pairs"])
def unlabeled(request):
    """A model of the same rows, which has seen no label."""
    X, _ = load_iris(return_X_y=True)
    model = SHOPE(exemplars=request.param, perplexity=5, **SMALL)
    return model.fit(np.c_[X, np.full(len(X), 7.0)])


@pytest.fixture(scope="session")
def rows():
    """Iris as float32, with the column that is always 7."""
    X, _ = load_iris(return_X_y=True)
    return np.c_[X, np.full(len(X), 7.0)].astype(np.float32)
