"""The first bars: S-HOPE on digits and on MNIST, with its defaults.

    python benchmarks/foundation.py digits          a minute
    python benchmarks/foundation.py mnist           some minutes
    python benchmarks/foundation.py --table         Markdown from the runs so far

Each run appends one JSON line to benchmarks/foundation.jsonl; a run that is there is not run again.
MNIST's original files are looked for in $HOPEFOLD_DATA or ../shared/data, then downloaded.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

import numpy as np
import sklearn
import torch
from sklearn.model_selection import train_test_split

import hopefold
from hopefold import SHOPE
from hopefold.data.sets import load_set
from hopefold.evaluation import knn_error

HERE = Path(__file__).parent
RESULTS = HERE / "foundation.jsonl"
DATA = Path(os.environ.get("HOPEFOLD_DATA", HERE.parent.parent / "shared" / "data"))


def digits() -> tuple[np.ndarray, ...]:
    """70/30, stratified, seed 0, pixels to [0, 1]."""
    digits = load_set("digits")
    return tuple(
        train_test_split(digits.X / 16, digits.y, test_size=0.3, stratify=digits.y, random_state=0)
    )


def mnist() -> tuple[np.ndarray, ...]:
    """The official 60,000 / 10,000 split, raw pixels."""
    mnist = load_set("mnist", DATA)
    return mnist.X, mnist.X_test, mnist.y, mnist.y_test


SETS = {"digits": digits, "mnist": mnist}
SEEDS = {"digits": range(5), "mnist": range(3)}


def run(name: str, seed: int) -> dict:
    """One fit with the defaults, and its errors on the test part."""
    X, X_test, y, y_test = SETS[name]()
    start = time.perf_counter()
    model = SHOPE(random_state=seed, verbose=1).fit(X, y)
    seconds = time.perf_counter() - start
    return {
        "data": name,
        "seed": seed,
        "raw_5nn_error": knn_error(X, y, X_test, y_test),
        "map_5nn_error": knn_error(model.transform(X), y, model.transform(X_test), y_test),
        "exemplar_error": 1 - model.score(X_test, y_test),
        "validation_error": model.validation_error_,
        "exemplars": len(model.exemplars_),
        "epochs": model.n_iter_,
        "seconds": round(seconds, 1),
        "threads": torch.get_num_threads(),
        "versions": {
            "hopefold": hopefold.__version__,
            "torch": torch.__version__,
            "sklearn": sklearn.__version__,
            "python": platform.python_version(),
        },
    }


def runs() -> list[dict]:
    """All lines so far."""
    return [json.loads(line) for line in RESULTS.open()] if RESULTS.exists() else []


def table() -> str:
    """Means over the seeds, in percent."""
    lines = [
        "| test error, % | raw 5-NN | 2-D, 5-NN | 2-D, 20 exemplars | seeds |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in SETS:
        mine = [r for r in runs() if r["data"] == name]
        if mine:
            cells = []
            for key in ("raw_5nn_error", "map_5nn_error", "exemplar_error"):
                values = 100 * np.array([r[key] for r in mine])
                spread = f" ± {values.std(ddof=1):.2f}" if values.std() > 0 else ""
                cells.append(f"{values.mean():.2f}{spread}")
            lines.append(f"| {name} | {' | '.join(cells)} | {len(mine)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", choices=SETS)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.data:
        done = {(r["data"], r["seed"]) for r in runs()}
        for seed in SEEDS[arguments.data]:
            if (arguments.data, seed) not in done:
                result = run(arguments.data, seed)
                with RESULTS.open("a") as file:
                    file.write(json.dumps(result) + "\n")
                print(json.dumps(result))
    print(table())


if __name__ == "__main__":
    main()
