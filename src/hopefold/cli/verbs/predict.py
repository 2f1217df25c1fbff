"""``hopefold predict``: the classes of the rows of a table, with probabilities."""

from __future__ import annotations

from hopefold.cli import options, outputs
from hopefold.cli.verbs.transform import Dask, Output, Rows, work


def predict(
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
    """Write the predicted classes of rows, with probabilities."""
    read_options = {"ids": ids, "drop": drop, "missing": missing, "ignore_extra": ignore_extra}
    work("predict", model, data, output, dask, force=force, **read_options)
