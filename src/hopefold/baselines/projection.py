"""Linear maps: those found in one go, and where those learned by gradients start."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import nn

from hopefold.core.maps import Linear
from hopefold.estimators.base import SupervisedEmbedding
from hopefold.estimators.gradient import GradientEmbedding
from hopefold.fitting.learning import Learned, Start, Task, judge, start_exemplars
from hopefold.training.loop import Run

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray

#: Rows that the discriminants are found from where a method only starts there, and how far the
#: covariance within classes is drawn towards a sphere: a pixel that is hardly ever lit would get a
#: weight that throws the few rows that have it far out.
START_ROWS = 10_000
START_SHRINKAGE = 0.1

#: Directions in which rows spread less than this, relative to the most, are left out.
RANK_TOLERANCE = 1e-6


class ClosedForm(SupervisedEmbedding):
    """A linear map that `_solve` finds in one go, on the CPU.

    All rows are in memory at once, dense and in float64.
    """

    def _make_map(self, n_features: int) -> nn.Module:
        return Linear(n_features, self.n_components)

    def _solve(
        self, x: Float[ndarray, "n features"], labels: Int[ndarray, " n"], seed: int
    ) -> Float[ndarray, "directions features"]:
        """The directions, best first; those beyond ``n_components`` are left out."""
        raise NotImplementedError

    def _learn_from(
        self, task: Task, training: ndarray, held_out: ndarray, like: Learned | None = None
    ) -> Learned:
        """Solve for the training rows; the held-out rows are judged, and change nothing."""
        x = task.rows.fetch(training).numpy().astype(np.float64)
        directions = self._solve(x, task.labels[training], task.seed)
        map_ = as_map(directions, task.rows.n_features, self.n_components)
        exemplars, labels = start_exemplars(task, training, np.random.RandomState(task.seed))
        record: dict[str, float] = {"epoch": 1}
        if len(held_out):
            wrong = judge(task, map_, exemplars, labels, training, held_out)
            record["validation_error"] = float(wrong.mean())
        run = Run(1, [record])
        if task.exemplars is None:
            return Learned(map_, None, task.labels, run)
        return Learned(map_, exemplars.numpy(), labels, run)


@dataclass(kw_only=True, eq=False, repr=False)
class LinearGradient(GradientEmbedding):
    """A linear map learned by gradients, from the discriminants of LDA onwards."""

    learning_rate: float = 1e-2

    def _make_map(self, n_features: int) -> nn.Module:
        return Linear(n_features, self.n_components)

    def _start_map(self, map_: Any, start: Start) -> None:
        """Random directions, but for the discriminants that there are; rows spread to 1."""
        super()._start_map(map_, start)
        sample = start.sample(START_ROWS)
        x = start.task.rows.fetch(sample).numpy().astype(np.float64)
        directions = discriminants(x, start.task.labels[sample], shrinkage=START_SHRINKAGE)
        spreads = (x @ directions.T).std(axis=0)
        seen = spreads > RANK_TOLERANCE * spreads.max(initial=0)  # shrinking adds what rows lack
        directions = (directions[seen] / spreads[seen, None])[: self.n_components]
        with torch.no_grad():
            map_.P[: len(directions)] = torch.from_numpy(directions)


def discriminants(
    x: Float[ndarray, "n features"], labels: Int[ndarray, " n"], *, shrinkage: float | None = None
) -> Float[ndarray, "directions features"]:
    """Fisher's directions, best first; at most one less than there are classes.

    Where all rows of a class are alike there is nothing to divide by: then they are the directions
    in which the classes differ most.
    """
    directions: ndarray
    if varies_within_classes(x, labels):
        with warnings.catch_warnings(), np.errstate(invalid="ignore"):  # where no means differ
            for known in ("Variables are collinear", "Only one sample available"):  # of a class
                warnings.filterwarnings("ignore", message=known)
            solver = "svd" if shrinkage is None else "eigen"
            lda = LinearDiscriminantAnalysis(solver=solver, shrinkage=shrinkage).fit(x, labels)
            directions = lda.scalings_.T
    else:
        _, spreads, directions = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
        directions = directions[spreads > RANK_TOLERANCE * spreads[0]]
    return directions[: len(np.unique(labels)) - 1]


def varies_within_classes(x: Float[ndarray, "n features"], labels: Int[ndarray, " n"]) -> bool:
    """Are there two rows of a class that differ?"""
    classes, numbers = np.unique(labels, return_index=True)
    first_of_class = x[numbers][np.searchsorted(classes, labels)]
    return bool((x != first_of_class).any())


def as_map(directions: ndarray, n_features: int, n_components: int) -> Linear:
    """Directions as a map; where there are too few of them, the rest of the coordinates is 0."""
    map_ = Linear(n_features, n_components)
    P = np.zeros((n_components, n_features), dtype=np.float32)
    P[: len(directions)] = directions[:n_components]
    map_.load_state_dict({"P": torch.from_numpy(P)})
    map_.requires_grad_(False)
    return map_
