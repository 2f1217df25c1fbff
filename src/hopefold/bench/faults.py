"""Faults that are made for real, many times over: how many were tried, and how many survived.

A new kind is an entry in `FAULTS` and a function in `soaks/` that makes the fault a number of times
in a folder of its own and says what was broken. Each soak appends one JSON line.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from hopefold.bench.records import append, read_lines
from hopefold.bench.tables import NOT_RUN, markdown
from hopefold.errors import InvalidParameter

#: What a soak takes: how often, and a folder that is empty.
Soak = Callable[[int, Path], "Outcome"]

#: Broken cases that a record names.
NAMED = 20


@dataclass(frozen=True)
class Fault:
    """A row of the table: what is done, what is promised, how often the bench tries it, and how."""

    what: str
    promise: str
    times: int
    #: A function of a module in `soaks`.
    soak: str


@dataclass(frozen=True)
class Outcome:
    """What came of it: the cases, and a line for each that broke the promise."""

    tried: int
    broken: tuple[str, ...] = ()

    @property
    def survived(self) -> int:
        """Cases in which the promise held."""
        return self.tried - len(self.broken)


WHOLE = "the old file is whole, or the new one"
ONE_LINE = f"{WHOLE}; one line says what is wrong, and the exit status is 2"

FAULTS = {
    "killed fit": Fault(
        "kill -9 at random moments of fits with a checkpoint",
        "the fit goes on, and the model is the same, byte for byte",
        50,
        "interruptions.killed_fits",
    ),
    "numbers": Fault(
        "fits of wild tables: outliers, magnitudes up to 1e37, powers up to 9, steps up to 10",
        "points are numbers, and a bad map says so; or an error of ours",
        500,
        "numbers.wild_numbers",
    ),
    "kill": Fault("kill -9 while a file is written", WHOLE, 300, "writes.killed"),
    "full disk": Fault(
        "a size limit that bites in any output of the command", ONE_LINE, 48, "writes.full_disk"
    ),
    "read only": Fault(
        "a folder that one may not write to", ONE_LINE, 16, "writes.read_only_folder"
    ),
    "two at once": Fault(
        "two processes that write one path, read all the while", WHOLE, 2_000, "writes.two_at_once"
    ),
    "model files": Fault(
        "model files from strangers: damaged, or altered under a right checksum",
        "a model that works, or our own error; in a second and 512 MB, no code run, no path read",
        10_000,
        "strangers.model_files",
    ),
    "tables": Fault(
        "tables of every dtype and format, extreme and missing numbers, odd labels",
        "points that are all finite, the same from a file; or our own error",
        2_000,
        "tables.of_any_kind",
    ),
    "formulas": Fault(
        "text that a spreadsheet would run, in exported CSV",
        "text, which comes back as it was",
        5_000,
        "tables.formulas",
    ),
    "images": Fault(
        "images that are damaged, or claim to be vast",
        "read, or our own error that names the file, in 512 MB; no program started",
        2_000,
        "images.damaged",
    ),
}


def faults_file(folder: Path) -> Path:
    """Where the outcomes are."""
    return folder / "faults.jsonl"


def find_soak(name: str) -> Soak:
    """The function that makes a fault."""
    module, _, function = FAULTS[name].soak.partition(".")
    soak: Soak = getattr(import_module(f"hopefold.bench.soaks.{module}"), function)
    return soak


def run_soaks(
    folder: Path,
    *,
    only: Collection[str] = (),
    times: int | None = None,
    tell: Callable[[str], None],
) -> int:
    """Make every fault, or only some, and append a line each; how many cases broke a promise."""
    if strange := set(only) - FAULTS.keys():
        raise InvalidParameter(f"{min(strange)!r} is no fault: choose of {', '.join(FAULTS)}.")
    n_broken = 0
    for name in only or FAULTS:
        fault, start = FAULTS[name], time.perf_counter()
        with tempfile.TemporaryDirectory() as place:
            outcome = find_soak(name)(times or fault.times, Path(place))
        line = {
            "measured": datetime.now(UTC).isoformat(timespec="seconds"),
            "name": name,
            "tried": outcome.tried,
            "survived": outcome.survived,
            "broken": outcome.broken[:NAMED],
            "seconds": round(time.perf_counter() - start, 1),
        }
        append(faults_file(folder), json.dumps(line, sort_keys=True))
        tell(f"{fault.what}: {outcome.survived:,} of {outcome.tried:,} survived")
        for case in outcome.broken[:NAMED]:
            tell(f"  broken: {case}")
        n_broken += len(outcome.broken)
    return n_broken


def faults_table(folder: Path) -> str:
    """The newest outcome of each fault."""
    newest = {line["name"]: line for line in read_lines(faults_file(folder))}
    rows = []
    for name, fault in FAULTS.items():
        line = newest.get(name)
        counts = [f"{line['tried']:,}", f"{line['survived']:,}"] if line else [NOT_RUN, "–"]
        rows.append([fault.what, fault.promise, *counts])
    return markdown(["fault", "what is promised", "tried", "survived"], rows)
