"""Is one method better than another beyond chance? Paired tests on what the runs recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

from hopefold_bench.records import Record, unpack

if TYPE_CHECKING:
    from numpy import ndarray

#: Sets whose test part is the same whatever the split.
FIXED_TEST_PART = ("mnist", "vgg")

#: Below this p, a difference is said to be one.
SIGNIFICANT = 0.05


class Runs(NamedTuple):
    """The runs of a method, and which of their errors is meant."""

    name: str
    records: Sequence[Record]
    error: str

    @property
    def mean(self) -> float:
        """The mean error."""
        return float(np.mean([record.errors[self.error] for record in self.records]))

    def by_split(self) -> dict[int, Record]:
        """The record of each split."""
        return {record.split: record for record in self.records}

    def by_row(self) -> ndarray:
        """How often each row is mistaken, on average over the runs."""
        rows = [unpack(run.mistakes[self.error], run.n_new) for run in self.records]
        mean: ndarray = np.mean(rows, axis=0)
        return mean


def compare(one: Runs, other: Runs) -> str:
    """Say in a line whether two methods differ, and by which test."""
    better, worse = sorted((one, other), key=lambda runs: runs.mean)
    p, test = paired_test(one, other)
    if p is None:
        return f"{better.name} and {worse.name}: no test ({test})."
    if p < SIGNIFICANT:
        return f"{better.name} < {worse.name} (p = {_rounded(p)}; {test})."
    names = f"{better.name} and {worse.name}"
    return f"{names}: no difference beyond chance (p = {_rounded(p)}; {test})."


def paired_test(one: Runs, other: Runs) -> tuple[float | None, str]:
    """The two-sided p of a paired test, and in words which test it is.

    Over the rows where all runs share one test part: the mistakes of each row, averaged over the
    seeds of each method. Else over the splits that both have, with the correction of Nadeau and
    Bengio, since their training parts overlap. With one split, over its rows.
    """
    first = one.records[0]
    if first.data in FIXED_TEST_PART and first.part == "test":
        seeds = f"{len(one.records)} and {len(other.records)} seeds"
        p = paired_t(one.by_row() - other.by_row())
        return p, f"paired over {first.n_new:,} rows, {seeds}"
    mine, theirs = one.by_split(), other.by_split()
    both = [(mine[split], theirs[split]) for split in sorted(mine.keys() & theirs.keys())]
    if not both:
        return None, "no split in common"
    if len(both) == 1:
        a, b = Runs(one.name, [both[0][0]], one.error), Runs(other.name, [both[0][1]], other.error)
        p = paired_t(a.by_row() - b.by_row())
        return p, f"one split only, paired over its {both[0][0].n_new:,} rows"
    differences = np.array([a.errors[one.error] - b.errors[other.error] for a, b in both])
    p = paired_t(differences, overlap=first.n_new / first.n_train)
    return p, f"paired over {len(both)} splits, corrected for overlap"


def paired_t(differences: ndarray, overlap: float = 0.0) -> float:
    """Student's t of the mean difference; ``overlap``: new rows for each training row.

    Resampled training parts overlap, so their errors vary less than those of new data would:
    Nadeau and Bengio add n_new / n_train to 1/n.
    """
    n, spread = len(differences), float(np.var(differences, ddof=1))
    if spread == 0:
        return 1.0 if np.mean(differences) == 0 else 0.0
    t = np.mean(differences) / np.sqrt((1 / n + overlap) * spread)
    return float(2 * stats.t.sf(abs(t), df=n - 1))


def _rounded(p: float) -> str:
    return f"{p:.2g}" if p >= 1e-4 else "0.0001 or less"
