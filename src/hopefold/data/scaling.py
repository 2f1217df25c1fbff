"""Scaling of columns, and its inverse."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from hopefold.data.disk import chunks

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray

#: Maximum number of rows that are inspected to recognize pixels.
PIXEL_SAMPLE = 2_000

#: The least range or deviation of a column that counts as varying: its inverse is representable.
TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Scale:
    """x ↦ (x − shift) · gain, column by column.

    A column that was constant in training has gain 0: nothing can be learned from it, so the map
    ignores it, and exemplars have the constant value.
    """

    shift: Float[ndarray, " features"]
    gain: Float[ndarray, " features"]

    @cached_property
    def is_none(self) -> bool:
        """Whether the scale is the identity."""
        return not self.shifts and bool((self.gain == 1).all())

    @property
    def is_one(self) -> bool:
        """Whether all columns that vary have the same scale, as pixels do."""
        varies = self.gain != 0
        return len(np.unique(self.gain[varies])) <= 1 and len(np.unique(self.shift[varies])) <= 1

    def columns_that_vary(self, *, multiple: int) -> Int[ndarray, " c"]:
        """The indices of columns that vary, padded with others up to the next multiple."""
        vary, constant = np.flatnonzero(self.gain), np.flatnonzero(self.gain == 0)
        n_others = -len(vary) % multiple if len(vary) else multiple
        return np.union1d(vary, constant[:n_others])

    @cached_property
    def shifts(self) -> bool:
        """Whether any column is shifted."""
        return bool(self.shift.any())

    @cached_property
    def _in_float32(self) -> tuple[ndarray, ndarray]:
        return self.shift.astype(np.float32), self.gain.astype(np.float32)

    def apply(self, X: Any) -> Float[ndarray, "n features"]:
        """Return dense float32 rows in the scale of the map; subtract, then round to float32."""
        if self.is_none and type(X) is np.ndarray and X.dtype == np.float32:
            return X
        rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
        shift, gain = self._in_float32 if rows.dtype == np.float32 else (self.shift, self.gain)
        with np.errstate(over="ignore"):  # the caller checks for infinity
            if self.is_none:
                return rows.astype(np.float32, copy=False)
            if can_be_shared(rows):  # torch uses all threads
                x, factor = torch.from_numpy(rows), torch.from_numpy(gain)
                shifted = (x - torch.from_numpy(shift)).mul_(factor) if self.shifts else x * factor
                return shifted.float().numpy()
            scaled = rows - shift
            scaled *= gain
            return scaled.astype(np.float32)

    def write(self, X: ndarray, out: Float[ndarray, "n features"]) -> None:
        """Write the result of `apply`, bitwise equal, to an existing array."""
        plain = X.dtype == np.float32 and X.flags.forc and X.flags.aligned  # torch can share it
        if not plain or self.is_none:
            out[:] = self.apply(X)
            return
        shift, gain = (torch.from_numpy(values) for values in self._in_float32)
        _hush_torch()
        x, written = torch.from_numpy(X), torch.from_numpy(out)
        if self.shifts:
            torch.sub(x, shift, out=written).mul_(gain)
        else:
            torch.mul(x, gain, out=written)

    def undo(self, rows: Float[ndarray, "n features"]) -> Float[ndarray, "n features"]:
        """Return rows from the scale of the map in the original units."""
        with np.errstate(divide="ignore"):
            width = np.where(self.gain == 0, 0, 1 / self.gain)
        return rows * width + self.shift


def can_be_shared(rows: ndarray) -> bool:
    """Return whether torch can share the memory of an array."""
    flags = rows.flags
    return flags.writeable and flags.forc and rows.dtype in (np.float32, np.float64)


@cache
def _hush_torch() -> None:
    """Share memory with torch, without its warning about read-only arrays."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        torch.from_numpy(np.frombuffer(bytes(4), dtype=np.float32))


def _only_mine(part: Any) -> list[Any]:
    return [part]


def learn_scale(
    X: Any, how: str | None, all_gather_object: Callable[[Any], list[Any]] = _only_mine
) -> Scale:
    """Learn the scale of a table, dense or CSR.

    If X is a part of it, ``all_gather_object`` gathers the statistics of all parts.

    ``standard``: every column to mean 0 and standard deviation 1. ``range``: one shift and one gain
    for the whole table, so that it spans [0, 1]: pixels keep their proportions. ``None``: leave it.
    ``auto``: sparse columns are divided by their largest magnitude and keep their zeros; columns
    that share one bounded range, as pixels do, get ``range``; all others ``standard``.
    """
    n_features = X.shape[1]
    if how is None:
        return Scale(np.zeros(n_features), np.ones(n_features))
    ranges = np.array(all_gather_object(_column_range(X)))
    low, high = ranges[:, 0].min(axis=0), ranges[:, 1].max(axis=0)
    magnitude = np.maximum(np.abs(low), np.abs(high))
    magnitude[magnitude < TINY] = 1
    constant = (low == high) | (high / magnitude - low / magnitude < TINY / magnitude)
    if how == "auto" and sparse.issparse(X):
        shift, gain = np.zeros(n_features), 1 / magnitude
    elif how == "range" or (
        how == "auto" and _look_like_pixels(X, low / 2, high / 2, all_gather_object)
    ):
        half = high.max() / 2 - low.min() / 2  # the difference may overflow
        shift = np.full(n_features, low.min())
        gain = np.full(n_features, 0.5 / half if half > TINY else 1.0)
    else:
        shift, deviation = _mean_and_deviation(X, magnitude, all_gather_object)
        gain = 1 / np.where(constant, 1, deviation)
    return Scale(np.where(constant, low, shift), np.where(constant, 0, gain))


def _look_like_pixels(
    X: ndarray, low: ndarray, high: ndarray, all_gather_object: Callable[[Any], list[Any]]
) -> bool:
    """Return whether the columns share one range. Halves are passed, as differences may overflow.

    All minima are near a common floor, and more than half of them are equal to it, unlike those of
    unbounded values. Most maxima reach half of the common ceiling, and the other columns are like
    pixels at the border: mostly at the floor.
    """
    varies = low < high
    if not varies.any():
        return True
    low, high = low[varies], high[varies]
    floor, ceiling = low.min(), high.max()
    if (low - floor > 0.1 * (ceiling - floor)).any() or (low == floor).mean() <= 0.5:
        return False
    faint = high - floor < 0.5 * (ceiling - floor)
    samples = all_gather_object(X[:: max(1, len(X) // PIXEL_SAMPLE)][:, varies][:, faint])
    sample = np.concatenate(samples)
    dark = (sample / 2 <= low[faint]).mean(axis=0) > 0.8
    return bool(faint.mean() < 0.5 and dark.all())


def _column_range(X: Any) -> tuple[ndarray, ndarray]:
    if sparse.issparse(X):
        low, high = X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
    else:
        ranges = np.array([(rows.min(axis=0), rows.max(axis=0)) for rows in chunks(X)])
        low, high = ranges[:, 0].min(axis=0), ranges[:, 1].max(axis=0)
    return low.astype(np.float64), high.astype(np.float64)


def _mean_and_deviation(
    X: Any, magnitude: ndarray, all_gather_object: Callable[[Any], list[Any]]
) -> tuple[ndarray, ndarray]:
    """Compute by chunks, relative to the magnitude of a column, so squares cannot overflow."""
    scaler = StandardScaler(with_mean=not sparse.issparse(X))
    unit = 1 / magnitude
    for chunk in (rows.astype(np.float64) for rows in chunks(X)):
        scaler.partial_fit(chunk @ sparse.diags_array(unit) if sparse.issparse(X) else chunk * unit)
    parts = all_gather_object((X.shape[0], scaler.mean_, scaler.var_))
    if len(parts) == 1:
        return scaler.mean_ * magnitude, np.sqrt(scaler.var_) * magnitude
    n_rows, means, variances = (np.array(values) for values in zip(*parts, strict=True))
    shares = (n_rows / n_rows.sum())[:, None]
    mean = (shares * means).sum(axis=0)
    variance = (shares * (variances + (means - mean) ** 2)).sum(axis=0)
    return mean * magnitude, np.sqrt(variance) * magnitude
