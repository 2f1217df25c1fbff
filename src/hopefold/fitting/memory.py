"""How much memory a fit will take, estimated before it starts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import psutil
from torch import nn

from hopefold.errors import NotEnoughMemory

#: Copies of the weights in a fit: themselves, their gradients, two moments, the best so far, spare,
#: those of the last good epoch; and what a checkpoint takes while it is written.
COPIES, SAVED = 10, 12

#: Arrays as large as a layer that a batch needs forward and backward, and as the pairs.
LAYERS, PAIRS = 4, 3

FLOAT = 4


def check_memory(
    map_: nn.Module,
    n_rows: int,
    batch_size: int,
    *,
    pairs: bool,
    saved: bool,
    sizes: Mapping[str, Any],
) -> None:
    """Stop a fit that cannot fit, with the bytes that it would need and the setting to change."""
    n_weights = sum(weights.numel() for weights in map_.parameters())
    width = sum(max(weights.shape) for weights in map_.parameters() if weights.ndim > 1)
    n_batch = min(batch_size, n_rows)
    wanted = {
        "sizes": (COPIES + saved * SAVED) * n_weights * FLOAT,
        "batch_size": LAYERS * n_batch * width * FLOAT + pairs * PAIRS * n_batch**2 * FLOAT,
    }
    free = available()
    if sum(wanted.values()) <= free:
        return
    if wanted["sizes"] < free / 2:
        remedy = f"lower batch_size (now {batch_size:,})"
    else:
        named = " or ".join(f"{name} (now {_format(value)})" for name, value in sizes.items())
        remedy = f"lower {named}" if named else "give fewer features"
    raise NotEnoughMemory(
        f"this fit needs about {sum(wanted.values()) / 2**30:,.1f} GiB "
        f"({sum(wanted.values()):,} bytes), but {free / 2**30:,.1f} GiB are free: {remedy}."
    )


def _format(size: int | tuple[int, ...]) -> str:
    return f"{size:,}" if isinstance(size, int) else str(size)


def requested_memory(error: MemoryError | RuntimeError) -> str | None:
    """Of an error that some library has raised: the memory that was not there, if it was that."""
    if isinstance(error, MemoryError):
        return str(error) or "no more could be had"
    found = re.search(r"allocate (\d+) bytes", str(error))  # torch has no error of its own for it
    return f"{int(found[1]):,} bytes more were wanted" if found else None


def available() -> int:
    """Bytes that can still be allocated: what is free, and what the address-space limit leaves."""
    free = psutil.virtual_memory().available
    return min(free, _below_limit(free))


def _below_limit(free: int) -> int:
    process = psutil.Process()
    if not hasattr(process, "rlimit"):  # on Linux only
        return free
    limit, _ = process.rlimit(psutil.RLIMIT_AS)
    if limit == psutil.RLIM_INFINITY:
        return free
    return max(0, limit - process.memory_info().vms)
