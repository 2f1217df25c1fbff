"""Pictures of what drives a map: bars and a heat map of columns, lines between pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from hopefold.estimators.terms import Interactions
from hopefold.report.figures import Drawing, plain

if TYPE_CHECKING:
    from numpy import ndarray

#: Columns of the heat map, bars, and lines over an image, at the most.
N_COLUMNS = 15
N_BARS = 20
N_LINES = 25

BAR = "#2468a8"
LINE = "#d1001f"


def draw_interactions(
    found: Interactions, pairs: Interactions | None = None, names: Sequence[str] = ()
) -> Figure:
    """Bars of the products that drive a map, and a heat map of pairs of columns.

    Parameters
    ----------
    found : Interactions
        The bars: as long as the term varies on data, or as its weight.
    pairs : Interactions, optional
        Products of two columns of the same model (``order=2``), for the heat map.
    names : sequence of str
        What the columns are called, for the heat map.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import HOPE
    >>> from hopefold.report.drivers import draw_interactions
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HOPE(random_state=0, max_epochs=5).fit(X, y)
    >>> names = ["sepal length", "sepal width", "petal length", "petal width"]
    >>> pairs = model.interactions(order=2, feature_names=names)
    >>> figure = draw_interactions(model.interactions(feature_names=names), pairs, names)

    """
    n_bars = min(len(found), N_BARS)
    height = max(2.6, 1.1 + 0.27 * n_bars)
    figure = Drawing(figsize=(12 if pairs else 7, height), layout="constrained")
    axes = figure.subplots(1, 2 if pairs else 1, squeeze=False)[0]
    _draw_bars(axes[0], found, n_bars)
    if pairs:
        _draw_heat(figure, axes[1], pairs, names)
    return figure


def _draw_bars(axes: Any, found: Interactions, n_bars: int) -> None:
    on_data = found.deviations is not None
    lengths = found.weights if found.deviations is None else found.deviations
    axes.barh(np.arange(n_bars), lengths[:n_bars], color=BAR, height=0.7)
    axes.set_yticks(np.arange(n_bars), [plain(name) for name in found.names[:n_bars]])
    axes.invert_yaxis()
    axes.set_xlabel("standard deviation on the rows" if on_data else "weight on the map")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)


def _draw_heat(figure: Any, axes: Any, pairs: Interactions, names: Sequence[str]) -> None:
    """Weights of pairs of the columns that are in the heaviest ones."""
    table = pair_weights(pairs, len(names))
    chosen = np.sort(np.argsort(-table.max(axis=0), kind="stable")[:N_COLUMNS])
    image = axes.imshow(table[np.ix_(chosen, chosen)], cmap="Blues", vmin=0)
    shown = [plain(names[column]) for column in chosen]
    axes.set_xticks(np.arange(len(chosen)), shown, rotation=90)
    axes.set_yticks(np.arange(len(chosen)), shown)
    axes.set_title("weight of pairs", fontsize=11)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, shrink=0.7).outline.set_visible(False)


def pair_weights(pairs: Interactions, n_columns: int) -> ndarray:
    """The weights of products of two columns as a symmetric table; 0 where there is none."""
    table = np.zeros((n_columns, n_columns))
    for (one, other), weight in zip(pairs.terms, pairs.weights, strict=True):
        table[one, other] = table[other, one] = weight
    return table


def draw_pixel_pairs(
    importances: ndarray,
    pairs: Interactions,
    exemplars: ndarray | None,
    labels: ndarray | None,
    image_shape: tuple[int, int],
) -> Figure:
    """How much each pixel matters, and lines between the pixels of the heaviest pairs.

    The lines lie over the first exemplar of each class; the heavier a pair, the stronger its line.
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
    return figure


def _draw_lines(axes: Any, pairs: Interactions, width: int) -> None:
    heaviest = pairs.weights[0] if len(pairs) else 1
    for term, weight in list(zip(pairs.terms, pairs.weights, strict=True))[:N_LINES]:
        (y1, x1), (y2, x2) = (divmod(pixel, width) for pixel in term)
        style = {"color": LINE, "alpha": float(weight / heaviest) ** 2}
        if term[0] == term[1]:
            axes.plot([x1], [y1], "o", ms=3, mec="none", **style)
        else:
            axes.plot([x1, x2], [y1, y2], lw=1.4, **style)
