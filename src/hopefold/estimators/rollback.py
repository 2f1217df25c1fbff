"""What a failed fit leaves behind: the model as it was before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hopefold.errors import HopefoldError, NotEnoughMemory
from hopefold.fitting.memory import requested_memory


@contextmanager
def unchanged_on_failure(model: Any) -> Iterator[None]:
    """A fit that fails or is stopped leaves the model as it was."""
    before = dict(model.__dict__)
    try:
        yield
    except BaseException as error:
        model.__dict__ = before
        lacking = isinstance(error, MemoryError | RuntimeError) and requested_memory(error)
        if not lacking or isinstance(error, HopefoldError):
            raise
        raise NotEnoughMemory(
            f"there is not enough memory for this fit ({lacking}): give fewer rows, lower "
            "batch_size or the sizes of the map, or give a numpy.memmap or a Parquet file, "
            "which is never read as a whole."
        ) from error
