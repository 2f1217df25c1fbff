"""The front: the error on new rows against the CPU time of a fit, for plans and other methods.

One process per set and split measures all methods in turn on one thread, so that ratios of times
are of one run. Each measurement is one line of ``front.jsonl``; those that exist are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.evaluation import calibration
from hopefold_bench.folders import BENCHMARKS
from hopefold_bench.records import append, read_lines
from hopefold_bench.run import ONE_THREAD, Report

if TYPE_CHECKING:
    from hopefold_bench.splits import Splits

#: Rows with which other packages are warmed up: numba compiles when it is first called.
WARM_UP = 200

#: Methods of other packages, by the name in the records.
OTHERS = ("UMAP", "LDA", "logistic regression", "LightGBM", "5-NN")

#: The most rows that UMAP is given: half a million take it most of an hour.
MOST_FOR_UMAP = 100_000

#: The defaults, and the efforts beside them.
DEFAULT = "SHOPE"
OURS = (DEFAULT, 'SHOPE {"effort": "fast"}', 'SHOPE {"effort": "best"}', 'SHOPE {"n_units": 200}')


def front_file(folder: Path = BENCHMARKS) -> Path:
    """The file of the records."""
    return folder / "front.jsonl"


def make_method(name: str, seed: int) -> Any:
    """An estimator: one of `OTHERS`, or ``SHOPE`` or ``HOPE``, a space, and settings as JSON."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    import hopefold
    from hopefold_bench.external_methods import SupervisedUMAP

    makers: dict[str, Callable[[], Any]] = {
        "UMAP": lambda: SupervisedUMAP(seed),
        "LDA": LinearDiscriminantAnalysis,
        "logistic regression": lambda: make_pipeline(
            MaxAbsScaler(), LogisticRegression(max_iter=200)
        ),
        "LightGBM": lambda: import_module("lightgbm").LGBMClassifier(
            n_jobs=1, random_state=seed, verbose=-1
        ),
        "5-NN": lambda: make_pipeline(_Scaled(), KNeighborsClassifier(5)),
    }
    if name in makers:
        return makers[name]()
    kind, _, settings = name.partition(" ")
    return getattr(hopefold, kind)(random_state=seed, **json.loads(settings or "{}"))


class _Scaled:
    """Rows in the scale of our maps."""

    def fit(self, X: Any, y: Any = None) -> _Scaled:
        from hopefold.data.scaling import learn_scale

        self._scale = learn_scale(X, "auto")
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        return self.fit(X).transform(X)

    def transform(self, X: Any) -> Any:
        return self._scale.apply(X)


def measure(data: str, split: int, name: str, *, final: bool, splits: Splits) -> dict[str, Any]:
    """Fit a method once, and count its mistakes on new rows."""
    from sklearn.neighbors import KNeighborsClassifier

    model = make_method(name, split)
    start = time.process_time()
    model.fit(splits.X, splits.y)
    fitted = time.process_time()
    line: dict[str, Any] = {
        "data": data,
        "split": split,
        "method": name,
        "part": "test" if final else "validation",
    }
    shares = None
    if name == "UMAP":
        voting = KNeighborsClassifier(5).fit(model.embedding_, splits.y)
        predicted = voting.predict(model.transform(splits.X_new))
    else:
        predicted = model.predict(splits.X_new)
        if hasattr(model, "predict_proba"):
            shares = model.predict_proba(splits.X_new)
    line |= {
        "error": float(np.mean(predicted != splits.y_new)),
        "n_new": len(splits.y_new),
        "n_train": len(splits.y),
        "n_columns": int(splits.X.shape[1]),
        "cpu_seconds": round(fitted - start, 3),
        "new_seconds": round(time.process_time() - fitted, 3),
    }
    if shares is not None:
        found = calibration(shares, splits.y_new, model.classes_)
        line["calibration_error"] = found.error
    for attribute in ("validation_error_", "n_held_out_", "train_error_", "n_iter_"):
        value = getattr(model, attribute, None)
        if isinstance(value, int | float):
            line[attribute.rstrip("_")] = value
    return line


def run_one(data: str, split: int, methods: Sequence[str], *, final: bool) -> None:
    """Measure these methods on a set in this process, and print a line for each."""
    import torch

    from hopefold_bench.front_sets import FRONT_SETS

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    splits = FRONT_SETS[data].split(data, split, final=final)
    if len(splits.y) > MOST_FOR_UMAP:
        methods = [name for name in methods if name != "UMAP"]
    if "UMAP" in methods:
        random = np.random.RandomState(0)
        warm = make_method("UMAP", 0).fit(random.rand(WARM_UP, 5), random.randint(2, size=WARM_UP))
        warm.transform(random.rand(10, 5))
    for name in methods:
        try:
            line = measure(data, split, name, final=final, splits=splits)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            continue
        print(json.dumps(line), flush=True)


def run(
    data: Sequence[str],
    splits: Sequence[int],
    methods: Sequence[str],
    *,
    final: bool = False,
    folder: Path = BENCHMARKS,
    workers: int = 2,
    report: Report = print,
) -> None:
    """Run what has no record yet, one process per set and split."""
    part = "test" if final else "validation"
    done = {
        (line["data"], line["split"], line["method"], line["part"])
        for line in read_lines(front_file(folder))
    }
    with ThreadPoolExecutor(workers) as pool:
        waiting = {}
        for split in splits:
            for name in data:
                missing = [m for m in methods if (name, split, m, part) not in done]
                if missing:
                    waiting[pool.submit(_in_process, name, split, missing, final)] = name, split
        for finished in as_completed(waiting):
            lines, errors = finished.result()
            for line in lines:
                append(front_file(folder), json.dumps(line, sort_keys=True))
                report(
                    f"{line['data']}, split {line['split']}, {line['method']}: "
                    f"{100 * line['error']:.2f} %, {line['cpu_seconds']:.2f} s"
                )
            for error in errors:
                report(f"{waiting[finished]}: {error}")


def _in_process(
    name: str, split: int, methods: Sequence[str], final: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    arguments = [name, str(split), json.dumps(list(methods)), str(int(final))]
    command = [sys.executable, "-m", "hopefold_bench.front", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | ONE_THREAD, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return lines, [line for line in done.stderr.splitlines() if line.strip()][-3:]


if __name__ == "__main__":
    run_one(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), final=sys.argv[4] == "1")
