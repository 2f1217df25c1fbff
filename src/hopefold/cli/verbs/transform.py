"""``hopefold transform``: the coordinates of the rows of a table in the map."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hopefold.cli import options, outputs, reading, results, shown
from hopefold.cli.batch import many

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Ends in .parquet, .csv, .tsv or .npz; - is CSV on standard output. For many files, a "
        "folder: one Parquet file for each. Run again, it adds the missing ones.",
    ),
]
Rows = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help=f"{options.TABLES_READ} Or many files: a pattern in quotes ('in/*.parquet'), or their "
        "folder.",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS|local",
        help="Run on a Dask cluster, one task per file: the address of its scheduler "
        "(tcp://host:8786), or local for the cores of this machine. All workers must have access "
        "to the same folders.",
    ),
]


def transform(
    model: options.Model,
    data: Rows,
    output: Output = outputs.STDOUT,
    ids: options.Ids = None,
    drop: options.Drop = None,
    missing: options.Missing = None,
    ignore_extra: options.IgnoreExtra = False,
    dask: Dask = None,
    force: options.Force = False,
) -> None:
    """Write the coordinates of the rows of a table in the map."""
    read_options = {"ids": ids, "drop": drop, "missing": missing, "ignore_extra": ignore_extra}
    work("transform", model, data, output, dask, force=force, **read_options)


def work(
    verb: str,
    model: Path,
    data: Path,
    output: Path,
    dask: str | None,
    *,
    force: bool,
    **read_options: Any,
) -> None:
    """Write the results for one table to a file, or for many tables to a folder."""
    if dask is not None or many.is_many(data, output):
        many.work(verb, model, data, output, dask, force=force, read_options=read_options)
        return
    outputs.check_target(output, outputs.TABLES, force=force, reads=[model, data])
    fitted = reading.load_model(model)
    table = reading.read_for(fitted, data, **read_options)
    found = results.RESULTS[verb](fitted, table)
    outputs.write_table(output, *results.with_ids(table, found))
    if table.n_dropped:
        shown.print_remark(f"hopefold: {shown.rows_left_out(table)}; the others keep their order.")
    if output != outputs.STDOUT:
        shown.print_line(f"wrote {output} ({table.X.shape[0]:,} rows, {outputs.size(output)})")
