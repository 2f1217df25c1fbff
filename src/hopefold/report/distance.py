"""Detection of rows that are far from all training data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hopefold.core.kernels import squared_distances
from hopefold.core.neighbors import nearest
from hopefold.data.rows import Rows
from hopefold.estimators.base import SupervisedEmbedding

if TYPE_CHECKING:
    from numpy import ndarray

#: Number of interquartile ranges above the upper quartile beyond which a row is far: Tukey's rule
#: on logarithms, since distances are skewed.
FENCE = 3.0

#: A reference may be the row itself, so more than one neighbor is inspected.
NEARBY = 5

#: Number of rows whose distances are computed at once.
CHUNK = 4_096


def far_from_all(
    model: SupervisedEmbedding, rows: Rows, points: ndarray, training: ndarray
) -> ndarray:
    """Return which rows are much farther from their nearest exemplar than training rows are.

    Distances are measured in the columns, since the map can put any row anywhere; in the map if the
    model has no exemplars. If no training row is known, all rows determine the usual distance.
    """
    if model.exemplars_ is None:
        references = model.reference_embedding_
        distances = nearest(points, references, min(NEARBY, len(references)))[0][:, -1]
    else:
        distances = _distances(rows, Rows(model.exemplars_, model.scale_))
    usual = distances[training] if training.any() else distances
    quarter, three_quarters = np.quantile(usual, [0.25, 0.75])
    fence = three_quarters * (three_quarters / quarter) ** FENCE if quarter > 0 else np.inf
    far: ndarray = distances > fence
    return far


def _distances(rows: Rows, exemplars: Rows) -> ndarray:
    """Return the distance of each row to its nearest exemplar, in the scale of the map."""
    others = exemplars.fetch(slice(None)).double()
    shortest = np.empty(len(rows))
    for start in range(0, len(rows), CHUNK):
        some = slice(start, start + CHUNK)
        mine = rows.fetch(some).double()
        shortest[some] = squared_distances(mine, others).min(dim=1).values.sqrt().numpy()
    return shortest
