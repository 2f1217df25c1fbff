"""Static figures: the map with its exemplars, and the exemplars as a gallery of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.cluster import DBSCAN

from hopefold.core.neighbors import decide
from hopefold.errors import InvalidInput, InvalidParameter
from hopefold.report.frame import frame
from hopefold.report.palette import EXEMPLAR_COLOR, class_colors

if TYPE_CHECKING:
    from numpy import ndarray


#: Number of images per line if they have no classes.
ACROSS = 16


class Drawing(Figure):
    """A figure that notebooks display with any matplotlib backend."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=100)
        return buffer.getvalue()


@dataclass(frozen=True)
class Panel:
    """The contents of one map in a figure: see `draw_map`."""

    points: ndarray
    labels: ndarray | None = None
    exemplars: ndarray | None = None
    misclassified: ndarray | None = None
    title: str = ""


def plot_model(model: Any, points: ndarray, y: Any) -> Figure:
    """Draw the map of rows under a fitted model, for the ``plot`` method."""
    labels = None if y is None else np.asarray(y)
    if labels is None and len(model.classes_):
        raise InvalidInput("give y, the labels of the rows: the map marks misclassified rows.")
    if labels is not None and labels.shape != (len(points),):
        raise InvalidInput(f"there are {len(points)} rows and labels of shape {labels.shape}.")
    if points.shape[1] != 2:
        raise InvalidParameter(
            f"a map of two dimensions can be drawn, but this one has {points.shape[1]}: "
            "fit with n_components=2."
        )
    name = type(model).__name__
    if not len(model.classes_):
        title = f"{name}, learned without labels: {len(points):,} rows"
        return draw_map(points, labels, title=title)
    misclassified = model.classes_[decide(points, *model.references())] != labels
    title = f"{name}: {misclassified.sum():,} of {len(points):,} rows misclassified"
    return draw_map(points, labels, model.exemplar_embedding_, misclassified, title=title)


def draw_map(
    points: ndarray,
    labels: ndarray | None = None,
    exemplars: ndarray | None = None,
    misclassified: ndarray | None = None,
    *,
    title: str = "",
) -> Figure:
    """Draw points colored by label, misclassified ones as crosses, exemplars as red circles.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
        The points of the rows.
    labels : ndarray of shape (n,), optional
        Their true labels. Without them, all points have one color.
    exemplars : ndarray of shape (z, 2), optional
        The points of the exemplars.
    misclassified : boolean ndarray of shape (n,), optional
        Points whose predicted label is wrong.
    title : str, optional
        The title of the figure.

    Examples
    --------
    >>> import numpy as np
    >>> from hopefold.report.figures import draw_map
    >>> figure = draw_map(np.zeros((2, 2)), np.array(["a", "b"]))

    """
    figure = Drawing(figsize=(7, 7), layout="constrained")
    _draw_panel(figure.add_subplot(), Panel(points, labels, exemplars, misclassified, title))
    return figure


def draw_maps(panels: Sequence[Panel], *, title: str = "", n_columns: int = 2) -> Figure:
    """Draw several maps in one figure, row by row.

    In vector formats the points are rasterized: thousands of circles would make a large file.
    """
    n_rows = -(-len(panels) // n_columns)
    size = (5 * n_columns, 5.2 * n_rows + 0.4)
    figure = Drawing(figsize=size, layout="constrained")
    for number, panel in enumerate(panels, start=1):
        axes = figure.add_subplot(n_rows, n_columns, number)
        _draw_panel(axes, panel, rasterized=True)
    if title:
        figure.suptitle(title, fontsize="x-large")
    return figure


def _draw_panel(axes: Any, panel: Panel, *, rasterized: bool = False) -> None:
    points, exemplars = panel.points, panel.exemplars
    labels = np.zeros(len(points), int) if panel.labels is None else panel.labels
    misclassified = (
        np.zeros(len(points), bool) if panel.misclassified is None else panel.misclassified
    )
    classes = np.unique(labels)
    colors = class_colors(len(classes))
    if panel.labels is None:
        classes, colors = classes[:0], ()
    _draw_points(axes, points, labels, misclassified, rasterized=rasterized)
    for label, color in zip(classes, colors, strict=True):
        box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": color, "alpha": 0.9}
        center = np.median(points[labels == label], axis=0)
        axes.annotate(
            plain(label), center, (10, 10), textcoords="offset points", fontsize=11, bbox=box
        )
    legend = {}
    if misclassified.any():
        legend[f"{misclassified.sum():,} misclassified"] = Line2D(
            [], [], marker="x", color="none", mec="0.2"
        )
    if exemplars is not None:
        axes.scatter(
            exemplars[:, 0],
            exemplars[:, 1],
            s=90,
            facecolors="none",
            edgecolors=EXEMPLAR_COLOR,
            linewidths=1.6,
        )
        legend[_exemplars_in_places(exemplars, points)] = Line2D(
            [], [], marker="o", color="none", mec=EXEMPLAR_COLOR, mfc="none", ms=8, mew=1.6
        )
    low, high = frame(points)
    outside = ~((points >= low) & (points <= high)).all(axis=1)
    if outside.any():
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        legend[f"{outside.sum():,} far outside the frame"] = Line2D([], [], color="none")
    if legend:
        axes.legend(legend.values(), legend.keys(), loc="best", frameon=False)
    axes.set(title=panel.title, xticks=[], yticks=[])
    axes.set_aspect("equal", adjustable="box" if outside.any() else "datalim")
    axes.spines[:].set_color("#cccccc")


def _draw_points(
    axes: Any, points: ndarray, labels: ndarray, misclassified: ndarray, *, rasterized: bool
) -> None:
    """Draw points with one color per class, and misclassified ones as crosses on top."""
    classes = np.unique(labels)
    size = float(np.clip(20_000 / max(len(points), 1), 2, 24))
    right = {"s": size, "alpha": 0.75, "linewidths": 0}
    wrong = {"s": 2 * size, "marker": "x", "linewidths": 1.4, "zorder": 5}
    for label, color in zip(classes, class_colors(len(classes)), strict=True):
        for which, style in ((~misclassified, right), (misclassified, wrong)):
            x, y = points[(labels == label) & which].T
            axes.scatter(x, y, color=color, rasterized=rasterized, **style)


def draw_gallery(
    exemplars: ndarray,
    labels: ndarray | None,
    image_shape: tuple[int, int],
    *,
    limits: tuple[float, float] | None = None,
    title: str = "",
) -> Figure:
    """Draw the exemplars as images: one column per class, one row for each of its exemplars.

    Landmarks of a map without labels (``labels`` None) fill line after line. ``limits`` are the
    values of white and black, preferably those of the data; by default the minimum and maximum of
    the exemplars.
    """
    return draw_galleries({title: (exemplars, labels)}, image_shape, limits=limits)


def draw_galleries(
    galleries: Mapping[str, tuple[ndarray, ndarray | None]],
    image_shape: tuple[int, int],
    *,
    limits: tuple[float, float] | None = None,
    title: str = "",
) -> Figure:
    """Draw several galleries of exemplars, each with a title: exemplars and their labels.

    ``limits`` as in `draw_gallery`.
    """
    columns = {
        name: np.arange(len(images)) % ACROSS if labels is None else labels
        for name, (images, labels) in galleries.items()
    }
    shapes = [np.unique(labels, return_counts=True)[1] for labels in columns.values()]
    heights = [counts.max() + 0.9 for counts in shapes]
    width = 1 + max(len(counts) for counts in shapes)
    figure = Drawing(figsize=(width, sum(heights) + 0.4 * bool(title)), layout="constrained")
    parts = figure.subfigures(len(galleries), height_ratios=heights, squeeze=False)[:, 0]
    for part, (name, (exemplars, labels)) in zip(parts, galleries.items(), strict=True):
        named = labels is not None
        _draw_images(part, exemplars, columns[name], image_shape, limits, named=named)
        if name:
            part.suptitle(name)
    if title:
        figure.suptitle(title, fontsize="x-large")
    return figure


def _draw_images(
    figure: Any,
    exemplars: ndarray,
    labels: ndarray,
    image_shape: tuple[int, int],
    limits: tuple[float, float] | None,
    *,
    named: bool,
) -> None:
    classes, counts = np.unique(labels, return_counts=True)
    n_rows = counts.max()
    grid = figure.subplots(n_rows, len(classes), squeeze=False)
    low, high = limits or (exemplars.min(), exemplars.max())
    for column, label in enumerate(classes):
        mine = exemplars[labels == label]
        for row in range(n_rows):
            axes = grid[row, column]
            axes.set_axis_off()
            if row < len(mine):
                axes.imshow(mine[row].reshape(image_shape), cmap="gray_r", vmin=low, vmax=high)
        if named:
            grid[0, column].set_title(plain(label), fontsize=11)


def _exemplars_in_places(exemplars: ndarray, points: ndarray) -> str:
    """Return the number of exemplars, and of distinct positions if some coincide."""
    width = np.ptp(np.concatenate([points, exemplars]), axis=0).max() or 1
    places = DBSCAN(eps=0.02 * width, min_samples=1).fit(exemplars).labels_.max() + 1
    where = f" in {places:,} places" if places < len(exemplars) else ""
    return f"{len(exemplars):,} exemplars{where}"


def plain(label: object) -> str:
    """Escape a label, since matplotlib interprets text between two dollar signs as a formula."""
    return str(label).replace("$", r"\$")
