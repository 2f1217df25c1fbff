"""Tables of results: the paper's figures beside ours, and the registry of all tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np

from hopefold_bench.comparison import Runs, compare
from hopefold_bench.markdown import NOT_RUN, footnotes, mark, markdown, percent
from hopefold_bench.paper import GOALS, SHORT, TABLES, Table
from hopefold_bench.records import Record, alike, read_records
from hopefold_bench.small_sets import CHECKED_SETS

EARLIER = "with the settings of an earlier version, not yet run again"

#: The errors of a map with default settings.
WAYS = {"all": "5-NN", "predict": "exemplars"}


class Results:
    """The runs on one part, from which tables are made."""

    def __init__(self, records: Iterable[Record], part: str = "test") -> None:
        self._records: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            if record.part == part and not record.quick:
                self._records.setdefault((record.data, record.method), []).append(record)

    def runs(self, data: str, method: str | None, error: str = "all") -> list[Record]:
        """The newest run of each split, among those with the settings of the newest run.

        Runs with older settings stay in the file, but are not mixed with newer ones.
        """
        records = self._records.get((data, method or ""), [])
        newest = {
            record.split: record
            for record in records
            if alike(record.settings, records[-1].settings) and error in record.errors
        }
        return [newest[split] for split in sorted(newest)]

    def methods(self) -> list[str]:
        """Every method that has been run, in the order of the tables."""
        rows = [row for table in TABLES.values() for row in table.rows]
        order = [row.method for row in rows] + [row.faithful for row in rows]
        found = dict.fromkeys(method for _, method in self._records)
        return sorted(found, key=lambda name: order.index(name) if name in order else len(order))


def read_results(folder: Path, part: str = "test") -> Results:
    """All runs of a folder."""
    sets = (*SHORT, *CHECKED_SETS)
    return Results((record for data in sets for record in read_records(folder, data)), part)


def paper_table(table: Table, results: Results) -> str:
    """A table of the paper beside our errors, with notes and significance tests.

    In the column "runs", the second number counts the runs of the column "faithful".
    """
    notes: list[str] = []
    lines = []
    for row in table.rows:
        runs = results.runs(row.data or table.data, row.method, row.error)
        if runs or not row.optional:
            faithful = results.runs(table.data, row.faithful, row.error)
            lines.append(
                [
                    row.name,
                    ("–" if row.paper is None else f"{row.paper:.2f}") + mark(row.note, notes),
                    (percent(runs, row.error) or NOT_RUN) + mark(_age(runs), notes),
                    (percent(faithful, row.error) or NOT_RUN) + mark(_age(faithful), notes)
                    if row.faithful
                    else "",
                    f"{len(runs)} / {len(faithful)}" if row.faithful else str(len(runs)),
                ]
            )
    below = footnotes(notes) + comparisons(table, results)
    headings = ["error, %", "paper", "ours", "faithful", "runs"]
    return "\n\n".join([f"**{table.title}**", markdown(headings, lines), *below])


def comparisons(table: Table, results: Results) -> list[str]:
    """Tests of the best two-dimensional map against the second and the other family's best."""
    found = [
        (Runs(row.name, runs, row.error), row.is_hope)
        for row in table.rows
        if row.is_flat and (runs := results.runs(table.data, row.method, row.error))
    ]
    if len(found) < 2:
        return []
    (best, is_hope), *others = sorted(found, key=lambda pair: pair[0].mean)
    rivals = {others[0][0].name: others[0][0]}
    for rival in [rival for rival, also_hope in others if also_hope != is_hope][:1]:
        rivals[rival.name] = rival
    return [compare(best, rival) for rival in rivals.values()]


def _age(runs: Sequence[Record]) -> str:
    """A note if the runs have other settings than the method has today."""
    from hopefold_bench.plans import Job  # heavy
    from hopefold_bench.run import is_done

    jobs = [Job(run.method, run.data, run.split, run.part == "test") for run in runs]
    today = all(is_done(job, [run]) for job, run in zip(jobs, runs, strict=True))
    return "" if today else EARLIER


def resources_table(results: Results) -> str:
    """Seconds per fit on one thread, and the peak memory, by method."""
    sets = ("usps", "mnist")
    headings = ["method"]
    headings += [f"{data}: {what}" for data in sets for what in ("seconds", "MB", "runs")]
    lines = []
    for method in results.methods():
        runs = {data: results.runs(data, method) for data in sets}
        if any(runs.values()):
            cells = [_resources(runs[data]) for data in sets]
            lines.append([method, *cells[0], *cells[1]])
    title = "**Fit on one thread: seconds, and peak memory of the process with its data (means)**"
    return "\n\n".join([title, markdown(headings, lines)])


def short_table(results: Results) -> str:
    """S-HOPE with default settings on each data set."""
    notes: list[str] = []
    lines = []
    for data, paper in SHORT.items():
        runs, joint = results.runs(data, "S-HOPE"), results.runs(data, "S-HOPE", "joint")
        lines.append(
            [
                data,
                percent(results.runs(data, "raw"), "all") or NOT_RUN,
                percent(runs, "all") or NOT_RUN,
                percent(joint, "joint") or NOT_RUN,
                paper,
                str(len(runs)) + mark(_age(runs), notes),
            ]
        )
    headings = ["error, %", "raw 5-NN", "2-D, 5-NN", "2-D, 20 exemplars", "paper", "runs"]
    return "\n\n".join([markdown(headings, lines), *footnotes(notes)])


def goals_table(results: Results) -> str:
    """The goals beyond the paper, and our errors."""
    notes: list[str] = []
    lines = []
    for goal in GOALS:
        runs = results.runs(goal.data, goal.method, "joint")
        errors = [percent(runs, error) or NOT_RUN for error in ("all", "joint")]
        size = f"{runs[0].model_bytes:,}" if runs and runs[0].model_bytes else "–"
        count = str(len(runs)) + mark(_age(runs), notes)
        name = goal.name
        lines.append([name, f"{goal.target:.2f}", *errors, goal.paper, goal.published, size, count])
    headings = ["error, %", "goal", "2-D, 5-NN", "2-D, 20 exemplars", "paper", "best published"]
    return "\n\n".join([markdown([*headings, "bytes", "runs"], lines), *footnotes(notes)])


def defaults_table(results: Results) -> str:
    """Small data sets, each fitted once with default settings, beside k-NN on the columns."""
    methods = ("S-HOPE", "HOPE")
    lines = []
    for data in CHECKED_SETS:
        raw = results.runs(data, "raw")
        cells = [percent(raw, "all") or NOT_RUN]
        for method in methods:
            cells += [percent(results.runs(data, method), error) for error in WAYS]
        cells.append(percent(results.runs(data, "S-HOPE 2 layers"), "joint"))
        cells.append(percent(results.runs(data, "supervised UMAP"), "all") or "–")
        lines.append([data, f"{raw[0].n_train:,}" if raw else "", *cells])
    headings = ["error, %", "rows", "5-NN, scaled columns"]
    headings += [f"{method}, {what}" for method in methods for what in WAYS.values()]
    others = ["S-HOPE of 2 layers, exemplars", "supervised UMAP, 5-NN"]
    return markdown([*headings, *others], lines)


RESULT_TABLES: dict[str, Callable[[Results], str]] = {
    **{name: partial(paper_table, table) for name, table in TABLES.items()},
    "resources": resources_table,
    "short": short_table,
    "goals": goals_table,
    "defaults": defaults_table,
}


def exemplars_table(folder: Path, part: str) -> str:
    """The distances of exemplars from their class centers, from the records of the figures."""
    lines = []
    for path in sorted((folder / "figures").glob("*.json")):
        numbers = json.loads(path.read_text())
        if numbers["part"] == part:
            for method, radii in numbers["exemplar_distances"].items():
                data, rows = numbers["data"], f"{numbers['rows']:,}"
                lines.append([data, method, f"{radii['mean']:.2f}", f"{radii['max']:.2f}", rows])
    title = (
        f"**From an exemplar to the center of its class in the map, in class radii, {part} part**"
    )
    headings = ["data", "method", "mean", "largest", "rows"]
    return "\n\n".join([title, markdown(headings, lines) if lines else NOT_RUN])


def table_of(module: str, maker: str) -> Callable[[Path, str], str]:
    """A table of another module, the same for every part. The module is imported on demand."""

    def make(folder: Path, _part: str) -> str:
        table: str = getattr(import_module(f"hopefold_bench.{module}"), maker)(folder)
        return table

    return make


#: Tables of the other benchmarks: functions of the folder and the part.
OTHER_TABLES: dict[str, Callable[[Path, str], str]] = {
    "exemplars": exemplars_table,
    "speed": table_of("speed", "speed_tables"),
    "roofline": table_of("roofline", "roofline_table"),
    "profile": table_of("profile", "profile_table"),
    "footprint": table_of("footprint", "footprint_table"),
    "scale": table_of("scale", "scale_table"),
    "scale-estimate": table_of("scale_estimate", "estimate_table"),
    "exports": table_of("exports", "exports_table"),
    "sweep": table_of("sweep", "sweep_tables"),
    "trials": table_of("trials", "trials_table"),
    "depth": table_of("depth", "depth_table"),
    "unlabeled": table_of("unlabeled", "unlabeled_table"),
    "front": table_of("front_tables", "front_table"),
}


def _resources(runs: Sequence[Record]) -> list[str]:
    if not runs:
        return ["–", "–", "0"]
    memory = [run.peak_memory_mb for run in runs if run.peak_memory_mb is not None]
    seconds = np.mean([run.seconds_fit for run in runs])
    return [f"{seconds:,.1f}", f"{np.mean(memory):,.0f}" if memory else "–", str(len(runs))]
