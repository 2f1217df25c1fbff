"""Comparison of an export with its model on many rows, before a file is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from hopefold.core.neighbors import class_shares, nearest
from hopefold.data import validation
from hopefold.data.tables import Table, as_table
from hopefold.errors import CannotExport, InvalidInput, RoundingWarning, warn
from hopefold.estimators.base import SupervisedEmbedding
from hopefold.export.formula import Formula

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray

#: Number of rows that are compared; fewer if wide rows would fill the memory.
N_ROWS, MOST_NUMBERS = 1_000, 2**26

#: Tolerance of points, relative to the map's range, and the margin between the two largest class
#: probabilities above which labels must agree.
TOLERANCE, MARGIN = 1e-4, 1e-4

#: Rounding error of distances in float32, relative to the map's range.
ROUNDING = 1e-6

#: Noise added to exemplars, relative to the spread of each feature, and the share of missing values
#: if the model fills them.
NOISE, GAPS = 0.5, 0.05

#: Number of distances that are computed at once.
CHUNK = 10_000_000

#: A function from float32 rows to points, labels and probabilities; only points without classes.
Answer = Callable[["ndarray"], tuple["ndarray", ...]]


@dataclass(frozen=True)
class Parity:
    """The differences between a model and its export."""

    n_rows: int
    #: The largest difference of a coordinate, absolute and relative to the map's range.
    largest_difference: float
    relative_difference: float
    #: Number of rows that are not on a class boundary; the labels of all these agree. ``None`` if
    #: there are no classes.
    n_clear: int | None

    def __str__(self) -> str:
        rows = "1 row" if self.n_rows == 1 else f"{self.n_rows:,} rows"
        points = (
            f"checked on {rows}: points differ by {self.largest_difference:.1e} at "
            f"the most ({self.relative_difference:.1e} of the map's range)"
        )
        if self.n_clear is None:
            return f"{points}; there are no labels, as there were none in the fit"
        unclear = self.n_rows - self.n_clear
        border = f" but {unclear:,} at a border" if unclear else ""
        return f"{points}, labels are equal on all{border}"


def check_parity(
    model: SupervisedEmbedding, formula: Formula, answer: Answer, data: Any = None
) -> Parity:
    """Compare an export with its model; raise `CannotExport` if they differ."""
    rows = some_rows(model, formula) if data is None else _rows_of(model, data)
    with np.errstate(over="ignore"):  # the model rejects infinity
        given = rows.astype(np.float32)
    filled = given if model.columns_ is None else model.columns_.fill(given)
    try:
        points, *judged = _asked(model, filled)
        if rows.dtype != np.float32:
            _warn_of_rounding(model, formula, rows, points)
    except InvalidInput as error:
        if data is not None:
            raise
        raise CannotExport(
            f"the exemplars with noise cannot be compared ({error}): give rows to check the export "
            "with (data, or --data TABLE)."
        ) from error
    size = np.maximum(_range(formula.references), np.abs(points).max(axis=1))
    found, *found_judged = _in_chunks(answer, given, formula)
    off = np.abs(found - points).max(axis=1)
    relative = off / size
    if not (relative <= TOLERANCE).all():  # nor is NaN
        raise CannotExport(
            f"the export would put rows elsewhere than the model does, by {relative.max():.1e} of "
            f"the map's range, and {TOLERANCE:g} may be: nothing is written. Please report it."
        )
    n_clear = None
    if formula.names_classes:
        clear = _clear(formula, points, off + ROUNDING * size)
        _check_classes(judged, found_judged, clear, off)
        n_clear = int(clear.sum())
    return Parity(len(rows), float(off.max()), float(relative.max()), n_clear)


def _check_classes(
    judged: Sequence[ndarray], found: Sequence[ndarray], clear: ndarray, off: ndarray
) -> None:
    """Check that labels and probabilities agree on all rows that are not on a boundary."""
    (labels, shares), (found_labels, found_shares) = judged, found
    differ = found_labels[clear] != np.asarray(labels)[clear]
    alike = np.abs(found_shares - shares).max(axis=1)[clear] <= MARGIN + 2 * off[clear]
    if differ.any() or not alike.all():
        raise CannotExport(
            f"the export would classify {int((differ | ~alike).sum()):,} of {len(clear):,} rows "
            "differently from the model: nothing is written. Please report it."
        )


def some_rows(model: SupervisedEmbedding, formula: Formula) -> Float[ndarray, "n features"]:
    """Return the exemplars with noise; if there are none, the origin of the scale with noise.

    The noise is relative to the spread of each feature. Some values are missing if the model fills
    them.
    """
    random, scale = np.random.default_rng(0), formula.scale
    n_rows = max(1, min(N_ROWS, MOST_NUMBERS // formula.n_features))
    if model.exemplars_ is not None:
        base = model.exemplars_
        spread = base.std(axis=0)
    else:
        base = scale.undo(np.zeros((1, formula.n_features)))
        spread = scale.undo(np.ones((1, formula.n_features)))[0] - base[0]
    rows: ndarray = base[np.arange(n_rows) % len(base)].astype(np.float64)
    noisy = rows[len(base) :]  # unchanged first
    noisy += NOISE * spread * random.standard_normal(noisy.shape)
    if formula.fills is not None:
        rows[random.random(rows.shape) < GAPS] = np.nan
    return rows


def _rows_of(model: SupervisedEmbedding, data: Any) -> Float[ndarray, "n features"]:
    """Return some of a user's rows, evenly spaced, as the model takes them."""
    table = as_table(data, model.columns_)
    if table is not None:
        validation.check_names(model, table.names)
        X = table.X
    else:
        X = validation.check_rows(model, data, fitting=False)
    n_rows = min(X.shape[0], N_ROWS, max(1, MOST_NUMBERS // X.shape[1]))
    some = X[np.linspace(0, X.shape[0] - 1, n_rows).astype(int)]
    rows: ndarray = some.toarray() if sparse.issparse(some) else np.asarray(some)
    validation.check_batch(model, rows)
    return rows


def _asked(model: SupervisedEmbedding, rows: ndarray) -> tuple[ndarray, ...]:
    """Return the results of the model itself."""
    table = Table(rows, None, names=getattr(model, "feature_names_in_", None))
    points = np.asarray(model.transform(table))
    if not len(model.classes_):
        return (points,)
    return points, model.predict(table), model.predict_proba(table)


def _in_chunks(answer: Answer, rows: ndarray, formula: Formula) -> tuple[ndarray, ...]:
    """Return all results, with bounded memory for the distances to the references."""
    step = max(1, CHUNK // formula.references.size)
    parts = [answer(rows[start : start + step]) for start in range(0, len(rows), step)]
    return tuple(np.concatenate(kind) for kind in zip(*parts, strict=True))


def _clear(formula: Formula, points: ndarray, moved: Float[ndarray, " n"]) -> ndarray:
    """Return which rows are not on a class boundary.

    The two largest shares, before the temperature, differ by more than the margin. A vote's shares
    jump where two references change places, so there none of another class may be as near, by as
    much as a point has moved.
    """
    classifier = formula.references, formula.codes, formula.class_weights, formula.n_neighbors
    second, first = np.sort(class_shares(points, *classifier), axis=1)[:, -2:].T
    clear: ndarray = first - second > MARGIN
    if formula.n_neighbors is not None:
        k = min(2 * formula.n_neighbors + 1, len(formula.references))
        distances, which = nearest(points, formula.references, k)
        near = np.diff(distances, axis=1) <= 2 * moved[:, None]
        clear &= ~(near & (np.diff(formula.codes[which], axis=1) != 0)).any(axis=1)
    return clear


def _range(references: Float[ndarray, "r d"]) -> float:
    """Return the longest side of the bounding box of the references; 1 for a single point."""
    return float(np.ptp(references, axis=0).max()) or 1.0


def _warn_of_rounding(
    model: SupervisedEmbedding, formula: Formula, rows: ndarray, points: ndarray
) -> None:
    """Warn if the rows need more digits than float32, the input type of an export."""
    exact = rows if model.columns_ is None else model.columns_.fill(rows)
    table = Table(exact, None, names=getattr(model, "feature_names_in_", None))
    moved = np.abs(np.asarray(model.transform(table)) - points).max()
    share = moved / _range(formula.references)
    if share <= TOLERANCE:
        return
    lost = np.abs(exact - exact.astype(np.float32)).max(axis=0) * formula.scale.gain
    worst = int(lost.argmax())
    name = worst if formula.feature_names is None else repr(formula.feature_names[worst])
    warn(
        f"an export takes float32, which rounds these rows so that points move by {share:.1e} of "
        f"the map's range, most by column {name}: fit with a constant subtracted from it.",
        RoundingWarning,
    )
