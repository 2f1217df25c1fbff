"""The background of a map: regions of the classes, and the density of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hopefold.core.neighbors import shares_by_chunks
from hopefold.estimators.base import SupervisedEmbedding

if TYPE_CHECKING:
    from numpy import ndarray

#: Number of cells along each side.
N_CELLS = 240


@dataclass(frozen=True)
class Backdrop:
    """A square grid of cells, with the first row at the top.

    ``codes`` are the predicted classes of the cells, ``certainty`` is how far the most
    probable class is ahead of the next, from 0 to 1; ``None`` for a model that names no classes.
    ``density`` counts all rows, if only a sample is drawn.
    """

    low: ndarray
    high: ndarray
    codes: ndarray | None
    certainty: ndarray | None
    density: ndarray | None


def make_backdrop(
    model: SupervisedEmbedding, points: ndarray, low: ndarray, high: ndarray, *, with_density: bool
) -> Backdrop:
    """Classify every cell of the grid, including a margin beyond the frame."""
    center, half = (low + high) / 2, float((high - low).max())
    low, high = center - half, center + half
    edges = np.linspace(low, high, N_CELLS + 1)
    codes, certainty = _regions(model, edges) if len(model.classes_) else (None, None)
    density = None
    if with_density:
        counts, _, _ = np.histogram2d(points[:, 0], points[:, 1], bins=[edges[:, 0], edges[:, 1]])
        density = counts.T[::-1]
    return Backdrop(low=low, high=high, codes=codes, certainty=certainty, density=density)


def _regions(model: SupervisedEmbedding, edges: ndarray) -> tuple[ndarray, ndarray]:
    middles = (edges[1:] + edges[:-1]) / 2
    x, y = np.meshgrid(middles[:, 0], middles[::-1, 1])
    places = np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32)
    codes, certainty = [], []
    for shares in shares_by_chunks(places, *model.references(), model.temperature_):
        second, first = np.partition(shares, -2, axis=1)[:, -2:].T
        codes.append(shares.argmax(axis=1))
        certainty.append(first - second)
    square = (N_CELLS, N_CELLS)
    return np.concatenate(codes).reshape(square), np.concatenate(certainty).reshape(square)
