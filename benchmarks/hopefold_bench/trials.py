"""Trials of settings on validation parts, by which the defaults were found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hopefold.errors import InvalidParameter
from hopefold_bench.markdown import NOT_RUN, markdown, percent
from hopefold_bench.measure import settings_of
from hopefold_bench.methods import METHODS
from hopefold_bench.plans import Job
from hopefold_bench.records import Record, read_records
from hopefold_bench.splits import DATA_SETS

#: The errors in the table.
ERRORS = {"all": "5-NN", "joint": "20 exemplars", "kmeans": "k-means"}


def trials_folder(folder: Path) -> Path:
    """The folder of the trials' records, apart from those of the paper's tables."""
    return folder / "trials"


def make_trials(
    method: str, settings: Sequence[str], data: Sequence[str], n_splits: int
) -> list[Job]:
    """Jobs with the same changes of a method on several data sets, split by split.

    Examples
    --------
    >>> from hopefold_bench.trials import make_trials
    >>> for job in make_trials("S-HOPE", ["dropout=0.3"], ["usps"], 1):
    ...     print(job)
    S-HOPE, dropout=0.3 on usps, validation, split 0

    """
    if method not in METHODS:
        raise InvalidParameter(
            f"{method!r} is not a known method: choose from {', '.join(METHODS)}."
        )
    if unknown := [name for name in data if name not in DATA_SETS]:
        raise InvalidParameter(
            f"{unknown[0]!r} is not a known data set: choose from {', '.join(DATA_SETS)}."
        )
    changes = dict(_read(setting) for setting in settings)
    if "random_state" in changes:
        raise InvalidParameter("random_state is the number of the split: ask for more --splits.")
    known = METHODS[method].make(data[0], 0).get_params(deep=False)
    if strange := [name for name in changes if name not in known]:
        raise InvalidParameter(
            f"{method} has no setting {strange[0]!r}: it has {', '.join(sorted(known))}."
        )
    return [Job(method, name, split, changes=changes) for split in range(n_splits) for name in data]


def _read(setting: str) -> tuple[str, Any]:
    name, _, value = setting.partition("=")
    if not (name and value):
        raise InvalidParameter(f"--set {setting}: give name=value, e.g. order=3.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def trials_table(folder: Path) -> str:
    """All trials by data set, best first."""
    tables = []
    for data in DATA_SETS:
        groups: dict[str, list[Record]] = {}
        for record in read_records(trials_folder(folder), data):
            changes = ", ".join(f"{name}={value}" for name, value in tried(record).items())
            groups.setdefault(f"{record.method}, {changes or 'unchanged'}", []).append(record)
        if not groups:
            continue
        lines = [
            [name, *(_cell(runs, error) for error in ERRORS), str(len(runs))]
            for name, runs in sorted(groups.items(), key=lambda group: _mean(group[1]))
        ]
        tables.append(f"**{data.upper()}, validation error, %**")
        tables.append(markdown(["tried", *ERRORS.values(), "runs"], lines))
    return "\n\n".join(tables) or f"**Trials**\n\n{NOT_RUN}"


def tried(record: Record) -> dict[str, Any]:
    """The settings of a run that differ from the method's settings today."""
    today = settings_of(METHODS[record.method].make(record.data, record.split))
    return {
        name: value
        for name, value in record.settings.items()
        if name != "random_state" and today.get(name) != value
    }


def _cell(runs: Sequence[Record], error: str) -> str:
    return percent(runs, error) if all(error in record.errors for record in runs) else "–"


def _mean(runs: Sequence[Record]) -> float:
    return sum(record.errors["all"] for record in runs) / len(runs)
