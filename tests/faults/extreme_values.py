"""Fits of tables with extreme values: overflow, outliers, tiny and huge scales."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from faults.outcome import Outcome
from hopefold.errors import ChanceWarning, HopefoldError
from hopefold.estimators.hope import HOPE
from hopefold.estimators.shope import SHOPE

N_CLASSES, N_ROWS = 3, 150

#: If a larger share of the training rows is misclassified, the fit must warn.
BAD_ERROR = 0.5


def _with_outlier(X: np.ndarray, size: float) -> np.ndarray:
    X[7, 2] = size
    return X


def _with_magnitudes(X: np.ndarray, size: float) -> np.ndarray:
    return X * np.geomspace(1 / size, size, X.shape[1])


EXTREMES: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "an outlier": _with_outlier,
    "large": lambda X, size: X * size,
    "small": lambda X, size: X / size,
    "columns of all magnitudes": _with_magnitudes,
    "far from zero": lambda X, size: X + size,
}


def extreme_tables(times: int, _folder: Path) -> Outcome:
    """Fit extreme tables with extreme settings: finite points, or a hopefold error."""
    rng, broken = random.Random(0), []
    for number in range(times):
        how = rng.choice(list(EXTREMES))
        size = 10 ** rng.uniform(0, 37)
        settings: dict[str, Any] = {
            "order": rng.choice([1, 2, 3, 5, 9]),
            "scale": rng.choice(["auto", "standard", "range", None]),
            "learning_rate": rng.choice(["auto", 0.1, 10.0]),
        }
        kind = rng.choice([HOPE, SHOPE])
        if problem := find_problem(kind(max_epochs=6, random_state=number, **settings), how, size):
            case = f"{kind.__name__}, {settings}, {how}, {size:.1g}"
            broken.append(f"{case}: {problem}")
    return Outcome(times, tuple(broken))


def find_problem(model: HOPE | SHOPE, how: str, size: float) -> str | None:
    """The promise that a fit of such a table breaks, or None."""
    random_state = np.random.RandomState(model.random_state)
    y = np.arange(N_ROWS) % N_CLASSES
    X = 4 * random_state.normal(size=(N_CLASSES, 6))[y] + random_state.normal(size=(N_ROWS, 6))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            X = EXTREMES[how](X, size)
            points = model.fit(X, y).transform(X)
        except HopefoldError:
            return None
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    if not np.isfinite(points).all():
        return "points that are not finite"
    warned = any(issubclass(one.category, ChanceWarning) for one in caught)
    if np.mean(model.predict(X) != y) > BAD_ERROR and not warned:
        return "a bad map, and no warning"
    return None
