"""``hopefold compare``: HOPE, S-HOPE and baselines on the same split."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopefold.cli import options, outputs, shown
from hopefold.cli.verbs.fit import make, read
from hopefold.errors import InvalidInput, InvalidParameter
from hopefold.report.titles import title
from hopefold.specification import METHODS

if TYPE_CHECKING:
    from numpy import ndarray

    from hopefold.data.tables import Table


@dataclass(frozen=True)
class Outcome:
    """The results of a method on the split."""

    name: str
    points: ndarray
    exemplars: ndarray | None
    misclassified: ndarray
    knn_error: float
    kept: int
    seconds: float


@dataclass(frozen=True)
class Split:
    """Training rows and test rows."""

    train: Table
    test: Table


def compare(
    data: options.Data,
    label: options.Label = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="PICTURE", help="Ends in .png, .svg or .pdf.")
    ] = Path("maps.png"),
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="May be repeated; default: all methods.", autocompletion=options.complete_method
        ),
    ] = None,
    test_fraction: Annotated[
        float, typer.Option(metavar="SHARE", help="Fraction of the rows that is the test set.")
    ] = 0.3,
    max_epochs: Annotated[
        int | None, typer.Option(min=1, help="For methods that train in epochs.")
    ] = None,
    random_state: options.Seed = 0,
    ids: options.Ids = None,
    drop: options.Drop = None,
    encode: options.Encode = False,
    missing: options.Missing = None,
    force: options.Force = False,
) -> None:
    """Fit HOPE, S-HOPE and baselines to the same rows.

    Prints a table of their errors, and draws their maps side by side.
    """
    kinds = [options.find_method(name) for name in method or _usual_order()]
    outputs.check_target(output, outputs.PICTURES, force=force, reads=[data])
    if not 0 < test_fraction < 1:
        raise InvalidParameter(f"--test-fraction {test_fraction}: give a number from 0 to 1.")
    table = read(data, label, ids=ids, drop=drop, encode=encode, missing=missing)
    split = _split(table, test_fraction, random_state)
    n_train, n_test = split.train.X.shape[0], split.test.X.shape[0]
    shown.print_line(f"{data}: {n_train:,} training rows, {n_test:,} test rows")
    settings = {"random_state": random_state, "max_epochs": max_epochs}
    outcomes = [_run(kind, settings, split) for kind in _with_progress(kinds)]
    _show(outcomes, split)
    _draw(outcomes, split, output, str(data))
    shown.print_line(f"wrote {output} ({outputs.size(output)})")


def _usual_order() -> list[str]:
    """Return all methods, S-HOPE and HOPE first."""
    return sorted(options.methods(), key=lambda name: (name != "shope", name != "hope", name))


def _split(table: Table, test_fraction: float, seed: int) -> Split:
    import numpy as np
    from sklearn.model_selection import train_test_split

    from hopefold.data.labels import check_classes
    from hopefold.data.missing_values import some_rows

    y = np.asarray(table.y)
    classes, counts = np.unique(y, return_counts=True)
    check_classes(classes, len(y))
    if counts.min() < 2:
        rare = classes[counts.argmin()]
        raise InvalidInput(
            f"class {rare!s} has one row, which cannot be in the training set and in the test set: "
            "add rows, or drop it."
        )
    try:
        _, test = train_test_split(
            np.arange(len(y)), test_size=test_fraction, stratify=y, random_state=seed
        )
    except ValueError as error:
        raise InvalidParameter(
            f"--test-fraction {test_fraction} of {len(y)} rows leaves too few for {len(classes)} "
            "classes in one of the sets: choose another fraction."
        ) from error
    tested = np.isin(np.arange(len(y)), test)
    return Split(some_rows(table, ~tested), some_rows(table, tested))


def _with_progress(kinds: list[str]) -> Iterator[str]:
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(kinds))
        for kind in kinds:
            progress.update(task, description=title(kind))
            yield kind
            progress.advance(task)


def _run(kind: str, settings: dict[str, Any], split: Split) -> Outcome:
    import numpy as np

    from hopefold.evaluation import kept_by_model, knn_error

    known = METHODS[kind].defaults()
    mine = {name: value for name, value in settings.items() if name in known and value is not None}
    model = make(kind, mine | {"n_components": 2}, split.train)
    start = time.perf_counter()
    model.fit(split.train)
    seconds = time.perf_counter() - start
    points = model.transform(split.test)
    y, y_test = np.asarray(split.train.y), np.asarray(split.test.y)
    return Outcome(
        title(kind),
        points,
        model.exemplar_embedding_,
        model.predict(split.test) != y_test,
        knn_error(model.transform(split.train), y, points, y_test),
        kept_by_model(model).bytes,
        seconds,
    )


def _show(outcomes: list[Outcome], split: Split) -> None:
    from scipy import sparse

    from hopefold.data.scaling import learn_scale
    from hopefold.evaluation import kept_by_neighbors, knn_error

    rows = []
    train, test = split.train, split.test
    if not sparse.issparse(train.X):
        scale = learn_scale(train.X, "auto")
        error = knn_error(scale.apply(train.X), train.y, scale.apply(test.X), test.y)  # type: ignore[arg-type]
        kept = kept_by_neighbors(train.X).bytes
        rows.append(("all columns, scaled", "–", shown.percent(error), f"{kept:,}", "–"))
    rows += [
        (
            one.name,
            shown.percent(one.misclassified.mean()),
            shown.percent(one.knn_error),
            f"{one.kept:,}",
            f"{one.seconds:.1f}",
        )
        for one in outcomes
    ]
    shown.print_table(
        "Test error in two dimensions",
        ("", "predict", "5-NN", "bytes kept", "seconds"),
        rows,
    )


def _draw(outcomes: list[Outcome], split: Split, output: Path, data: str) -> None:
    import numpy as np

    from hopefold.report.figures import Panel, draw_maps

    panels = [
        Panel(
            one.points,
            np.asarray(split.test.y),
            one.exemplars,
            one.misclassified,
            f"{one.name}: {shown.percent(one.misclassified.mean())}",
        )
        for one in outcomes
    ]
    n_columns = min(len(panels), 4 if len(panels) > 6 else 3)
    title = f"{data}: test rows in the maps, and test errors"
    outputs.write_figure(output, draw_maps(panels, title=title, n_columns=n_columns), dpi=100)
