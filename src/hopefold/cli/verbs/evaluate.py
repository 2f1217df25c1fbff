"""``hopefold evaluate``: errors, calibration and speed-ups of a model on a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hopefold.cli import options, outputs, reading, shown
from hopefold.errors import InvalidParameter

if TYPE_CHECKING:
    from numpy import ndarray

    from hopefold.data.tables import Table
    from hopefold.evaluation import Calibration, SpeedUp

#: Maximum number of rows for brute-force neighbors, whose cost is quadratic.
BRUTE_FORCE_ROWS = 2_000


def evaluate(
    model: options.Model,
    data: options.Data,
    label: options.Label = None,
    training: Annotated[
        Path | None,
        typer.Option(
            metavar="DATA",
            help="The training rows: k-NN compares with these. Without them, with the other rows "
            "of DATA.",
        ),
    ] = None,
    ids: options.Ids = None,
    drop: options.Drop = None,
    missing: options.Missing = None,
    ignore_extra: options.IgnoreExtra = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Also write the results to a .json file."
        ),
    ] = None,
    force: options.Force = False,
) -> None:
    """Show errors, confusion, calibration and speed-ups.

    For a model without labels: the trustworthiness of its neighbors, and the error of 5-NN in the
    map on labels that the model has not seen.
    """
    if output is not None:
        outputs.check_target(output, (".json",), force=force, reads=[model, data])
    if training is not None and training.exists() and data.exists() and training.samefile(data):
        raise InvalidParameter(
            "--training names the rows that are evaluated, and each would be its own neighbor: "
            "leave it out, and each row is compared with the others."
        )
    fitted = reading.load_model(model)
    read_options: dict[str, Any] = {
        "ids": ids,
        "drop": drop,
        "missing": missing,
        "ignore_extra": ignore_extra,
    }
    table = reading.read_for(fitted, data, label, **read_options)
    references = None
    if training is not None:
        references = reading.read_for(fitted, training, label, **read_options)
        references = reading.labeled(fitted, references, training)
    n_rows = table.X.shape[0]
    shown.print_line(f"{shown.title_of(fitted)} ({model}) on {data}: {n_rows:,} rows")
    found = _share_learned(fitted, table) | _trustworthiness(fitted, table)
    if len(fitted.classes_) or table.y is not None:
        table = reading.labeled(fitted, table, data)
        _print_unlabeled(n_rows - table.X.shape[0])
        found |= _errors(fitted, table, references)
    else:
        shown.print_line(
            f"\n{data} has no known labels: name a column with --label COLUMN for errors."
        )
    if len(fitted.classes_):
        found |= _confusion_and_calibration(fitted, table)
        speed = _speed_ups(fitted, table, references or table)
        found["speed_ups"] = {name: one._asdict() for name, one in speed.items()}
    if output is not None:
        outputs.write(output, (json.dumps(found, indent=2) + "\n").encode())
        shown.print_line(f"\nwrote {output}")


def _share_learned(fitted: Any, table: Table) -> dict[str, Any]:
    """Print how many rows are training rows: on these, errors are too low."""
    from hopefold.evaluation import share_learned

    share = share_learned(fitted, table.X)
    if share is None:
        shown.print_line("(on training rows the errors would be too low)")
    elif share:
        shown.print_line(
            f"About {share:.0%} of these rows are training rows: on them, errors are too low."
        )
    return {"share_learned": share}


def _trustworthiness(fitted: Any, table: Table) -> dict[str, Any]:
    """Print the trustworthiness of the neighbors, if they were part of the loss."""
    from hopefold.evaluation import trustworthiness

    if not getattr(fitted, "structure_", 0):
        return {}
    found = trustworthiness(fitted, table.X, fitted.transform(table))
    if found is not None:
        shown.print_line(
            f"trustworthiness {found:.3f} of 1: how many neighbors in the map are true neighbors."
        )
    return {"trustworthiness": found}


def _print_unlabeled(n_rows: int) -> None:
    if n_rows:
        shown.print_line(f"{n_rows:,} of them have no label, and are left out of the errors.")


def _errors(fitted: Any, table: Table, references: Table | None) -> dict[str, Any]:
    """Print the error of the model, and of 5-NN in the map and in all columns."""
    import numpy as np
    from scipy import sparse

    from hopefold.evaluation import knn_error, left_out_error

    y = np.asarray(table.y)
    errors = {}
    if len(fitted.classes_):
        errors["references"] = float(np.mean(fitted.predict(table) != y))
    points = fitted.transform(table)
    some = slice(None, BRUTE_FORCE_ROWS)
    raw = None
    if not sparse.issparse(table.X):
        raw = fitted.scale_.apply(table.X)
    if references is None:
        errors["map_5nn"] = left_out_error(points, y)
        if raw is not None:
            errors["all_columns_5nn"] = left_out_error(raw[some], y[some])
        among = f"the {len(y):,} rows, each left out in turn"
    else:
        learned, y_learned = fitted.transform(references), np.asarray(references.y)
        errors["map_5nn"] = knn_error(learned, y_learned, points, y)
        if raw is not None and not sparse.issparse(references.X):
            apart = fitted.scale_.apply(references.X)
            errors["all_columns_5nn"] = knn_error(apart, y_learned, raw[some], y[some])
        among = f"the {len(y_learned):,} training rows"
    what = "exemplars" if fitted.exemplars_ is not None else "training rows"
    n_some = min(len(y), BRUTE_FORCE_ROWS)
    first = f", first {n_some:,} rows" if n_some < len(y) else ""
    names = {
        "references": f"{len(fitted.reference_embedding_):,} {what} in the map",
        "map_5nn": "5-NN in the map",
        "all_columns_5nn": f"5-NN in all {fitted.n_features_in_:,} columns, scaled{first}",
    }
    rows = [(names[name], shown.percent(error)) for name, error in errors.items()]
    if not len(fitted.classes_):
        shown.print_line("These labels were not used in the fit.")
    shown.print_table(f"Errors; 5-NN among {among}", ("", "error"), rows)
    return {"n_rows": len(y), "errors": errors}


def _confusion_and_calibration(fitted: Any, table: Table) -> dict[str, Any]:
    """Print the confusion matrix and the calibration of the probabilities."""
    import numpy as np
    from sklearn.metrics import confusion_matrix

    from hopefold.evaluation import calibration

    shares = fitted.predict_proba(table)
    named = fitted.classes_[shares.argmax(axis=1)]
    true = np.asarray(table.y)
    strange = ~np.isin(true, fitted.classes_)
    if strange.any():
        shown.print_line(
            f"\n{strange.sum():,} rows are of classes unknown to the model "
            f"({shown.listed(np.unique(true[strange]).tolist())}): all of them count as errors."
        )
    known = fitted.classes_.tolist()
    places = {label: place for place, label in enumerate(known)}
    counts = confusion_matrix(
        [places[label] for label in true[~strange].tolist()],
        [places[label] for label in named[~strange].tolist()],
        labels=range(len(known)),
    )
    shown.print_confusion(fitted.classes_, counts)
    found = calibration(shares, true, fitted.classes_)
    _show_calibration(found)
    return {
        "classes": [str(label) for label in known],
        "confusion": counts.tolist(),
        "calibration": {
            "error": found.error,
            "confidence": found.confidence.tolist(),
            "accuracy": found.accuracy.tolist(),
            "counts": found.counts.tolist(),
        },
    }


def _show_calibration(found: Calibration) -> None:
    bins = zip(found.confidence, found.accuracy, found.counts, strict=True)
    shown.print_table(
        f"Calibration: expected calibration error {shown.percent(found.error)}",
        ("predicted probability, %", "accuracy, %", "rows"),
        [
            (f"{100 * predicted:.1f}", f"{100 * true:.1f}", f"{count:,}")
            for predicted, true, count in bins
        ],
    )


def _speed_ups(fitted: Any, table: Table, references: Table) -> dict[str, SpeedUp]:
    from hopefold.evaluation import counted_speed_up, measured_speed_up

    new, n_rows = table.X[:BRUTE_FORCE_ROWS], references.X.shape[0]
    labels = cast("ndarray", references.y)
    found = {
        "by multiply-adds": counted_speed_up(fitted, n_rows),
        "by the clock, here": measured_speed_up(fitted, references.X, labels, new),
    }
    shown.print_speed_ups(found, n_rows)
    return found
