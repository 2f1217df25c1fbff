"""Which rows lie far from everything that the map was learned on?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hopefold.core.kernels import squared_distances
from hopefold.core.neighbors import nearest
from hopefold.data.rows import Rows
from hopefold.estimators.base import SupervisedEmbedding

if TYPE_CHECKING:
    from numpy import ndarray

#: Widths of the middle half of all distances, above it, from which on a row is far: Tukey's rule,
#: by logarithms, as distances are lopsided.
FENCE = 3.0

#: A reference may be the row itself, so the nearest few are looked at.
NEARBY = 5

#: Rows whose distances are computed at once.
CHUNK = 4_096


def far_from_all(
    model: SupervisedEmbedding, rows: Rows, points: ndarray, training: ndarray
) -> ndarray:
    """Rows much farther from their nearest exemplar than the rows that were learned from.

    In the columns, as the map may put anything anywhere; in the map if the model keeps no
    exemplars. If no row is known to have been learned from, all rows are what is usual.
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
    """From each row to its nearest exemplar, in the scale that the map was learned in."""
    others = exemplars.fetch(slice(None)).double()
    shortest = np.empty(len(rows))
    for start in range(0, len(rows), CHUNK):
        some = slice(start, start + CHUNK)
        mine = rows.fetch(some).double()
        shortest[some] = squared_distances(mine, others).min(dim=1).values.sqrt().numpy()
    return shortest
