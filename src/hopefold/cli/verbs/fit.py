"""``hopefold fit``: learn a map and exemplars from a table."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopefold.cli import options, outputs, reading, shown
from hopefold.errors import InvalidInput, InvalidParameter
from hopefold.specification import METHODS

if TYPE_CHECKING:
    from numpy import ndarray

    from hopefold.data.tables import Table


#: The exit status of a fit that Ctrl-C has ended early, with the best map so far.
INTERRUPTED = 130


@options.with_parameters
def fit(
    data: options.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="Model file to write.")
    ],
    label: options.Label = None,
    method: Annotated[
        str,
        typer.Option(
            help=f"One of {', '.join(options.methods())}.",
            autocompletion=options.complete_method,
        ),
    ] = "shope",
    ids: options.Ids = None,
    drop: options.Drop = None,
    encode: options.Encode = False,
    missing: options.Missing = None,
    unlabeled: Annotated[
        bool,
        typer.Option("--unlabeled", help="Fit without labels; the column of --label is left out."),
    ] = False,
    force: options.Force = False,
    **parameters: Any,
) -> None:
    """Learn a map and exemplars from a table, to one file."""
    kind = options.find_method(method)
    shape = options.image_shape(parameters.pop("image_shape"))
    settings = {"verbose": 1} | options.settings_of(kind, parameters)
    from hopefold.training.distributed import current_process_group

    group = current_process_group()
    group.together(lambda: check_outputs(output, settings.get("checkpoint"), data, force=force))
    read_options = {"ids": ids, "drop": drop, "encode": encode, "missing": missing}
    if unlabeled and METHODS[kind].parameter("missing_label") is None:
        raise InvalidParameter(
            f"{method} needs labels: leave out --unlabeled, or choose --method shope or hope."
        )
    if unlabeled and "missing_label" in settings:
        raise InvalidParameter(
            "--unlabeled fits without labels, --missing-label with some: choose one of them."
        )
    table: Table | None = None
    if reading.is_read_in_parts(data, several=group.size > 1):
        aside = {**read_options, "image_shape": shape, "unlabeled": unlabeled and label}
        group.together(lambda: check_options_for_parts(data, label or unlabeled, aside))
        model = make(kind, settings)
    else:
        read_options |= {"labeled": not unlabeled}
        read_options["missing_labels"] = settings.get("missing_label", ()) is None
        table = group.together(lambda: read(data, label, shape=shape, **read_options))
        model = make(kind, settings, table)
    start = time.perf_counter()
    model.fit(table) if table is not None else model.fit(str(data), label)
    seconds = time.perf_counter() - start
    if not group.is_first:
        return
    with outputs.writing(output):
        model.save(output)
    if settings.get("checkpoint") is not None and not model.interrupted_:
        Path(str(settings["checkpoint"])).unlink(missing_ok=True)  # the model has been written
    shown.print_summary(model, table, str(data), seconds)
    shown.print_line(f"wrote {output} ({outputs.size(output)})")
    if model.interrupted_:
        sys.exit(INTERRUPTED)


def check_outputs(output: Path, checkpoint: Any, data: Path, *, force: bool) -> None:
    """Check that the model and the checkpoint can be written.

    A fit that resumes from its checkpoint replaces the model that it wrote when it was interrupted.
    """
    resumes = checkpoint is not None and Path(str(checkpoint)).exists() and is_interrupted(output)
    outputs.check_target(output, force=force or resumes, reads=[data])
    if checkpoint is None:
        return
    for other, what in ((output, "the model"), (data, "the data")):
        if Path(str(checkpoint)).resolve() == other.resolve():
            raise InvalidParameter(
                f"--checkpoint {checkpoint} is the file of {what}: choose another name."
            )


def is_interrupted(output: Path) -> bool:
    """Is there a model file of an interrupted fit?"""
    from hopefold.errors import HopefoldError
    from hopefold.persistence import store

    try:
        manifest, _ = store.read(output)
    except (HopefoldError, OSError):
        return False
    return bool(manifest.get("interrupted"))


def check_options_for_parts(data: Path, label: object, read_options: Mapping[str, Any]) -> None:
    """Refuse options that need the whole table in memory."""
    if not label:
        raise InvalidInput(f"name the label column of {data}: --label COLUMN.")
    if strange := [name for name, value in read_options.items() if value]:
        raise InvalidParameter(
            f"{data} is read in parts, with all columns but the label as features: leave out "
            f"--{strange[0].removesuffix('s').replace('_', '-')}, or give one file."
        )


def read(
    data: Path, label: str | None, *, shape: tuple[int, int] | None = None, **read_options: Any
) -> Table:
    """Read a table for a fit, with labels; columns may be pixels of images."""
    from hopefold.data.tables import read_table

    ids, drop = (read_options.pop(name, None) or () for name in ("ids", "drop"))
    table = read_table(data, label, ids=ids, drop=drop, image_shape=shape, **read_options)
    if read_options.get("labeled", True):
        _check_classes(reading.labels_of(table, data), data)
    if shape is not None and table.image_shape is None:
        from hopefold.data.validation import check_pixels

        check_pixels(shape, table.X.shape[1])
        columns = replace(table.columns, image_shape=shape)
        table = replace(table, image_shape=shape, columns=columns)
    return table


def _check_classes(y: ndarray, data: Path) -> None:
    """Check that the labels are classes, not measurements."""
    if y.dtype.kind == "f" and (y % 1 != 0).any():
        shown_values = ", ".join(str(value) for value in y[:3])
        raise InvalidInput(
            f"the labels of {data} are measurements ({shown_values}, …), not classes: choose "
            "another column (--label)."
        )


def make(kind: str, settings: Mapping[str, Any], table: Table | None = None) -> Any:
    """Return the estimator with its settings, and with the image shape of the table."""
    settings = dict(settings)
    if table is not None and METHODS[kind].parameter("image_shape") is not None:
        settings["image_shape"] = table.image_shape
    if table is not None and isinstance(settings.get("class_weight"), dict):
        settings["class_weight"] = _by_label(settings["class_weight"], table)
    return METHODS[kind].load_class()(**settings)


def _by_label(weights: Mapping[str, Any], table: Table) -> dict[Any, Any]:
    """Return the weights by label: on the command line every label is text."""
    import numpy as np

    if table.y is None:
        raise InvalidParameter("--class-weight needs labels: leave it out, or --unlabeled.")

    labels = {str(label): label for label in np.asarray(table.y).tolist()}
    for name in weights:
        if name not in labels:
            raise InvalidParameter(
                f"--class-weight names {name!r}, which is not a label: choose from "
                f"{', '.join(list(labels)[:10])}."
            )
    return {labels[name]: weight for name, weight in weights.items()}
