"""Texts of a report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hopefold.fitting.chance import CHANCE
from hopefold.report.scene import Scene
from hopefold.report.scores import N_NEIGHBORS, NeighborScores, Scores
from hopefold.report.titles import title

#: A larger share of rows is shown as all of them: it is estimated from a few.
MOST = 0.95

#: A narrow no-break space.
NARROW = "\u202f"


@dataclass(frozen=True)
class Headline:
    """A figure, its name, and notes."""

    name: str
    value: str
    notes: tuple[str, ...]


def headlines(scene: Scene) -> list[Headline]:
    """Return the figures at the top."""
    found, around = scene.scores, scene.neighbor_scores
    if found is None:
        return [] if around is None else without_labels(around)
    return [
        _error(found),
        _by_exemplars(scene, found),
        *([] if around is None else [kept_neighbors(around)]),
        _compression(found),
        _speed_up(found),
        _verdict(found),
    ]


def summary(scene: Scene) -> str:
    """Return a one-line summary of the map."""
    size = f"{title(scene.method)} map of {count(scene.n_rows, 'row')}"
    columns = count(scene.n_features, "column")
    some = f"; {scene.n_unlabeled:,} of the rows have no label" if scene.n_unlabeled else ""
    if scene.scores is not None:
        return f"{size}, {columns} and {count(scene.n_classes, 'class', 'classes')}{some}"
    if not scene.n_classes:
        return f"{size} and {columns}, learned without labels"
    seen = f"the colors are {count(scene.n_classes, 'label')} that it has not seen"
    return f"{size} and {columns}, learned without labels; {seen}{some}"


def caption(scene: Scene) -> str:
    """Describe points and colors."""
    gray = " Rows without a label are gray." if scene.unlabeled is not None else ""
    if scene.scores is not None:
        guessed = (
            f"{gray[:-1]}: their positions follow the predicted class, right or wrong."
            if gray
            else ""
        )
        return (
            "Each point is a row, in the color of its true class; tints are the class that a row "
            f"is predicted there.{guessed}"
        )
    alike = "rows lie near each other because their columns are alike"
    if not scene.n_classes:
        return f"Each point is a row. There are no labels: {alike}."
    return (
        f"Each point is a row, in the color of its label. The fit never saw the labels: {alike}, "
        f"and a color with a region of its own can be separated by the columns alone.{gray}"
    )


def gallery(scene: Scene) -> str:
    """Describe the exemplars."""
    assert scene.exemplars is not None
    n_shown, n_all = len(scene.exemplars.points), scene.exemplars.n_all
    if scene.exemplars.codes is not None:
        stand = "stands" if n_all == 1 else "stand"
        what = f"{count(n_all, 'synthetic row')} {stand} in for all rows of the training data"
        return f"{what}. Choose one to highlight its region in the map."
    some = f"{n_shown} of the {n_all:,}" if n_shown < n_all else f"The {n_all:,}"
    return (
        f"{some} landmarks, to which the map preserves the distances of rows. "
        "Choose one to highlight the rows that are nearest to it."
    )


def absent(scene: Scene) -> str:
    """Explain what a report without labels does not contain."""
    labels = "The labels shown here were not used in the fit. " if scene.n_classes else ""
    return (
        "The map was learned without labels, so the model has no classes: there are no "
        "predictions, no probabilities, no regions of classes, no confusion of one with another, "
        f"and no error of its own. {labels}A model that was fitted with labels has all these in "
        "its report."
    )


def interactions(scene: Scene) -> str:
    """Describe the panel of feature interactions."""
    what = "The map is a sum of products of columns"
    if scene.method == "SHOPE":
        above = "its sigmoids" if scene.n_layers == 1 else "all above the first layer's products"
        what = f"The map comes close to a sum of products of columns, with {above} linearized"
    return (
        f"{what}, counted in standard deviations from their mean. These vary most on the rows: "
        f"how far they move them in the map{_apart(scene)}. The card of a row shows its own."
    )


def _apart(scene: Scene) -> str:
    if scene.n_classes < 2:
        return ""
    classes = (
        "classes" if scene.scores is not None else "of the labels, which were not used in the fit,"
    )
    return f", and which two {classes} they move farthest apart"


def count(number: int, one: str, many: str | None = None) -> str:
    """Format a count: ``1 row``, ``2,000 rows``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def percent(share: float) -> str:
    """Format a percentage: two digits for a small one, without false precision for a large one."""
    digits = 2 if 0 < share < 0.01 else 1
    return f"{100 * share:.{digits}f}{NARROW}%"


def times(factor: float) -> str:
    """Format a factor: ``0.3 ×``, ``12 ×``, ``2,011 ×``."""
    return (f"{factor:,.0f}" if factor >= 10 else f"{factor:.2g}") + f"{NARROW}×"


def size(n_bytes: int) -> str:
    """Format a size: ``820 B``, ``12 kB``, ``1.1 MB``."""
    if n_bytes < 1_000:
        return f"{n_bytes}{NARROW}B"
    power = min(int(np.log10(n_bytes / 0.9995)) // 3, 3)
    number = n_bytes / 1_000**power
    digits = max(0, 2 - int(np.log10(number)))
    return f"{number:,.{digits}f}{NARROW}{'kMG'[power - 1]}B"


def plain(value: float) -> str:
    """Format a number: four digits of a small one, integers of a large one."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


def _error(found: Scores) -> Headline:
    held_out, interval = found.validation_error, ""
    if found.validation_interval is not None:
        interval = " (between {} and {})".format(*map(percent, found.validation_interval))
    if found.error is None:
        value = "–" if held_out is None else percent(held_out)
        share = 1.0 if found.share_learned is None else found.share_learned
        which = "all" if share > MOST else f"about {share:.0%} of the"
        notes = [f"of rows held out in the fit{interval}; {which} rows given were learned from"]
    else:
        value = percent(found.error)
        new = "not learned from" if found.knows_training else "given, which all count as new"
        notes = [f"{found.n_misclassified:,} of {count(found.n_new, 'row')} {new}"]
        if held_out is not None:
            notes.append(f"{percent(held_out)} of rows held out in the fit{interval}")
    return Headline("Held-out error", value, tuple(notes))


def without_labels(found: NeighborScores) -> list[Headline]:
    """Return the figures of a map that was learned without labels."""
    learned = ["no label was used"]
    if found.share_learned:
        share = "all" if found.share_learned > MOST else f"about {found.share_learned:.0%} of the"
        learned.append(f"{share} rows given are among them")
    elif found.share_learned is not None:
        learned.append("the rows given are new")
    judged = [] if found.error is None or found.guess is None else [_by_neighbors(found)]
    kept = (f"what places a row in the map, for {size(found.baseline.bytes)} of rows",)
    return [
        Headline("Trustworthiness", _trust(found.trust), _of_trust(found)),
        *judged,
        Headline("Learned from", count(found.n_learned, "row"), tuple(learned)),
        Headline("Size", size(found.kept.bytes), kept),
    ]


def _by_neighbors(found: NeighborScores) -> Headline:
    assert found.error is not None
    assert found.guess is not None
    by = "those learned from" if found.by_learned else "the others"
    return Headline(
        "Labels, by 5 neighbors",
        percent(found.error),
        (
            f"misclassified of {count(found.n_scored, 'row')}, each classified by the "
            f"{N_NEIGHBORS} nearest of {by} in the map",
            "no held-out error, as the fit never saw the labels",
            f"predicting the most common label: {percent(found.guess)} misclassified",
        ),
    )


def kept_neighbors(found: NeighborScores) -> Headline:
    """Return the figure of neighbors for a map that was learned with labels, too."""
    share = f"{100 * found.share:.3g}{NARROW}%"
    asked = f"{share} of the loss preserves neighbors, the rest separates classes"
    return Headline("Trustworthiness", _trust(found.trust), (asked, *_of_trust(found)))


def _trust(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _of_trust(found: NeighborScores) -> tuple[str, ...]:
    notes = ["whether neighbors in the map are neighbors in the columns: 1 is best, 0.5 is chance"]
    if found.held_out is not None:
        notes.append(f"{_trust(found.held_out)} of rows held out in the fit, among themselves")
    return tuple(notes)


def _by_exemplars(scene: Scene, found: Scores) -> Headline:
    notes = []
    if scene.exemplars is None:
        name = "Classified by training points"
        notes.append(f"all {found.kept.rows:,} are kept: the model has no exemplars")
    else:
        name = f"Against {count(scene.exemplars.n_all, 'exemplar')}"
    if found.neighbors_error is not None:
        among = "" if found.knows_training else ", each classified by the others"
        error = percent(found.neighbors_error)
        notes.append(f"{error} by the {N_NEIGHBORS} nearest rows in the map{among}")
    if found.train_error is not None:
        notes.append(f"{percent(found.train_error)} of rows learned from")
    return Headline(name, "–" if found.error is None else percent(found.error), tuple(notes))


def _compression(found: Scores) -> Headline:
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


def _speed_up(found: Scores) -> Headline:
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
    """Format a factor: ``12 × smaller``, or ``3 × larger`` for a third."""
    return f"{times(factor)} {more}" if factor >= 1 else f"{times(1 / factor)} {less}"


def _verdict(found: Scores) -> Headline:
    notes = []
    if found.p_value is None or found.guess is None:
        value = "Not known"
        notes.append("no row given is new to the map")
    else:
        value = "Yes" if found.p_value < CHANCE else "Not clearly"
        notes.append(f"predicting the most common class: {percent(found.guess)} misclassified")
        chance = f"p < {CHANCE:g}" if found.p_value < CHANCE else f"p = {found.p_value:.2g}"
        fitted = "" if found.n_new else " of the rows held out in the fit"
        notes.append(f"{chance}, binomial test{fitted}")
    notes.append(permutation_words(found))
    return Headline("Better than guessing?", value, tuple(notes))


def judged(found: Scores) -> str:
    """Describe the rows of the confusion matrix."""
    if not found.n_new:
        return "that were learned from"
    return "not learned from" if found.knows_training else "given"


def permutation_words(found: Scores) -> str:
    """Describe the result of the permutation test, or that it was not run."""
    test = found.permutation
    if test is None:
        return "permutation test not run"
    least = test.permuted_errors.min()
    passed = "passed" if test.error < least else "failed"
    n_shuffled = count(len(test.permuted_errors), "shuffle")
    return (
        f"permutation test {passed}: p = {test.p_value:.2g}; {percent(test.error)} misclassified, "
        f"{percent(least)} or more in {n_shuffled} of the labels"
    )
