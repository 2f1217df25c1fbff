"""All stress tests: the fault, the promise, and how many cases kept it.

To add one, write a function that makes the fault a number of times in an empty folder and returns
an `Outcome`, and add an entry to `STRESS_TESTS`. Each run appends one JSON line.
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

from faults.outcome import Outcome
from hopefold.errors import InvalidParameter
from hopefold_bench.markdown import NOT_RUN, markdown
from hopefold_bench.records import append, read_lines

#: A stress test is given the number of cases and an empty folder.
Function = Callable[[int, Path], Outcome]

#: The largest number of broken cases in a record.
MAX_LISTED = 20


@dataclass(frozen=True)
class StressTest:
    """A row of the table: the fault, the promise, and how many cases a full run has."""

    fault: str
    promise: str
    times: int
    #: ``module.function`` in this package.
    function: str


WHOLE_FILE = "the old file or the new file is complete"
ONE_LINE = f"{WHOLE_FILE}; the command prints a one-line error and exits with status 2"

STRESS_TESTS = {
    "killed fit": StressTest(
        "kill -9 at random moments of fits with a checkpoint",
        "the fit resumes, and the model file is the same, byte for byte",
        50,
        "interruptions.killed_fits",
    ),
    "numbers": StressTest(
        "fits of extreme tables: outliers, magnitudes up to 1e37, orders up to 9, learning rates "
        "up to 10",
        "all points are finite, and a bad map gives a warning; or a hopefold error",
        500,
        "extreme_values.extreme_tables",
    ),
    "kill": StressTest("kill -9 while a file is written", WHOLE_FILE, 300, "writes.killed"),
    "full disk": StressTest(
        "a file size limit while any output of the command is written",
        ONE_LINE,
        48,
        "writes.full_disk",
    ),
    "read only": StressTest(
        "an output folder without write permission", ONE_LINE, 16, "writes.read_only_folder"
    ),
    "two at once": StressTest(
        "two processes that write the same path, while a third reads it",
        WHOLE_FILE,
        2_000,
        "writes.two_at_once",
    ),
    "model files": StressTest(
        "untrusted model files: damaged, or altered with a valid checksum",
        "a working model or a hopefold error, within one second and 512 MB; no code is run, no "
        "other path is read",
        10_000,
        "untrusted_files.model_files",
    ),
    "tables": StressTest(
        "tables of every dtype and format, with extreme and missing values and unusual labels",
        "all points are finite, and a reloaded model gives the same points; or a hopefold error",
        2_000,
        "unusual_tables.any_table",
    ),
    "formulas": StressTest(
        "text in exported CSV that a spreadsheet would run as a formula",
        "the text is escaped, and is read back unchanged",
        5_000,
        "unusual_tables.formulas",
    ),
    "images": StressTest(
        "images that are damaged, or whose header claims a huge size",
        "the image is read, or a hopefold error names the file, within 512 MB; no program is "
        "started",
        2_000,
        "damaged_images.damaged",
    ),
}


def faults_file(folder: Path) -> Path:
    """The file of the records."""
    return folder / "faults.jsonl"


def find_function(name: str) -> Function:
    """The function of a stress test."""
    module, _, attribute = STRESS_TESTS[name].function.partition(".")
    function: Function = getattr(import_module(f"faults.{module}"), attribute)
    return function


def run_stress_tests(
    folder: Path,
    *,
    only: Collection[str] = (),
    times: int | None = None,
    report: Callable[[str], None],
) -> int:
    """Run all stress tests or some, append one line each, and count the broken promises."""
    if unknown := set(only) - STRESS_TESTS.keys():
        known = ", ".join(STRESS_TESTS)
        raise InvalidParameter(f"{min(unknown)!r} is not a known stress test: choose from {known}.")
    n_broken = 0
    for name in only or STRESS_TESTS:
        test, start = STRESS_TESTS[name], time.perf_counter()
        with tempfile.TemporaryDirectory() as empty:
            outcome = find_function(name)(times or test.times, Path(empty))
        line = {
            "measured": datetime.now(UTC).isoformat(timespec="seconds"),
            "name": name,
            "tried": outcome.tried,
            "survived": outcome.survived,
            "broken": outcome.broken[:MAX_LISTED],
            "seconds": round(time.perf_counter() - start, 1),
        }
        append(faults_file(folder), json.dumps(line, sort_keys=True))
        report(f"{test.fault}: {outcome.survived:,} of {outcome.tried:,} survived")
        for case in outcome.broken[:MAX_LISTED]:
            report(f"  broken: {case}")
        n_broken += len(outcome.broken)
    return n_broken


def faults_table(folder: Path) -> str:
    """The newest outcome of each stress test."""
    newest = {line["name"]: line for line in read_lines(faults_file(folder))}
    rows = []
    for name, test in STRESS_TESTS.items():
        line = newest.get(name)
        counts = [f"{line['tried']:,}", f"{line['survived']:,}"] if line else [NOT_RUN, "–"]
        rows.append([test.fault, test.promise, *counts])
    return markdown(["fault", "promise", "tried", "survived"], rows)
