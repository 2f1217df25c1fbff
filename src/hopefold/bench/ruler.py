"""How near to the hardware's limit: what takes time, against what it would take at the least.

Each row of the table times two works in turns, on the same threads, and gives the ratio of their
shortest times. Rows of small ratios are visited several times in a run, since a processor that
others use has bad minutes, which one of two works may feel more than the other. What cannot be
measured for want of a package is told, and has no figure.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from torch import Tensor

from hopefold.bench.measure import N_NEIGHBORS, machine, versions
from hopefold.bench.parts import Parts, load_parts
from hopefold.bench.records import append, read_lines
from hopefold.bench.run import Tell
from hopefold.bench.tables import NOT_RUN, markdown
from hopefold.core.neighbors import decide
from hopefold.data import disk
from hopefold.data.rows import Rows
from hopefold.data.scaling import learn_scale
from hopefold.errors import InvalidParameter
from hopefold.estimators.hope import SHOPE
from hopefold.evaluation import knn_error, seconds_in_turns
from hopefold.fitting.learning import begin
from hopefold.training.distributed import ALL_MINE, Dealing
from hopefold.training.loop import minimise
from hopefold.training.optimizers import Known
from hopefold.training.progress import Progress

if TYPE_CHECKING:
    from numpy import ndarray

#: Factors and units of the map that is timed, rows of a batch, and of a batch of pairs.
SIZE, BATCH, PAIRS = 400, 500, 1_000

#: Rows that a map is asked to judge, and bytes of the small model.
N_NEW, SMALL = 10_000, 65_536

#: Rows of the small and of the large table, and the sizes of both.
FEW, MANY, WIDTH = 100_000, 10_000_000, 100

#: Passes after which the map is compared with supervised UMAP's.
PASSES = (2, 5, 10, 20, 50)

#: What a processor has written takes another longer to read than itself. Beyond so many times as
#: long, they share no cache; the mark of what was measured then.
FAR, MARK = 1.8, "°"

#: How the model is fitted whose transform and predict are timed.
QUICK: dict[str, Any] = {"max_epochs": 1, "validation_fraction": 0}

#: How often two works are done in turns, and in how many visits: the machine's moods last for
#: seconds, some for minutes.
REPEATS, VISITS = 40, 3

Work = Callable[[], object]


@dataclass(frozen=True)
class Bar:
    """A row of the table: what is timed, against what, and what the ratio must reach."""

    what: str
    against: str
    ratio: float
    #: The ratio is how many times faster, and not how many times slower.
    faster: bool = False

    def holds(self, ratio: float) -> bool:
        """Is a measured ratio good enough?"""
        return ratio >= self.ratio if self.faster else ratio <= self.ratio

    def tell(self, ratio: float) -> str:
        """A ratio in words."""
        return f"{ratio:,.2f} ×" if ratio < 10 else f"{ratio:,.0f} ×"


GEMMS = "the bare matrix products of it"
KNN = "5-NN by brute force, scikit-learn"

BARS = {
    "epoch": Bar("a pass, exemplars, batches of 500, nothing dropped or nudged", GEMMS, 1.25),
    "dropout": Bar("the same, features dropped as by default", GEMMS, 1.5),
    "nudge": Bar("the same, nudged besides", "the products of both ways", 1.5),
    "pairs": Bar("a pass, pairs, batches of 1,000", GEMMS, 1.6),
    "transform": Bar("transform of all rows", "the bare products forth", 1.2),
    "one row": Bar("transform of one row", "that of scikit-learn's NCA", 1.5),
    "predict": Bar("predict, 10,000 rows", KNN, 80, faster=True),
    "predict, faiss": Bar("predict, 10,000 rows", "5-NN by brute force, faiss", 80, faster=True),
    "small": Bar("predict, 10,000 rows, a model of 64 kB", KNN, 1_000, faster=True),
    "search": Bar("the search alone, 20 exemplars", KNN, 5_000, faster=True),
    "umap": Bar("fit until the error is below supervised UMAP's", "its fit", 3, faster=True),
    "umap, usps": Bar("the same on USPS", "its fit", 3, faster=True),
    "rows": Bar("a row of 10⁷ in a pass, from disk", "one of 10⁵, in memory", 1.1),
}


#: What is learned in the passes that are timed, and which products they are held against.
PASSES_OF: dict[str, tuple[dict[str, Any], dict[str, bool]]] = {
    "epoch": ({"adversarial": 0, "input_dropout": 0}, {}),
    "dropout": ({"adversarial": 0}, {}),
    "nudge": ({}, {"nudged": True}),
    "pairs": ({"adversarial": 0, "input_dropout": 0, "exemplars": None, "batch_size": PAIRS}, {}),
}


#: What is visited several times: at the beginning, in the middle and at the end of a run.
VISITED = (*PASSES_OF, "transform", "one row")


def ruler_file(folder: Path) -> Path:
    """Where the measurements are."""
    return folder / "ruler.jsonl"


def measure(
    folder: Path,
    *,
    data: str = "mnist",
    many: int = MANY,
    repeats: int = REPEATS,
    only: Collection[str] = (),
    tell: Tell = print,
) -> None:
    """Append one line for each row of the table, or only for some."""
    if strange := set(only) - BARS.keys():
        raise InvalidParameter(f"{min(strange)!r} is no row: choose of {', '.join(BARS)}.")
    parts = load_parts(data, 0, final=False)
    parts = replace(parts, X=_float32(parts.X), X_new=_float32(parts.X_new))
    measured = datetime.now(UTC).isoformat(timespec="seconds")
    bench = Bench(data, parts, many, repeats, tell)
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    far: dict[str, list[float]] = defaultdict(list)
    visits = itinerary(only or BARS)
    for place, name in enumerate(visits):
        before = far_reading()
        seconds = bench.seconds(name)
        if seconds is None:
            continue
        found[name].append(seconds)
        far[name] += before, far_reading()
        if name in visits[place + 1 :]:
            continue
        mine, theirs = (min(times) for times in zip(*found[name], strict=True))
        bar = BARS[name]
        ratio = theirs / mine if bar.faster else mine / theirs
        line = {
            "measured": measured,
            "name": name,
            "data": data,
            "ratio": ratio,
            "seconds": mine,
            "seconds_against": theirs,
            "far_reading": min(far[name]),
            "versions": versions(),
            "machine": machine(),
        }
        append(ruler_file(folder), json.dumps(line, sort_keys=True))
        told = f"{bar.tell(ratio)}, against {bar.against}; must reach {bar.tell(bar.ratio)}"
        tell(f"{bar.what}: {told}")


def itinerary(names: Collection[str]) -> list[str]:
    """The rows in the order in which they are measured, some of them several times."""
    visited = [name for name in names if name in VISITED]
    others = [name for name in names if name not in VISITED]
    cuts = [round(leg * len(others) / (VISITS - 1)) for leg in range(VISITS)]
    legs = [others[start:stop] for start, stop in pairwise(cuts)]
    return [*visited, *(name for leg in legs for name in (*leg, *visited))]


def far_reading(rounds: int = 40) -> float:
    """How many times as long a processor takes to read what another has written as its own."""
    numbers, n_threads = torch.zeros(400, 784), torch.get_num_threads()
    if n_threads == 1:
        return 1.0
    own, others = numbers.chunk(n_threads)[0], numbers.chunk(n_threads)[-1]
    seconds: dict[str, list[float]] = {"own": [], "others": []}
    for name, part in (("own", own), ("others", others)) * rounds:
        torch.set_num_threads(n_threads)
        numbers.add_(1)  # each thread its part
        torch.set_num_threads(1)
        seconds[name].append(seconds_of(part.sum))
    torch.set_num_threads(n_threads)
    return float(np.median(seconds["others"]) / np.median(seconds["own"]))


def ruler_table(folder: Path) -> str:
    """The newest measurement of each row, and how many of the last three hold."""
    lines = list(read_lines(ruler_file(folder)))
    if not lines:
        return f"**Speed**\n\n{NOT_RUN}"
    rows = []
    for name, bar in BARS.items():
        last = [line for line in lines if line["name"] == name][-3:]
        n_held = sum(bar.holds(line["ratio"]) for line in last)
        held = f"{n_held} of {len(last)}" if last else "–"
        sign = "≥" if bar.faster else "≤"
        marks = [MARK if line.get("far_reading", 0) > FAR else "" for line in last]
        told = [bar.tell(line["ratio"]) + mark for line, mark in zip(last, marks, strict=True)]
        shown = ", ".join(told) or NOT_RUN
        rows.append([bar.what, bar.against, f"{sign} {bar.tell(bar.ratio)}", shown, held])
    threads = lines[-1]["machine"]["threads"]
    title = f"**{lines[-1]['data'].upper()}, {threads} threads: the last runs, the newest last**"
    headings = ["what", "against", "must be", "is", "held"]
    note = (
        f"{MARK} The processors shared no cache before and after it: what one had written took "
        f"another more than {FAR:g} times as long to read as its own."
    )
    return f"{title}\n\n{markdown(headings, rows)}\n\n{note}"


@dataclass(frozen=True)
class Bench:
    """What the rows are measured on; what several rows need is made once."""

    data: str
    parts: Parts
    many: int
    repeats: int
    tell: Tell

    def seconds(self, name: str) -> tuple[float, float] | None:
        """Those of the two works of a row; none for want of a package, which is told."""
        if name in PASSES_OF:
            settings, options = PASSES_OF[name]
            X, y = self.parts.X, self.parts.y
            work = one_pass(_model(**settings), X, y)
            return self._shortest(work, products(X, settings.get("batch_size", BATCH), **options))
        if name.startswith("umap"):
            return self._against_umap(name)
        if name == "rows":
            return rows_of_large_and_small(self.many)
        if name == "transform":
            model, X = self._model, self.parts.X
            return self._shortest(lambda: model.transform(X), products(X, BATCH, back=False))
        if name == "one row":
            return self._one_row()
        return self._judging(name)

    def _one_row(self) -> tuple[float, float]:
        X, y, model = self.parts.X, self.parts.y, self._model
        nca = NeighborhoodComponentsAnalysis(2, max_iter=1, random_state=0).fit(X[:500], y[:500])
        row = X[:1]
        return self._shortest(
            lambda: [model.transform(row) for _ in range(100)],
            lambda: [nca.transform(row) for _ in range(100)],
        )

    def _judging(self, name: str) -> tuple[float, float] | None:
        """Rows to labels, against neighbours by brute force."""
        X_new, model = self._new_rows, self._model
        if name == "predict, faiss":
            if find_spec("faiss") is None:
                self.tell("5-NN by faiss: skipped, since faiss-cpu is not installed")
                return None
            index = import_module("faiss").IndexFlatL2(X_new.shape[1])
            index.add(self.parts.X)
            flat = _shortest(lambda: index.search(X_new, N_NEIGHBORS), None, repeats=2)[0]
            return self._shortest(lambda: model.predict(X_new))[0], flat
        brute = self._brute_force
        if name == "search":
            points, references = model.transform(X_new), model._references()
            return self._shortest(lambda: decide(points, *references))[0], brute
        if name == "small":
            model = SHOPE(max_bytes=SMALL, random_state=0, **QUICK)
            model.fit(self.parts.X, self.parts.y)
        return self._shortest(lambda: model.predict(X_new))[0], brute

    def _against_umap(self, name: str) -> tuple[float, float] | None:
        if find_spec("umap") is None:
            self.tell("supervised UMAP: skipped, since umap-learn is not installed")
            return None
        if name == "umap":
            return against_umap(self.parts, self.tell)
        if self.data != "mnist":
            self.tell("supervised UMAP on USPS: skipped, since it goes with MNIST")
            return None
        return against_umap(load_parts("usps", 0, final=False), self.tell)

    @cached_property
    def _model(self) -> SHOPE:
        return _model(**QUICK).fit(self.parts.X, self.parts.y)

    @cached_property
    def _new_rows(self) -> ndarray:
        X_new = self.parts.X_new[:N_NEW]
        return X_new if len(X_new) == N_NEW else np.resize(X_new, (N_NEW, X_new.shape[1]))

    @cached_property
    def _brute_force(self) -> float:
        neighbors = KNeighborsClassifier(N_NEIGHBORS, algorithm="brute")
        neighbors.fit(self.parts.X, self.parts.y)
        return _shortest(lambda: neighbors.predict(self._new_rows), None, repeats=2)[0]

    def _shortest(self, work: Work, against: Work | None = None) -> tuple[float, float]:
        visits = VISITS if against else 1
        return _shortest(work, against, repeats=-(-self.repeats // visits))


def _model(**settings: Any) -> SHOPE:
    """The map that is timed; a pass of it is that of one map, without spare dimensions."""
    sizes = {"n_factors": SIZE, "n_units": SIZE, "batch_size": BATCH, "spare_components": 0}
    return SHOPE(**{**sizes, "random_state": 0, **settings})


def one_pass(
    model: SHOPE,
    X: ndarray,
    y: ndarray,
    dealing: Dealing = ALL_MINE,
    before_step: Callable[[int], object] | None = None,
) -> Work:
    """A pass over the rows as `fit` makes it: rows are gathered, and the optimizer takes steps.

    What is to be done before each step is given the number of the step.
    """
    classes, labels = np.unique(y, return_inverse=True)
    model.n_features_in_ = X.shape[1]
    scale = learn_scale(X, "auto")
    weights, random = np.ones(len(classes)), np.random.RandomState(0)
    rows = Rows.prepare(X, scale, columns=model._columns_to_learn(scale))
    task = model._task(rows, scale, labels, classes, weights, random)
    task = replace(task, dealing=dealing)
    everything = np.arange(len(y))
    attempt, groups, start = begin(model, task, everything)
    settings = model._settings(len(y), len(classes), sparse=False)
    settings = replace(settings, max_epochs=1, taking_turns=0.0)

    def work() -> object:
        steps = count()

        def loss(*batch: Any) -> Tensor | Known:
            if before_step:
                before_step(next(steps))
            return attempt.loss(*batch)

        with Progress("", 1, verbose=False) as progress:
            shuffle = partial(task.rows.shuffle, everything)
            args = (loss, groups, len(y), settings, start.generator, progress)
            return minimise(*args, shuffle=shuffle)

    return work


def products(X: ndarray, batch: int, *, back: bool = True, nudged: bool = False) -> Work:
    """The matrix products of a pass alone: forth, and back to the weights but not to the rows.

    Nudged rows go both ways twice, and the first time back to the rows, too.
    """
    x, z, h = (torch.randn(batch, width) for width in (X.shape[1], SIZE, SIZE))
    C, W, P = torch.randn(SIZE, X.shape[1]), torch.randn(SIZE, SIZE), torch.randn(2, SIZE)
    dy = torch.randn(batch, 2)

    def once(*, to_rows: bool) -> None:
        _ = x @ C.T, z @ W.T, h @ P.T
        if back:
            _ = dy @ P, h @ W, dy.T @ h, h.T @ z, z.T @ x
        if to_rows:
            _ = z @ C

    def work() -> object:
        for _ in range(-(-len(X) // batch)):
            once(to_rows=nudged)
            if nudged:
                once(to_rows=False)
        return None

    return work


def against_umap(parts: Parts, tell: Tell) -> tuple[float, float]:
    """Seconds until the error on validation rows is below UMAP's, and UMAP's own."""
    from hopefold.bench.extras import SupervisedUMAP

    def run(model: Any) -> tuple[float, float]:
        start = time.perf_counter()
        model.fit(parts.X, parts.y)
        seconds = time.perf_counter() - start
        points, new = model.transform(parts.X), model.transform(parts.X_new)
        return seconds, knn_error(points, parts.y, new, parts.y_new)

    theirs, bar = run(SupervisedUMAP(random_state=0))
    for epochs in PASSES:
        mine, error = run(SHOPE(max_epochs=epochs, validation_fraction=0, random_state=0))
        tell(f"after {epochs} passes {error:.2%}, supervised UMAP {bar:.2%}")
        if error < bar:
            return mine, theirs
    return float("inf"), theirs


def rows_of_large_and_small(many: int) -> tuple[float, float]:
    """Seconds of a row in a pass over a large table on disk, and over a small one in memory.

    Whenever the large one has come by as many rows as the small one has, the small one is passed
    over: the machine has its moods, and both should have met the same.
    """
    random = np.random.RandomState(0)
    centres = 2 * random.normal(size=(10, WIDTH))
    with tempfile.TemporaryFile() as file:
        labels = []
        for start in range(0, many, FEW):
            y = random.randint(10, size=min(FEW, many - start))
            X = _float32(centres[y] + 3 * random.normal(size=(len(y), WIDTH)))
            file.write(X.data)
            labels.append(y)
        file.flush()
        table = np.memmap(file, np.float32, mode="r").reshape(-1, WIDTH)
        few = min(FEW, many)
        small = _pass_over(np.array(table[:few]), labels[0])
        small()  # once to be warm
        passes: list[float] = []

        def take_turns(step: int) -> None:
            if step % max(1, few // BATCH) == 0:
                passes.append(seconds_of(small))

        large = _pass_over(table, np.concatenate(labels), take_turns)
        large()
        passes.clear()
        both = seconds_of(large)
        disk.release(table)
    return (both - sum(passes)) / many, sum(passes) / (len(passes) * few)


def _pass_over(
    table: ndarray, y: ndarray, before_step: Callable[[int], object] | None = None
) -> Work:
    model = SHOPE(n_factors=64, n_units=64, batch_size=BATCH, adversarial=0, random_state=0)
    return one_pass(model, table, y, before_step=before_step)


def seconds_of(work: Work) -> float:
    """How long it takes, once."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _shortest(work: Work, against: Work | None, *, repeats: int) -> tuple[float, float]:
    works = {"mine": work} | ({"theirs": against} if against else {})
    times = seconds_in_turns(works, repeats=repeats)
    return min(times["mine"]), min(times.get("theirs", [float("nan")]))


def _float32(X: Any) -> ndarray:
    return np.ascontiguousarray(X, dtype=np.float32)
