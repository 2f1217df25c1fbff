"""Who is near whom among the rows, labeled or not: what a map is to keep besides the classes.

Rows are compared with landmarks, the k-means centers of all rows, so that the cost grows with the
rows and not with their square.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from hopefold.core.exemplars import kmeans_centers
from hopefold.core.kernels import squared_distances
from hopefold.core.neighborhoods import neighbor_shares, precisions
from hopefold.data.rows import Rows
from hopefold.errors import InvalidParameter

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray

    from hopefold.fitting.plan_values import Plan
    from hopefold.fitting.task import Task

#: Rows that k-means sees.
CLUSTERED_ROWS = 20_000

#: Neighbors that the width of a Gaussian is found from, as a multiple of the perplexity.
NEAR = 3

#: Rows, and numbers in them, from which trustworthiness is computed, and neighbors
#: that are looked at.
TRUSTED_ROWS, TRUSTED_VALUES, TRUSTED_NEIGHBORS = 2_000, 2**25, 12

#: Rows that are compared with the landmarks at once.
BLOCK = 2_000


@dataclass(frozen=True)
class Landmarks:
    """Centers of the rows in the map's scale, and how narrowly each row looks around."""

    centers: Float[Tensor, "z features"]
    precisions: Float[Tensor, "n 1"]

    def affinities(
        self, x: Float[Tensor, "b features"], numbers: Int[ndarray, " b"]
    ) -> Float[Tensor, "b z"]:
        """How near each landmark is to rows with these numbers, in shares that sum to 1."""
        narrow = self.precisions[torch.from_numpy(numbers)].to(x.device)
        return neighbor_shares(squared_distances(x, self.centers), narrow)


def find_landmarks(
    rows: Rows,
    n_landmarks: int,
    perplexity: float,
    device: torch.device,
    random: np.random.RandomState,
) -> Landmarks:
    """So many centers of all rows, and the width of each row's neighborhood among them."""
    numbers = np.arange(len(rows))
    if len(numbers) > CLUSTERED_ROWS:
        numbers = np.sort(random.permutation(numbers)[:CLUSTERED_ROWS])
    centers = kmeans_centers(rows.fetch_for_clustering(numbers), n_landmarks, random)
    there = torch.from_numpy((centers + rows.clustering_shift).astype(np.float32))

    def narrowness(some: Rows) -> ndarray:
        blocks = (slice(first, first + BLOCK) for first in range(0, len(some), BLOCK))
        return np.concatenate([_narrowness(some.fetch(b), there, perplexity) for b in blocks])

    found = torch.from_numpy(rows.each(narrowness))
    return Landmarks(there.to(device), found)


def with_landmarks(plan: Plan, task: Task, random: np.random.RandomState) -> Task:
    """The task with the landmarks that rows are to stay near to, where the plan has any."""
    n_rows = len(task.labels)
    if plan.exemplars is None or (plan.exemplars == "kmeans" and task.is_labeled):
        n_others = min(plan.batch_size, n_rows) - 1
        check_perplexity(plan.perplexity, n_others, "the rows of a batch", "raise batch_size")
        return task
    n_landmarks = plan.n_landmarks
    if n_landmarks > n_rows:
        raise InvalidParameter(
            f"n_landmarks={n_landmarks}, but there are {n_rows} rows: ask for fewer, or leave "
            "it 'auto'."
        )
    remedy = "raise n_landmarks" if n_landmarks < n_rows else "give more rows"
    check_perplexity(plan.perplexity, n_landmarks, f"{n_landmarks} landmarks", remedy)
    device = torch.device(plan.device)
    landmarks = find_landmarks(task.rows, n_landmarks, plan.perplexity, device, random)
    task.sharding.group.broadcast([landmarks.centers, landmarks.precisions])
    return replace(task, landmarks=landmarks)


def _narrowness(x: Tensor, landmarks: Tensor, perplexity: float) -> ndarray:
    squared = squared_distances(x, landmarks)
    near = min(int(NEAR * perplexity) + 1, len(landmarks))
    nearest = squared.topk(near, dim=1, largest=False, sorted=False).values
    narrow: ndarray = precisions(nearest, perplexity).numpy()
    return narrow


def check_perplexity(perplexity: float, n_others: int, among: str, remedy: str) -> None:
    """Can a row have so many neighbors?"""
    if perplexity < n_others:
        return
    asked = f"perplexity={perplexity:g} asks for more neighbors than there are among {among}"
    if n_others < 3:
        raise InvalidParameter(f"{asked}: give more rows.")
    raise InvalidParameter(
        f"{asked}: the largest that fits is {n_others - 1}; lower it, or {remedy}."
    )


def trust(
    rows: Rows, which: Int[ndarray, " w"], points_of: Callable[[ndarray], Float[ndarray, "s d"]]
) -> float | None:
    """How far neighbors in the map are neighbors among these rows: 1 if all are, 0.5 by chance.

    That of scikit-learn, of some of the rows at random, which ``points_of`` gives the points of.
    ``None`` for fewer than three.
    """
    from sklearn.manifold import trustworthiness  # slow to import, and few fits ask for it

    most = max(1, min(TRUSTED_ROWS, TRUSTED_VALUES // rows.n_features))
    some = np.sort(np.random.RandomState(0).permutation(which)[:most])
    n_neighbors = min(TRUSTED_NEIGHBORS, len(some) // 3)
    if not n_neighbors:
        return None
    found = trustworthiness(rows.fetch(some).numpy(), points_of(some), n_neighbors=n_neighbors)
    return float(found)
