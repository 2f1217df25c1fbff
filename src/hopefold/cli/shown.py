"""What verbs print: short, within 80 columns, and the same when it goes to a file."""

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


def show(renderable: Any) -> None:
    """A table as lines of text, without spaces at their ends."""
    from rich.console import Console

    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(renderable)
    for line in captured.get().splitlines():
        say(line.rstrip())


def say(line: str) -> None:
    """A line, whatever is in it, however long."""
    with writing(STDOUT):
        print(line, flush=True)


def tell(line: str) -> None:
    """A remark that does not belong to the results."""
    print(line, file=sys.stderr, flush=True)


def percent(share: float) -> str:
    """2.35 %: as all errors are told."""
    return f"{100 * share:.2f} %"


def title_of(model: Any) -> str:
    """What people call the method."""
    return title(type(model).__name__)


def facts(rows: Mapping[str, str]) -> None:
    """Names and values, one a line."""
    from rich.table import Table as Grid

    grid = Grid.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows.items():
        grid.add_row(_safe(f"  {name}"), _safe(value))
    show(grid)


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table whose first column has words and whose others have numbers."""
    from rich import box
    from rich.table import Table as Grid

    say(f"\n{title}")
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, heading in enumerate(headings):
        grid.add_column(_safe(heading), justify="right" if number else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(_safe(_cell(cell)) for cell in row))
    show(grid)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return percent(value)
    return f"{value:,}" if isinstance(value, int) else value or ""


def _safe(text: str) -> Any:
    """User's text is no markup, and no word to the terminal."""
    from rich.text import Text

    return Text(without_controls(text))


def without_controls(text: str) -> str:
    """The text without signs that a terminal would obey; lines stay lines."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(sign) == "Cc" and sign != "\n" else sign
        for sign in text
    )


def summary(model: Any, data: Table | None, source: str, seconds: float) -> None:
    """What was learned, from what, and how good it is; less, of files that were read in parts."""
    from hopefold.data.validation import is_marker

    n_rows, n_columns = model.n_rows_, model.n_features_in_
    say(
        f"{title_of(model)} of {source}: {n_rows:,} rows, {n_columns:,} "
        f"feature{'s' * (n_columns != 1)}, {n_classes(model)}"
    )
    rows = {"classes": listed(model.classes_.tolist())} if len(model.classes_) else {}
    if data is not None:
        rows |= _reading(data)
    if model.validation_error_ is not None:
        guessing = "" if data is None else f" (guessing: {_guessing(model, data)})"
        which = "labelled rows" if is_marker(getattr(model, "missing_label", ())) else "rows"
        rows["held-out error"] = (
            f"{percent(model.validation_error_)}, on {100 * model.validation_fraction:g} % of the "
            f"{which}{guessing}"
        )
    if model.train_error_ is not None:
        rows["training error"] = percent(model.train_error_)
    rows |= neighbours(model)
    if getattr(model, "n_units", None) == "auto" and len(model.map_.layers) > 1:
        rows["layers"] = (
            f"{len(model.map_.layers)}; for explanations, which take one: --n-units 600"
        )
    if model.exemplars_ is not None and not len(model.classes_):
        rows["landmarks"] = f"{len(model.exemplars_)}, spread over the {n_rows:,} rows"
    elif model.exemplars_ is not None:
        rows["exemplars"] = f"{len(model.exemplars_)} stand in for {n_rows:,} rows"
    rows["time"] = f"{seconds:.1f} s, {model.n_iter_} epoch{'s' * (model.n_iter_ != 1)}"
    facts(rows)


def _reading(data: Table) -> dict[str, str]:
    """What became of the columns of a table."""
    rows, encoded = {}, data.columns.values
    if encoded:
        rows["encoded"] = listed([f"{name} ({len(values)})" for name, values in encoded.items()])
    if data.n_dropped:
        rows["missing"] = left_out(data)
    if data.columns.fills is not None:
        rows["missing"] = "filled with the mean of the column"
    return rows


def _guessing(model: Any, data: Table) -> str:
    """The error of whoever always names the commonest class."""
    import numpy as np

    from hopefold.evaluation import labelled_rows

    labels = np.asarray(data.y)
    _, counts = np.unique(labels[labelled_rows(model, labels)], return_counts=True)
    return percent(1 - counts.max() / counts.sum())


def n_classes(model: Any) -> str:
    """How many classes there are, in words."""
    return f"{len(model.classes_)} classes" if len(model.classes_) else "no labels"


def neighbours(model: Any) -> dict[str, str]:
    """Whether neighbours were to be kept, and how far they can be trusted."""
    if not getattr(model, "structure_", 0):
        return {}
    rows = {"neighbours": of_the_loss(model.structure_)}
    if model.trustworthiness_ is not None:
        rows["trustworthiness"] = trust(model.trustworthiness_)
    return rows


def of_the_loss(structure: float) -> str:
    """How much it mattered in training that neighbours are kept."""
    return f"{100 * structure:g} % of the loss asks to keep them"


def trust(trustworthiness: float) -> str:
    """How far neighbours in the map are neighbours."""
    return f"{trustworthiness:.3f} of 1, on held-out rows"


def left_out(data: Table) -> str:
    """How many rows had gaps."""
    rows = f"{data.n_dropped:,} row{'s' * (data.n_dropped != 1)}"
    return f"{rows} with missing values left out"


def listed(values: Sequence[Any], most: int = 10) -> str:
    """Some of them, and how many there are."""
    text = ", ".join(repr(one) if ", " in str(one) else str(one) for one in values[:most])
    return text + (f", … ({len(values):,} in all)" if len(values) > most else "")


def times(factor: float) -> str:
    """As many times, told as finely as it matters."""
    return f"{factor:,.0f} ×" if factor >= 100 else f"{factor:.2g} ×"


def speed_ups(found: Mapping[str, SpeedUp], n_rows: int) -> None:
    """Against brute-force 5-NN: counted and measured, the search alone and end to end."""
    table(
        f"Speed-up over brute-force 5-NN among {n_rows:,} rows",
        ("", "search only", "end to end"),
        [(name, times(one.search_only), times(one.end_to_end)) for name, one in found.items()],
    )


def confusion(classes: ndarray, counts: ndarray) -> None:
    """Who is taken for whom: a matrix while it fits the screen, else what happens most often."""
    import numpy as np

    names = [str(label) for label in classes]
    width = max(len(name) for name in names)
    if width + len(names) * (max(width, 4) + 2) <= 76:
        rows = [
            (name, *(f"{count:,}" if count else "·" for count in row))
            for name, row in zip(names, counts, strict=True)
        ]
        table("True classes (rows) and what they are taken for", ("", *names), rows)
        return
    wrong = counts - np.diag(np.diag(counts))
    order = [
        place for place in np.argsort(-wrong, axis=None, kind="stable")[:10] if wrong.flat[place]
    ]
    if not order:
        say("\nno row is taken for another class")
        return
    pairs = [np.unravel_index(place, wrong.shape) for place in order]
    rows = [(names[a], names[b], f"{wrong[a, b]:,}", f"{counts[a].sum():,}") for a, b in pairs]
    table("Most frequent confusions", ("true class", "taken for", "rows", "of"), rows)
