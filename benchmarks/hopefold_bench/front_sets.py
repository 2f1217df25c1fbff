"""The sets of the front: tables of many kinds, of which a part never chooses a default.

The parts were named before any default was chosen on them. Whatever is tried while defaults are
chosen is tried on validation parts of the choosing sets alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

from hopefold_bench.small_sets import SMALL_SETS, load_table
from hopefold_bench.splits import Splits, load_splits

if TYPE_CHECKING:
    from numpy import ndarray

#: Share of a table that is its test part, and share of the rest that is its validation part.
TEST, VALIDATION = 0.3, 0.25

Arrays = tuple[Any, "ndarray"]


@dataclass(frozen=True)
class FrontSet:
    """A table, and whether defaults may be chosen on its validation part."""

    load: Callable[[int], Arrays]
    chooses: bool
    test: float = TEST
    #: Data with a test part of their own, by their name in `splits`.
    named: str | None = None

    def split(self, name: str, seed: int, *, final: bool) -> Splits:
        """Training rows and new rows: the test part if ``final``, else a validation part."""
        if self.named is not None:
            if final:
                return load_splits(self.named, seed, final=True)
            whole = load_splits(self.named, seed, final=True)
            X, y = whole.X, whole.y
        else:
            X, y = self.load(seed)
            X, X_new, y, y_new = _split(X, y, self.test, seed)
            if final:
                return Splits(X, y, X_new, y_new)
        if not final and not self.chooses:
            raise ValueError(f"no default is chosen on {name!r}: it has a test part alone.")
        X, X_new, y, y_new = _split(X, y, VALIDATION if len(y) < 40_000 else 0.1, seed + 1)
        return Splits(X, y, X_new, y_new)


def _split(X: Any, y: ndarray, share: float, seed: int) -> tuple[Any, Any, ndarray, ndarray]:
    return train_test_split(X, y, test_size=share, stratify=y, random_state=seed)


def make_wide(n_rows: int, n_columns: int, seed: int) -> Arrays:
    """Few rows of many columns, of which fifty matter."""
    return datasets.make_classification(
        n_rows,
        n_columns,
        n_informative=20,
        n_redundant=30,
        n_classes=3,
        n_clusters_per_class=1,
        class_sep=2.0,
        random_state=seed,
    )


def make_products(seed: int) -> Arrays:
    """500 columns of which 20 matter, in products alone: the generator of the Madelon challenge."""
    return datasets.make_classification(
        2_600,
        500,
        n_informative=5,
        n_redundant=15,
        n_clusters_per_class=16,
        flip_y=0.01,
        class_sep=2.0,
        shuffle=False,
        random_state=seed,
    )


def make_large(seed: int, n_rows: int = 500_000) -> Arrays:
    """Half a million rows of 50 columns, in 56 clusters of 7 classes."""
    return datasets.make_classification(
        n_rows,
        50,
        n_informative=20,
        n_redundant=10,
        n_classes=7,
        n_clusters_per_class=8,
        flip_y=0.02,
        random_state=seed,
    )


def make_flipped(share: float, seed: int) -> Arrays:
    """The sign of a product of two columns among 20, with a share of the labels flipped."""
    random = np.random.RandomState(seed)
    X = random.normal(size=(4_286, 20))
    y = X[:, 0] * X[:, 1] > 0
    return X, (y ^ (random.rand(len(y)) < share)).astype(int)


def make_triple(seed: int) -> Arrays:
    """The sign of a product of three columns among ten."""
    X = np.random.RandomState(seed).normal(size=(4_286, 10))
    return X, (X[:, 1] * X[:, 4] * X[:, 9] > 0).astype(int)


def make_noise(seed: int) -> Arrays:
    """Labels that no column says anything about."""
    random = np.random.RandomState(seed)
    return random.normal(size=(1_500, 10)), random.randint(3, size=1_500)


def _keel_table(name: str, _seed: int) -> Arrays:
    return load_table(name)


def _small(name: str, _seed: int) -> Arrays:
    return SMALL_SETS[name]()


def _keel(names: str, *, chooses: bool) -> dict[str, FrontSet]:
    return {name: FrontSet(partial(_keel_table, name), chooses) for name in names.split()}


#: Seeds of what defaults are chosen on are moved away from those that are measured.
OTHER = 1_000

FRONT_SETS: dict[str, FrontSet] = {
    **{
        name: FrontSet(partial(_small, name), True, named=name)
        for name in ("mnist", "usps", "digits")
    },
    **_keel(
        "satimage phoneme penbased ring twonorm spambase vehicle pima ionosphere sonar "
        "movement_libras contraceptive marketing german chess splice banana tae led7digit",
        chooses=True,
    ),
    **{
        name: FrontSet(partial(_small, name), True)
        for name in ("text", "blobs", "moons", "classification")
    },
    "wide": FrontSet(lambda seed: make_wide(1_500, 1_000, OTHER + seed), True),
    "wider": FrontSet(lambda seed: make_wide(2_000, 5_000, OTHER + seed), True),
    "products": FrontSet(lambda seed: make_products(OTHER + seed), True),
    "large": FrontSet(lambda seed: make_large(OTHER + seed), True, test=0.1),
    "flipped 10 %": FrontSet(lambda seed: make_flipped(0.1, OTHER + seed), True),
    "flipped 25 %": FrontSet(lambda seed: make_flipped(0.25, OTHER + seed), True),
    "triple": FrontSet(lambda seed: make_triple(OTHER + seed), True),
    "noise": FrontSet(lambda seed: make_noise(OTHER + seed), True),
    **_keel(
        "segment letter magic texture optdigits vowel wisconsin wdbc australian heart mushroom "
        "tic-tac-toe mammographic saheart bupa bands crx titanic wine iris",
        chooses=False,
    ),
    **{name: FrontSet(partial(_small, name), False) for name in ("circles", "quantiles")},
    "kept wide": FrontSet(lambda seed: make_wide(1_200, 3_000, seed), False),
    "kept few": FrontSet(lambda seed: make_wide(250, 2_000, seed), False),
    "kept products": FrontSet(make_products, False),
    "kept flipped 10 %": FrontSet(partial(make_flipped, 0.1), False),
    "kept flipped 25 %": FrontSet(partial(make_flipped, 0.25), False),
    "kept triple": FrontSet(make_triple, False),
    "kept large": FrontSet(make_large, False, test=0.1),
}
