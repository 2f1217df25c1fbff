"""``hopefold interactions``: which products of features drive a map."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from hopefold.cli import options, outputs, reading, shown
from hopefold.errors import InvalidInput

#: Number of pairs from which a picture shows some.
N_PAIRS = 1_000


def interactions(
    model: options.Model,
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA]",
            help="Rows for ranking the products by their contributions, in total and per class.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="A table (.csv, .tsv, .parquet), .json, or a picture (.png, .svg, .pdf); - is CSV "
            "on standard output. Without it, a table on the screen.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", help="Number of products.")] = 20,
    order: Annotated[
        int | None, typer.Option(metavar="N", help="Only products of N factors.")
    ] = None,
    units: Annotated[
        str,
        typer.Option(
            metavar="standard|data",
            help="Coefficients per standard deviation of the columns, or per unit of the data.",
        ),
    ] = "standard",
    label: options.Label = None,
    drop: options.Drop = None,
    missing: options.Missing = None,
    ignore_extra: options.IgnoreExtra = False,
    image_shape: options.ImageShape = None,
    force: options.Force = False,
) -> None:
    """Show which products of features drive the map."""
    if output is not None:
        endings = (*outputs.TABLES[:3], ".json", *outputs.PICTURES)
        outputs.check_target(output, endings, force=force, reads=[model, *filter(None, [data])])
    shape = options.image_shape(image_shape)
    fitted = reading.load_model(model)
    if not hasattr(fitted, "interactions"):
        raise InvalidInput(
            f"{model} is {shown.title_of(fitted)}, which multiplies no features: fit with "
            "--method hope."
        )
    rows: dict[str, Any] = {}
    if data is not None:
        import numpy as np

        table = reading.read_for(
            fitted, data, label, drop=drop, missing=missing, ignore_extra=ignore_extra
        )
        if table.y is not None:
            table = reading.labeled(fitted, table, data)
        elif not len(fitted.classes_):  # a model without labels predicts no classes
            table = replace(table, y=np.full(table.X.shape[0], "all rows"))
        rows = {"X": table.X, "y": table.y}
    asked = rows | {"units": units, "feature_names": _names(fitted)}
    found = fitted.interactions(top, order=order, **asked)
    if not len(found):
        raise InvalidInput(f"{model} was fitted to constant columns: there are no products.")
    if output is None:
        _show(found, fitted)
        return
    if output.suffix.lower() in outputs.PICTURES:
        _draw(fitted, found, asked, shape, output, by_order=order is not None)
    elif output.suffix.lower() == ".json":
        about = {"units": found.units, "note": found.note, "interactions": found.rows()}
        outputs.write(output, json.dumps(about, indent=2, ensure_ascii=False).encode() + b"\n")
    else:
        lines = found.rows()
        outputs.write_table(output, {name: [line[name] for line in lines] for name in lines[0]}, {})
    if output != outputs.STDOUT:
        shown.print_line(f"wrote {output} ({len(found)} products, {outputs.size(output)})")


def _names(fitted: Any) -> tuple[str, ...] | None:
    """Return names of pixels; ``None`` for the model's own names."""
    from hopefold.explain.term_tables import pixel_names

    shape = reading.columns_of(fitted).image_shape
    if hasattr(fitted, "feature_names_in_") or not shape:
        return None
    return pixel_names(shape)


def _show(found: Any, fitted: Any) -> None:
    from hopefold.explain.term_tables import UNITS

    by = "their contributions on the rows" if found.deviations is not None else "their weight"
    on_screen = ("term", "weight", *(f"y{n + 1}" for n in range(found.coefficients.shape[1])))
    rows = [[_cell(row[name]) for name in on_screen] for row in found.rows()]
    if found.deviations is not None:
        on_screen = ("term", "deviation", *on_screen[2:])
        for row, deviation in zip(rows, found.deviations, strict=True):
            row[1] = _cell(float(deviation))
    if found.deviations is not None and len(found.classes) > 1:
        for row, moved in zip(rows, found.shifts, strict=True):
            ends = sorted({int(moved.argmin()), int(moved.argmax())}, key=lambda k: moved[k])
            row.append(", ".join(f"{found.classes[k]} {moved[k]:+.2g}" for k in ends))
        on_screen = (*on_screen, "moves most")
    title = f"Products that drive the map of {shown.title_of(fitted)}, by {by}"
    shown.print_table(title, on_screen, rows)
    lines = ""
    if len(fitted.map_.layers) > 1:
        lines = ", with all above the products of the first layer linearized"
    elif hasattr(fitted.map_, "W"):
        lines = ", with the sigmoids linearized"
    shown.print_line(f"\ncoefficients are for columns in {UNITS[found.units]}{lines}")
    if found.note:
        shown.print_line(found.note)


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _draw(
    fitted: Any,
    found: Any,
    asked: dict[str, Any],
    shape: tuple[int, int] | None,
    output: Path,
    *,
    by_order: bool,
) -> None:
    from hopefold.data.validation import check_pixels
    from hopefold.explain.explainer import Explainer
    from hopefold.report import interaction_figures

    if shape is not None:
        check_pixels(shape, fitted.n_features_in_)
    shape = shape or reading.columns_of(fitted).image_shape
    if shape is not None and by_order:
        raise InvalidInput(
            "a picture of pixels shows pairs: leave --order out, or ask for a table."
        )
    multiplies = fitted.map_.layers[0].order > 1
    pairs = fitted.interactions(N_PAIRS, order=2, **asked) if multiplies else None
    if shape is None or pairs is None:
        names = _names(fitted) or Explainer(fitted).feature_names()
        figure = interaction_figures.draw_interactions(found, pairs, names)
    else:
        figure = interaction_figures.draw_pixel_pairs(
            fitted.feature_importances_, pairs, fitted.exemplars_, fitted.exemplar_labels_, shape
        )
    outputs.write_figure(output, figure)
