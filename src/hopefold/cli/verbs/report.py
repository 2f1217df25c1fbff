"""``hopefold report``: one HTML file with the map, the exemplars and the errors."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopefold.cli import options, outputs, reading, shown
from hopefold.cli.commands import fit_command
from hopefold.errors import InvalidParameter

if TYPE_CHECKING:
    from hopefold.report.scene import Scene


def report(
    model: options.Model,
    data: options.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="REPORT", help="Ends in .html.")
    ],
    label: options.Label = None,
    ids: options.Ids = None,
    drop: options.Drop = None,
    missing: options.Missing = None,
    ignore_extra: options.IgnoreExtra = False,
    image_shape: options.ImageShape = None,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "",
    permutations: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Permutation test: also fit these rows N times with shuffled labels. "
            "20 permutations take as long as 21 fits.",
        ),
    ] = 0,
    force: options.Force = False,
) -> None:
    """Write one HTML file that shows the map, to open offline."""
    outputs.check_target(output, (".html", ".htm"), force=force, reads=[model, data])
    shape = options.image_shape(image_shape)
    fitted = reading.load_model(model)
    table = reading.read_for(
        fitted, data, label, ids=ids, drop=drop, missing=missing, ignore_extra=ignore_extra
    )
    named = len(fitted.classes_) > 0
    y: Any = None
    if named or table.y is not None:
        y = reading.labels_of(table, data, fitted.classes_ if named else None)
    if permutations and not named:
        raise InvalidParameter(
            f"--permutations shuffles labels, and {model} was fitted without labels: leave it out."
        )
    from hopefold.evaluation import permutation_test
    from hopefold.report import words
    from hopefold.report.render import write_report
    from hopefold.report.scene import make_scene

    scene = make_scene(
        fitted,
        table.X,
        y,
        ids=None if table.ids is None else table.ids.tolist(),
        names=None if table.names is None else table.names.tolist(),
        image_shape=shape or table.image_shape or reading.columns_of(fitted).image_shape,
        commands=(
            fit_command(fitted, str(model)),
            _report_command(model, data, label, output),
        ),
        title=title or f"{shown.title_of(fitted)} of {data.name}",
        permutation=permutation_test(fitted, table.X, y, permutations) if permutations else None,
    )
    with outputs.writing(output):
        write_report(scene, output)
    _print_notes(scene)
    rows = words.count(table.X.shape[0], "row")
    shown.print_line(f"wrote {output} ({rows}, {outputs.size(output)})")


def _report_command(model: Path, data: Path, label: str | None, output: Path) -> str:
    words = [str(model), str(data), *([] if label is None else ["--label", label])]
    return " ".join(["hopefold report", *map(quote, [*words, "-o", str(output)])])


def _print_notes(scene: Scene) -> None:
    """Print whether the rows are training rows, and whether the fit has seen the labels."""
    judged = scene.scores or scene.neighbor_scores
    if judged is not None and judged.share_learned:
        end = "."
        if scene.scores is not None:
            end = ": the error shown is that of the rows held out in the fit."
        shown.print_line(f"About {judged.share_learned:.0%} of these rows are training rows{end}")
    if scene.scores is None and not scene.n_classes:
        shown.print_line("No labels are known: --label COLUMN colors the map by a column.")
    elif scene.scores is None:
        shown.print_line("The colors are labels that were not used in the fit.")
