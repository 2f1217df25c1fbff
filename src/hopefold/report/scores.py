"""The evaluation at the top of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import bdtr

from hopefold.data import labels as label_checks
from hopefold.estimators.base import SupervisedEmbedding
from hopefold.evaluation import (
    Kept,
    PermutationTest,
    SpeedUp,
    counted_speed_up,
    kept_by_model,
    knn_error,
    left_out_error,
    trustworthiness,
)
from hopefold.evaluation.cost import FLOAT
from hopefold.training.loop import Run

if TYPE_CHECKING:
    from numpy import ndarray

#: Number of neighbors that vote in the map.
N_NEIGHBORS = 5


@dataclass(frozen=True)
class Scores:
    """The accuracy of a map, and its savings.

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
    n_misclassified: int
    error: float | None
    guess: float | None
    p_value: float | None
    neighbors_error: float | None
    validation_error: float | None
    validation_interval: tuple[float, float] | None
    train_error: float | None
    n_learned: int
    knows_training: bool
    baseline: Kept
    kept: Kept
    speed_up: SpeedUp
    permutation: PermutationTest | None
    share_learned: float | None


@dataclass(frozen=True)
class NeighborScores:
    """How well a map preserves neighbors, if it was fitted to.

    ``share`` is that of the loss which asked for it. ``trust`` is the trustworthiness of the rows
    given, ``held_out`` that of rows held out in the fit. For a map without labels, ``error`` is
    that of five neighbors in it about labels that the fit never saw, and ``guess`` that of naming
    the commonest of these; ``kept`` is what is needed to place a row, and ``baseline`` the rows.
    """

    share: float
    trust: float | None
    held_out: float | None
    error: float | None
    guess: float | None
    n_scored: int
    by_learned: bool
    n_learned: int
    kept: Kept
    baseline: Kept
    share_learned: float | None


def score_neighbors(
    model: SupervisedEmbedding,
    X: Any,
    points: ndarray,
    true: ndarray,
    labeled: ndarray,
    training: ndarray,
    share_learned: float | None = None,
) -> NeighborScores | None:
    """Return the evaluation of neighbors in the map; ``None`` if structure was not preserved."""
    share = float(getattr(model, "structure_", 0))
    if not share and len(model.classes_):
        return None
    error = guess = None
    judged = labeled
    by_learned = bool((training & labeled).any() and (~training & labeled).any())
    if labeled.any() and not len(model.classes_):
        learned = training[labeled] if by_learned else np.zeros(labeled.sum(), bool)
        error = _neighbors_error(points[labeled], true[labeled], learned)
        judged = labeled & ~training if by_learned else labeled
        guess = float(1 - np.bincount(true[judged]).max() / judged.sum())
    n_learned = model.n_rows_ or len(points)
    return NeighborScores(
        share=share,
        trust=trustworthiness(model, X, points),
        held_out=model.trustworthiness_,
        error=error,
        guess=guess,
        n_scored=int(judged.sum()),
        by_learned=by_learned,
        n_learned=n_learned,
        kept=kept_by_model(model),
        baseline=Kept(n_learned, FLOAT * n_learned * model.n_features_in_),
        share_learned=share_learned,
    )


def score_predictions(
    model: SupervisedEmbedding,
    points: ndarray,
    true: ndarray,
    predicted: ndarray,
    training: ndarray,
    permutation: PermutationTest | None = None,
    share_learned: float | None = None,
) -> Scores:
    """Compare the predictions of a model with the labels."""
    new = ~training
    n_new, n_misclassified = int(new.sum()), int((true != predicted)[new].sum())
    n_learned = _n_labeled(model, true)  # k-NN can only use labeled rows
    guess, p_value = _against_guessing(model, true, n_misclassified, new)
    return Scores(
        n_new=n_new,
        n_misclassified=n_misclassified,
        error=n_misclassified / n_new if n_new else None,
        guess=guess,
        p_value=p_value,
        neighbors_error=_neighbors_error(points, true, training) if n_new else None,
        validation_error=model.validation_error_,
        validation_interval=model.validation_interval_,
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
    model: SupervisedEmbedding, true: ndarray, n_misclassified: int, new: ndarray
) -> tuple[float | None, float | None]:
    """Return the error of always predicting the majority class, and the p-value against it.

    If no row is new, the errors are those on the rows held out in the fit, in its last epochs,
    since the error of the epoch that was kept is optimistically biased.
    """
    n_scored = int(new.sum())
    if not n_scored:
        if not model.history_ or not model.n_rows_ or model.validation_error_ is None:
            return None, None
        n_scored = model.n_held_out_ or round(  # absent from older files
            model.settings_["validation_fraction"] * _n_labeled(model, true)
        )
        n_misclassified = round(Run(model.n_iter_, model.history_).late_error * n_scored)
        new = ~new
    guess = float(1 - np.bincount(true[new]).max() / new.sum())
    return guess, float(bdtr(n_misclassified, n_scored, guess))


def _n_labeled(model: SupervisedEmbedding, true: ndarray) -> int:
    """Return the number of labeled training rows; at least the number known here."""
    n_rows = model.n_rows_ or len(true)
    some_had_none = label_checks.is_marker(model.settings_.get("missing_label", ()))
    return min(n_rows, len(true)) if some_had_none else n_rows


def _neighbors_error(points: ndarray, true: ndarray, training: ndarray) -> float | None:
    """Classify new rows by the nearest training rows; if none is known, leave one out."""
    if training.any():
        new = ~training
        return knn_error(points[training], true[training], points[new], true[new], N_NEIGHBORS)
    if len(points) <= N_NEIGHBORS:
        return None
    return left_out_error(points, true, N_NEIGHBORS)
