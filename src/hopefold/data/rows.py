"""Rows of a table in the scale of the map, fetched in batches."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse

from hopefold.data.disk import Buffer, chunks, is_on_disk, shuffle_blocks
from hopefold.data.scaling import Scale, can_be_shared, learn_scale
from hopefold.errors import InvalidInput

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray
    from torch import Tensor


#: The square of a larger number overflows in float32.
LARGEST = 1e18


class Rows:
    """A table, dense, CSR or on disk, that returns scaled rows as dense float32 tensors.

    Only the requested rows are scaled and made dense.
    """

    #: The columns of the table that the rows have; ``None``: all.
    columns: Int[ndarray, " c"] | None = None

    #: Whether the rows are coordinates in another basis than that of the columns.
    is_rotated: bool = False

    def __init__(self, X: Any, scale: Scale) -> None:
        self._X = X
        self.scale = scale
        self._buffer = Buffer(X, scale.write) if is_on_disk(X) else None

    @classmethod
    def prepare(
        cls,
        X: Any,
        scale: Scale,
        names: ndarray | None = None,
        columns: Int[ndarray, " c"] | None = None,
    ) -> Rows:
        """Scale a dense table once. A CSR table or one on disk is scaled row by row later.

        The rows of a dense table can be restricted to some of the columns.
        """
        if sparse.issparse(X):
            return cls(X, scale)
        if is_on_disk(X):
            for chunk in chunks(X):
                _check_size(scale.apply(chunk), names)
            return cls(X, scale)
        rows = scale.apply(X)
        _check_size(rows, names)
        if columns is not None:
            rows = rows.take(columns, axis=1)
        prepared = cls(rows, learn_scale(rows, None))
        prepared.columns = columns
        return prepared

    def __len__(self) -> int:
        n_rows: int = self._X.shape[0]
        return n_rows

    @property
    def n_features(self) -> int:
        """Number of columns."""
        n_features: int = self._X.shape[1]
        return n_features

    @property
    def is_sparse(self) -> bool:
        """Whether rows are converted to dense when they are fetched."""
        return sparse.issparse(self._X)

    def shuffle(self, which: ndarray, generator: torch.Generator) -> Int[Tensor, " w"]:
        """Return a random permutation of the positions in ``which`` that is efficient to fetch."""
        if self._buffer:
            return shuffle_blocks(which, self.n_features, generator)
        return torch.randperm(len(which), generator=generator)

    def subset(self, which: ndarray) -> Rows:
        """Return only the rows with these numbers."""
        return _Subset(self, which)

    @property
    def is_dense(self) -> bool:
        """Whether the rows are a scaled array in the memory of this process."""
        return type(self) is Rows and self._buffer is None and self._is_ready

    def with_columns(self, which: Int[ndarray, " c"]) -> Rows:
        """Return dense rows with only these of their columns."""
        rows = Rows(np.ascontiguousarray(self._X[:, which]), learn_scale(self._X[:, which], None))
        rows.columns = which if self.columns is None else self.columns[which]
        return rows

    def in_basis(self, basis: Float[ndarray, "columns r"]) -> Rows:
        """Return the coordinates of dense rows in another basis."""
        rows = Rows(self._X @ basis, learn_scale(self._X[:1] @ basis, None))
        rows.is_rotated = True
        return rows

    def fetch(
        self, which: ndarray | slice, out: Float[Tensor, "n features"] | None = None
    ) -> Float[Tensor, "n features"]:
        """Return the rows with these numbers, dense and scaled, in ``out`` if it is given."""
        if self._buffer:
            return self._buffer.take(self._numbers(which), out)
        numbers = self._numbers(which)
        if out is not None and self._is_ready and not isinstance(numbers, slice):
            table = torch.from_numpy(self._X)
            return torch.index_select(table, 0, torch.from_numpy(numbers), out=out)
        rows = self.scale.apply(self._take(which))
        x = torch.from_numpy(rows if rows.flags.writeable else rows.copy())
        return x if out is None else out.copy_(x)

    def here(
        self, which: ndarray, out: Float[Tensor, "n features"] | None = None
    ) -> Float[Tensor, "n features"]:
        """Return the result of `fetch`, for rows that this process has."""
        return self.fetch(which, out)

    def each(self, work: Callable[[Rows], ndarray], which: ndarray | None = None) -> ndarray:
        """Apply a function to each of these rows, or to all, and return the results in order."""
        return work(self if which is None else self.subset(which))

    def fetch_for_clustering(self, which: ndarray) -> Any:
        """Return rows like `fetch`, except that sparse rows stay sparse and are not shifted.

        Clusters do not depend on the origin: add `clustering_shift` to their centers.
        """
        if not self.is_sparse:
            return self.fetch(which).numpy()
        return self._take(which) @ sparse.diags_array(self.scale.gain)

    @cached_property
    def _is_ready(self) -> bool:
        """Whether rows can be gathered directly from memory."""
        dense = not self.is_sparse and can_be_shared(self._X) and self._X.dtype == np.float32
        return dense and self.scale.is_none

    def _numbers(self, which: ndarray | slice) -> ndarray | slice:
        """The numbers of these rows in the whole table."""
        return which

    def _take(self, which: ndarray | slice) -> Any:
        which = self._numbers(which)
        if isinstance(which, slice) or self.is_sparse or not can_be_shared(self._X):
            return self._X[which]
        return torch.from_numpy(self._X).index_select(0, torch.from_numpy(which)).numpy()

    @property
    def clustering_shift(self) -> ndarray:
        """The shift from centers of `fetch_for_clustering` to the scale of the map."""
        if not self.is_sparse:
            return np.zeros(self.n_features)
        return -self.scale.shift * self.scale.gain


class _Subset(Rows):
    """A subset of the rows of a table, fetched on demand."""

    def __init__(self, rows: Rows, which: ndarray) -> None:
        self._X, self.scale, self._buffer = rows._X, rows.scale, rows._buffer
        self.columns, self._which = rows.columns, which

    def __len__(self) -> int:
        return len(self._which)

    def _numbers(self, which: ndarray | slice) -> ndarray | slice:
        return self._which[which]


class ShardedRows(Rows):
    """A table of which each process has a contiguous range of rows.

    All processes request the same rows at the same time. Each fetches those that it has, and
    ``all_gather_object`` exchanges the results.
    """

    def __init__(
        self,
        rows: Rows,
        bounds: Sequence[int],
        rank: int,
        all_gather_object: Callable[[Any], list[Any]],
        *,
        by_blocks: bool,
    ) -> None:
        self._X, self.scale, self._buffer = rows._X, rows.scale, rows._buffer
        self.columns = rows.columns
        self._mine, self._all_of, self._by_blocks = rows, all_gather_object, by_blocks
        self._n_rows = bounds[-1]
        self._first, self._last = bounds[rank], bounds[rank + 1]

    def __len__(self) -> int:
        return self._n_rows

    def shuffle(self, which: ndarray, generator: torch.Generator) -> Int[Tensor, " w"]:
        """Return the same permutation as one process with the whole table."""
        if self._by_blocks:
            return shuffle_blocks(which, self.n_features, generator)
        return torch.randperm(len(which), generator=generator)

    def subset(self, which: ndarray) -> Rows:
        """Not supported: use `each`."""
        raise NotImplementedError

    @property
    def is_dense(self) -> bool:
        """Whether the rows are scaled arrays in the memory of their processes."""
        return self._mine.is_dense

    def with_columns(self, which: Int[ndarray, " c"]) -> Rows:
        """Return dense rows with only these of their columns."""
        rows = copy.copy(self)
        rows._mine = self._mine.with_columns(which)
        rows._X, rows.scale, rows.columns = rows._mine._X, rows._mine.scale, rows._mine.columns
        return rows

    def in_basis(self, basis: Float[ndarray, "columns r"]) -> Rows:
        """Return the coordinates of dense rows in another basis."""
        rows = copy.copy(self)
        rows._mine = self._mine.in_basis(basis)
        rows._X, rows.scale, rows.is_rotated = rows._mine._X, rows._mine.scale, True
        return rows

    def here(
        self, which: ndarray, out: Float[Tensor, "n features"] | None = None
    ) -> Float[Tensor, "n features"]:
        """Return rows that this process has."""
        return self._mine.fetch(which - self._first, out)

    def fetch(
        self, which: ndarray | slice, out: Float[Tensor, "n features"] | None = None
    ) -> Float[Tensor, "n features"]:
        """Return the rows with these numbers, gathered from all processes."""
        numbers = np.arange(self._n_rows)[which] if isinstance(which, slice) else which
        x = torch.from_numpy(self.each(lambda rows: rows.fetch(slice(None)).numpy(), numbers))
        return x if out is None else out.copy_(x)

    def fetch_for_clustering(self, which: ndarray) -> Any:
        """Return the rows with these numbers, gathered from all processes."""
        return self.fetch(which).numpy()

    def each(self, work: Callable[[Rows], ndarray], which: ndarray | None = None) -> ndarray:
        """Apply a function to each row in the process that has it, and gather the results."""
        numbers = np.arange(self._n_rows) if which is None else which
        places = np.flatnonzero((self._first <= numbers) & (numbers < self._last))
        here = self._mine.subset(numbers[places] - self._first)
        found = self._all_of((places, work(here) if len(places) else None))
        order = np.concatenate([theirs for theirs, _ in found])
        made: ndarray = np.concatenate([some for _, some in found if some is not None])
        return made[np.argsort(order)]


def float_types(X: Any) -> list[type]:
    """Return the dtypes that X may have; other dtypes are converted to the first one.

    Small integers fit into float32; others could lose their last digits.
    """
    dtype = getattr(X, "dtype", None)
    small = isinstance(dtype, np.dtype) and dtype.kind in "biu" and dtype.itemsize <= 2
    return [np.float32, np.float64] if small else [np.float64, np.float32]


def _check_size(rows: Float[ndarray, "n features"], names: ndarray | None) -> None:
    if max(rows.max(), -rows.min()) < LARGEST:
        return
    column = int(np.flatnonzero(~(np.abs(rows) < LARGEST).all(axis=0))[0])
    name = column if names is None else repr(names[column])
    raise InvalidInput(
        f"column {name} has values too large for products in float32 (beyond 1e18 in the scale "
        "of the map): divide it by a constant or, if scale is None, set scale='standard'."
    )
