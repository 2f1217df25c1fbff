"""The table of the front: error and CPU time of the defaults beside other methods."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from hopefold_bench.front import DEFAULT, OTHERS, OURS, front_file
from hopefold_bench.front_sets import FRONT_SETS
from hopefold_bench.markdown import NOT_RUN, markdown
from hopefold_bench.records import read_lines

#: CPU seconds that any fit may take.
ANY_FIT = 1.0

#: Standard errors of a difference that is significant.
SIGNIFICANT = 2.0

#: The defaults that report an error.
OURS_BY_DEFAULT = ("SHOPE", "HOPE")

#: Test rows, at least, on which probabilities are evaluated.
CALIBRATED = 1_000

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
    sentences += [_time_of_umap(lines, sets), *_honesty(lines), *_efforts(lines)]
    note = "Sets with * never chose a default. Errors are means over the splits."
    return "\n\n".join([markdown(headings, rows), note, "\n".join(f"- {s}" for s in sentences)])


def _cell(lines: list[dict[str, Any]]) -> str:
    if not lines:
        return "–"
    return "{:.2f}, {:.1f}".format(*_error_and_time(lines))


def _error_and_time(lines: list[dict[str, Any]]) -> tuple[float, float]:
    """The mean error, in %, and the mean CPU seconds."""
    error, seconds = (np.mean([line[name] for line in lines]) for name in ("error", "cpu_seconds"))
    return float(100 * error), float(seconds)


def _compared(lines: Lines, sets: list[str], method: str) -> str:
    """How the errors compare: sets won, and the geometric mean of the ratios of mistakes."""
    both = [name for name in sets if (name, method) in lines]
    if not both:
        return f"{method}: {NOT_RUN}."
    ratios, lower, higher = [], 0, []
    for name in both:
        ours, theirs = (error_rate(lines[name, one]) for one in (DEFAULT, method))
        ratios.append(np.log(ours / theirs))
        lower += ours <= theirs
        n_new = lines[name, DEFAULT][0]["n_new"]  # the rows of other splits are mostly the same
        if ours - theirs > SIGNIFICANT * np.hypot(
            _deviation(ours, n_new), _deviation(theirs, n_new)
        ):
            higher.append(name)
    return (
        f"{method}: lower or equal error on {lower} of {len(both)} sets, significantly higher on "
        f"{len(higher)}{': ' * bool(higher)}{', '.join(higher)}. The geometric mean of the ratios "
        f"of errors is {np.exp(np.mean(ratios)):.2f}."
    )


def _deviation(share: float, n_rows: int) -> float:
    """The standard error of an error on so many rows."""
    return float(np.sqrt(share * (1 - share) / n_rows))


def error_rate(lines: list[dict[str, Any]]) -> float:
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


def _efforts(lines: Lines) -> list[str]:
    """Error and CPU seconds of the other settings of ours, where they were measured."""
    sentences = []
    for method in OURS[1:]:
        sets = [data for data in FRONT_SETS if (data, method) in lines]
        cells = ", ".join(
            "{}: {:.2f} % in {:.1f} s".format(data, *_error_and_time(lines[data, method]))
            for data in sets
        )
        if cells:
            sentences.append(f"`{method}`: {cells}.")
    return sentences


def _honesty(lines: Lines) -> list[str]:
    """Do the error and the probabilities that fits report come true on new rows?"""
    ours = [
        line | {"data": data}
        for (data, method), found in lines.items()
        for line in found
        if method in OURS_BY_DEFAULT and "n_held_out" in line
    ]
    sentences = []
    if ours:
        within: list[bool] = []
        differences: dict[str, list[float]] = defaultdict(list)
        for line in ours:
            reported, true = line["validation_error"], line["error"]
            counts = (reported, line["n_held_out"]), (true, line["n_new"])
            smooth = [((error * n + 0.5) / (n + 1), n) for error, n in counts]
            one, other = (_deviation(error, n) for error, n in smooth)
            deviation = np.hypot(one, other)
            within.append(bool(abs(reported - true) <= SIGNIFICANT * deviation))
            differences[line["data"]].append(reported - true)
        means = np.array([np.mean(each) for each in differences.values()])
        chance = means.std() / max(1, len(means) - 1) ** 0.5
        sentences.append(
            f"Reported and true error of {len(ours)} fits of S-HOPE and HOPE on {len(means)} sets: "
            f"within two standard errors in {np.mean(within):.1%}; the mean difference is "
            f"{100 * means.mean():+.2f} ± {100 * chance:.2f} points."
        )
    calibrated = {
        data: np.mean([line["calibration_error"] for line in found])
        for (data, method), found in lines.items()
        if method == DEFAULT and found[0]["n_new"] >= CALIBRATED and "calibration_error" in found[0]
    }
    if calibrated:
        worst = max(calibrated, key=lambda data: calibrated[data])
        sentences.append(
            f"Expected calibration error on the {len(calibrated)} sets with at least "
            f"{CALIBRATED:,} test rows: {np.mean([*calibrated.values()]):.3f} on average, at most "
            f"{calibrated[worst]:.3f} ({worst})."
        )
    return sentences
