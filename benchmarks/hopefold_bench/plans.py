"""The jobs of each plan, cheap and important ones first."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hopefold.errors import InvalidParameter
from hopefold_bench.methods import METHODS
from hopefold_bench.splits import DATA_SETS

PLANS = ("core", "full", "quick")

#: Upper limits of these settings in a quick run.
QUICK_LIMITS = {"max_epochs": 2, "pretraining_epochs": 1, "max_iter": 5}


@dataclass(frozen=True)
class Job:
    """One run: a method on a data set, with a seed that is also the number of the split."""

    method: str
    data: str
    split: int
    final: bool = False
    quick: bool = False
    #: Changes to the settings of the method.
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def part(self) -> str:
        """The part of the data on which the errors are measured."""
        return "test" if self.final else "validation"

    def __str__(self) -> str:
        changes = "".join(f", {name}={value}" for name, value in self.changes.items())
        return f"{self.method}{changes} on {self.data}, {self.part}, split {self.split}"

    def make(self) -> Any:
        """The estimator, not yet fitted."""
        estimator = METHODS[self.method].make(self.data, self.split)
        if self.quick:
            known = estimator.get_params(deep=False)
            for name in QUICK_LIMITS.keys() & known.keys():
                value = known[name] if isinstance(known[name], int) else QUICK_LIMITS[name]
                estimator.set_params(**{name: min(value, QUICK_LIMITS[name])})
        return estimator.set_params(**self.changes)

    def as_json(self) -> dict[str, Any]:
        """The job as plain data; ``Job(**data)`` is its inverse."""
        return asdict(self)


def make_plan(
    plan: str, *, data: Sequence[str] = (), only: Sequence[str] = (), final: bool = False
) -> list[Job]:
    """The jobs of a plan.

    Parameters
    ----------
    plan : {"core", "full", "quick"}
        ``"core"``: every method, one seed. ``"full"``: all seeds and splits. ``"quick"``: few rows
        and few epochs, on digits, to test that everything runs.
    data, only : sequences of str
        Keep these data sets, and methods that match one of these texts: a full name matches that
        method, other texts match as a part of the name.
    final : bool, default=False
        Measure on the test part.

    Examples
    --------
    >>> from hopefold_bench.plans import make_plan
    >>> for job in make_plan("full", data=["usps"], only=["raw"])[:2]:
    ...     print(job)
    raw on usps, validation, split 0
    raw on usps, validation, split 1

    """
    if plan not in PLANS:
        raise InvalidParameter(f"{plan!r} is not a known plan: choose from {', '.join(PLANS)}.")
    if unknown := [name for name in data if name not in DATA_SETS]:
        raise InvalidParameter(
            f"{unknown[0]!r} is not a known data set: choose from {', '.join(DATA_SETS)}."
        )
    methods = [
        name for name in METHODS if not only or any(matches(text, name, METHODS) for text in only)
    ]
    if not methods:
        raise InvalidParameter(f"no method has {' or '.join(map(repr, only))} in its name.")
    if plan == "quick":
        sets = data or ["digits"]
        return [Job(method, name, 0, final, quick=True) for name in sets for method in methods]
    jobs = [
        Job(method, name, split, final)
        for name in data or DATA_SETS
        for method in methods
        for split in range(_runs(plan, METHODS[method].runs.get(name, 0)))
    ]
    return sorted(jobs, key=lambda job: (job.data == "vgg", job.split, METHODS[job.method].slow))


def matches(text: str, name: str, names: Container[str]) -> bool:
    """Does the text match the name: a full name exactly, any other text as a part of it?"""
    return text == name if text in names else text.lower() in name.lower()


def _runs(plan: str, full: int) -> int:
    return full if plan == "full" else min(full, 1)
