"""The command line of the bench: ``python -m hopefold.bench run`` and ``… tables``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hopefold.bench.tables import MAKERS, read_results
from hopefold.errors import HopefoldError, InvalidParameter

app = typer.Typer(add_completion=False, help="The paper's experiments, run again.")


def default_folder() -> Path:
    """``benchmarks`` in the clone that one is in, or right here."""
    here = Path.cwd()
    clones = [folder for folder in (here, *here.parents) if (folder / ".git").exists()]
    return (clones[0] if clones else here) / "benchmarks"


Folder = Annotated[Path | None, typer.Option("--results", help="Default: benchmarks/.")]


@app.command()
def run(
    plan: Annotated[str, typer.Option(help="core, full or quick.")] = "core",
    only: Annotated[list[str] | None, typer.Option(help="Methods with this in the name.")] = None,
    data: Annotated[list[str] | None, typer.Option(help="digits, usps, mnist or vgg.")] = None,
    final: Annotated[bool, typer.Option("--final", help="Read the test parts.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Also what has been run.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = os.cpu_count() or 1,
    results: Folder = None,
) -> None:
    """Run what is missing; each run appends one JSON line."""
    from hopefold.bench import ledger, plans  # not needed for tables, and heavy
    from hopefold.bench.run import missing
    from hopefold.bench.run import run as run_jobs

    folder, console = results or default_folder(), Console(soft_wrap=True, highlight=False)

    def tell(line: str) -> None:
        console.print(line, markup=False)

    jobs = plans.make_plan(plan, data=data or (), only=only or (), final=final)
    if final and any(job.quick and job.data != "digits" for job in jobs):
        raise InvalidParameter("a quick run says nothing about a test part: leave out --final.")
    to_do = missing(jobs, folder, tell, again=again)
    tell(f"{len(to_do)} of {len(jobs)} runs to do, {workers} at a time")
    if final and to_do:
        ledger.enter(folder, plan, only=only or (), data=data or (), n_jobs=len(to_do))
    try:
        failed = run_jobs(to_do, folder, workers=workers, tell=tell)
    except KeyboardInterrupt:
        tell("stopped; the same command goes on from here")
        sys.stdout.flush()
        os._exit(130)  # at once: runs that are under way end with this process
    if failed:
        tell(f"{failed} of {len(to_do)} runs failed")
        raise typer.Exit(1)


@app.command()
def tables(
    name: Annotated[str | None, typer.Option(help=f"One of {', '.join(MAKERS)}.")] = None,
    validation: Annotated[bool, typer.Option("--validation", help="Not the test parts.")] = False,
    results: Folder = None,
) -> None:
    """Markdown from the runs so far."""
    if name is not None and name not in MAKERS:
        raise InvalidParameter(f"{name!r} is no table: choose one of {', '.join(MAKERS)}.")
    found = read_results(results or default_folder(), "validation" if validation else "test")
    print("\n\n".join(MAKERS[table](found) for table in ([name] if name else MAKERS)))


def main() -> None:
    """Errors that hopefold names are one line and exit status 2."""
    try:
        app()
    except HopefoldError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
