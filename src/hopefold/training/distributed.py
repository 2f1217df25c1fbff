"""Collective operations between the processes of one fit.

`torchrun` starts the processes, and torch.distributed connects them: with gloo between CPUs, NCCL
between GPUs. Every process performs the same steps in the same order on its share of the rows of
each batch, and sums over rows are all-reduced. So all processes have the same weights at all
times. A single process runs the same code in a group of size 1, in which collectives do nothing.
Processes on one machine exchange gradients through shared memory (`shared_memory`).
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from hopefold.errors import HopefoldError, InvalidInput
from hopefold.training import shared_memory
from hopefold.training.shared_memory import PATIENCE, lost_process, split_like

if TYPE_CHECKING:
    from numpy import ndarray

T = TypeVar("T")


@contextmanager
def _naming_lost_processes() -> Iterator[None]:
    """Convert torch's error for a lost process into one that says what to do."""
    try:
        yield
    except RuntimeError as error:
        raise lost_process(str(error)) from error


@dataclass(frozen=True)
class ProcessGroup:
    """The processes of a fit, and the rank of this one."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Return whether this process writes files and prints."""
        return self.rank == 0

    def all_gather_object(self, mine: T) -> list[T]:
        """The objects of all processes, in the order of their ranks."""
        if self.size == 1:
            return [mine]
        found: list[Any] = [None] * self.size
        with _naming_lost_processes():
            dist.all_gather_object(found, mine)
        return found

    def all_gather_array(self, mine: ndarray) -> ndarray:
        """The arrays of all processes, concatenated."""
        return mine if self.size == 1 else np.concatenate(self.all_gather_object(mine))

    def all_gather_rows(self, mine: Tensor, counts: Sequence[int]) -> Tensor:
        """The rows of all processes, ``counts`` of each, concatenated."""
        padded = mine.new_zeros(max(counts), *mine.shape[1:])
        padded[: len(mine)] = mine
        found = [torch.empty_like(padded) for _ in counts]
        with _naming_lost_processes():
            dist.all_gather(found, padded)
        return torch.cat([part[:count] for part, count in zip(found, counts, strict=True)])

    def broadcast_object(self, mine: T) -> T:
        """The object of the first process."""
        if self.size == 1:
            return mine
        held = [mine]
        with _naming_lost_processes():
            dist.broadcast_object_list(held, src=0)
        return held[0]

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Set the tensors of all processes to the values of the first."""
        if self.size > 1:
            for tensor in tensors:
                held = tensor.detach().contiguous()
                with _naming_lost_processes():
                    dist.broadcast(held, src=0)
                tensor.detach().copy_(held)

    @torch.inference_mode()  # inference tensors are only writable in it
    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        """Set each tensor to its sum over all processes."""
        if self.size == 1:
            return
        reducer = shared_memory.reducer_for(self, tensors)
        if reducer is not None:
            reducer.all_reduce(self.rank, tensors)
            return
        together = torch.cat([tensor.reshape(-1) for tensor in tensors])
        with _naming_lost_processes():
            dist.all_reduce(together)
        for tensor, part in zip(tensors, split_like(together, tensors), strict=True):
            tensor.copy_(part)

    def together(self, work: Callable[[], T]) -> T:
        """Call a function in all processes; if it fails in one, raise the error in all of them."""
        if self.size == 1:
            return work()
        done: T | None = None
        wrong: HopefoldError | None = None
        try:
            done = work()
        except HopefoldError as error:
            wrong = error
        failed = [error for error in self.all_gather_object(wrong) if error is not None]
        if failed:
            failed[0].is_reported = not self.is_first  # type: ignore[attr-defined]
            raise failed[0]
        return done  # type: ignore[return-value]

    def agree(self, what: str, mine: Any) -> None:
        """Raise an error unless all processes have the same value."""
        found = self.all_gather_object(mine)
        others = [rank for rank, theirs in enumerate(found) if theirs != found[0]]

        def check() -> None:
            if others:
                raise InvalidInput(
                    f"process {others[0]} has other {what} than process 0 "
                    f"({_short(found[others[0]])}, not {_short(found[0])}): give all processes "
                    "the same data and settings."
                )

        self.together(check)


SINGLE_PROCESS = ProcessGroup()


def current_process_group() -> ProcessGroup:
    """Return the group of processes that torchrun has started, or a group of one."""
    if not dist.is_available():
        return SINGLE_PROCESS
    if not dist.is_initialized():
        if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "RANK" not in os.environ:
            return SINGLE_PROCESS
        _connect()
    return ProcessGroup(dist.get_rank(), dist.get_world_size())


def _connect() -> None:
    # If it were imported later, during a fit, its functions would hold the group as default
    # arguments, and its threads would live until the interpreter exits, which aborts the process.
    import_module("torch.distributed.nn")
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    with _naming_lost_processes():
        store, rank, size = next(rendezvous("env://", timeout=PATIENCE))
        # The launcher's store outlives a restart and has the addresses of terminated processes.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        if os.environ.get("GROUP_WORLD_SIZE") != "1":  # each machine's launcher counts its own
            attempt = store.add(f"attempts of rank {rank}", 1)
        store = dist.PrefixStore(f"attempt {attempt}", store)  # type: ignore[attr-defined]
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)
    atexit.register(_disconnect)


def _disconnect() -> None:
    """Leave the group before the process exits, so that its threads end cleanly."""
    shared_memory.release()
    if dist.is_initialized():
        dist.destroy_process_group()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
