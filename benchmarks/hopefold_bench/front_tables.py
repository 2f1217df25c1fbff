"""The table of the front: error and CPU time of the defaults beside other methods."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from hopefold_bench.front import DEFAULT, OTHERS, front_file
from hopefold_bench.front_sets import FRONT_SETS
from hopefold_bench.markdown import NOT_RUN, markdown
from hopefold_bench.records import read_lines

#: CPU seconds that any fit may take.
ANY_FIT = 1.0

Lines = dict[tuple[str, str], list[dict[str, Any]]]


def read_front(folder: Path, part: str) -> Lines:
    """The measurements of a part, by set and method."""
    found: Lines = defaultdict(list)
    for line in read_lines(front_file(folder)):
        if line["part"] == part:
            found[line["data"], line["method"]].append(line)
    return found


def front_table(folder: Path, part: str = "test") -> str:
    """A row for each set, and how often the defaults are as good as each other method."""
    lines = read_front(folder, part)
    sets = [name for name in FRONT_SETS if (name, DEFAULT) in lines]
    if not sets:
        return NOT_RUN
    headings = ["error, %, CPU s", "rows", "columns", "S-HOPE", *OTHERS]
    rows = []
    for name in sets:
        first = lines[name, DEFAULT][0]
        kept = "" if FRONT_SETS[name].chooses else " *"
        cells = [_cell(lines.get((name, method), [])) for method in (DEFAULT, *OTHERS)]
        rows.append([name + kept, f"{first['n_train']:,}", f"{first['n_columns']:,}", *cells])
    sentences = [_compared(lines, sets, method) for method in OTHERS]
    sentences.append(_time_of_umap(lines, sets))
    note = "Sets with * never chose a default. Errors are means over the splits."
    return "\n\n".join([markdown(headings, rows), note, "\n".join(f"- {s}" for s in sentences)])


def _cell(lines: list[dict[str, Any]]) -> str:
    if not lines:
        return "–"
    error, seconds = (float(np.mean([line[name] for line in lines])) for name in ERROR_AND_TIME)
    return f"{100 * error:.2f}, {seconds:.1f}"


ERROR_AND_TIME = ("error", "cpu_seconds")


def _compared(lines: Lines, sets: list[str], method: str) -> str:
    """How the errors compare: sets won, and the geometric mean of the ratios of mistakes."""
    both = [name for name in sets if (name, method) in lines]
    if not both:
        return f"{method}: {NOT_RUN}."
    ratios, lower = [], 0
    for name in both:
        ours, theirs = (_rate(lines[name, one]) for one in (DEFAULT, method))
        ratios.append(np.log(ours / theirs))
        lower += ours <= theirs
    return (
        f"{method}: lower or equal error on {lower} of {len(both)} sets; the geometric mean of the "
        f"ratios of errors is {np.exp(np.mean(ratios)):.2f}."
    )


def _rate(lines: list[dict[str, Any]]) -> float:
    """The share of mistakes, with half a mistake more, so that none is not infinitely better."""
    mistakes = sum(line["error"] * line["n_new"] for line in lines)
    return float((mistakes + 0.5) / (sum(line["n_new"] for line in lines) + 1))


def _time_of_umap(lines: Lines, sets: list[str]) -> str:
    both = [name for name in sets if (name, "UMAP") in lines]
    slower = []
    for name in both:
        ours, umap = (
            float(np.mean([line["cpu_seconds"] for line in lines[name, one]]))
            for one in (DEFAULT, "UMAP")
        )
        if ours > max(umap, ANY_FIT):
            slower.append(f"{name} ({ours:.1f} s, not {max(umap, ANY_FIT):.1f} s)")
    return (
        f"CPU time of a fit above that of supervised UMAP, or {ANY_FIT:g} s if that is more: "
        f"{len(slower)} of {len(both)} sets{': ' * bool(slower)}{', '.join(slower)}."
    )
