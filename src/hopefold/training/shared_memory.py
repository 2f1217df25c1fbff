"""All-reduce through shared memory on one machine, which is faster than message passing.

Every process writes its gradients to memory that all processes have mapped, increments its write
counter there, and waits until the counters of the others have caught up.
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

#: Whether memory can be an anonymous file that other processes open, with writes visible in program
#: order: on Linux on x86. Other processors require explicit barriers.
SHARES_MEMORY = hasattr(os, "memfd_create") and platform.machine() in ("x86_64", "AMD64")

#: Timeout in seconds: other processes may still be reading their data.
PATIENCE = timedelta(minutes=30)

#: Seconds of busy waiting (sleeping and waking up take long), seconds of sleep between two checks
#: from then on, and seconds after which it checks that the other processes are alive.
SPIN, SLEEP, LIVENESS = 2e-3, 1e-4, 0.05

#: Bytes between the counters of two processes, so that they are on separate cache lines.
COUNTER_STRIDE = 128


class Processes(Protocol):
    """The interface of a process group that is used here."""

    @property
    def size(self) -> int:
        """Number of processes."""

    @property
    def is_first(self) -> bool:
        """Return whether this is the process of rank 0."""

    def broadcast_object(self, mine: T) -> T:
        """The object of the first process."""

    def all_gather_object(self, mine: T) -> list[T]:
        """The objects of all processes."""


@dataclass
class SharedMemoryReducer:
    """Shared memory in which every process writes its values and reads those of the others.

    It is double-buffered: one side can be written while a slower process still reads the other.
    """

    #: For each side and each process, all values to be summed.
    sides: Tensor
    #: For each process, its number of writes.
    written: Int[ndarray, "processes 1"]
    #: The process identifiers.
    pids: Sequence[int]
    times: int = 0

    def all_reduce(self, rank: int, tensors: Sequence[Tensor]) -> None:
        """Set each tensor to its sum over all processes, bitwise equal in each of them."""
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
                    os.sched_yield()  # yield to a process that waits for a processor
                    continue
                time.sleep(SLEEP)
                if waited < checked + LIVENESS:
                    continue
                checked = waited
                if not _is_alive(pid):
                    raise lost_process(f"process {pid} is gone")
                if waited > PATIENCE.total_seconds():
                    raise lost_process(f"no response from process {pid}")


def lost_process(what: str) -> LostProcess:
    """Return the error for a process that has ended, with the known cause."""
    what = re.sub(r"\[/[^]]*\] *", "", what.partition("\n")[0])  # the location in torch
    return LostProcess(
        f"another process of this fit has ended or cannot be reached ({what[:100]}): look for its "
        "own error message; torchrun --max-restarts and a checkpoint let a fit resume."
    )


def _is_alive(pid: int) -> bool:
    """Return whether a process is running. Zombies stay listed until their parent reaps them."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return status.rpartition(") ")[2][:1] not in ("Z", "X")


#: The reducer of this process by the number and dtype of its values; None where it is impossible.
_reducers: dict[tuple[int, torch.dtype], SharedMemoryReducer | None] = {}


def reducer_for(group: Processes, tensors: Sequence[Tensor]) -> SharedMemoryReducer | None:
    """Return a reducer for these tensors, if all processes share a machine with enough memory."""
    if os.environ.get("GROUP_WORLD_SIZE") != "1" or tensors[0].device.type != "cpu":
        return None
    key = sum(tensor.numel() for tensor in tensors), tensors[0].dtype
    if key not in _reducers:
        _reducers.clear()  # one is enough: a fit always sums the same number of values
        _reducers[key] = _make_reducer(group, *key)
    return _reducers[key]


def release() -> None:
    """Unmap the shared memory."""
    _reducers.clear()


def _make_reducer(
    group: Processes, n_numbers: int, dtype: torch.dtype
) -> SharedMemoryReducer | None:
    """Map memory of the first process; it is freed when the last process exits."""
    n_counts = group.size * COUNTER_STRIDE
    n_bytes, held, path = n_counts + 2 * group.size * n_numbers * dtype.itemsize, None, ""
    if group.is_first and SHARES_MEMORY:
        held = os.memfd_create("hopefold")
        os.ftruncate(held, n_bytes)
        path = f"/proc/{os.getpid()}/fd/{held}"
    path, memory = group.broadcast_object(path), None
    if path:
        with suppress(RuntimeError):  # of another user, or in another namespace
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
    """Split a flat tensor into tensors of these shapes."""
    parts = torch.split(numbers, [tensor.numel() for tensor in like])
    return [part.view(tensor.shape) for part, tensor in zip(parts, like, strict=True)]
