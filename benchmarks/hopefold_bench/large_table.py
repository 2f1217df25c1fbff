"""The time per row of an epoch: a large table on disk against a small table in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hopefold.data import disk
from hopefold.estimators.shope import SHOPE
from hopefold_bench.one_pass import BATCH, as_float32, one_pass
from hopefold_bench.timing import Operation, seconds_of

if TYPE_CHECKING:
    from numpy import ndarray

#: Rows of the small table, and columns of both.
SMALL_ROWS, WIDTH = 100_000, 100


def seconds_per_row(n_rows: int) -> tuple[float, float]:
    """Seconds per row of an epoch over a large table on disk, and over a small one in memory.

    The epoch over the large table is interrupted by epochs over the small one, each time after as
    many rows as the small one has. So both are timed under the same load of the machine.
    """
    random = np.random.RandomState(0)
    centers = 2 * random.normal(size=(10, WIDTH))
    with tempfile.TemporaryFile() as file:
        labels = []
        for start in range(0, n_rows, SMALL_ROWS):
            y = random.randint(10, size=min(SMALL_ROWS, n_rows - start))
            X = as_float32(centers[y] + 3 * random.normal(size=(len(y), WIDTH)))
            file.write(X.data)
            labels.append(y)
        file.flush()
        table = np.memmap(file, np.float32, mode="r").reshape(-1, WIDTH)
        n_small = min(SMALL_ROWS, n_rows)
        small = _epoch(np.array(table[:n_small]), labels[0])
        small()  # warm-up
        epochs: list[float] = []

        def take_turns(step: int) -> None:
            if step % max(1, n_small // BATCH) == 0:
                epochs.append(seconds_of(small))

        large = _epoch(table, np.concatenate(labels), take_turns)
        large()
        epochs.clear()
        both = seconds_of(large)
        disk.release(table)
    return (both - sum(epochs)) / n_rows, sum(epochs) / (len(epochs) * n_small)


def _epoch(
    table: ndarray, y: ndarray, before_step: Callable[[int], object] | None = None
) -> Operation:
    model = SHOPE(n_factors=64, n_units=64, batch_size=BATCH, adversarial=0, random_state=0)
    return one_pass(model, table, y, before_step=before_step)
