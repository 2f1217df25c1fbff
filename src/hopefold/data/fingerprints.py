"""Rows that were seen before: a few fingerprints tell, whatever the number of rows.

The fingerprint of a row is a number of 64 bits that its values in float32 decide. Of all rows that
were seen, the smallest fingerprints are kept. A row whose fingerprint is as small as these was seen
if it is among them, and was not if it is not: such rows speak for all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from hopefold.data.disk import chunks

if TYPE_CHECKING:
    from jaxtyping import Int
    from numpy import ndarray

#: Fingerprints that are kept: of a tenth of the rows there are three among them.
KEPT = 32


def sketch(X: Any, before: Int[ndarray, " k"] | None = None) -> Int[ndarray, " k"]:
    """The smallest fingerprints of the rows of a table, and of those seen before."""
    smallest = np.empty(0, np.int64) if before is None else before
    for rows in chunks(X):
        smallest = np.union1d(smallest, fingerprints(rows))[:KEPT]
    return smallest


def share_seen(X: Any, kept: Int[ndarray, " k"]) -> float:
    """About what share of the rows was seen."""
    marks = np.concatenate([fingerprints(rows) for rows in chunks(X)])
    if len(kept) == KEPT:  # larger ones were seen and not kept
        marks = marks[marks <= kept.max()]
    return float(np.isin(marks, kept).mean()) if len(marks) else 0.0


def fingerprints(X: Any) -> Int[ndarray, " n"]:
    """A number for each row: the sum of its values' bits, each times a number of its column.

    The bits of 0 are 0, so that a sparse row has the fingerprint of the same row made dense.
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
    """The bits of float32 numbers, as whole numbers; −0 is 0."""
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(values, dtype=np.float32) + np.float32(0)
    return rounded.view(np.uint32).astype(np.uint64)


def _scramble(numbers: ndarray) -> ndarray:
    """Spread whole numbers over all of 64 bits (the finaliser of splitmix64)."""
    numbers = numbers * np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
