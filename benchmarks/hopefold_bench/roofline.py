"""The roofline benchmark: how near fit, transform and predict come to the hardware's limit.

Each row of the table times an operation and its baseline in turns, on the same threads, and gives
the ratio of their shortest times. The baseline is what the hardware needs at least, such as the
bare matrix products, or what people use today. Rows with a strict target are repeated at the start,
in the middle and at the end of a run, because other load on the machine may slow down one of the
two more than the other. A row whose package is not installed is reported and skipped.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis

from hopefold.errors import InvalidParameter
from hopefold.estimators.shope import SHOPE
from hopefold.evaluation import knn_error
from hopefold_bench.large_table import seconds_per_row
from hopefold_bench.markdown import NOT_RUN, markdown
from hopefold_bench.measure import N_NEIGHBORS, machine, versions
from hopefold_bench.one_pass import (
    BATCH,
    as_float32,
    matrix_products,
    one_pass,
    search_alone,
    timed_model,
)
from hopefold_bench.records import append, read_lines
from hopefold_bench.run import Report
from hopefold_bench.splits import Splits, load_splits
from hopefold_bench.timing import Operation, remote_read_ratio, shortest

if TYPE_CHECKING:
    from numpy import ndarray

#: Rows per batch of the pairwise loss.
PAIRS = 1_000

#: New rows to predict, and bytes of the small model.
N_NEW, SMALL = 10_000, 65_536

#: Rows of the large table on disk.
MANY = 10_000_000

#: Numbers of epochs after which the map is compared with supervised UMAP's.
EPOCHS = (2, 5, 10, 20, 50)

#: Above this ratio of read times the cores share no cache; the mark of such a measurement.
REMOTE, MARK = 1.8, "°"

#: How the model is fitted whose transform and predict are timed.
QUICK: dict[str, Any] = {"max_epochs": 1, "validation_fraction": 0}

#: How often an operation is timed, and over how many visits this is spread.
REPEATS, VISITS = 40, 3


@dataclass(frozen=True)
class Target:
    """A row of the table: the operation, its baseline, and the ratio to reach."""

    operation: str
    baseline: str
    ratio: float
    #: The ratio says how many times faster the operation is, instead of how many times slower.
    faster: bool = False

    def is_met(self, ratio: float) -> bool:
        """Does a measured ratio reach the target?"""
        return ratio >= self.ratio if self.faster else ratio <= self.ratio

    def format(self, ratio: float) -> str:
        """A ratio as text."""
        return f"{ratio:,.2f} ×" if ratio < 10 else f"{ratio:,.0f} ×"


PRODUCTS = "its matrix products"
KNN = "5-NN by brute force, scikit-learn"
FAISS = "5-NN by brute force, faiss"

TARGETS = {
    "epoch": Target(
        "one epoch, exemplars, batches of 500, no dropout or adversarial perturbation",
        PRODUCTS,
        1.25,
    ),
    "dropout": Target("the same with the default feature dropout", PRODUCTS, 1.5),
    "adversarial": Target(
        "the same with adversarial perturbation as well", "the products of both passes", 1.5
    ),
    "pairs": Target("one epoch, pairs, batches of 1,000", PRODUCTS, 1.6),
    "transform": Target("transform, all rows", "the forward products", 1.2),
    "one row": Target("transform, one row", "transform of scikit-learn's NCA", 1.5),
    "predict": Target("predict, 10,000 rows", KNN, 80, faster=True),
    "predict, faiss": Target("predict, 10,000 rows", FAISS, 80, faster=True),
    "small": Target("predict, 10,000 rows, a model of 64 kB", KNN, 1_000, faster=True),
    "search": Target("the search alone, 20 exemplars", KNN, 5_000, faster=True),
    "umap": Target("fit until the error is below supervised UMAP's", "its fit", 3, faster=True),
    "umap, usps": Target("the same on USPS", "its fit", 3, faster=True),
    "rows": Target("time per row of an epoch, 10⁷ rows on disk", "10⁵ rows in memory", 1.1),
}


#: The settings of each timed epoch, and the options of its matrix products.
TIMED_EPOCHS: dict[str, tuple[dict[str, Any], dict[str, bool]]] = {
    "epoch": ({"adversarial": 0, "input_dropout": 0}, {}),
    "dropout": ({"adversarial": 0}, {}),
    "adversarial": ({}, {"adversarial": True}),
    "pairs": ({"adversarial": 0, "input_dropout": 0, "exemplars": None, "batch_size": PAIRS}, {}),
}


#: The rows that are measured at the start, in the middle and at the end of a run.
REPEATED = (*TIMED_EPOCHS, "transform", "one row")


def roofline_file(folder: Path) -> Path:
    """The file of the records."""
    return folder / "roofline.jsonl"


def measure(
    folder: Path,
    *,
    data: str = "mnist",
    many: int = MANY,
    repeats: int = REPEATS,
    only: Collection[str] = (),
    report: Report = print,
) -> None:
    """Measure all rows of the table or some, and append one line for each."""
    if unknown := set(only) - TARGETS.keys():
        known = ", ".join(TARGETS)
        raise InvalidParameter(f"{min(unknown)!r} is not a known row: choose from {known}.")
    splits = load_splits(data, 0, final=False)
    splits = replace(splits, X=as_float32(splits.X), X_new=as_float32(splits.X_new))
    measured = datetime.now(UTC).isoformat(timespec="seconds")
    roofline = Roofline(data, splits, many, repeats, report)
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    remote: dict[str, list[float]] = defaultdict(list)
    visits = schedule(only or TARGETS)
    for place, name in enumerate(visits):
        before = remote_read_ratio()
        seconds = roofline.seconds(name)
        if seconds is None:
            continue
        found[name].append(seconds)
        remote[name] += before, remote_read_ratio()
        if name in visits[place + 1 :]:
            continue
        ours, baseline = (min(times) for times in zip(*found[name], strict=True))
        target = TARGETS[name]
        ratio = baseline / ours if target.faster else ours / baseline
        line = {
            "measured": measured,
            "name": name,
            "data": data,
            "ratio": ratio,
            "seconds": ours,
            "seconds_against": baseline,
            "far_reading": min(remote[name]),
            "versions": versions(),
            "machine": machine(),
        }
        append(roofline_file(folder), json.dumps(line, sort_keys=True))
        result = f"{target.format(ratio)} relative to {target.baseline}"
        report(f"{target.operation}: {result}; target {target.format(target.ratio)}")


def schedule(names: Collection[str]) -> list[str]:
    """The rows in the order of measurement; those in `REPEATED` appear several times."""
    repeated = [name for name in names if name in REPEATED]
    others = [name for name in names if name not in REPEATED]
    cuts = [round(visit * len(others) / (VISITS - 1)) for visit in range(VISITS)]
    between = [others[start:stop] for start, stop in pairwise(cuts)]
    return [*repeated, *(name for group in between for name in (*group, *repeated))]


def roofline_table(folder: Path) -> str:
    """The last three measurements of each row, and how many of them meet the target."""
    lines = list(read_lines(roofline_file(folder)))
    if not lines:
        return f"**Speed**\n\n{NOT_RUN}"
    rows = []
    for name, target in TARGETS.items():
        last = [line for line in lines if line["name"] == name][-3:]
        n_met = sum(target.is_met(line["ratio"]) for line in last)
        met = f"{n_met} of {len(last)}" if last else "–"
        sign = "≥" if target.faster else "≤"
        marks = [MARK if line.get("far_reading", 0) > REMOTE else "" for line in last]
        ratios = [
            target.format(line["ratio"]) + mark for line, mark in zip(last, marks, strict=True)
        ]
        shown = ", ".join(ratios) or NOT_RUN
        goal = f"{sign} {target.format(target.ratio)}"
        rows.append([target.operation, target.baseline, goal, shown, met])
    threads = lines[-1]["machine"]["threads"]
    title = f"**{lines[-1]['data'].upper()}, {threads} threads: the last runs, the newest last**"
    headings = ["operation", "baseline", "target", "measured", "target met"]
    note = (
        f"{MARK} The processor cores shared no cache before and after this measurement: reading "
        f"what another core had written took more than {REMOTE:g} times as long as reading what "
        "the same core had written."
    )
    return f"{title}\n\n{markdown(headings, rows)}\n\n{note}"


@dataclass(frozen=True)
class Roofline:
    """The data of a run, and the models that several rows use."""

    data: str
    splits: Splits
    many: int
    repeats: int
    report: Report

    def seconds(self, name: str) -> tuple[float, float] | None:
        """The times of a row's operation and baseline, or None if a package is not installed."""
        if name in TIMED_EPOCHS:
            settings, options = TIMED_EPOCHS[name]
            X, y = self.splits.X, self.splits.y
            epoch = one_pass(timed_model(**settings), X, y)
            batch = settings.get("batch_size", BATCH)
            return self._shortest(epoch, matrix_products(X, batch, **options))
        if name.startswith("umap"):
            return self._fit_and_umap(name)
        if name == "rows":
            return seconds_per_row(self.many)
        if name == "transform":
            model, X = self._model, self.splits.X
            forward = matrix_products(X, BATCH, backward=False)
            return self._shortest(lambda: model.transform(X), forward)
        if name == "one row":
            return self._one_row()
        return self._predict_and_knn(name)

    def _one_row(self) -> tuple[float, float]:
        X, y, model = self.splits.X, self.splits.y, self._model
        nca = NeighborhoodComponentsAnalysis(2, max_iter=1, random_state=0).fit(X[:500], y[:500])
        row = X[:1]
        return self._shortest(
            lambda: [model.transform(row) for _ in range(100)],
            lambda: [nca.transform(row) for _ in range(100)],
        )

    def _predict_and_knn(self, name: str) -> tuple[float, float] | None:
        """Predicting new rows, and k-NN by brute force among the training rows."""
        X_new, model = self._new_rows, self._model
        if name == "predict, faiss":
            if find_spec("faiss") is None:
                self.report("5-NN by faiss: skipped, since faiss-cpu is not installed")
                return None
            index = import_module("faiss").IndexFlatL2(X_new.shape[1])
            index.add(self.splits.X)
            flat = shortest(lambda: index.search(X_new, N_NEIGHBORS), repeats=2)[0]
            return self._shortest(lambda: model.predict(X_new))[0], flat
        brute_force = self._brute_force
        if name == "search":
            return self._shortest(search_alone(model, X_new))[0], brute_force
        if name == "small":
            model = SHOPE(max_bytes=SMALL, random_state=0, **QUICK)
            model.fit(self.splits.X, self.splits.y)
        return self._shortest(lambda: model.predict(X_new))[0], brute_force

    def _fit_and_umap(self, name: str) -> tuple[float, float] | None:
        if find_spec("umap") is None:
            self.report("supervised UMAP: skipped, since umap-learn is not installed")
            return None
        if name == "umap":
            return seconds_to_beat_umap(self.splits, self.report)
        if self.data != "mnist":
            self.report("supervised UMAP on USPS: skipped, since it is measured with MNIST")
            return None
        return seconds_to_beat_umap(load_splits("usps", 0, final=False), self.report)

    @cached_property
    def _model(self) -> SHOPE:
        return timed_model(**QUICK).fit(self.splits.X, self.splits.y)

    @cached_property
    def _new_rows(self) -> ndarray:
        X_new = self.splits.X_new[:N_NEW]
        return X_new if len(X_new) == N_NEW else np.resize(X_new, (N_NEW, X_new.shape[1]))

    @cached_property
    def _brute_force(self) -> float:
        neighbors = KNeighborsClassifier(N_NEIGHBORS, algorithm="brute")
        neighbors.fit(self.splits.X, self.splits.y)
        return shortest(lambda: neighbors.predict(self._new_rows), repeats=2)[0]

    def _shortest(
        self, operation: Operation, baseline: Operation | None = None
    ) -> tuple[float, float]:
        visits = VISITS if baseline else 1
        return shortest(operation, baseline, repeats=-(-self.repeats // visits))


def seconds_to_beat_umap(splits: Splits, report: Report) -> tuple[float, float]:
    """Seconds until the error on validation rows is below supervised UMAP's, and UMAP's own."""
    from hopefold_bench.external_methods import SupervisedUMAP

    def fit(model: Any) -> tuple[float, float]:
        start = time.perf_counter()
        model.fit(splits.X, splits.y)
        seconds = time.perf_counter() - start
        points, new_points = model.transform(splits.X), model.transform(splits.X_new)
        return seconds, knn_error(points, splits.y, new_points, splits.y_new)

    umap_seconds, umap_error = fit(SupervisedUMAP(random_state=0))
    for epochs in EPOCHS:
        seconds, error = fit(SHOPE(max_epochs=epochs, validation_fraction=0, random_state=0))
        report(f"after {epochs} epochs {error:.2%}, supervised UMAP {umap_error:.2%}")
        if error < umap_error:
            return seconds, umap_seconds
    return float("inf"), umap_seconds
