"""The command line: ``python -m hopefold_bench run``, ``… tables`` and the other benchmarks."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from hopefold.errors import HopefoldError, InvalidParameter
from hopefold_bench.folders import BENCHMARKS
from hopefold_bench.result_tables import OTHER_TABLES, RESULT_TABLES, read_results

if TYPE_CHECKING:
    from hopefold_bench.plans import Job

app = typer.Typer(
    add_completion=False,
    help="Benchmarks of hopefold: the paper's experiments, speed, memory and scaling.",
)

TABLES = (*RESULT_TABLES, *OTHER_TABLES)


Folder = Annotated[
    Path | None, typer.Option("--results", file_okay=False, help="Default: benchmarks/.")
]
Again = Annotated[bool, typer.Option("--again", help="Run finished jobs again.")]
Workers = Annotated[int, typer.Option(min=1, help="Jobs at a time.")]
CPUS = os.cpu_count() or 1
A_SET = "A data set, e.g. mnist; default:"


@app.command()
def run(
    plan: Annotated[str, typer.Option(help="core, full or quick.")] = "core",
    only: Annotated[list[str] | None, typer.Option(help="A method, or a part of its name.")] = None,
    data: Annotated[list[str] | None, typer.Option(help=f"{A_SET} all of the plan.")] = None,
    final: Annotated[bool, typer.Option("--final", help="Read the test parts.")] = False,
    again: Again = False,
    workers: Workers = CPUS,
    results: Folder = None,
) -> None:
    """Run the jobs that have no record yet; each appends one JSON line."""
    from hopefold_bench import ledger, plans  # slow to import, and not needed for tables
    from hopefold_bench.run import missing, summarize_plan

    folder = results or BENCHMARKS
    jobs = plans.make_plan(plan, data=data or (), only=only or (), final=final)
    if final and any(job.quick and job.data != "digits" for job in jobs):
        raise InvalidParameter("a quick run must not read a test part: leave out --final.")
    if not jobs:
        _print(f"the plan {plan!r} has no such method on these data")
        return
    to_do = missing(jobs, folder, _print, again=again)
    _print(summarize_plan(to_do, jobs, workers))
    if final and to_do:
        ledger.enter(folder, plan, only=only or (), data=data or (), n_jobs=len(to_do))
    _run(to_do, folder, workers, results)


@app.command()
def figures(
    data: Annotated[list[str] | None, typer.Option(help="mnist, usps; default: both.")] = None,
    final: Annotated[bool, typer.Option("--final", help="Draw the test parts.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Default: benchmarks/figures/.")] = None,
    models: Annotated[Path | None, typer.Option(help="Default: benchmarks/models/.")] = None,
    results: Folder = None,
) -> None:
    """Draw the paper's figures; models without a file are fitted first, on one thread."""
    import torch

    from hopefold_bench import ledger, paper_figures
    from hopefold_bench.models import SHOWN, models_folder

    torch.set_num_threads(1)  # as in a run
    base, sets = results or BENCHMARKS, data or ["usps", "mnist"]
    paper_figures.check_sets(sets)
    if final:
        ledger.enter(base, "figures", only=SHOWN, data=sets, n_jobs=len(SHOWN) * len(sets))
    kept = models or models_folder(results)
    for name in sets:
        paper_figures.make_figures(
            name, folder or base / "figures", final=final, models=kept, report=_print
        )


@app.command()
def speed(
    data: Annotated[list[str] | None, typer.Option(help="mnist, usps; default: both.")] = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows per prediction.")] = 1_000,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds.")] = 7,
    results: Folder = None,
) -> None:
    """Count operations and measure time per predicted row; each method appends one JSON line."""
    from hopefold_bench.speed import SETS, measure_speed

    for name in data or SETS:
        measure_speed(name, results or BENCHMARKS, n_new=rows, repeats=repeats, report=_print)


@app.command()
def roofline(
    data: Annotated[str, typer.Option(help="The training rows.")] = "mnist",
    rows: Annotated[int, typer.Option(min=1, help="Rows of the large table.")] = 10_000_000,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds.")] = 40,
    only: Annotated[list[str] | None, typer.Option(help="A row, e.g. epoch; default: all.")] = None,
    results: Folder = None,
) -> None:
    """Roofline benchmark: time fit, transform and predict against the hardware's limit."""
    from hopefold_bench.roofline import measure

    folder = results or BENCHMARKS
    measure(folder, data=data, many=rows, repeats=repeats, only=only or (), report=_print)


@app.command()
def footprint(
    rows: Annotated[int | None, typer.Option(min=1, help="Fewer rows, for a trial.")] = None,
    results: Folder = None,
) -> None:
    """Measure the memory of fits on data larger than memory; writes 8 GB of temporary files."""
    from hopefold_bench.footprint import measure

    measure(results or BENCHMARKS, n_rows=rows, report=_print)


@app.command()
def scale(
    rows: Annotated[int | None, typer.Option(min=1, help="Fewer rows, for a trial.")] = None,
    results: Folder = None,
) -> None:
    """Measure the training speed of one, two and three processes."""
    from hopefold_bench.scale import N_ROWS, measure

    measure(results or BENCHMARKS, n_rows=rows or N_ROWS, report=_print)


@app.command()
def export(
    data: Annotated[list[str] | None, typer.Option(help=f"{A_SET} mnist, usps, digits.")] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Fewer rows, for a trial.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Fewer epochs, for a trial.")] = None,
    results: Folder = None,
) -> None:
    """Measure exported models: bytes, differences, rows per second."""
    from hopefold_bench.exports import EPOCHS, N_ROWS, SETS, measure

    measure(
        results or BENCHMARKS,
        sets=tuple(data or SETS),
        n_rows=rows or N_ROWS,
        epochs=epochs or EPOCHS,
        report=_print,
    )


@app.command()
def unlabeled(
    data: Annotated[list[str] | None, typer.Option(help=f"{A_SET} mnist, usps.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="A map, or a part of its name.")] = None,
    final: Annotated[bool, typer.Option("--final", help="Read the test parts.")] = False,
    again: Again = False,
    results: Folder = None,
) -> None:
    """Fit without labels and with a few, and evaluate with labels that were not used."""
    from hopefold_bench.unlabeled import SETS, measure

    measure(
        results or BENCHMARKS,
        sets=data or SETS,
        only=only or (),
        final=final,
        again=again,
        report=_print,
    )


@app.command()
def profile(
    name: Annotated[str, typer.Argument(help="The name of the profile in the table.")],
    data: Annotated[str, typer.Option(help="The training rows.")] = "mnist",
    results: Folder = None,
) -> None:
    """Profile an epoch: where its time goes, by kinds of operations."""
    from hopefold_bench.profile import measure

    measure(results or BENCHMARKS, name, data=data, report=_print)


@app.command()
def sweep(
    data: Annotated[list[str] | None, typer.Option(help="usps, mnist; default: both.")] = None,
    again: Again = False,
    workers: Workers = CPUS,
    results: Folder = None,
) -> None:
    """Vary the sizes around the defaults, and untie factors, on validation parts."""
    from hopefold_bench.run import missing, summarize_plan
    from hopefold_bench.sweep import expected, make_sweep, sweep_folder

    folder = results or BENCHMARKS
    jobs = [job for name in data or ("usps", "mnist") for job in make_sweep(name)]
    to_do = missing(jobs, sweep_folder(folder), _print, again=again)
    time = expected(to_do, folder, workers)
    _print(summarize_plan(to_do, jobs, workers) + time)
    _run(to_do, sweep_folder(folder), workers, results)


@app.command("try")
def try_(
    method: Annotated[str, typer.Argument(help="A method's whole name, e.g. S-HOPE.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="name=value, as JSON; may be repeated.")
    ] = None,
    data: Annotated[list[str] | None, typer.Option(help=f"{A_SET} usps.")] = None,
    splits: Annotated[int, typer.Option(min=1, help="Seeds or splits, from 0 on.")] = 1,
    again: Again = False,
    workers: Workers = CPUS,
    results: Folder = None,
) -> None:
    """Try other settings on validation parts; each run appends one JSON line in trials/."""
    from hopefold_bench.run import missing, summarize_plan
    from hopefold_bench.trials import make_trials, trials_folder

    folder = trials_folder(results or BENCHMARKS)
    jobs = make_trials(method, settings or (), data or ("usps",), splits)
    to_do = missing(jobs, folder, _print, again=again)
    _print(summarize_plan(to_do, jobs, workers))
    _run(to_do, folder, workers, results)


@app.command()
def front(
    data: Annotated[list[str] | None, typer.Option(help=f"{A_SET} all.")] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="UMAP, or SHOPE and settings as JSON; default: all.")
    ] = None,
    splits: Annotated[int, typer.Option(min=1, help="Splits, from 0 on.")] = 1,
    final: Annotated[bool, typer.Option("--final", help="Read the test parts.")] = False,
    workers: Workers = CPUS,
    results: Folder = None,
) -> None:
    """Measure error and CPU time of defaults, efforts and other methods on many sets."""
    from hopefold_bench import ledger
    from hopefold_bench.front import OTHERS, OURS, run
    from hopefold_bench.front_sets import FRONT_SETS

    sets = data or [name for name, one in FRONT_SETS.items() if final or one.chooses]
    methods, folder = method or [*OURS, *OTHERS], results or BENCHMARKS
    if final:
        n_jobs = len(sets) * splits * len(methods)
        ledger.enter(folder, "front", only=methods, data=sets, n_jobs=n_jobs)
    run(sets, range(splits), methods, final=final, folder=folder, workers=workers, report=_print)


@app.command()
def tables(
    name: Annotated[str | None, typer.Option(help=f"One of {', '.join(TABLES)}.")] = None,
    validation: Annotated[bool, typer.Option("--validation", help="Not the test parts.")] = False,
    results: Folder = None,
) -> None:
    """Print tables of the runs so far, as Markdown."""
    if name is not None and name not in TABLES:
        raise InvalidParameter(f"{name!r} is not a known table: choose from {', '.join(TABLES)}.")
    folder, part = results or BENCHMARKS, "validation" if validation else "test"
    found = read_results(folder, part)
    print(
        "\n\n".join(
            RESULT_TABLES[table](found)
            if table in RESULT_TABLES
            else OTHER_TABLES[table](folder, part)
            for table in ([name] if name else TABLES)
        )
    )


def _print(line: str) -> None:
    Console(soft_wrap=True, highlight=False).print(line, markup=False)


def _run(jobs: Sequence[Job], folder: Path, workers: int, results: Path | None) -> None:
    """Run jobs; the exit status is 1 if one failed, and 130 after Ctrl-C."""
    from hopefold_bench.models import models_folder
    from hopefold_bench.run import run as run_jobs

    try:
        failed = run_jobs(
            jobs, folder, workers=workers, report=_print, models=models_folder(results)
        )
    except KeyboardInterrupt:
        _print("stopped; the same command resumes from here")
        sys.stdout.flush()
        os._exit(130)  # at once: running jobs end with this process
    if failed:
        _print(f"{failed} of {len(jobs)} runs failed")
        raise typer.Exit(1)


def main() -> None:
    """Print errors of hopefold in one line, with exit status 2."""
    try:
        app()
    except HopefoldError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
