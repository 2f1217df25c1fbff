"""Markdown from records, with the paper's figures in the next column."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np

from hopefold.bench.comparison import Runs, compare
from hopefold.bench.paper import GOALS, SHORT, TABLES, Table
from hopefold.bench.records import Record, alike, read_records
from hopefold.bench.small_sets import CHECKED_SETS

NOT_RUN = "not run yet"

EARLIER = "with the settings of an earlier version, not run again yet"

#: How a map of the defaults is judged.
WAYS = {"all": "5-NN", "predict": "exemplars"}

MARKS = "¹²³⁴⁵⁶⁷⁸⁹"


class Results:
    """The runs that tables are made from: those on one part."""

    def __init__(self, records: Iterable[Record], part: str = "test") -> None:
        self._records: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            if record.part == part and not record.quick:
                self._records.setdefault((record.data, record.method), []).append(record)

    def runs(self, data: str, method: str | None, error: str = "all") -> list[Record]:
        """The newest run of each split that has the settings of the newest run of all.

        Runs with older settings stay in the file and are not mixed with newer ones.
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
    """A table of the paper with our numbers beside it, notes, and who is better beyond chance.

    In "runs", the second number counts those of the faithful column.
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
                    ("–" if row.paper is None else f"{row.paper:.2f}") + _mark(row.note, notes),
                    (percent(runs, row.error) or NOT_RUN) + _mark(_age(runs), notes),
                    (percent(faithful, row.error) or NOT_RUN) + _mark(_age(faithful), notes)
                    if row.faithful
                    else "",
                    f"{len(runs)} / {len(faithful)}" if row.faithful else str(len(runs)),
                ]
            )
    below = _told(notes) + comparisons(table, results)
    headings = ["error, %", "paper", "ours", "faithful", "runs"]
    return "\n\n".join([f"**{table.title}**", markdown(headings, lines), *below])


def comparisons(table: Table, results: Results) -> list[str]:
    """The best of our flat maps against the next one, and against the best of the other family."""
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
    """A note where the runs have other settings than the method has today."""
    from hopefold.bench.plans import Job  # heavy
    from hopefold.bench.run import is_done

    jobs = [Job(run.method, run.data, run.split, run.part == "test") for run in runs]
    today = all(is_done(job, [run]) for job, run in zip(jobs, runs, strict=True))
    return "" if today else EARLIER


def resources_table(results: Results) -> str:
    """Seconds of a fit on one thread, and the most memory that a run had, by method."""
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
    """S-HOPE with its defaults on each data set."""
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
                str(len(runs)) + _mark(_age(runs), notes),
            ]
        )
    headings = ["error, %", "raw 5-NN", "2-D, 5-NN", "2-D, 20 exemplars", "paper", "runs"]
    return "\n\n".join([markdown(headings, lines), *_told(notes)])


def goals_table(results: Results) -> str:
    """What we set out for beyond the paper, and where we are."""
    notes: list[str] = []
    lines = []
    for goal in GOALS:
        runs = results.runs(goal.data, goal.method, "joint")
        errors = [percent(runs, error) or NOT_RUN for error in ("all", "joint")]
        size = f"{runs[0].model_bytes:,}" if runs and runs[0].model_bytes else "–"
        count = str(len(runs)) + _mark(_age(runs), notes)
        name = goal.name
        lines.append([name, f"{goal.target:.2f}", *errors, goal.paper, goal.published, size, count])
    headings = ["error, %", "goal", "2-D, 5-NN", "2-D, 20 exemplars", "paper", "best published"]
    return "\n\n".join([markdown([*headings, "bytes", "runs"], lines), *_told(notes)])


def defaults_table(results: Results) -> str:
    """Data of many kinds, each fitted once with the defaults: the map beside the raw columns."""
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


MAKERS: dict[str, Callable[[Results], str]] = {
    **{name: partial(paper_table, table) for name, table in TABLES.items()},
    "resources": resources_table,
    "short": short_table,
    "goals": goals_table,
    "defaults": defaults_table,
}


def exemplars_table(folder: Path, part: str) -> str:
    """How near the exemplars lie to the centres of their classes, from what the figures wrote."""
    lines = []
    for path in sorted((folder / "figures").glob("*.json")):
        numbers = json.loads(path.read_text())
        if numbers["part"] == part:
            for method, radii in numbers["exemplar_distances"].items():
                data, rows = numbers["data"], f"{numbers['rows']:,}"
                lines.append([data, method, f"{radii['mean']:.2f}", f"{radii['max']:.2f}", rows])
    title = (
        f"**From an exemplar to the centre of its class in the map, in class radii, {part} part**"
    )
    headings = ["data", "method", "mean", "largest", "rows"]
    return "\n\n".join([title, markdown(headings, lines) if lines else NOT_RUN])


def made_by(module: str, maker: str) -> Callable[[Path, str], str]:
    """A table that another module makes, whatever the part; imported when it is asked for."""

    def make(folder: Path, _part: str) -> str:
        table: str = getattr(import_module(f"hopefold.bench.{module}"), maker)(folder)
        return table

    return make


#: From a folder and a part: what does not come from the runs of a plan.
BESIDE: dict[str, Callable[[Path, str], str]] = {
    "exemplars": exemplars_table,
    "speed": made_by("speed", "speed_tables"),
    "ruler": made_by("ruler", "ruler_table"),
    "profile": made_by("profile", "profile_table"),
    "footprint": made_by("footprint", "footprint_table"),
    "faults": made_by("faults", "faults_table"),
    "scale": made_by("scale", "scale_table"),
    "reckoned": made_by("scale", "reckoned_table"),
    "exports": made_by("exports", "exports_table"),
    "sweep": made_by("sweep", "sweep_tables"),
    "trials": made_by("trials", "trials_table"),
    "depth": made_by("depth", "depth_table"),
    "unlabelled": made_by("unlabelled", "unlabelled_table"),
}


def percent(runs: Sequence[Record], error: str) -> str:
    """Mean ± standard deviation over the runs; the mean alone of one; nothing of none."""
    if not runs:
        return ""
    values = 100 * np.array([record.errors[error] for record in runs])
    spread = f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else ""
    return f"{values.mean():.2f}{spread}"


def _resources(runs: Sequence[Record]) -> list[str]:
    if not runs:
        return ["–", "–", "0"]
    memory = [run.peak_memory_mb for run in runs if run.peak_memory_mb is not None]
    seconds = np.mean([run.seconds_fit for run in runs])
    return [f"{seconds:,.1f}", f"{np.mean(memory):,.0f}" if memory else "–", str(len(runs))]


def _mark(note: str, notes: list[str]) -> str:
    """The mark of a note, which is told below the table once."""
    if not note:
        return ""
    if note not in notes:
        notes.append(note)
    return f" {MARKS[notes.index(note)]}"


def _told(notes: Sequence[str]) -> list[str]:
    return [f"{mark} {note}." for mark, note in zip(MARKS, notes, strict=False)]


def markdown(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table."""
    rows = [headings, ["---"] * len(headings), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
