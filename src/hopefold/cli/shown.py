"""What verbs print: at most 80 columns, on a terminal and in a file alike."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hopefold.cli.outputs import STDOUT, writing
from hopefold.report.titles import title

if TYPE_CHECKING:
    from numpy import ndarray

    from hopefold.data.tables import Table
    from hopefold.evaluation import SpeedUp


def print_rich(renderable: Any) -> None:
    """Print a Rich object as lines of text, without trailing spaces."""
    from rich.console import Console

    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(renderable)
    for line in captured.get().splitlines():
        print_line(line.rstrip())


def print_line(line: str) -> None:
    """Print a line as it is, of any length."""
    with writing(STDOUT):
        print(line, flush=True)


def print_remark(line: str) -> None:
    """Print a remark to standard error: it is not part of the results."""
    print(line, file=sys.stderr, flush=True)


#: An error whose confidence interval is wider was measured on too few rows.
VAGUE = 0.2


def percent(share: float) -> str:
    """Format an error: 2.35 %."""
    return f"{100 * share:.2f} %"


def title_of(model: Any) -> str:
    """Return the name of the method as papers write it."""
    return title(type(model).__name__)


def print_facts(rows: Mapping[str, str]) -> None:
    """Print names and values, one pair per line."""
    from rich.table import Table as Grid

    grid = Grid.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows.items():
        grid.add_row(_safe(f"  {name}"), _safe(value))
    print_rich(grid)


def print_rows(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of words."""
    from rich import box
    from rich.table import Table as Grid

    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in headings:
        grid.add_column(_safe(heading), overflow="fold")
    for row in rows:
        grid.add_row(*map(_safe, row))
    print_rich(grid)


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table with words in the first column and numbers in the others."""
    from rich import box
    from rich.table import Table as Grid

    print_line(f"\n{title}")
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, heading in enumerate(headings):
        grid.add_column(_safe(heading), justify="right" if number else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(_safe(_cell(cell)) for cell in row))
    print_rich(grid)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return percent(value)
    return f"{value:,}" if isinstance(value, int) else value or ""


def _safe(text: str) -> Any:
    """Return text that is neither markup nor a control sequence."""
    from rich.text import Text

    return Text(without_controls(text))


def without_controls(text: str) -> str:
    """Replace control characters, except line ends."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(sign) == "Cc" and sign != "\n" else sign
        for sign in text
    )


def print_summary(model: Any, data: Table | None, source: str, seconds: float) -> None:
    """Print what was learned, from which rows, and the errors."""
    n_rows, n_columns = model.n_rows_, model.n_features_in_
    print_line(
        f"{title_of(model)} of {source}: {n_rows:,} rows, {n_columns:,} "
        f"feature{'s' * (n_columns != 1)}, {n_classes(model)}"
    )
    rows = {"classes": listed(model.classes_.tolist())} if len(model.classes_) else {}
    if data is not None:
        rows |= _reading(data)
    if model.validation_error_ is not None:
        guessing = "" if data is None else f" (majority: {_majority_error(model, data)})"
        found = model.validation_interval_, model.n_held_out_, model.n_rows_
        rows["held-out error"] = held_out_text(model.validation_error_, *found) + guessing
    if model.train_error_ is not None:
        rows["training error"] = percent(model.train_error_)
    if model.calibration_error_ is not None:
        rows["calibration error"] = calibration_text(model.calibration_error_)
    rows |= neighbor_facts(model)
    if getattr(model, "n_units", None) == "auto" and len(model.map_.layers) > 1:
        rows["layers"] = str(len(model.map_.layers))
    if model.exemplars_ is not None and not len(model.classes_):
        rows["landmarks"] = f"{len(model.exemplars_)}, for {n_rows:,} rows"
    elif model.exemplars_ is not None:
        rows["exemplars"] = f"{len(model.exemplars_)} for {n_rows:,} rows"
    rows["time"] = f"{seconds:.1f} s, {model.n_iter_} epoch{'s' * (model.n_iter_ != 1)}"
    print_facts(rows)


def _reading(data: Table) -> dict[str, str]:
    """Return how the columns of a table were read."""
    rows, encoded = {}, data.columns.values
    if encoded:
        rows["encoded"] = listed([f"{name} ({len(values)})" for name, values in encoded.items()])
    if data.n_dropped:
        rows["missing"] = rows_left_out(data)
    if data.columns.fills is not None:
        rows["missing"] = "filled with the mean of the column"
    return rows


def _majority_error(model: Any, data: Table) -> str:
    """Return the error of always predicting the most frequent class."""
    import numpy as np

    from hopefold.evaluation import labeled_rows

    labels = np.asarray(data.y)
    _, counts = np.unique(labels[labeled_rows(model, labels)], return_counts=True)
    return percent(1 - counts.max() / counts.sum())


def n_classes(model: Any) -> str:
    """Return the number of classes, in words."""
    return f"{len(model.classes_)} classes" if len(model.classes_) else "no labels"


def neighbor_facts(model: Any) -> dict[str, str]:
    """Return the weight of the neighbors in the loss, and their trustworthiness."""
    if not getattr(model, "structure_", 0):
        return {}
    rows = {"neighbors": loss_share(model.structure_)}
    if model.trustworthiness_ is not None:
        rows["trustworthiness"] = trustworthiness_text(model.trustworthiness_)
    return rows


def loss_share(structure: float) -> str:
    """Format the weight of the neighbors in the loss."""
    return f"{100 * structure:g} % of the loss"


def trustworthiness_text(trustworthiness: float) -> str:
    """Format the trustworthiness of the neighbors."""
    return f"{trustworthiness:.3f} of 1, on held-out rows"


def held_out_text(
    error: float, interval: Sequence[float] | None, n_held_out: int | None, n_rows: int | None
) -> str:
    """Format the error on held-out rows, with its confidence interval."""
    if interval is None or n_held_out is None:  # a model file of an earlier version
        return percent(error)
    low, high = interval
    where = f"on {n_held_out:,} rows"
    if n_held_out == n_rows:
        where = f"each of {n_rows:,} rows held out once"
    vague = ": too few rows to tell" if high - low > VAGUE else ""
    return f"{percent(error)}, between {100 * low:.1f} and {100 * high:.1f} %{vague}; {where}"


def calibration_text(error: float) -> str:
    """Format the calibration error of the probabilities."""
    return f"{percent(error)}, on held-out rows"


def rows_left_out(data: Table) -> str:
    """Format the number of rows left out."""
    rows = f"{data.n_dropped:,} row{'s' * (data.n_dropped != 1)}"
    return f"{rows} with missing values left out"


def listed(values: Sequence[Any], most: int = 10) -> str:
    """Return the first values, and the number of all."""
    text = ", ".join(repr(one) if ", " in str(one) else str(one) for one in values[:most])
    return text + (f", … ({len(values):,} in all)" if len(values) > most else "")


def ratio(factor: float) -> str:
    """Format a ratio with two digits, or as a whole number from 100 on."""
    return f"{factor:,.0f} ×" if factor >= 100 else f"{factor:.2g} ×"


def print_speed_ups(found: Mapping[str, SpeedUp], n_rows: int) -> None:
    """Print the speed-up over brute-force 5-NN: search alone, and end to end."""
    print_table(
        f"Speed-up over brute-force 5-NN among {n_rows:,} rows",
        ("", "search only", "end to end"),
        [(name, ratio(one.search_only), ratio(one.end_to_end)) for name, one in found.items()],
    )


def print_confusion(classes: ndarray, counts: ndarray) -> None:
    """Print the confusion matrix, or the most frequent confusions if it is too wide."""
    import numpy as np

    names = [str(label) for label in classes]
    width = max(len(name) for name in names)
    if width + len(names) * (max(width, 4) + 2) <= 76:
        rows = [
            (name, *(f"{count:,}" if count else "·" for count in row))
            for name, row in zip(names, counts, strict=True)
        ]
        print_table(
            "Confusion matrix: true classes (rows), predicted classes (columns)", ("", *names), rows
        )
        return
    wrong = counts - np.diag(np.diag(counts))
    order = [
        place for place in np.argsort(-wrong, axis=None, kind="stable")[:10] if wrong.flat[place]
    ]
    if not order:
        print_line("\nno row is misclassified")
        return
    pairs = [np.unravel_index(place, wrong.shape) for place in order]
    rows = [(names[a], names[b], f"{wrong[a, b]:,}", f"{counts[a].sum():,}") for a, b in pairs]
    print_table("Most frequent confusions", ("true class", "predicted as", "rows", "of"), rows)
