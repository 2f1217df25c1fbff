"""Estimate of the share of training rows in a table, from a few fingerprints per table.

The fingerprint of a row is a 64-bit hash of its float32 values. The smallest fingerprints of all
training rows are kept. A row with a fingerprint in their range was in the training data if and
only if its fingerprint is among them. Such rows are a sample of all rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from hopefold.data.disk import chunks

if TYPE_CHECKING:
    from jaxtyping import Int
    from numpy import ndarray

#: Number of fingerprints that are kept: of a table with a tenth of the rows, three are expected.
KEPT = 32


def sketch(X: Any, before: Int[ndarray, " k"] | None = None) -> Int[ndarray, " k"]:
    """The smallest fingerprints of the rows of a table, and of the training rows."""
    smallest = np.empty(0, np.int64) if before is None else before
    for rows in chunks(X):
        smallest = np.union1d(smallest, fingerprints(rows))[:KEPT]
    return smallest


def share_seen(X: Any, kept: Int[ndarray, " k"]) -> float:
    """Estimate the share of the rows that were seen in training."""
    marks = np.concatenate([fingerprints(rows) for rows in chunks(X)])
    if len(kept) == KEPT:  # larger ones were not kept
        marks = marks[marks <= kept.max()]
    return float(np.isin(marks, kept).mean()) if len(marks) else 0.0


def fingerprints(X: Any) -> Int[ndarray, " n"]:
    """Return one hash per row: the sum of its values' bits, each times a number of its column.

    The bits of 0 are 0, so a sparse row has the same fingerprint as its dense form.
    """
    factors = _scramble(np.arange(1, X.shape[1] + 1, dtype=np.uint64))
    if sparse.issparse(X):
        rows = X.tocsr()
        sums = np.zeros(rows.nnz + 1, np.uint64)
        np.cumsum(_bits(rows.data) * factors[rows.indices], out=sums[1:])
        marks = sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
    else:
        marks = _bits(X) @ factors
    return _scramble(marks).view(np.int64)


def _bits(values: ndarray) -> ndarray:
    """Return the bits of float32 numbers as integers; −0 counts as 0."""
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(values, dtype=np.float32) + np.float32(0)
    return rounded.view(np.uint32).astype(np.uint64)


def _scramble(numbers: ndarray) -> ndarray:
    """Mix the bits of 64-bit integers (the finalizer of splitmix64)."""
    numbers = numbers * np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
