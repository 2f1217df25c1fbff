"""``hopefold export``: a model for use without hopefold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hopefold.cli import options, outputs, reading, shown
from hopefold.errors import InvalidParameter

ENDINGS = (".onnx", ".c")


def export(
    model: options.Model,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Ends in .onnx or .c.")
    ],
    as_c: Annotated[bool, typer.Option("--c", help="One file of C, as with .c.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DATA",
            help="Rows to check the export with, at most 1,000; default: the exemplars with noise. "
            f" {options.TABLES_READ}",
        ),
    ] = None,
    drop: options.Drop = None,
    missing: options.Missing = None,
    ignore_extra: options.IgnoreExtra = False,
    force: options.Force = False,
) -> None:
    """Write a model as an ONNX graph or as C, and check that it gives the same results."""
    if as_c and output.suffix.lower() != ".c":
        raise InvalidParameter(f"cannot write {output} as C: give it a name that ends in .c.")
    reads = [model] if data is None else [model, data]
    outputs.check_target(output, ENDINGS, force=force, reads=reads)
    fitted = reading.load_model(model)
    from hopefold.export import to_c, to_onnx

    write = to_c if output.suffix.lower() == ".c" else to_onnx
    table = None
    if data is not None:
        table = reading.read_for(
            fitted, data, drop=drop, missing=missing, ignore_extra=ignore_extra
        )
    with outputs.writing(output):
        written = write(fitted, output, table)
    shown.print_line(f"wrote {output} ({outputs.size(output)})")
    if written.parity is not None:
        shown.print_line(str(written.parity))
