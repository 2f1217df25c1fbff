"""The figures at the head of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr

from hopefold.estimators.base import SupervisedEmbedding
from hopefold.evaluation import (
    FLOAT,
    Kept,
    PermutationTest,
    SpeedUp,
    counted_speed_up,
    kept_by_model,
    knn_error,
    left_out_error,
)
from hopefold.training.loop import Run

if TYPE_CHECKING:
    from numpy import ndarray

#: Neighbours that vote in the map.
N_NEIGHBORS = 5


@dataclass(frozen=True)
class Judgement:
    """How good the map is, and what it saves.

    ``error`` is that of the ``n_new`` rows that were not learned from, judged by the model's
    references; ``guess`` that of always naming the commonest class of these rows, and ``p_value``
    how likely so few mistakes are by such guessing (one-sided binomial test). ``neighbors_error``
    is that of the five nearest rows in the map. Where no row is new, both errors are ``None``, and
    the comparison with guessing is that of the rows held out in the fit, if that is known.
    ``baseline`` is what k-NN among the ``n_learned`` rows that the model was fitted on would keep.
    ``share_learned`` is about what share of the rows given the model has learned from, where it
    alone can tell.
    """

    n_new: int
    n_mistaken: int
    error: float | None
    guess: float | None
    p_value: float | None
    neighbors_error: float | None
    validation_error: float | None
    train_error: float | None
    n_learned: int
    knows_training: bool
    baseline: Kept
    kept: Kept
    speed_up: SpeedUp
    permutation: PermutationTest | None
    share_learned: float | None


def judge(
    model: SupervisedEmbedding,
    points: ndarray,
    true: ndarray,
    predicted: ndarray,
    training: ndarray,
    permutation: PermutationTest | None = None,
    share_learned: float | None = None,
) -> Judgement:
    """Compare what the model says of rows with what they are."""
    new = ~training
    n_new, n_mistaken = int(new.sum()), int((true != predicted)[new].sum())
    n_learned = model.n_rows_ or int(training.sum()) or len(true)
    guess, p_value = _against_guessing(model, true, n_mistaken, new)
    return Judgement(
        n_new=n_new,
        n_mistaken=n_mistaken,
        error=n_mistaken / n_new if n_new else None,
        guess=guess,
        p_value=p_value,
        neighbors_error=_neighbors_error(points, true, training) if n_new else None,
        validation_error=model.validation_error_,
        train_error=model.train_error_,
        n_learned=n_learned,
        knows_training=bool(training.any()),
        baseline=Kept(n_learned, FLOAT * n_learned * model.n_features_in_),
        kept=kept_by_model(model),
        speed_up=counted_speed_up(model, n_learned),
        permutation=permutation,
        share_learned=share_learned,
    )


def _against_guessing(
    model: SupervisedEmbedding, true: ndarray, n_mistaken: int, new: ndarray
) -> tuple[float | None, float | None]:
    """The error of naming the commonest class, and how likely so few mistakes are by it.

    Where no row is new, the mistakes are those on the rows held out in the fit: in its last epochs,
    as the epoch that was kept is the luckiest of many.
    """
    n_judged = int(new.sum())
    if not n_judged:
        if not model.history_ or not model.n_rows_ or model.validation_error_ is None:
            return None, None
        n_judged = round(model.settings_["validation_fraction"] * model.n_rows_)
        n_mistaken = round(Run(model.n_iter_, model.history_).late_error * n_judged)
        new = ~new
    guess = float(1 - np.bincount(true[new]).max() / new.sum())
    return guess, float(bdtr(n_mistaken, n_judged, guess))


def _neighbors_error(points: ndarray, true: ndarray, training: ndarray) -> float | None:
    """New rows by their nearest learned ones; if none is known as such, each by the others."""
    if training.any():
        new = ~training
        return knn_error(points[training], true[training], points[new], true[new], N_NEIGHBORS)
    if len(points) <= N_NEIGHBORS:
        return None
    return left_out_error(points, true, N_NEIGHBORS)
