"""``hopefold exemplars``: the compressed data set, in the original units."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from hopefold.cli import options, outputs, reading, shown
from hopefold.errors import InvalidInput, InvalidParameter


def exemplars(
    model: options.Model,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="A table (.csv, .tsv, .parquet, .npz), or a gallery of images (.png, .svg, .pdf); "
            "- is CSV on standard output.",
        ),
    ] = outputs.STDOUT,
    image_shape: options.ImageShape = None,
    force: options.Force = False,
) -> None:
    """Write the exemplars: a table in the original units, or images."""
    outputs.check_target(output, (*outputs.TABLES, *outputs.PICTURES), force=force, reads=[model])
    shape = options.image_shape(image_shape)
    fitted = reading.load_model(model)
    if fitted.exemplars_ is None:
        raise InvalidInput(
            f"{model} has no exemplars, it {'compares with' if len(fitted.classes_) else 'keeps'} "
            f"all {len(fitted.reference_embedding_):,} training rows: fit with --exemplars kmeans, "
            "or --method shope."
        )
    if output.suffix.lower() in outputs.PICTURES:
        _draw(fitted, shape, output)
    else:
        names = getattr(fitted, "feature_names_in_", None)
        if names is None:
            names = [f"x{number}" for number in range(fitted.n_features_in_)]
        columns = {str(n): column for n, column in zip(names, fitted.exemplars_.T, strict=True)}
        arrays = {"X": fitted.exemplars_, "names": names}
        if fitted.exemplar_labels_ is not None:
            label = (fitted.columns_ and fitted.columns_.label) or "class"
            columns = {label: fitted.exemplar_labels_} | columns
            arrays["y"] = fitted.exemplar_labels_
        outputs.write_table(output, columns, arrays)
    if output != outputs.STDOUT:
        what = "landmarks" if fitted.exemplar_labels_ is None else "exemplars"
        shown.print_line(
            f"wrote {output} ({len(fitted.exemplars_)} {what}, {outputs.size(output)})"
        )


def _draw(fitted: Any, shape: tuple[int, int] | None, output: Path) -> None:
    from hopefold.report.figures import draw_gallery

    n_features = fitted.n_features_in_
    shape = shape or reading.columns_of(fitted).image_shape or getattr(fitted, "image_shape", None)
    if shape is None or math.prod(shape) != n_features:
        side = math.isqrt(n_features)
        square = f"; {side} × {side} would fit" if side**2 == n_features else ""
        raise InvalidParameter(
            f"a gallery needs the size of the images, whose pixels are the {n_features} features"
            f"{square}: give --image-shape HEIGHT,WIDTH, or write a table ({output.stem}.csv)."
        )
    figure = draw_gallery(fitted.exemplars_, fitted.exemplar_labels_, shape)
    outputs.write_figure(output, figure)
