"""Feature interactions for a report: those that move rows most, and those of single rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.core.interactions import Term
from hopefold.errors import ConstantRows
from hopefold.estimators.high_order_embedding import HighOrderEmbedding
from hopefold.explain.contributions import format_terms
from hopefold.explain.term_tables import pixel_names

if TYPE_CHECKING:
    from numpy import ndarray

#: Number of candidate products for a row, and number that a card shows.
N_TERMS = 200
N_OWN = 4

#: Maximum number of rows with their own products, and of rows on which products are ranked.
MOST_DETAILED = 20_000
RANKED_ON = 2_000

#: With more columns, only single columns and pairs are searched, to limit the time.
FEW_COLUMNS = 60

#: Number of lines between pixels.
N_LINES = 25

#: Number of rows that are processed at once.
CHUNK = 500


@dataclass(frozen=True)
class TopInteractions:
    """Feature interactions in descending order of the deviation of their contributions.

    ``shifts`` say how far each moves each class that is there. ``rows`` are the drawn rows whose
    own largest products are shown: ``own`` are their indices in ``names``, ``moves`` how far each
    moves the row. For images, ``importances`` are those of pixels, and ``lines`` pairs of pixels
    with their share of the heaviest pair's weight.
    """

    names: tuple[str, ...]
    deviations: ndarray
    shifts: ndarray
    note: str
    rows: ndarray
    own: ndarray
    moves: ndarray
    importances: ndarray | None
    lines: tuple[tuple[int, int, float], ...]


def n_layers_of(model: Any) -> int:
    """Return the number of high-order layers of a map; 0 for a method without interactions."""
    return len(model.map_.layers) if isinstance(model, HighOrderEmbedding) else 0


def find_top_interactions(
    model: Any,
    X: Any,
    codes: ndarray,
    shown: ndarray,
    misclassified: ndarray,
    names: tuple[str, ...],
    image_shape: tuple[int, int] | None,
) -> TopInteractions | None:
    """Return the feature interactions on these rows, or ``None``.

    The result is ``None`` for a method without interactions, and for rows that are all equal.

    ``misclassified`` is a mask of the ``shown`` rows; these come first among those with details.
    """
    if not n_layers_of(model) or not (model.scale_.gain != 0).any():
        return None
    if image_shape is not None:
        names = pixel_names(image_shape)
    try:
        terms, deviations, shifts, note = _rank(model, X, codes)
    except ConstantRows:
        return None
    detailed_rows = _choose(misclassified)
    own, moves = _own(model, X, shown[detailed_rows], terms)
    lines: tuple[tuple[int, int, float], ...] = ()
    if image_shape is not None and model.map_.layers[0].order > 1:
        pairs = model.interactions(N_LINES, order=2)
        heaviest = pairs.weights[0]
        lines = tuple(
            (one, other, float(weight / heaviest))
            for (one, other), weight in zip(pairs.terms, pairs.weights, strict=True)
        )
    return TopInteractions(
        names=format_terms(terms, names),
        deviations=deviations,
        shifts=shifts,
        note=note,
        rows=detailed_rows,
        own=own,
        moves=moves,
        importances=None if image_shape is None else model.feature_importances_,
        lines=lines,
    )


def _rank(
    model: HighOrderEmbedding, X: Any, codes: ndarray
) -> tuple[list[Term], ndarray, ndarray, str]:
    """Return the largest terms on a sample of the rows, and their shifts per class."""
    random = np.random.RandomState(0)
    n_rows, n_columns = X.shape
    some = np.sort(random.permutation(n_rows)[:RANKED_ON])
    orders: list[int | None] = [None]
    note = ""
    if n_columns > FEW_COLUMNS and model.map_.layers[0].order > 2:
        orders, note = [1, 2], "Products of more than two of so many columns are not searched."
    parts = [model.interactions(N_TERMS, X[some], codes[some], order=order) for order in orders]
    deviations = np.concatenate([part.deviations for part in parts if part.deviations is not None])
    order = np.argsort(-deviations, kind="stable")[:N_TERMS]
    terms = [term for part in parts for term in part.terms]
    shifts = np.full((len(terms), int(codes.max()) + 1), np.nan)
    there = np.unique(codes[some])
    shifts[:, there] = np.concatenate([part.shifts for part in parts if part.shifts is not None])
    return [terms[place] for place in order], deviations[order], shifts[order], note


def _choose(misclassified: ndarray) -> ndarray:
    """Choose the rows with details: all, or the misclassified ones and a sample of the others."""
    if len(misclassified) <= MOST_DETAILED:
        return np.arange(len(misclassified))
    order = np.random.RandomState(0).permutation(len(misclassified))
    order = order[np.argsort(~misclassified[order], kind="stable")]
    return np.sort(order[:MOST_DETAILED])


def _own(
    model: HighOrderEmbedding, X: Any, rows: ndarray, terms: list[Term]
) -> tuple[ndarray, ndarray]:
    """Return for each row its largest terms among these, and how far each moves it."""
    n_own = min(N_OWN, len(terms))
    own = np.empty((len(rows), n_own), np.uint8)
    moves = np.empty((len(rows), n_own, 2), np.float32)
    for start in range(0, len(rows), CHUNK):
        some = slice(start, start + CHUNK)
        values = model.contributions(X[rows[some]], terms)
        order = np.argsort(-np.square(values).sum(axis=2), axis=1, kind="stable")[:, :n_own]
        own[some] = order
        moves[some] = np.take_along_axis(values, order[:, :, None], axis=1)
    return own, moves
