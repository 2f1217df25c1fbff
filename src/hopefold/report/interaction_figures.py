"""Figures of feature interactions: bars and a heat map of columns, lines between pixels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from hopefold.explain.contributions import format_terms
from hopefold.explain.term_tables import Interactions
from hopefold.report.figures import Drawing, plain

if TYPE_CHECKING:
    from numpy import ndarray

#: Maximum number of columns of the heat map, of bars, and of lines over an image.
N_COLUMNS = 15
N_BARS = 20
N_LINES = 25

#: Maximum number of characters of a column name.
LETTERS = 28

BAR = "#2468a8"
LINE = "#d1001f"


def draw_interactions(
    found: Interactions, pairs: Interactions | None = None, names: Sequence[str] = ()
) -> Figure:
    """Draw bars of the feature interactions of a map, and a heat map of pairs of columns.

    Parameters
    ----------
    found : Interactions
        The interactions of the bars, whose length is the deviation on data, or the weight.
    pairs : Interactions, optional
        Products of two columns of the same model (``order=2``), in the same units and on the same
        rows, for the heat map.
    names : sequence of str
        The names of the columns, for the heat map, and shortened for the bars.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import HOPE
    >>> from hopefold.report.interaction_figures import draw_interactions
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HOPE(random_state=0, max_epochs=5).fit(X, y)
    >>> names = ["sepal length", "sepal width", "petal length", "petal width"]
    >>> pairs = model.interactions(order=2, feature_names=names)
    >>> figure = draw_interactions(model.interactions(feature_names=names), pairs, names)

    """
    n_bars = min(len(found), N_BARS)
    height = max(2.6, 1.1 + 0.27 * n_bars)
    shown = _shorter(names or found.names)
    if pairs:
        below = 0.08 * max(map(len, shown))
        height = max(height, 1.1 + 0.22 * min(len(names), N_COLUMNS) + below)
    figure = Drawing(figsize=(13 if pairs else 8, height), layout="constrained")
    axes = figure.subplots(1, 2 if pairs else 1, squeeze=False)[0]
    _draw_bars(axes[0], found, format_terms(found.terms, shown) if names else shown)
    if pairs:
        _draw_heat(figure, axes[1], pairs, shown)
    return figure


def _draw_bars(axes: Any, found: Interactions, names: Sequence[str]) -> None:
    n_bars = min(len(found), N_BARS)
    axes.barh(np.arange(n_bars), _lengths(found)[:n_bars], color=BAR, height=0.7)
    axes.set_yticks(np.arange(n_bars), names[:n_bars])
    axes.set_ylim(max(n_bars, N_BARS // 2) - 0.5, -0.5)  # few bars have the same thickness as many
    axes.set_xlabel(_measure(found))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)


def _lengths(found: Interactions) -> ndarray:
    """Return the importance of each product: its deviation on rows, if there are any."""
    return found.weights if found.deviations is None else found.deviations


def _measure(found: Interactions) -> str:
    return "weight on the map" if found.deviations is None else "standard deviation on the rows"


def _shorter(names: Sequence[str]) -> list[str]:
    """Shorten long names: remove the common prefix and suffix, and limit the length."""
    if max(map(len, names), default=0) <= LETTERS:
        return [plain(name) for name in names]
    start = _shared(names)
    end = _shared([name[start:][::-1] for name in names])
    inner = [
        f"{'…' * (start > 0)}{name[start : len(name) - end]}{'…' * (end > 0)}" for name in names
    ]
    half = LETTERS // 2
    return [
        plain(name if len(name) <= LETTERS else f"{name[:half]}…{name[1 - half :]}")
        for name in inner
    ]


def _shared(names: Sequence[str]) -> int:
    """Return the length of the common prefix of several names."""
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return len(list(alike)) if len(names) > 1 else 0


def _draw_heat(figure: Any, axes: Any, pairs: Interactions, names: Sequence[str]) -> None:
    """Draw a heat map of the columns in the most important pairs."""
    table = pair_weights(pairs, len(names))
    chosen = np.sort(np.argsort(-table.max(axis=0), kind="stable")[:N_COLUMNS])
    image = axes.imshow(table[np.ix_(chosen, chosen)], cmap="Blues", vmin=0)
    shown = [names[column] for column in chosen]
    axes.set_xticks(np.arange(len(chosen)), shown, rotation=90)
    axes.set_yticks(np.arange(len(chosen)), shown)
    axes.set_title(f"pairs: {_measure(pairs)}", fontsize=11)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, shrink=0.7).outline.set_visible(False)


def pair_weights(pairs: Interactions, n_columns: int) -> ndarray:
    """Return the importance of products of two columns as a symmetric matrix."""
    table = np.zeros((n_columns, n_columns))
    for (one, other), weight in zip(pairs.terms, _lengths(pairs), strict=True):
        table[one, other] = table[other, one] = weight
    return table


def draw_pixel_pairs(
    importances: ndarray,
    pairs: Interactions,
    exemplars: ndarray | None,
    labels: ndarray | None,
    image_shape: tuple[int, int],
) -> Figure:
    """Draw the importance of each pixel, and lines between the most important pairs of pixels.

    The lines are the same over the first exemplar of each class. Their opacity is the importance of
    the pair.
    """
    shown = {}
    if exemplars is not None and labels is not None:
        shown = {label: exemplars[labels == label][0] for label in np.unique(labels)}
    n_columns = min(6, 1 + len(shown))
    n_rows = -(-(1 + len(shown)) // n_columns)
    figure = Drawing(figsize=(1.9 * n_columns, 2.15 * n_rows), layout="constrained")
    grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axes in grid:
        axes.set_axis_off()
    grid[0].imshow(importances.reshape(image_shape), cmap="Blues", vmin=0)
    grid[0].set_title("weight of pixels", fontsize=10)
    for axes, (label, exemplar) in zip(grid[1:], shown.items(), strict=False):
        axes.imshow(exemplar.reshape(image_shape), cmap="gray_r", alpha=0.6)
        _draw_lines(axes, pairs, image_shape[1])
        axes.set_title(plain(label), fontsize=10)
    figure.supxlabel(
        "Red: pairs of pixels that are multiplied with each other, for all classes alike; a dot is "
        "a square.\nThe stronger the line, the more important is the pair.",
        fontsize=8,
    )
    return figure


def _draw_lines(axes: Any, pairs: Interactions, width: int) -> None:
    lengths = _lengths(pairs)
    heaviest = lengths[0] if len(pairs) else 1
    for term, weight in list(zip(pairs.terms, lengths, strict=True))[:N_LINES]:
        (y1, x1), (y2, x2) = (divmod(pixel, width) for pixel in term)
        style = {"color": LINE, "alpha": float(weight / heaviest) ** 2}
        if term[0] == term[1]:
            axes.plot([x1], [y1], "o", ms=3, mec="none", **style)
        else:
            axes.plot([x1, x2], [y1, y2], lw=1.4, **style)
