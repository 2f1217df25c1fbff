"""S-HOPE with one layer and with two layers, on the same rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hopefold_bench.comparison import Runs, compare
from hopefold_bench.markdown import NOT_RUN, markdown, percent
from hopefold_bench.result_tables import read_results

#: The rows of the table: data, number of layers, method. On MNIST both methods run fewer epochs.
ROWS = (
    ("usps", 1, "S-HOPE"),
    ("usps", 2, "S-HOPE 2 layers"),
    ("mnist", 1, "S-HOPE 1 layer"),
    ("mnist", 2, "S-HOPE 2 layers"),
)

ERRORS = {"all": "2-D, 5-NN", "joint": "2-D, 20 exemplars"}


def depth_table(folder: Path) -> str:
    """Errors, seconds and bytes of one and two layers, and the test of their difference."""
    results, lines = read_results(folder), []
    found: dict[str, list[Runs]] = {}
    for data, n_layers, method in ROWS:
        runs = results.runs(data, method)
        if data == "usps":  # only the splits that both have
            both = {run.split for run in results.runs(data, "S-HOPE 2 layers")}
            runs = [run for run in runs if run.split in both]
        name = f"{data.upper()}, {n_layers} layer{'s' * (n_layers > 1)}"
        if not runs:
            lines.append([name, *[NOT_RUN] * len(ERRORS), "–", "–", "0"])
            continue
        found.setdefault(data, []).append(Runs(name, runs, "joint"))
        seconds = f"{np.mean([run.seconds_fit for run in runs]):,.0f}"
        n_bytes = runs[0].model_bytes
        size = f"{n_bytes / 1000:,.0f}" if n_bytes else "–"
        errors = [percent(runs, error) for error in ERRORS]
        lines.append([name, *errors, seconds, size, str(len(runs))])
    headings = ["error, %", *ERRORS.values(), "seconds", "model, kB", "runs"]
    comparisons = [
        f"With 20 exemplars: {compare(*pair)}" for pair in found.values() if len(pair) == 2
    ]
    return "\n\n".join([markdown(headings, lines), *comparisons])
