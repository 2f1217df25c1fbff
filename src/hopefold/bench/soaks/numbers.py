"""Numbers beyond all measure: overflowing powers, wild scales, outliers, values near nothing."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hopefold.bench.faults import Outcome
from hopefold.errors import ChanceWarning, HopefoldError
from hopefold.estimators.hope import HOPE, SHOPE

#: Classes of the rows, and rows.
N_CLASSES, N_ROWS = 3, 150

#: A map that judges more of its own rows wrongly is bad, and has to say so.
BAD = 0.5


def _with_outlier(X: np.ndarray, size: float) -> np.ndarray:
    X[7, 2] = size
    return X


def _with_magnitudes(X: np.ndarray, size: float) -> np.ndarray:
    return X * np.geomspace(1 / size, size, X.shape[1])


WILD: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "an outlier": _with_outlier,
    "large": lambda X, size: X * size,
    "small": lambda X, size: X / size,
    "columns of all magnitudes": _with_magnitudes,
    "far from zero": lambda X, size: X + size,
}


def wild_numbers(times: int, _folder: Path) -> Outcome:
    """Fits of wild tables by wild settings: good points, or a warning, or an error of ours."""
    chance, broken = random.Random(0), []
    for number in range(times):
        how = chance.choice(list(WILD))
        size = 10 ** chance.uniform(0, 37)
        settings: dict[str, Any] = {
            "order": chance.choice([1, 2, 3, 5, 9]),
            "scale": chance.choice(["auto", "standard", "range", None]),
            "learning_rate": chance.choice(["auto", 0.1, 10.0]),
        }
        kind = chance.choice([HOPE, SHOPE])
        if wrong := whats_wrong_with(
            kind(max_epochs=6, random_state=number, **settings), how, size
        ):
            case = f"{kind.__name__}, {settings}, {how}, {size:.1g}"
            broken.append(f"{case}: {wrong}")
    return Outcome(times, tuple(broken))


def whats_wrong_with(model: HOPE | SHOPE, how: str, size: float) -> str | None:
    """What breaks the promise when a model learns from such a table, if anything does."""
    chance = np.random.RandomState(model.random_state)
    y = np.arange(N_ROWS) % N_CLASSES
    X = 4 * chance.normal(size=(N_CLASSES, 6))[y] + chance.normal(size=(N_ROWS, 6))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            X = WILD[how](X, size)
            points = model.fit(X, y).transform(X)
        except HopefoldError:
            return None
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    if not np.isfinite(points).all():
        return "points that are no numbers"
    warned = any(issubclass(one.category, ChanceWarning) for one in told)
    if np.mean(model.predict(X) != y) > BAD and not warned:
        return "a bad map, and no word of it"
    return None
