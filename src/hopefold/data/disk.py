"""Tables on disk, read in blocks into a buffer of fixed size.

A table is a `numpy.memmap`. Blocks of rows are copied into the buffer, and their mapped pages are
released. So memory use is that of the buffer, independent of the size of the table.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import gen_batches

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray
    from torch import Tensor

#: Size of the buffer in bytes, within which rows are shuffled. A table that is not larger is read
#: as a whole.
BUFFER = 128 * 2**20

#: Bytes of consecutive rows that are read into the buffer together.
BLOCK = 512 * 2**10

#: Bytes of float64 that are processed at once.
CHUNK = 16 * 2**20

#: Bytes that are read before mapped pages are released: the system reads ahead.
MAPPED = 8 * 2**20


#: The offset of a block that is not in the buffer.
AWAY = -(2**62)


def is_on_disk(X: Any) -> bool:
    """Return whether X is a memmap that is too large to be read as a whole."""
    return isinstance(X, np.memmap) and X.nbytes > BUFFER


def release(X: Any) -> None:
    """Release all mapped pages of a table on disk; they are read again when needed."""
    mapped = getattr(X, "_mmap", None)
    if mapped is not None and hasattr(mapped, "madvise") and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def chunks(X: Any) -> Iterator[Any]:
    """Yield the rows of a table in consecutive blocks."""
    n_rows, n_features = X.shape
    for rows in gen_batches(n_rows, max(1, CHUNK // (8 * n_features))):
        yield X[rows]
        if is_on_disk(X):
            release(X)


def sizes_of_buffer(n_features: int) -> tuple[int, int]:
    """Return the exponent of the block size (a power of two) and the number of blocks held."""
    shift = max(1, BLOCK // (4 * n_features)).bit_length() - 1
    return shift, max(1, BUFFER // (4 * n_features << shift))


def shuffle_blocks(
    which: Int[ndarray, " w"], n_features: int, generator: torch.Generator
) -> Int[Tensor, " w"]:
    """Return a permutation of the positions in ``which`` (ascending) that reads each block once.

    Blocks are shuffled, and dealt into rounds of as many as the buffer holds; within a round all
    rows are shuffled. Rows sorted by class are mixed all the same, since a round has hundreds of
    blocks from anywhere.
    """
    shift, n_slots = sizes_of_buffer(n_features)
    first = np.arange(1, (int(which[-1]) >> shift) + 1 if len(which) else 0) << shift
    starts = np.unique(np.searchsorted(which, first))  # an empty block gets that of the next one
    blocks = torch.arange(len(which)).tensor_split(starts[starts > 0].tolist())
    order = torch.randperm(len(blocks), generator=generator).tolist()
    rounds = []
    for start in range(0, len(order), n_slots):
        places = torch.cat([blocks[block] for block in order[start : start + n_slots]])
        rounds.append(places[torch.randperm(len(places), generator=generator)])
    return torch.cat(rounds)


class Buffer:
    """The most recently used blocks of a table on disk, in memory.

    They are stored as ``prepare`` writes them, in float32.
    """

    def __init__(self, X: Any, prepare: Callable[[ndarray, ndarray], None]) -> None:
        self._X, self._prepare = X, prepare
        self._mapped = np.asarray(X)  # a plain array of the same memory: faster to index
        self._shift, self._n_slots = sizes_of_buffer(X.shape[1])
        # NumPy requests large pages, which makes random access faster; torch does not.
        n_rows = self._n_slots << self._shift
        self._rows = torch.from_numpy(np.empty((n_rows, X.shape[1]), dtype=np.float32))
        #: For each block, the offset from row numbers to positions here; `AWAY` if it is not held.
        self._offset = np.full(-(-len(X) >> self._shift), AWAY)
        self._block_in = np.full(self._n_slots, -1)
        self._next = self._n_read = 0

    def take(
        self, which: Int[ndarray, " w"] | slice, out: Float[Tensor, "w features"] | None = None
    ) -> Float[Tensor, "w features"]:
        """Return a copy of the rows with these numbers, in ``out`` if it is given."""
        if isinstance(which, slice):
            n_rows = len(range(*which.indices(len(self._X))))
            return self._read(which, self._rows.new_empty(n_rows, self._rows.shape[1]))
        if out is None:
            out = self._rows.new_empty(len(which), self._rows.shape[1])
        blocks = which >> self._shift
        places = self._offset[blocks] + which
        if places.min(initial=0) >= 0:
            return torch.index_select(self._rows, 0, torch.from_numpy(places), out=out)
        needed = np.unique(blocks)
        for some in np.split(needed, range(self._n_slots, len(needed), self._n_slots)):
            self._hold(some)
            here = np.flatnonzero(np.isin(blocks, some))
            out[here] = self._rows[torch.from_numpy(self._offset[blocks[here]] + which[here])]
        return out

    def _hold(self, blocks: Int[ndarray, " b"]) -> None:
        """Read the missing blocks; those that were read first are replaced."""
        missing = blocks[self._offset[blocks] == AWAY]
        if not len(missing):
            return
        slots = (self._next + np.arange(self._n_slots)) % self._n_slots
        slots = slots[~np.isin(self._block_in[slots], blocks)][: len(missing)]
        gone = self._block_in[slots]
        self._offset[gone[gone >= 0]] = AWAY
        self._offset[missing], self._block_in[slots] = (slots - missing) << self._shift, missing
        self._next = slots[-1] + 1
        for slot, block in zip(slots.tolist(), missing.tolist(), strict=True):
            which = slice(block << self._shift, (block + 1) << self._shift)
            self._read(which, self._rows[slot << self._shift :])

    def _read(self, which: slice, out: Tensor) -> Tensor:
        """Read and prepare consecutive rows, and release their mapped pages in time."""
        mapped = self._mapped[which]
        rows = out[: len(mapped)]
        self._prepare(mapped, rows.numpy())
        self._n_read += mapped.nbytes
        if self._n_read > MAPPED:
            release(self._X)
            self._n_read = 0
        return rows
