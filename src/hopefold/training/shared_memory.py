"""All-reduce through the memory of one machine, which takes less time than a message.

Every process writes its gradients to memory that all of them have mapped, counts there how often it
has written, and waits until the counts of the others have caught up.
"""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import torch
from torch import Tensor

from hopefold.errors import LostProcess

if TYPE_CHECKING:
    from jaxtyping import Int
    from numpy import ndarray

T = TypeVar("T")

#: Whether memory can be an anonymous file that other processes open, in which writes are seen in
#: the order in which they were made: on Linux, on x86. Other processors need explicit barriers.
SHARES_MEMORY = hasattr(os, "memfd_create") and platform.machine() in ("x86_64", "AMD64")

#: How long a process waits for the others before it gives up: reading may take its time.
PATIENCE = timedelta(minutes=30)

#: Seconds of busy waiting (going to sleep and waking up take long), seconds of sleep between two
#: looks from then on, and seconds after which it checks that the others are alive.
SPIN, SLEEP, LIVENESS = 2e-3, 1e-4, 0.05

#: Bytes between the counters of two processes, so that they never share a cache line.
COUNTER_STRIDE = 128


class Processes(Protocol):
    """What is needed of a process group here."""

    @property
    def size(self) -> int:
        """Number of processes."""

    @property
    def is_first(self) -> bool:
        """Is this the process of rank 0?"""

    def broadcast_object(self, mine: T) -> T:
        """The object of the first process."""

    def all_gather_object(self, mine: T) -> list[T]:
        """The objects of all processes."""


@dataclass
class SharedMemoryReducer:
    """Memory of one machine in which every process writes, and from which it reads the others.

    It has two sides: one can be written to while a slower process still reads the other.
    """

    #: For each side and each process, all numbers to be summed.
    sides: Tensor
    #: For each process, how often it has written.
    written: Int[ndarray, "processes 1"]
    #: The process identifiers.
    pids: Sequence[int]
    times: int = 0

    def all_reduce(self, rank: int, tensors: Sequence[Tensor]) -> None:
        """Set each tensor to its sum over all processes, to the same bits in each of them."""
        side = self.sides[self.times % 2]
        for tensor, part in zip(tensors, split_like(side[rank], tensors), strict=True):
            part.copy_(tensor)
        self.times += 1
        self.written[rank, 0] = self.times
        self._wait_for_all()
        parts = [split_like(numbers, tensors) for numbers in side]
        for tensor, first, second, *others in zip(tensors, *parts, strict=True):
            torch.add(first, second, out=tensor)
            for other in others:
                tensor.add_(other)

    def _wait_for_all(self) -> None:
        """Return when every process has written as often as this one."""
        begun, checked = time.monotonic(), 0.0
        for pid, theirs in zip(self.pids, self.written, strict=True):
            while theirs[0] < self.times:
                waited = time.monotonic() - begun
                if waited < SPIN:
                    os.sched_yield()  # to a process that has no processor for itself
                    continue
                time.sleep(SLEEP)
                if waited < checked + LIVENESS:
                    continue
                checked = waited
                if not _is_alive(pid):
                    raise lost_process(f"process {pid} is gone")
                if waited > PATIENCE.total_seconds():
                    raise lost_process(f"nothing is heard of process {pid}")


def lost_process(what: str) -> LostProcess:
    """The error for a process that has ended, with what is known of it."""
    what = re.sub(r"\[/[^]]*\] *", "", what.partition("\n")[0])  # where in torch
    return LostProcess(
        f"another process of this fit has ended or cannot be reached ({what[:100]}): look for its "
        "own error message; torchrun --max-restarts and a checkpoint let a fit resume."
    )


def _is_alive(pid: int) -> bool:
    """Is the process running? One that has ended stays listed until its parent has looked."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return status.rpartition(") ")[2][:1] not in ("Z", "X")


#: The reducer of this process by the number and dtype of its values; None where there can be none.
_reducers: dict[tuple[int, torch.dtype], SharedMemoryReducer | None] = {}


def reducer_for(group: Processes, tensors: Sequence[Tensor]) -> SharedMemoryReducer | None:
    """A reducer for these tensors, if all processes are on one machine that has room for it."""
    if os.environ.get("GROUP_WORLD_SIZE") != "1" or tensors[0].device.type != "cpu":
        return None
    key = sum(tensor.numel() for tensor in tensors), tensors[0].dtype
    if key not in _reducers:
        _reducers.clear()  # one is enough: everything that a fit sums has the same size
        _reducers[key] = _make_reducer(group, *key)
    return _reducers[key]


def release() -> None:
    """Unmap the shared memory."""
    _reducers.clear()


def _make_reducer(
    group: Processes, n_numbers: int, dtype: torch.dtype
) -> SharedMemoryReducer | None:
    """A reducer in memory of the first process, freed when the last process that has it ends."""
    n_counts = group.size * COUNTER_STRIDE
    n_bytes, held, path = n_counts + 2 * group.size * n_numbers * dtype.itemsize, None, ""
    if group.is_first and SHARES_MEMORY:
        held = os.memfd_create("hopefold")
        os.ftruncate(held, n_bytes)
        path = f"/proc/{os.getpid()}/fd/{held}"
    path, memory = group.broadcast_object(path), None
    if path:
        with suppress(RuntimeError):  # of another user, or not visible from here
            memory = torch.from_file(path, shared=True, size=n_bytes, dtype=torch.uint8)
    pids = group.all_gather_object(0 if memory is None else os.getpid())
    if held is not None:
        os.close(held)
    if memory is None or not all(pids):
        return None
    counts, numbers = memory.tensor_split([n_counts])
    written = counts.view(torch.int64).view(group.size, -1)[:, :1].numpy()
    sides = numbers.view(dtype).view(2, group.size, n_numbers)
    return SharedMemoryReducer(sides, written, pids)


def split_like(numbers: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """A flat tensor as tensors of these shapes."""
    parts = torch.split(numbers, [tensor.numel() for tensor in like])
    return [part.view(tensor.shape) for part, tensor in zip(parts, like, strict=True)]
