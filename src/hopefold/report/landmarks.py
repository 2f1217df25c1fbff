"""A few landmarks of a map without labels, and the parts of the map around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hopefold.core.exemplars import kmeans_centers
from hopefold.core.neighbors import nearest
from hopefold.estimators.base import SupervisedEmbedding

if TYPE_CHECKING:
    from jaxtyping import Int
    from numpy import ndarray

#: Maximum number of parts of the map, and of points on which they are computed.
N_PARTS = 24
SEEN_POINTS = 2_000


def choose_landmarks(model: SupervisedEmbedding) -> Int[ndarray, " parts"]:
    """Return indices of references spread over the map: the nearest to k-means centers of all."""
    random = np.random.RandomState(0)
    references = model.reference_embedding_
    seen = np.sort(random.permutation(len(references))[:SEEN_POINTS])
    places = references[seen].astype(np.float64)
    n_parts = min(N_PARTS, len(np.unique(places, axis=0)))
    _, found = nearest(kmeans_centers(places, n_parts, random), places, 1)
    return np.unique(seen[found[:, 0]])


def parts_of_map(
    model: SupervisedEmbedding, points: ndarray, landmarks: ndarray
) -> Int[ndarray, " n"]:
    """Return the nearest of the chosen landmarks for each point."""
    parts: ndarray = nearest(points, model.reference_embedding_[landmarks], 1)[1][:, 0]
    return parts
