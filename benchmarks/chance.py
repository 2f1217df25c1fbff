"""Does a fit on noise give a `ChanceWarning`? Twenty fits on random labels, ten on digits.

python benchmarks/chance.py
"""

from __future__ import annotations

import warnings

import numpy as np
import torch
from sklearn.model_selection import train_test_split

from hopefold import SHOPE
from hopefold.data.sets import load_set
from hopefold.errors import ChanceWarning

NOISE_SEEDS, SPLITS = 20, 10
ROWS, COLUMNS, CLASSES = 500, 20, 4


def warned(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[bool, float, float]:
    """Whether the fit warned, and its errors on training and on held-out rows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SHOPE(random_state=seed).fit(X, y)
    has_warned = any(warning.category is ChanceWarning for warning in caught)
    return has_warned, float(model.train_error_ or 0), float(model.validation_error_ or 0)


def noise(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random rows with independent random labels."""
    random = np.random.RandomState(seed)
    return random.normal(size=(ROWS, COLUMNS)), random.randint(CLASSES, size=ROWS)


def digits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The training part of a split."""
    data = load_set("digits")
    X, _, y, _ = train_test_split(data.X, data.y, test_size=0.3, stratify=data.y, random_state=seed)
    return X, y


def main() -> None:
    """Print one line for each kind of data."""
    torch.set_num_threads(1)
    print("| data | fits | warned | training error, % | held-out error, % |")
    print("| --- | --- | --- | --- | --- |")
    for name, make, n_seeds in [("noise", noise, NOISE_SEEDS), ("digits", digits, SPLITS)]:
        results = np.array([warned(*make(seed), seed) for seed in range(n_seeds)], dtype=float)
        n_warned, training, held_out = results.sum(axis=0)[0], *100 * results.mean(axis=0)[1:]
        print(
            f"| {name} | {n_seeds} | {n_warned:.0f} | {training:.1f} | {held_out:.1f} |", flush=True
        )


if __name__ == "__main__":
    main()
