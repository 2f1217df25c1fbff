"""Does HOPE find the products of features that determine the labels? Twenty seeds per case.

    python benchmarks/planted.py run [METHOD] [CASE]    # resumes
    python benchmarks/planted.py table                  # from the records

Rows are standard normal, and labels are the sign of products of some features. Some training labels
are flipped; test labels are not.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hopefold import HOPE
from hopefold.baselines import LDA, NCA

RESULTS = Path(__file__).parent / "planted.jsonl"
ROWS, COLUMNS, FLIPPED = 4_000, 20, 0.02

#: No setting was chosen on these seeds.
SEEDS = range(100, 120)

CASES = {
    "x3 × x7": [(3, 7)],
    "x1 × x4 × x9": [(1, 4, 9)],
    "x3 × x7 + x1 × x4": [(3, 7), (1, 4)],
}

#: Settings for few products, found on the seeds 0 to 9: few factors, weight decay and dropout.
#: There is no refit, and the scale is given.
COMMON = {"scale": "standard", "spare_components": 2, "input_dropout": 0.0, "refit": False}
SMALL = {
    2: COMMON
    | {"n_factors": 8, "dropout": 0.2, "learning_rate": 0.01, "weight_decay": 0.2}
    | {"batch_size": 500, "max_epochs": 100, "patience": 100},
    3: COMMON
    | {"n_factors": 16, "dropout": 0.3, "learning_rate": 0.05, "weight_decay": 0.5}
    | {"batch_size": 1_000, "max_epochs": 400, "patience": 400},
}

#: Fits of the small map, by order; the one with the lowest held-out error is used.
TRIES = {2: 1, 3: 3}

METHODS = ("HOPE, small", "HOPE", "LDA", "NCA")


def planted(terms: list[tuple[int, ...]], seed: int) -> tuple[np.ndarray, ...]:
    """Training rows with some flipped labels, and as many test rows with correct labels."""
    random = np.random.RandomState(seed)
    X = random.normal(size=(2 * ROWS, COLUMNS))
    y = (sum(X[:, term].prod(axis=1) for term in map(list, terms)) > 0).astype(int)
    learned = np.where(random.rand(ROWS) < FLIPPED, 1 - y[:ROWS], y[:ROWS])
    return X[:ROWS], learned, X[ROWS:], y[ROWS:]


def fit(method: str, order: int, seed: int, X: np.ndarray, y: np.ndarray) -> Any:
    """Fit a method; of several fits of the small map, return the best on held-out rows."""
    if method == "LDA":
        return LDA(n_components=1).fit(X, y)
    if method == "NCA":
        return NCA(random_state=seed).fit(X, y)
    if method == "HOPE":
        return HOPE(order=order, random_state=seed).fit(X, y)
    tries = [
        HOPE(order=order, random_state=TRIES[order] * seed + k, **SMALL[order]).fit(X, y)
        for k in range(TRIES[order])
    ]
    return min(tries, key=lambda model: model.validation_error_)


def measure(case: str, method: str, seed: int) -> dict[str, Any]:
    """A record: the error on test rows, and the rank of each planted term among all terms."""
    terms = CASES[case]
    order = max(map(len, terms))
    X, y, X_test, y_test = planted(terms, seed)
    start = time.perf_counter()
    model = fit(method, order, seed, X, y)
    record: dict[str, Any] = {
        "case": case,
        "method": method,
        "seed": seed,
        "seconds": round(time.perf_counter() - start, 1),
        "error": float((model.predict(X_test) != y_test).mean()),
    }
    if hasattr(model, "interactions"):
        found = model.interactions(top=100)
        record["ranks"] = [
            found.terms.index(term) + 1 if term in found.terms else None for term in terms
        ]
    return record


def run(*wanted: str) -> None:
    """Run what has no record yet, or only the named methods and cases."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    done = {(one["case"], one["method"], one["seed"]) for one in records()}
    jobs = itertools.product(METHODS, CASES, SEEDS)
    for method, case, seed in jobs:
        if (case, method, seed) in done or not {method, case} >= set(wanted):
            continue
        record = measure(case, method, seed)
        with RESULTS.open("a") as file:
            print(json.dumps(record), file=file)


def records() -> list[dict[str, Any]]:
    """All records."""
    return [json.loads(line) for line in RESULTS.open()] if RESULTS.exists() else []


def table() -> None:
    """Print one line for each case and method."""
    print("| labels: the sign of | method | error, % | planted first | seeds | seconds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for case, terms in CASES.items():
        for method in METHODS:
            runs = [one for one in records() if (one["case"], one["method"]) == (case, method)]
            if not runs:
                continue
            errors = 100 * np.array([one["error"] for one in runs])
            first = "–"
            if "ranks" in runs[0]:
                ranks = [[rank or 10**6 for rank in one["ranks"]] for one in runs]
                first = f"{sum(max(one) <= len(terms) for one in ranks)} of {len(runs)}"
            seconds = np.mean([one["seconds"] for one in runs])
            print(
                f"| {case} | {method} | {errors.mean():.1f} ± {errors.std():.1f} | {first} "
                f"| {len(runs)} | {seconds:.0f} |"
            )


if __name__ == "__main__":
    {"run": run, "table": table}[sys.argv[1]](*sys.argv[2:])
