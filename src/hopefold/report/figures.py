"""Static figures: the map with its exemplars, and the exemplars as a gallery of images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.cluster import DBSCAN

if TYPE_CHECKING:
    from numpy import ndarray

#: Ten colours that people with any kind of colour vision can tell apart (after Petroff, 2021),
#: without red, which belongs to the exemplars.
PALETTE = (
    "#3f90da",
    "#ffa90e",
    "#1b7f5c",
    "#b9ac70",
    "#832db6",
    "#94a4a2",
    "#a96b59",
    "#e76300",
    "#4d4f58",
    "#92dadd",
)
EXEMPLAR_COLOUR = "#d1001f"


def draw_map(
    points: ndarray,
    labels: ndarray,
    exemplars: ndarray | None = None,
    mistaken: ndarray | None = None,
    *,
    title: str = "",
) -> Figure:
    """Points coloured by label, mistaken ones crossed, exemplars as red empty circles.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
        Where the rows lie in the map.
    labels : ndarray of shape (n,)
        Their true labels.
    exemplars : ndarray of shape (z, 2), optional
        Where the exemplars lie.
    mistaken : boolean ndarray of shape (n,), optional
        Points whose predicted label is wrong.
    title : str, optional
        What is written above.

    Examples
    --------
    >>> import numpy as np
    >>> from hopefold.report.figures import draw_map
    >>> figure = draw_map(np.zeros((2, 2)), np.array(["a", "b"]))

    """
    figure = Figure(figsize=(7, 7), layout="constrained")
    axes = figure.add_subplot()
    mistaken = np.zeros(len(points), bool) if mistaken is None else mistaken
    classes = np.unique(labels)
    colours = class_colours(len(classes))
    size = float(np.clip(20_000 / max(len(points), 1), 2, 24))
    for label, colour in zip(classes, colours, strict=True):
        right, wrong = (points[(labels == label) & m] for m in (~mistaken, mistaken))
        axes.scatter(right[:, 0], right[:, 1], s=size, color=colour, alpha=0.75, linewidths=0)
        axes.scatter(
            wrong[:, 0], wrong[:, 1], s=2 * size, color=colour, marker="x", linewidths=1.4, zorder=5
        )
    for label, colour in zip(classes, colours, strict=True):
        box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": colour, "alpha": 0.9}
        centre = np.median(points[labels == label], axis=0)
        axes.annotate(
            _plain(label), centre, (10, 10), textcoords="offset points", fontsize=11, bbox=box
        )
    legend = {}
    if mistaken.any():
        legend[f"{mistaken.sum():,} mistaken"] = Line2D([], [], marker="x", color="none", mec="0.2")
    if exemplars is not None:
        axes.scatter(
            exemplars[:, 0],
            exemplars[:, 1],
            s=90,
            facecolors="none",
            edgecolors=EXEMPLAR_COLOUR,
            linewidths=1.6,
        )
        legend[_exemplars_in_places(exemplars, points)] = Line2D(
            [], [], marker="o", color="none", mec=EXEMPLAR_COLOUR, mfc="none", ms=8, mew=1.6
        )
    if legend:
        axes.legend(legend.values(), legend.keys(), loc="best", frameon=False)
    axes.set(title=title, xticks=[], yticks=[])
    axes.set_aspect("equal", adjustable="datalim")
    axes.spines[:].set_color("#cccccc")
    return figure


def draw_gallery(
    exemplars: ndarray,
    labels: ndarray,
    image_shape: tuple[int, int],
    *,
    limits: tuple[float, float] | None = None,
    title: str = "",
) -> Figure:
    """The exemplars as images: a column a class, a row for each of its exemplars.

    ``limits`` are the values of white and black, best those of the data; by default the lowest and
    the highest value of the exemplars.
    """
    classes, counts = np.unique(labels, return_counts=True)
    n_rows = counts.max()
    figure = Figure(figsize=(1 + len(classes), n_rows + 0.9), layout="constrained")
    grid = figure.subplots(n_rows, len(classes), squeeze=False)
    low, high = limits or (exemplars.min(), exemplars.max())
    for column, label in enumerate(classes):
        mine = exemplars[labels == label]
        for row in range(n_rows):
            axes = grid[row, column]
            axes.set_axis_off()
            if row < len(mine):
                axes.imshow(mine[row].reshape(image_shape), cmap="gray_r", vmin=low, vmax=high)
        grid[0, column].set_title(_plain(label), fontsize=11)
    if title:
        figure.suptitle(title)
    return figure


def class_colours(n_classes: int) -> list[tuple[float, float, float, float] | str]:
    """A colour a class: the fixed palette while it lasts, then evenly spaced hues."""
    if n_classes <= len(PALETTE):
        return list(PALETTE[:n_classes])
    return [colormaps["turbo"](value) for value in np.linspace(0.03, 0.97, n_classes)]


def _exemplars_in_places(exemplars: ndarray, points: ndarray) -> str:
    """How many there are, and how many circles one sees when some lie on each other."""
    width = np.ptp(np.concatenate([points, exemplars]), axis=0).max() or 1
    places = DBSCAN(eps=0.02 * width, min_samples=1).fit(exemplars).labels_.max() + 1
    where = f" in {places:,} places" if places < len(exemplars) else ""
    return f"{len(exemplars):,} exemplars{where}"


def _plain(label: object) -> str:
    """A label as text: matplotlib would take what stands between two dollars for a formula."""
    return str(label).replace("$", r"\$")
