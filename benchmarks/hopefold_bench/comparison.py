"""Is one method significantly better than another? Paired tests on recorded runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

from hopefold_bench.records import Record, unpack

if TYPE_CHECKING:
    from numpy import ndarray

#: Data sets whose test part is the same for every split.
FIXED_TEST_PART = ("mnist", "vgg")

#: A difference with a smaller p is significant.
SIGNIFICANT = 0.05


class Runs(NamedTuple):
    """The runs of a method, and the kind of error to compare."""

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
        """The share of runs that misclassify each row."""
        rows = [unpack(run.mistakes[self.error], run.n_new) for run in self.records]
        mean: ndarray = np.mean(rows, axis=0)
        return mean


def compare(one: Runs, other: Runs) -> str:
    """One line: whether two methods differ significantly, and the test."""
    better, worse = sorted((one, other), key=lambda runs: runs.mean)
    p, test = paired_test(one, other)
    if p is None:
        return f"{better.name} and {worse.name}: no test ({test})."
    if p < SIGNIFICANT:
        return f"{better.name} < {worse.name} (p = {_rounded(p)}; {test})."
    names = f"{better.name} and {worse.name}"
    return f"{names}: no significant difference (p = {_rounded(p)}; {test})."


def paired_test(one: Runs, other: Runs) -> tuple[float | None, str]:
    """The two-sided p of a paired test, and a description of the test.

    If all runs share one test part, the test pairs its rows, with the errors of each row averaged
    over the seeds of a method. Otherwise it pairs the splits that both methods have, with the
    correction of Nadeau and Bengio for overlapping training parts; a single split is tested over
    its rows.
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
    """The two-sided p of Student's t-test; ``overlap``: new rows per training row.

    Resampled training parts overlap, so their errors vary less than those of independent data.
    Nadeau and Bengio therefore add n_new / n_train to 1/n.
    """
    n, spread = len(differences), float(np.var(differences, ddof=1))
    if spread == 0:
        return 1.0 if np.mean(differences) == 0 else 0.0
    t = np.mean(differences) / np.sqrt((1 / n + overlap) * spread)
    return float(2 * stats.t.sf(abs(t), df=n - 1))


def _rounded(p: float) -> str:
    return f"{p:.2g}" if p >= 1e-4 else "0.0001 or less"
