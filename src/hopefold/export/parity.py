"""Does an export answer as the model does? Asked of many rows before a file is written."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from hopefold.core.neighbors import nearest
from hopefold.data import validation
from hopefold.data.tables import Table, as_table
from hopefold.errors import CannotExport, InvalidInput, RoundingWarning
from hopefold.estimators.base import SupervisedEmbedding
from hopefold.export.formula import Formula

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray

#: Rows that are asked about; fewer where they are so wide that these would fill the memory.
N_ROWS, MOST_NUMBERS = 1_000, 2**26

#: How far a point may be off, in shares of the map's range, and from which margin between the two
#: largest shares on a label has to be the same.
TOLERANCE, MARGIN = 1e-4, 1e-4

#: What float32 may do to a distance, in shares of the map's range.
ROUNDING = 1e-6

#: How far a row is moved from an exemplar, in shares of the spread of each feature, and how many of
#: its values are missing where the model fills them.
NOISE, GAPS = 0.5, 0.05

#: Distances that are computed at once.
CHUNK = 10_000_000

#: From float32 rows to points, labels and probabilities; to points alone if there are no classes.
Answer = Callable[["ndarray"], tuple["ndarray", ...]]


@dataclass(frozen=True)
class Parity:
    """How like the model's answers those of its export were."""

    n_rows: int
    #: The largest distance of a coordinate, and the same in shares of the map's range.
    largest_difference: float
    relative_difference: float
    #: Rows that are not at a border of two classes; the labels of all of these were the same.
    #: ``None`` where there are no classes.
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
    """How like the answers are; a `CannotExport` where they are not alike."""
    rows = some_rows(model, formula) if data is None else _rows_of(model, data)
    with np.errstate(over="ignore"):  # the model refuses infinity
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
        clear = _clear(formula, points, judged[1], off + ROUNDING * size)
        _check_classes(judged, found_judged, clear, off)
        n_clear = int(clear.sum())
    return Parity(len(rows), float(off.max()), float(relative.max()), n_clear)


def _check_classes(
    judged: Sequence[ndarray], found: Sequence[ndarray], clear: ndarray, off: ndarray
) -> None:
    """Are labels and probabilities the same, wherever a row is not at a border?"""
    (labels, shares), (found_labels, found_shares) = judged, found
    differ = found_labels[clear] != np.asarray(labels)[clear]
    alike = np.abs(found_shares - shares).max(axis=1)[clear] <= MARGIN + 2 * off[clear]
    if differ.any() or not alike.all():
        raise CannotExport(
            f"the export would judge {int((differ | ~alike).sum()):,} of {len(clear):,} rows "
            "otherwise than the model does: nothing is written. Please report it."
        )


def some_rows(model: SupervisedEmbedding, formula: Formula) -> Float[ndarray, "n features"]:
    """The exemplars, or the origin of the scale where there are none, with noise.

    Each feature is moved by a share of its own spread. Where the model fills gaps, there are some.
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
    noisy = rows[len(base) :]  # first as they are
    noisy += NOISE * spread * random.standard_normal(noisy.shape)
    if formula.fills is not None:
        rows[random.random(rows.shape) < GAPS] = np.nan
    return rows


def _rows_of(model: SupervisedEmbedding, data: Any) -> Float[ndarray, "n features"]:
    """Some of a user's rows, evenly spread, as the model takes them."""
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
    """What the model itself says."""
    table = Table(rows, None, names=getattr(model, "feature_names_in_", None))
    points = np.asarray(model.transform(table))
    if not len(model.classes_):
        return (points,)
    return points, model.predict(table), model.predict_proba(table)


def _in_chunks(answer: Answer, rows: ndarray, formula: Formula) -> tuple[ndarray, ...]:
    """All answers, with bounded memory for the distances to the references."""
    step = max(1, CHUNK // formula.references.size)
    parts = [answer(rows[start : start + step]) for start in range(0, len(rows), step)]
    return tuple(np.concatenate(kind) for kind in zip(*parts, strict=True))


def _clear(
    formula: Formula, points: ndarray, shares: ndarray, moved: Float[ndarray, " n"]
) -> ndarray:
    """Which rows are not at a border.

    The two largest shares differ by more than the margin. A vote's shares jump where two references
    change places, so there none of another class may be as near, by as much as a point has moved.
    """
    second, first = np.sort(shares, axis=1)[:, -2:].T
    clear: ndarray = first - second > MARGIN
    if formula.n_neighbors is not None:
        k = min(2 * formula.n_neighbors + 1, len(formula.references))
        distances, which = nearest(points, formula.references, k)
        near = np.diff(distances, axis=1) <= 2 * moved[:, None]
        clear &= ~(near & (np.diff(formula.codes[which], axis=1) != 0)).any(axis=1)
    return clear


def _range(references: Float[ndarray, "r d"]) -> float:
    """The longest side of the box around the references; 1 where they are one point."""
    return float(np.ptp(references, axis=0).max()) or 1.0


def _warn_of_rounding(
    model: SupervisedEmbedding, formula: Formula, rows: ndarray, points: ndarray
) -> None:
    """An export takes float32: do the rows need more digits?"""
    exact = rows if model.columns_ is None else model.columns_.fill(rows)
    table = Table(exact, None, names=getattr(model, "feature_names_in_", None))
    moved = np.abs(np.asarray(model.transform(table)) - points).max()
    share = moved / _range(formula.references)
    if share <= TOLERANCE:
        return
    lost = np.abs(exact - exact.astype(np.float32)).max(axis=0) * formula.scale.gain
    worst = int(lost.argmax())
    name = worst if formula.feature_names is None else repr(formula.feature_names[worst])
    warnings.warn(
        f"an export takes float32, which rounds these rows so that points move by {share:.1e} of "
        f"the map's range, most by column {name}: fit with a constant subtracted from it.",
        RoundingWarning,
        stacklevel=4,
    )
