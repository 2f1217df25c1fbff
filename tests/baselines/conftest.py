"""A task as `fit` would set it: what a method's own parts are tried on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hopefold.data.rows import Rows
from hopefold.data.scaling import learn_scale
from hopefold.fitting.batch import Batch
from hopefold.fitting.task import Task


@pytest.fixture(scope="session")
def make_task():
    """Makes a task of a table and its labels 0, 1, …; by default in the table's own scale."""

    def make(X, y, *, scale=None, **options):
        settings = {
            "class_weights": np.ones(len(np.unique(y))),
            "seed": 0,
        }
        learned = learn_scale(X, scale)
        rows = Rows.prepare(np.asarray(X), learned)
        known = {"rows": rows, "scale": learned, "labels": np.asarray(y), "classes": np.unique(y)}
        return Task(**known, **{**settings, **options})

    return make


@pytest.fixture(scope="session")
def make_batch():
    """Makes a batch of rows, in float64: the loops are."""

    def make(x, labels, exemplars=None, exemplar_labels=None):
        x = torch.as_tensor(x, dtype=torch.float64)
        none = torch.empty(0, x.shape[1], dtype=torch.float64)
        return Batch(
            numbers=np.arange(len(x)),
            table=x if exemplars is None else torch.cat([x, exemplars]),
            labels=torch.as_tensor(labels),
            weights=None,
            exemplars=none if exemplars is None else exemplars,
            varies=torch.ones(x.shape[1], dtype=x.dtype),
            exemplar_labels=torch.as_tensor([] if exemplar_labels is None else exemplar_labels),
            exemplar_weights=None,
        )

    return make


@pytest.fixture(scope="session")
def one_telling_column():
    """240 rows, 3 classes: the first column tells them apart, four others are louder noise."""
    random = np.random.RandomState(0)
    y = np.arange(240) % 3
    X = random.normal(size=(240, 5)) * [0.05, 2, 2, 2, 2]
    X[:, 0] += y
    return X, y
