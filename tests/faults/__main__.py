"""The command line of the stress tests.

make faults                                      # all of them, 15 minutes
PYTHONPATH=tests python -m faults run --only kill --times 10
PYTHONPATH=tests python -m faults table          # Markdown from the records
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from faults.stress_tests import faults_table, run_stress_tests
from hopefold.errors import HopefoldError
from hopefold_bench.folders import BENCHMARKS

app = typer.Typer(add_completion=False, help="Stress tests: real faults, made many times over.")

Folder = Annotated[
    Path, typer.Option("--results", file_okay=False, help="The folder of the records.")
]


@app.command()
def run(
    only: Annotated[
        list[str] | None, typer.Option(help="A stress test, e.g. kill; default: all.")
    ] = None,
    times: Annotated[int | None, typer.Option(min=1, help="Fewer cases, for a trial.")] = None,
    results: Folder = BENCHMARKS,
) -> None:
    """Run the stress tests; each appends one JSON line."""
    if run_stress_tests(results, only=only or (), times=times, report=print):
        raise typer.Exit(1)


@app.command()
def table(results: Folder = BENCHMARKS) -> None:
    """Print the newest outcome of each stress test as Markdown."""
    print(faults_table(results))


def main() -> None:
    """Print errors of hopefold in one line, with exit status 2."""
    try:
        app()
    except HopefoldError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
