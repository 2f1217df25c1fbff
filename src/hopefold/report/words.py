"""The figures of a report, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hopefold.estimators.checks import CHANCE
from hopefold.report.judgement import N_NEIGHBORS, Judgement
from hopefold.report.scene import Scene
from hopefold.report.titles import title

#: A share of rows that is told as all of them: it is a guess from a few.
MOST = 0.95

#: A narrow space at which no line is broken.
NARROW = "\u202f"


@dataclass(frozen=True)
class Headline:
    """A figure, what it is, and lines that go with it."""

    name: str
    value: str
    notes: tuple[str, ...]


def headlines(scene: Scene) -> list[Headline]:
    """The five figures at the head."""
    found = scene.judgement
    return [
        _error(found),
        _by_exemplars(scene),
        _compression(found),
        _speed_up(found),
        _verdict(found),
    ]


def summary(scene: Scene) -> str:
    """What the map is of, in a line."""
    method = title(scene.method)
    return (
        f"{method} map of {count(scene.n_rows, 'row')}, {count(scene.n_features, 'column')} "
        f"and {count(len(scene.classes), 'class', 'classes')}"
    )


def forces(scene: Scene) -> str:
    """What the panel of products shows."""
    what = "The map is a sum of products of columns"
    if scene.method == "SHOPE":
        what = "The map comes close to a sum of products of columns, its sigmoids taken for lines"
    return (
        f"{what}, counted in standard deviations from their mean. These vary most on the rows: "
        "how far they move them in the map, and which two classes they move farthest apart. The "
        "card of a row tells its own."
    )


def no_forces(scene: Scene) -> str:
    """Why there is no panel of products for a map of several layers."""
    return (
        f"This map has {scene.n_layers} high-order layers, one on the other. Products of columns "
        "explain a map of one layer only, so none are told here: fit with n_units as one number to "
        "see them."
    )


def count(number: int, one: str, many: str | None = None) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def percent(share: float) -> str:
    """Two digits of a small share, and no false precision for a large one."""
    digits = 2 if 0 < share < 0.01 else 1
    return f"{100 * share:.{digits}f}{NARROW}%"


def times(factor: float) -> str:
    """``0.3 ×``, ``12 ×``, ``2,011 ×``."""
    return (f"{factor:,.0f}" if factor >= 10 else f"{factor:.2g}") + f"{NARROW}×"


def size(n_bytes: int) -> str:
    """``820 B``, ``12 kB``, ``1.1 MB``."""
    if n_bytes < 1_000:
        return f"{n_bytes}{NARROW}B"
    power = min(int(np.log10(n_bytes / 0.9995)) // 3, 3)
    number = n_bytes / 1_000**power
    digits = max(0, 2 - int(np.log10(number)))
    return f"{number:,.{digits}f}{NARROW}{'kMG'[power - 1]}B"


def plain(value: float) -> str:
    """Four digits of a small number, all before the point of a large one."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


def _error(found: Judgement) -> Headline:
    held_out = found.validation_error
    if found.error is None:
        value = "–" if held_out is None else percent(held_out)
        share = 1.0 if found.share_learned is None else found.share_learned
        which = "all" if share > MOST else f"about {share:.0%} of the"
        notes = [f"of rows held out in the fit; {which} rows given were learned from"]
    else:
        value = percent(found.error)
        new = "not learned from" if found.knows_training else "given, which all count as new"
        notes = [f"{found.n_mistaken:,} of {count(found.n_new, 'row')} {new}"]
        if held_out is not None:
            notes.append(f"{percent(held_out)} of rows held out in the fit")
    return Headline("Held-out error", value, tuple(notes))


def _by_exemplars(scene: Scene) -> Headline:
    found, notes = scene.judgement, []
    if scene.exemplars is None:
        name = "Judged by training points"
        notes.append(f"all {found.kept.rows:,} are kept: the model has no exemplars")
    else:
        name = f"Against {count(len(scene.exemplars.codes), 'exemplar')}"
    if found.neighbors_error is not None:
        among = "" if found.knows_training else ", each judged by the others"
        error = percent(found.neighbors_error)
        notes.append(f"{error} by the {N_NEIGHBORS} nearest rows in the map{among}")
    if found.train_error is not None:
        notes.append(f"{percent(found.train_error)} of rows learned from")
    return Headline(name, "–" if found.error is None else percent(found.error), tuple(notes))


def _compression(found: Judgement) -> Headline:
    rows = found.baseline.rows / found.kept.rows
    smaller = found.baseline.bytes / found.kept.bytes
    return Headline(
        "Compression",
        times(rows),
        (
            f"{count(found.kept.rows, 'row')} for {found.baseline.rows:,}",
            f"{_more(smaller, 'smaller', 'larger')}: {size(found.kept.bytes)} for "
            f"{size(found.baseline.bytes)}",
        ),
    )


def _speed_up(found: Judgement) -> Headline:
    search, whole = found.speed_up
    return Headline(
        "Speed-up over k-NN",
        times(search),
        (
            "search alone, in multiply-adds",
            f"{_more(whole, 'faster', 'slower')} with the map, among "
            f"{count(found.n_learned, 'row')}",
        ),
    )


def _more(factor: float, more: str, less: str) -> str:
    """``12 × smaller``, or ``3 × larger`` of a third."""
    return f"{times(factor)} {more}" if factor >= 1 else f"{times(1 / factor)} {less}"


def _verdict(found: Judgement) -> Headline:
    notes = []
    if found.p_value is None or found.guess is None:
        value = "Not known"
        notes.append("no row given is new to the map")
    else:
        value = "Yes" if found.p_value < CHANCE else "Not clearly"
        notes.append(f"naming the commonest class: {percent(found.guess)} mistaken")
        chance = f"p < {CHANCE:g}" if found.p_value < CHANCE else f"p = {found.p_value:.2g}"
        fitted = "" if found.n_new else " of the rows held out in the fit"
        notes.append(f"{chance}, binomial test{fitted}")
    notes.append(permutation_words(found))
    return Headline("Better than guessing?", value, tuple(notes))


def judged(found: Judgement) -> str:
    """Which rows the confusion is of."""
    if not found.n_new:
        return "that were learned from"
    return "not learned from" if found.knows_training else "given"


def permutation_words(found: Judgement) -> str:
    """What the permutation test says, or that it was not run."""
    test = found.permutation
    if test is None:
        return "permutation test not run"
    least = test.permuted_errors.min()
    passed = "passed" if test.error < least else "failed"
    n_shuffled = count(len(test.permuted_errors), "shuffle")
    return (
        f"permutation test {passed}: p = {test.p_value:.2g}; {percent(test.error)} mistaken, "
        f"{percent(least)} or more in {n_shuffled} of the labels"
    )
