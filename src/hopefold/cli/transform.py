"""``hopefold transform``: where the rows of a table lie in the map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopefold.cli import options, outputs, reading, shown
from hopefold.errors import InvalidParameter

if TYPE_CHECKING:
    from hopefold.data.tables import Table

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Ends in .parquet, .csv, .tsv or .npz; - is CSV on standard output.",
    ),
]


def transform(
    model: options.Model,
    data: options.Data,
    output: Output = outputs.STDOUT,
    ids: options.Ids = None,
    drop: options.Drop = None,
    missing: options.Missing = None,
    ignore_extra: options.IgnoreExtra = False,
    force: options.Force = False,
) -> None:
    """Write where the rows of a table lie in the map."""
    wishes = {"ids": ids, "drop": drop, "missing": missing, "ignore_extra": ignore_extra}
    fitted, table = read(model, data, output, force=force, **wishes)
    points = fitted.transform(table)
    names = [str(name) for name in fitted.get_feature_names_out()]
    columns = dict(zip(names, points.T, strict=True))
    write(output, table, columns, {"points": points})


def read(model: Path, data: Path, output: Path, *, force: bool, **wishes: Any) -> tuple[Any, Table]:
    """A model, and rows for it, if what comes of them can be written."""
    outputs.check_target(output, outputs.TABLES, force=force, reads=[model, data])
    fitted = reading.load_model(model)
    return fitted, reading.read_for(fitted, data, **wishes)


def write(output: Path, table: Table, columns: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Results with the ids of their rows, and how many rows were left out."""
    kept = dict(table.kept)
    if table.places is not None and not kept:
        kept["row"] = table.places + 1
    for name in kept:
        if name in columns or name in arrays:
            raise InvalidParameter(f"the id {name!r} has the name of a result: rename that column.")
    outputs.write_table(output, kept | columns, kept | arrays)
    if table.n_dropped:
        shown.tell(f"hopefold: {shown.left_out(table)}; the others keep their order.")
    if output != outputs.STDOUT:
        shown.say(f"wrote {output} ({table.X.shape[0]:,} rows, {outputs.size(output)})")
