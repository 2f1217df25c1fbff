"""Records made by hand, and digits whose only pixel is their number."""

from __future__ import annotations

import numpy as np
import pytest

from hopefold.data.sets import DataSet
from hopefold_bench.measure import settings_of
from hopefold_bench.methods import METHODS
from hopefold_bench.records import Record, pack


@pytest.fixture
def record():
    """Makes a record; ``wrong`` are the misclassified rows of ten, for every kind of error."""

    def make(method="S-HOPE", data="usps", split=0, part="test", wrong=(), **changes):
        n_new = changes.get("n_new", 10)
        misclassified = np.isin(np.arange(n_new), wrong)
        kinds = ("all", "kmeans", "joint")
        fields = {
            "quick": False,
            "settings": settings_of(METHODS[method].make(data, split)),
            "errors": dict.fromkeys(kinds, float(misclassified.mean())),
            "mistakes": dict.fromkeys(kinds, pack(misclassified)),
            "n_train": 100,
            "n_new": n_new,
            "seconds_fit": 2.0,
            "seconds_transform": 0.1,
            "peak_memory_mb": 300.0,
            "epochs": 30,
            "validation_error": None,
            "model_bytes": None,
            "versions": {},
            "machine": {},
        }
        return Record(method=method, data=data, split=split, part=part, **(fields | changes))

    return make


@pytest.fixture
def numbered_sets(monkeypatch):
    """Instead of the images, each row is its own number; MNIST's test rows begin at 1,000,000."""

    def load(name, folder=None):
        n_rows = {"digits": 1_797, "usps": 11_000, "mnist": 6_000}[name]
        X, y = np.arange(n_rows)[:, None], np.arange(n_rows) % 10
        if name != "mnist":
            return DataSet(name, X, y, (1, 1))
        return DataSet(name, X, y, (1, 1), X_test=1_000_000 + X[:500], y_test=y[:500])

    monkeypatch.setattr("hopefold_bench.splits.load_set", load)
