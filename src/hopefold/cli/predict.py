"""``hopefold predict``: the classes of the rows of a table, with probabilities."""

from __future__ import annotations

from hopefold.cli import options, outputs
from hopefold.cli.transform import Output, read, write


def predict(
    model: options.Model,
    data: options.Data,
    output: Output = outputs.STDOUT,
    ids: options.Ids = None,
    drop: options.Drop = None,
    missing: options.Missing = None,
    ignore_extra: options.IgnoreExtra = False,
    force: options.Force = False,
) -> None:
    """Write the classes of rows, and how probable each is."""
    wishes = {"ids": ids, "drop": drop, "missing": missing, "ignore_extra": ignore_extra}
    fitted, table = read(model, data, output, force=force, **wishes)
    shares = fitted.predict_proba(table)
    labels = fitted.classes_[shares.argmax(axis=1)]
    columns = {"predicted": labels, "probability": shares.max(axis=1)}
    columns |= {f"p_{name}": share for name, share in zip(fitted.classes_, shares.T, strict=True)}
    arrays = {"predicted": labels, "probabilities": shares, "classes": fitted.classes_}
    write(output, table, columns, arrays)
