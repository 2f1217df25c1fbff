"""The visible part of a map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy import ndarray

#: Share of the points on each side that is ignored for the frame.
NEARLY_NONE = 0.002

#: Margin around the points, as a share of their width.
MARGIN = 0.06


def frame(points: ndarray) -> tuple[ndarray, ndarray]:
    """Return the lower left and upper right corner of a square around nearly all points.

    A few outliers would compress all other points; they are counted instead.
    """
    low, high = np.quantile(points, [NEARLY_NONE, 1 - NEARLY_NONE], axis=0)
    center, width = (low + high) / 2, (high - low).max()
    return center - width, center + width


def closest_frame(points: ndarray) -> tuple[ndarray, ndarray]:
    """Return the corners of the bounding box of all points except outliers, with a margin."""
    low, high = frame(points)
    near = points[((points >= low) & (points <= high)).all(axis=1)].astype(np.float64)
    low, high = near.min(axis=0), near.max(axis=0)
    margin = MARGIN * (high - low).max() or 1.0
    return low - margin, high + margin
