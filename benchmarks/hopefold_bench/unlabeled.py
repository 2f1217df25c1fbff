"""Maps learned without labels and with a few labels, beside maps of other packages.

A map is evaluated with labels that were not used in the fit: by the 5-NN error in the map (among
the labeled training rows, if only some are labeled), and by its trustworthiness on new rows.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.manifold import trustworthiness
from sklearn.neighbors import KNeighborsClassifier

from hopefold.baselines import ParametricTSNE
from hopefold.estimators.hope import HOPE
from hopefold.estimators.shope import SHOPE
from hopefold_bench import external_methods
from hopefold_bench.markdown import NOT_RUN, markdown
from hopefold_bench.measure import machine, versions
from hopefold_bench.plans import matches
from hopefold_bench.records import append, read_lines
from hopefold_bench.run import Report
from hopefold_bench.speed import all_on_one_thread
from hopefold_bench.splits import Splits, load_splits

if TYPE_CHECKING:
    from numpy import ndarray

SETS = ("mnist", "usps")

#: The number of known labels in partly labeled data, and the label of the other rows.
N_LABELS, MISSING = 1_000, -1

#: Epochs; on MNIST fewer than by default, so that a run takes minutes. With some labels, the fit
#: also compares shares of structure on held-out rows and then refits, so it has fewer epochs.
EPOCHS: dict[str, Any] = {"mnist": 30, "usps": "auto"}
FEWER_EPOCHS: dict[str, Any] = {"mnist": 20, "usps": "auto"}

#: Neighbors for trustworthiness, and the number of new rows on which it is measured.
NEIGHBORS, MAX_NEW = 12, 10_000


@dataclass(frozen=True)
class Row:
    """A map of a table."""

    name: str
    #: A function of the data's name that returns an estimator.
    make: Callable[[str], Any]
    #: The labels given to `fit`: "none"; "all", to choose the number of epochs; "some"; or only the
    #: rows that have a label ("labeled rows").
    labels: str
    #: The package that it needs.
    package: str | None = None


ROWS = (
    Row("S-HOPE", lambda data: SHOPE(max_epochs=EPOCHS[data], random_state=0), "none"),
    Row(
        "S-HOPE, 1 layer",
        lambda data: SHOPE(n_units=600, max_epochs=EPOCHS[data], random_state=0),
        "none",
    ),
    Row("HOPE", lambda data: HOPE(max_epochs=EPOCHS[data], random_state=0), "none"),
    Row("parametric t-SNE", lambda _: ParametricTSNE(random_state=0), "all"),
    Row("UMAP", lambda _: external_methods.UMAP(), "none", "umap"),
    Row("openTSNE", lambda _: external_methods.OpenTSNE(), "none", "openTSNE"),
    Row(
        "S-HOPE, some labels",
        lambda data: SHOPE(missing_label=MISSING, max_epochs=FEWER_EPOCHS[data], random_state=0),
        "some",
    ),
    Row("S-HOPE, labeled rows alone", lambda _: SHOPE(random_state=0), "labeled rows"),
    Row("UMAP, some labels", lambda _: external_methods.SupervisedUMAP(), "some", "umap"),
)


def unlabeled_file(folder: Path) -> Path:
    """The file of the records."""
    return folder / "unlabeled.jsonl"


def measure(
    folder: Path,
    *,
    sets: Sequence[str] = SETS,
    only: Sequence[str] = (),
    final: bool = False,
    again: bool = False,
    report: Report = print,
) -> None:
    """Measure the maps without a record on one thread, and append one line for each."""
    part = "test" if final else "validation"
    measured = {
        (line["data"], line["map"], line["part"]) for line in read_lines(unlabeled_file(folder))
    }
    names = {row.name for row in ROWS}
    for data in sets:
        for row in ROWS:
            wanted = not only or any(matches(text, row.name, names) for text in only)
            if not wanted or ((data, row.name, part) in measured and not again):
                continue
            if row.package and find_spec(row.package) is None:
                report(f"{data}, {row.name}: skipped, since {row.package} is not installed")
                continue
            with all_on_one_thread():
                found = _measured(row, data, load_splits(data, 0, final=final))
            line = {
                "measured": datetime.now(UTC).isoformat(timespec="seconds"),
                "data": data,
                "map": row.name,
                "part": part,
                **found,
                "versions": versions(),
                "machine": machine(),
            }
            append(unlabeled_file(folder), json.dumps(line, sort_keys=True))
            report(f"{data}, {row.name}: {found}")


def _measured(row: Row, data: str, splits: Splits) -> dict[str, Any]:
    X, X_new = (rows.astype(np.float32) for rows in (splits.X, splits.X_new))
    known, partly = some_labels(splits.y)
    start = time.perf_counter()
    if row.labels == "labeled rows":
        model = row.make(data).fit(X[known], splits.y[known])
    else:
        labels = {"none": None, "all": splits.y, "some": partly}[row.labels]
        model = row.make(data).fit(X, labels)
    seconds = time.perf_counter() - start
    references = known if row.labels in ("some", "labeled rows") else slice(None)
    points, new = model.transform(X), model.transform(X_new)
    knn = KNeighborsClassifier(5).fit(points[references], splits.y[references])
    return {
        "error": 1 - knn.score(new, splits.y_new),
        "trustworthiness": float(
            trustworthiness(X_new[:MAX_NEW], new[:MAX_NEW], n_neighbors=NEIGHBORS)
        ),
        "seconds": seconds,
        "structure": getattr(model, "structure_", None),
        "settings": {name: repr(value) for name, value in model.get_params().items()},
    }


def some_labels(y: ndarray) -> tuple[ndarray, ndarray]:
    """The rows with a known label, equally many per class, and labels with the others missing."""
    order = np.random.RandomState(0).permutation(len(y))
    classes = np.unique(y)
    each = N_LABELS // len(classes)
    known = np.sort(np.concatenate([order[y[order] == label][:each] for label in classes]))
    partly = np.full(len(y), MISSING)
    partly[known] = y[known]
    return known, partly


def unlabeled_table(folder: Path) -> str:
    """The newest measurement of each map on the test part."""
    lines = {
        (line["data"], line["map"]): line
        for line in read_lines(unlabeled_file(folder))
        if line["part"] == "test"
    }
    if not lines:
        return f"**Without labels**\n\n{NOT_RUN}"
    headings = ["", *(f"{data}: {what}" for data in SETS for what in WHAT)]
    rows = [
        [row.name, *(cell for data in SETS for cell in _cells(lines.get((data, row.name))))]
        for row in ROWS
    ]
    return markdown(headings, rows)


WHAT = ("5-NN error, %", "trustworthiness", "seconds")


def _cells(line: dict[str, Any] | None) -> list[str]:
    if line is None:
        return [NOT_RUN, "", ""]
    return [
        f"{100 * line['error']:.2f}",
        f"{line['trustworthiness']:.3f}",
        f"{line['seconds']:,.0f}",
    ]
