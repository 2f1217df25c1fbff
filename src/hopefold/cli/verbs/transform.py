"""``hopefold transform``: where the rows of a table lie in the map."""

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
        "folder: it gets a Parquet file for each, and run again it gets those that are missing.",
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
        help="Work on a Dask cluster, a file at a time: the address of its scheduler "
        "(tcp://host:8786), or local for the cores of this machine. Its workers have to see the "
        "same folders.",
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
    """Write where the rows of a table lie in the map."""
    wishes = {"ids": ids, "drop": drop, "missing": missing, "ignore_extra": ignore_extra}
    work("transform", model, data, output, dask, force=force, **wishes)


def work(
    verb: str,
    model: Path,
    data: Path,
    output: Path,
    dask: str | None,
    *,
    force: bool,
    **wishes: Any,
) -> None:
    """What a model says of the rows of one table in a file, or of many in a folder."""
    if dask is not None or many.is_many(data, output):
        many.work(verb, model, data, output, dask, force=force, wishes=wishes)
        return
    outputs.check_target(output, outputs.TABLES, force=force, reads=[model, data])
    fitted = reading.load_model(model)
    table = reading.read_for(fitted, data, **wishes)
    said = results.RESULTS[verb](fitted, table)
    outputs.write_table(output, *results.with_ids(table, said))
    if table.n_dropped:
        shown.tell(f"hopefold: {shown.left_out(table)}; the others keep their order.")
    if output != outputs.STDOUT:
        shown.say(f"wrote {output} ({table.X.shape[0]:,} rows, {outputs.size(output)})")
