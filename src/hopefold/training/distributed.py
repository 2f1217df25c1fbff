"""Other processes that learn the same map: the only file that knows of them.

`torchrun` starts the processes, torch.distributed lets them talk: gloo between CPUs, NCCL between
GPUs. Each does the same steps in the same order on its share of the rows of every batch, and what
adds up over rows is added up over processes. So all of them have the same weights at all times, and
one process is the same code: a world of size 1, in which there is nothing to do. Where all are on
one machine, gradients go through its memory instead of its network.
"""

from __future__ import annotations

import atexit
import os
import platform
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from hopefold.errors import HopefoldError, InvalidInput, LostProcess

if TYPE_CHECKING:
    from jaxtyping import Int
    from numpy import ndarray

T = TypeVar("T")

#: Can memory be a file without a name, which others may open, and do these see what is written to
#: it in the order in which it was? On Linux, on such processors; others want to be told each time.
SHARES_MEMORY = hasattr(os, "memfd_create") and platform.machine() in ("x86_64", "AMD64")

#: How long a process waits for the others before it gives up: reading may take its time.
PATIENCE = timedelta(minutes=30)

#: How many seconds it keeps looking for them, since to fall asleep and be woken takes long, how
#: many it sleeps between two looks from then on, and after how many it asks whether they live.
AWAKE, NAP, PULSE = 2e-3, 1e-4, 0.05

#: Bytes from where one process counts to where the next one does: what is nearer goes to and fro
#: between processors together.
APART = 128


@contextmanager
def _talking() -> Iterator[None]:
    """What torch says when another process is gone, in words that say what to do."""
    try:
        yield
    except RuntimeError as error:
        what = re.sub(r"\[/[^]]*\] *", "", str(error).partition("\n")[0])  # where in torch
        raise _lost(what[:100]) from error


def _lost(what: str) -> LostProcess:
    return LostProcess(
        f"another process of this fit has ended or cannot be reached ({what}): look for what it "
        "said; torchrun --max-restarts and a checkpoint let a fit go on."
    )


@dataclass(frozen=True)
class World:
    """All processes of a fit, and which of them this one is."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Is it for this process to write and to speak?"""
        return self.rank == 0

    def all_of(self, mine: T) -> list[T]:
        """What each process has, in the order of their ranks."""
        if self.size == 1:
            return [mine]
        found: list[Any] = [None] * self.size
        with _talking():
            dist.all_gather_object(found, mine)
        return found

    def joined(self, mine: ndarray) -> ndarray:
        """The arrays of all processes, one below the other."""
        return mine if self.size == 1 else np.concatenate(self.all_of(mine))

    def from_first(self, mine: T) -> T:
        """What the first process has."""
        if self.size == 1:
            return mine
        held = [mine]
        with _talking():
            dist.broadcast_object_list(held, src=0)
        return held[0]

    def level(self, tensors: Sequence[Tensor]) -> None:
        """Give the tensors of all processes the values of the first."""
        if self.size > 1:
            for tensor in tensors:
                held = tensor.detach().contiguous()
                with _talking():
                    dist.broadcast(held, src=0)
                tensor.detach().copy_(held)

    @torch.inference_mode()  # in which gradients are made, and only in it may they be written to
    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Give each tensor the sum of all processes."""
        if self.size == 1:
            return
        board = _shared_board(self, tensors)
        if board is not None:
            board.add_up(self.rank, tensors)
            return
        together = torch.cat([tensor.reshape(-1) for tensor in tensors])
        with _talking():
            dist.all_reduce(together)
        for tensor, part in zip(tensors, _cut(together, tensors), strict=True):
            tensor.copy_(part)

    def rows_of_all(self, mine: Tensor, counts: Sequence[int]) -> Tensor:
        """Rows of all processes, so many of each, one below the other."""
        padded = mine.new_zeros(max(counts), *mine.shape[1:])
        padded[: len(mine)] = mine
        found = [torch.empty_like(padded) for _ in counts]
        with _talking():
            dist.all_gather(found, padded)
        return torch.cat([part[:count] for part, count in zip(found, counts, strict=True)])

    def together(self, work: Callable[[], T]) -> T:
        """Do something that may fail in one process alone: then it fails in all of them."""
        if self.size == 1:
            return work()
        done: T | None = None
        wrong: HopefoldError | None = None
        try:
            done = work()
        except HopefoldError as error:
            wrong = error
        failed = [error for error in self.all_of(wrong) if error is not None]
        if failed:
            failed[0].told = not self.is_first  # type: ignore[attr-defined]
            raise failed[0]
        return done  # type: ignore[return-value]

    def agree(self, what: str, mine: Any) -> None:
        """Do all processes have the same?"""
        found = self.all_of(mine)
        others = [rank for rank, theirs in enumerate(found) if theirs != found[0]]

        def check() -> None:
            if others:
                raise InvalidInput(
                    f"process {others[0]} has other {what} than process 0 "
                    f"({_short(found[others[0]])}, not {_short(found[0])}): give all processes "
                    "the same data and settings."
                )

        self.together(check)


ALONE = World()


@dataclass
class Board:
    """Memory of one machine in which all of its processes write, and read what others have written.

    It has two sides: one can be written to while a slower process still reads the other.
    """

    #: For each side and each process, so many numbers.
    sides: Tensor
    #: For each process, how often it has written.
    written: Int[ndarray, "processes 1"]
    #: The processes' numbers in the system.
    pids: Sequence[int]
    times: int = 0

    def add_up(self, rank: int, tensors: Sequence[Tensor]) -> None:
        """Give each tensor the sum of all processes, the same bits in each of them."""
        side = self.sides[self.times % 2]
        for tensor, part in zip(tensors, _cut(side[rank], tensors), strict=True):
            part.copy_(tensor)
        self.times += 1
        self.written[rank, 0] = self.times
        self._await_all()
        everyones = [_cut(numbers, tensors) for numbers in side]
        for tensor, first, second, *others in zip(tensors, *everyones, strict=True):
            torch.add(first, second, out=tensor)
            for other in others:
                tensor.add_(other)

    def _await_all(self) -> None:
        """Until all have written as often as this process."""
        begun, looked = time.monotonic(), 0.0
        for pid, theirs in zip(self.pids, self.written, strict=True):
            while theirs[0] < self.times:
                waited = time.monotonic() - begun
                if waited < AWAKE:
                    os.sched_yield()  # to one that has no processor for itself
                    continue
                time.sleep(NAP)
                if waited < looked + PULSE:
                    continue
                looked = waited
                if not _is_alive(pid):
                    raise _lost(f"process {pid} is gone")
                if waited > PATIENCE.total_seconds():
                    raise _lost(f"nothing is heard of process {pid}")


def _is_alive(pid: int) -> bool:
    """Does it run, or could it? One that has ended stays listed until its parent has looked."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return status.rpartition(") ")[2][:1] not in ("Z", "X")


#: The board of this process by the number and kind of what is on it; None where there can be none.
_boards: dict[tuple[int, torch.dtype], Board | None] = {}


def _shared_board(world: World, tensors: Sequence[Tensor]) -> Board | None:
    """One for these tensors, if all processes are on one machine and it has room for it."""
    if os.environ.get("GROUP_WORLD_SIZE") != "1" or tensors[0].device.type != "cpu":
        return None
    key = sum(tensor.numel() for tensor in tensors), tensors[0].dtype
    if key not in _boards:
        _boards.clear()  # one is enough: all that a fit adds up is of one size
        _boards[key] = _hang_up(world, *key)
    return _boards[key]


def _hang_up(world: World, n_numbers: int, dtype: torch.dtype) -> Board | None:
    """A board in memory of the first process, which is gone when the last one that has it ends."""
    n_counts = world.size * APART
    n_bytes, held, path = n_counts + 2 * world.size * n_numbers * dtype.itemsize, None, ""
    if world.is_first and SHARES_MEMORY:
        held = os.memfd_create("hopefold")
        os.ftruncate(held, n_bytes)
        path = f"/proc/{os.getpid()}/fd/{held}"
    path, memory = world.from_first(path), None
    if path:
        with suppress(RuntimeError):  # of another user, or not to be seen from here
            memory = torch.from_file(path, shared=True, size=n_bytes, dtype=torch.uint8)
    pids = world.all_of(0 if memory is None else os.getpid())
    if held is not None:
        os.close(held)
    if memory is None or not all(pids):
        return None
    counts, numbers = memory.tensor_split([n_counts])
    written = counts.view(torch.int64).view(world.size, -1)[:, :1].numpy()
    return Board(numbers.view(dtype).view(2, world.size, n_numbers), written, pids)


def _cut(numbers: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """A row of numbers as tensors of these shapes."""
    parts = torch.split(numbers, [tensor.numel() for tensor in like])
    return [part.view(tensor.shape) for part, tensor in zip(parts, like, strict=True)]


def this_world() -> World:
    """The world that torchrun has started this process in, or one without others."""
    if not dist.is_available():
        return ALONE
    if not dist.is_initialized():
        if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "RANK" not in os.environ:
            return ALONE
        # Imported later, as a fit does, its functions would hold the group by their defaults, and
        # its threads would live until the interpreter ends, which aborts the process.
        import_module("torch.distributed.nn")
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        with _talking():
            store, rank, size = next(rendezvous("env://", timeout=PATIENCE))
            # The launcher's store outlives a restart, and has the addresses of the dead.
            attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
            if os.environ.get("GROUP_WORLD_SIZE") != "1":  # each machine's launcher counts its own
                attempt = store.add(f"times that rank {rank} has come", 1)
            store = dist.PrefixStore(f"attempt {attempt}", store)  # type: ignore[attr-defined]
            dist.init_process_group(
                backend, store=store, rank=rank, world_size=size, timeout=PATIENCE
            )
        atexit.register(_leave)
    return World(dist.get_rank(), dist.get_world_size())


def _leave() -> None:
    """End the talk before the process ends: its threads would be cut off."""
    _boards.clear()
    if dist.is_initialized():
        dist.destroy_process_group()


@dataclass(frozen=True)
class Dealing:
    """Which rows are for which process: a part of each batch, or those it alone has read.

    In the latter case, process r has the rows from ``bounds[r]`` to ``bounds[r + 1]``.
    """

    world: World = ALONE
    bounds: tuple[int, ...] | None = None

    def places(self, numbers: Int[ndarray, " n"]) -> list[Int[ndarray, " m"]]:
        """For each process, where its rows are among these."""
        if self.bounds is None:
            return np.array_split(np.arange(len(numbers)), self.world.size)
        owner = np.searchsorted(self.bounds, numbers, side="right") - 1
        return [np.flatnonzero(owner == rank) for rank in range(self.world.size)]

    def share(self, numbers: Int[ndarray, " n"]) -> tuple[ndarray, Callable[[Tensor], Tensor]]:
        """Where this process's rows are among these, and what joins the points of all processes."""
        everyones = self.places(numbers)

        def join(points: Tensor) -> Tensor:
            counts = [len(places) for places in everyones]
            order = torch.from_numpy(np.argsort(np.concatenate(everyones)))
            return self.world.rows_of_all(points, counts)[order.to(points.device)]

        return everyones[self.world.rank], join


#: One process, which has all rows.
ALL_MINE = Dealing()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
