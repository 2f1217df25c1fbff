"""The cost of predicting a row: k-NN on raw rows against maps, with all points and 20 exemplars.

Operations are counted; times are measured on one thread, in turns. The weights do not matter for
either, so the maps are fitted for one epoch. The predicted rows are those of the validation part;
the references are the whole training part, which contains them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import threadpoolctl  # type: ignore[import-untyped]
from sklearn.neighbors import KNeighborsClassifier

from hopefold.core.neighbors import decide, vote
from hopefold.core.threads import one_thread
from hopefold.estimators.high_order_embedding import HighOrderEmbedding
from hopefold.estimators.hope import HOPE
from hopefold.estimators.shope import SHOPE
from hopefold.evaluation import Cost, operations, seconds_in_turns
from hopefold_bench.install_hints import skipped
from hopefold_bench.markdown import NOT_RUN, markdown
from hopefold_bench.measure import N_NEIGHBORS, machine, versions
from hopefold_bench.methods import PAPER_SIZES
from hopefold_bench.models import sizes_of_map
from hopefold_bench.records import append, read_lines
from hopefold_bench.run import Report
from hopefold_bench.splits import load_splits

if TYPE_CHECKING:
    from numpy import ndarray

#: Rows per prediction, and repetitions.
N_NEW, REPEATS = 1_000, 7

KINDS: dict[str, Any] = {"HOPE": HOPE, "S-HOPE": SHOPE}
SETS = ("mnist", "usps")

#: The baseline.
BRUTE_FORCE = "raw pixels, scikit-learn"


@dataclass(frozen=True)
class Predictor:
    """A way to predict the new rows."""

    method: str
    n_references: int
    operations: Cost
    end_to_end: Callable[[], object]
    #: Without the embedding; None if there is none.
    search: Callable[[], object] | None = None
    settings: dict[str, Any] | None = None
    #: A name for the sizes: default, paper or both.
    sizes: str = ""


def speed_file(folder: Path) -> Path:
    """The file of the records."""
    return folder / "speed.jsonl"


def measure_speed(
    data: str, folder: Path, *, n_new: int = N_NEW, repeats: int = REPEATS, report: Report = print
) -> None:
    """Measure all ways on a data set, and append one line for each."""
    splits = load_splits(data, 0, final=False)
    X = np.concatenate([splits.X, splits.X_new]).astype(np.float32)
    y = np.concatenate([splits.y, splits.y_new])
    X_new = splits.X_new[:n_new].astype(np.float32)
    with all_on_one_thread():
        predictors = [*raw_predictors(X, y, X_new, report), *map_predictors(data, X, y, X_new)]
        works = {(number, "end_to_end"): one.end_to_end for number, one in enumerate(predictors)}
        for number, one in enumerate(predictors):
            if one.search is not None:
                works[number, "search_only"] = one.search
        seconds = seconds_in_turns(works, repeats=repeats)
        shared = {
            "measured": datetime.now(UTC).isoformat(timespec="seconds"),
            "data": data,
            "n_train": len(y),
            "n_features": X.shape[1],
            "n_new": len(X_new),
            "repeats": repeats,
            "versions": versions(),
            "machine": machine(),
        }
    for number, one in enumerate(predictors):
        end_to_end = seconds[number, "end_to_end"]
        search_only = seconds.get((number, "search_only"), end_to_end)
        line = {
            **shared,
            "method": one.method,
            "references": one.n_references,
            "sizes": one.sizes,
            "settings": one.settings,
            "multiply_adds": one.operations._asdict(),
            "seconds": {"search_only": _summary(search_only), "end_to_end": _summary(end_to_end)},
        }
        append(speed_file(folder), json.dumps(line, sort_keys=True))
        each = f"{1e6 * min(end_to_end) / len(X_new):,.1f} µs per row"
        report(f"{data}, {_name(line)}, {one.n_references:,} references: {each}")


def raw_predictors(
    X: ndarray, y: ndarray, X_new: ndarray, report: Report = print
) -> Iterator[Predictor]:
    """Brute force among all raw rows, by scikit-learn and, if installed, by faiss."""
    cost = Cost(X.size, X.size)
    neighbors = KNeighborsClassifier(N_NEIGHBORS, algorithm="brute").fit(X, y)
    yield Predictor(BRUTE_FORCE, len(X), cost, lambda: neighbors.predict(X_new))
    if find_spec("faiss") is None:
        report(skipped("raw pixels, faiss", "faiss"))
        return
    faiss = import_module("faiss")
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(X.shape[1])
    index.add(X)
    n_classes = int(y.max()) + 1

    def predict() -> ndarray:
        _, nearest = index.search(X_new, N_NEIGHBORS)
        return vote(y[nearest], n_classes).argmax(axis=1)

    yield Predictor("raw pixels, faiss", len(X), cost, predict)


def map_predictors(data: str, X: ndarray, y: ndarray, X_new: ndarray) -> Iterator[Predictor]:
    """HOPE and S-HOPE in both sizes, each with all training points and with exemplars."""
    for method, kind in KINDS.items():
        for sizes, settings in sizes_of(kind, data).items():
            model = kind(max_epochs=1, validation_fraction=0, random_state=0, **settings).fit(X, y)
            codes = np.searchsorted(model.classes_, y)
            joint = np.searchsorted(model.classes_, model.exemplar_labels_)
            for points, labels, k in (
                (model.transform(X), codes, N_NEIGHBORS),
                (model.exemplar_embedding_, joint, None),
            ):
                search, end_to_end = _ways(model, X_new, points, labels, k)
                cost = operations(model, len(points))
                yield Predictor(method, len(points), cost, end_to_end, search, settings, sizes)


def _ways(
    model: Any, X_new: ndarray, references: ndarray, labels: ndarray, n_neighbors: int | None
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Two functions: classify given points, and embed and classify rows, as `predict` does."""
    embedded = model.transform(X_new)

    def predict(points: ndarray) -> ndarray:
        return decide(points, references, labels, model.class_weight_, n_neighbors)

    return lambda: predict(embedded), lambda: predict(model.transform(X_new))


def sizes_of(kind: type[HighOrderEmbedding], data: str) -> dict[str, dict[str, int]]:
    """The default sizes and the paper's, by name; one entry if they are the same."""
    paper = PAPER_SIZES[kind].get(data, PAPER_SIZES[kind]["mnist"])
    default = sizes_of_map(kind())
    if default == paper:
        return {"default and paper": default}
    return {"default": default, "paper": paper}


@contextmanager
def all_on_one_thread() -> Iterator[None]:
    """Run torch and all other libraries on one thread."""
    with one_thread(), threadpoolctl.threadpool_limits(1):
        yield


def speed_tables(folder: Path) -> str:
    """The cost of predicting a row, from the newest measurement of each data set."""
    lines = list(read_lines(speed_file(folder)))
    sets = list(dict.fromkeys(line["data"] for line in lines))
    if not sets:
        return f"**Speed-ups**\n\n{NOT_RUN}"
    notes = (
        "Ratios are relative to scikit-learn's brute force among all training rows: for the search "
        "alone, and end to end, which includes the embedding of the row. Multiply-adds are those "
        "of a comparison with every reference. For times, all points of a map are searched with a "
        "k-d tree, which is built anew each time. The shortest of several rounds, one thread."
    )
    newest = {line["data"]: line["measured"] for line in lines}
    tables = [
        _table([line for line in lines if (line["data"], line["measured"]) == (data, newest[data])])
        for data in sets
    ]
    return "\n\n".join([*tables, notes])


def _table(lines: Sequence[dict[str, Any]]) -> str:
    base, first = next(line for line in lines if line["method"] == BRUTE_FORCE), lines[0]
    rows = []
    for line in lines:
        counted = {way: base["multiply_adds"][way] / n for way, n in line["multiply_adds"].items()}
        timed = {
            way: base["seconds"][way]["min"] / seconds["min"]
            for way, seconds in line["seconds"].items()
        }
        rows.append(
            [
                _name(line),
                f"{line['references']:,}",
                f"{line['multiply_adds']['end_to_end']:,}",
                *_ratios(counted),
                f"{1e6 * line['seconds']['end_to_end']['min'] / line['n_new']:,.1f}",
                *_ratios(timed),
            ]
        )
    headings = ["prediction by", "references", "multiply-adds", "fewer: search", "end to end"]
    headings += ["µs", "faster: search", "end to end"]
    shape = f"{first['n_train']:,} rows of {first['n_features']:,}"
    title = f"**{first['data'].upper()}, {shape} features: {first['n_new']:,} rows per prediction**"
    return f"{title}\n\n{markdown(headings, rows)}"


def _ratios(ratios: dict[str, float]) -> list[str]:
    both = ratios["search_only"], ratios["end_to_end"]
    return [f"{ratio:,.0f} ×" if ratio >= 10 else f"{ratio:.1f} ×" for ratio in both]


def _name(line: dict[str, Any]) -> str:
    return f"{line['method']}, {line['sizes']} sizes" if line["sizes"] else str(line["method"])


def _summary(seconds: Sequence[float]) -> dict[str, float]:
    return {"min": float(np.min(seconds)), "median": float(np.median(seconds))}
