"""A sweep over the sizes on validation parts, and an ablation of tied factors.

Each size is varied alone around the defaults, with joint exemplars. To save time, the runs use
neither adversarial perturbation nor a refit on all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hopefold.errors import InvalidParameter
from hopefold_bench.comparison import Runs, compare
from hopefold_bench.markdown import NOT_RUN, markdown, percent
from hopefold_bench.models import sizes_of_map
from hopefold_bench.plans import Job
from hopefold_bench.records import Record, read_records
from hopefold_bench.run import is_done

METHODS = ("S-HOPE", "HOPE")

#: Values of each size. There are fewer for MNIST, where a fit takes minutes.
GRIDS: dict[str, dict[str, tuple[int, ...]]] = {
    "usps": {
        "order": (1, 2, 3, 4, 5),
        "n_factors": (100, 200, 400, 800),
        "n_units": (150, 300, 600, 1_200),
    },
    "mnist": {"order": (1, 2, 3), "n_factors": (200, 800), "n_units": (300, 1_200)},
}
N_SPLITS = {"usps": 2, "mnist": 1}

#: The settings that give a method one layer, whose sizes are varied.
ONE_LAYER = {"S-HOPE": {"n_units": 600}}

#: Sizes are compared without the options that make a fit several times as long.
FAST: dict[str, float] = {"refit": False, "adversarial": 0.0, "weight_decay": 0.0}

LETTERS = {"order": "O, order", "n_factors": "F, factors", "n_units": "m, sigmoid units"}

#: The errors in the tables; methods are compared by the first.
ERRORS = {"joint": "20 exemplars", "all": "all points"}


def sweep_folder(folder: Path) -> Path:
    """The folder of the sweep's records, apart from those of the paper's tables."""
    return folder / "sweep"


def make_sweep(data: str) -> list[Job]:
    """The runs of the sweep on a data set, split by split."""
    if data not in GRIDS:
        raise InvalidParameter(
            f"{data!r} is not part of the sweep: choose from {', '.join(GRIDS)}."
        )
    return [
        sweep_job(method, data, sizes, split)
        for split in range(N_SPLITS[data])
        for method, sizes in _points(data)
    ]


def sweep_job(method: str, data: str, sizes: Mapping[str, Any], split: int = 0) -> Job:
    """A fast run with some sizes changed."""
    return Job(method, data, split, changes={**FAST, **ONE_LAYER.get(method, {}), **sizes})


def expected(jobs: Sequence[Job], folder: Path, workers: int) -> str:
    """An estimate of the time of jobs from earlier runs on the same data; empty without these."""
    seconds = 0.0
    for data in {job.data for job in jobs}:
        done = [*read_records(folder, data), *read_records(sweep_folder(folder), data)]
        times = [record.seconds_fit for record in done if record.method in METHODS]
        if not times:
            return ""
        seconds += float(np.median(times)) * sum(job.data == data for job in jobs)
    return f"; about {seconds / workers / 60:.0f} minutes, estimated from earlier runs"


def default_sizes(method: str, data: str) -> dict[str, int]:
    """The usual sizes of a method with one layer."""
    model = Job(method, data, 0).make()
    return sizes_of_map(model.set_params(**ONE_LAYER.get(method, {})))


def tied_and_untied(method: str, data: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Jobs with tied factors, and with as many products or as many weights in C, by name.

    HOPE learns products by default; its ``n_factors`` counts the powers that they expand to.
    """
    sizes = default_sizes(method, data)
    n_factors, order = sizes["n_factors"], sizes["order"]
    if method == "HOPE":
        n_products = n_factors // 2 ** (order - 1)
        fewer = n_products * order
        return {
            f"HOPE, tied, F = {n_factors:,}": ("HOPE", {"tied": True}),
            f"HOPE, tied, F = {fewer}": ("HOPE", {"tied": True, "n_factors": fewer}),
            f"HOPE, {n_products} products": ("HOPE", {}),
        }
    fewer = n_factors // order
    return {
        f"{method}, tied, F = {n_factors}": (method, {}),
        f"{method}, {n_factors} products": (f"{method} untied", {}),
        f"{method}, {fewer} products": (f"{method} untied", {"n_factors": fewer}),
    }


def _points(data: str) -> list[tuple[str, dict[str, Any]]]:
    """Methods and their changed settings, without duplicates."""
    points: list[tuple[str, dict[str, Any]]] = []
    for method in METHODS:
        points.append((method, {}))
        defaults = default_sizes(method, data)
        for name in defaults:
            points += [(method, {name: n}) for n in GRIDS[data][name] if n != defaults[name]]
        points += [p for p in tied_and_untied(method, data).values() if p not in points]
    return points


def sweep_tables(folder: Path) -> str:
    """A table for each size and data set, and the ablation."""
    tables = []
    for data in GRIDS:
        records = read_records(sweep_folder(folder), data)
        if records:
            tables += [size_table(records, data, name) for name in LETTERS]
            tables.append(untied_table(records, data))
    return "\n\n".join(tables) or f"**Sweep over the sizes**\n\n{NOT_RUN}"


def size_table(records: Sequence[Record], data: str, name: str) -> str:
    """The errors by one of the sizes; the others have their defaults."""
    defaults = {method: default_sizes(method, data) for method in METHODS}
    methods = [method for method in METHODS if name in defaults[method]]
    values = {*GRIDS[data][name], *(defaults[method][name] for method in methods)}
    lines = []
    for value in sorted(values):
        cells, counts = [], []
        for method in methods:
            is_default = value == defaults[method][name]
            planned = is_default or value in GRIDS[data][name]
            changes = {} if is_default else {name: value}
            runs = runs_of(records, sweep_job(method, data, changes))
            cells += [_cell(runs, error, bold=is_default, planned=planned) for error in ERRORS]
            counts.append(str(len(runs)))
        lines.append([f"{value:,}", *cells, " / ".join(counts)])
    headings = [f"{method}, {what}" for method in methods for what in ERRORS.values()]
    title = f"**{data.upper()}, validation error, %, by {LETTERS[name]} (bold: the default)**"
    return "\n\n".join([title, markdown([LETTERS[name], *headings, "runs"], lines)])


def untied_table(records: Sequence[Record], data: str) -> str:
    """Tied and untied factors, with tests of their difference."""
    lines, sentences = [], []
    for method in METHODS:
        found = {
            name: runs_of(records, sweep_job(which, data, sizes))
            for name, (which, sizes) in tied_and_untied(method, data).items()
        }
        for name, runs in found.items():
            cells = [_cell(runs, error) for error in ERRORS]
            kilobytes = f"{(runs[0].model_bytes or 0) / 1000:,.0f}" if runs else "–"
            lines.append([name, *cells, kilobytes, str(len(runs))])
        tied, *untied = [Runs(name, runs, "joint") for name, runs in found.items()]
        if tied.records:
            sentences += [compare(tied, other) for other in untied if other.records]
    what = "tied factors (C) and products of untied ones (C⁽¹⁾ … C⁽ᴼ⁾)"
    title = f"**{data.upper()}, validation error, %: {what}**"
    headings = ["", *ERRORS.values(), "model, kB", "runs"]
    return "\n\n".join([title, markdown(headings, lines), *sentences])


def runs_of(records: Sequence[Record], job: Job) -> list[Record]:
    """The newest run of each split with the method and the settings of a job."""
    newest: dict[int, Record] = {}
    for record in records:
        same = Job(job.method, job.data, record.split, changes=job.changes)
        if is_done(same, [record]):
            newest[record.split] = record
    return [newest[split] for split in sorted(newest)]


def _cell(runs: Sequence[Record], error: str, *, bold: bool = False, planned: bool = True) -> str:
    text = percent(runs, error) or (NOT_RUN if planned else "–")
    return f"**{text}**" if bold else text
