"""How far a fit has come, in a file, so that it can go on from there after whatever happens.

A fit is a chain of runs of the training loop: with some rows held out, then on all rows; one for
each layer; one for each precision. What lies between the runs follows from the data and the seed,
and is done again. So a checkpoint holds a state for each run: the end of those that are over, and
how far the last one has come. Nothing in it is code: it is a file as that of a model.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from os import PathLike
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from filelock import FileLock, Timeout
from torch import Tensor

from hopefold.errors import (
    BrokenFile,
    CannotWrite,
    CheckpointWarning,
    HopefoldError,
    InvalidParameter,
    Stopped,
    warn,
)
from hopefold.persistence import store
from hopefold.training.distributed import SINGLE_PROCESS, ProcessGroup

#: The layout of the states, which a file names; those of other layouts are refused.
LAYOUT = 2

#: At the end of an epoch, a state is saved unless saving takes more than this share of the time.
SHARE = 0.05


class State(NamedTuple):
    """All that the rest of a run depends on."""

    plain: dict[str, Any]
    tensors: dict[str, Tensor]


class Checkpoint:
    """The states of a fit's runs in a file, written whole, each time in place of the last."""

    def __init__(
        self,
        path: Path,
        identity: str,
        seed: int,
        minutes: float,
        group: ProcessGroup = SINGLE_PROCESS,
        *,
        anew: bool = False,
    ) -> None:
        self._path, self._identity, self._minutes = path, identity, minutes
        self._group, self._anew = group, anew
        self.seed = seed
        self._over: list[State] = []
        self._found: list[State] = []
        self._stop = False
        self._saved, self._cost = time.monotonic(), 0.0

    def go_on(self, found: list[State], seed: int) -> None:
        """Know the runs of the fit as they were written before, and the seed that it had."""
        self._found, self.seed = found, seed

    def next_run(self) -> State | None:
        """Where the next run of the fit goes on, if it has begun before."""
        number = len(self._over)
        return self._found[number] if number < len(self._found) else None

    def end_run(self, state: State) -> None:
        """A run is over; what follows may take a while."""
        self._over.append(state)
        if len(self._over) > len(self._found):
            self._write(None)

    def offer(self, state: Callable[[], State], *, epoch_is_over: bool) -> None:
        """After each step: save if it is time, and stop if the user has asked for it."""
        waited = time.monotonic() - self._saved
        due = waited >= 60 * self._minutes or (epoch_is_over and waited >= self._cost / SHARE)
        if due or self._stop:
            self._write(state())
        if self._stop:
            raise Stopped(
                f"stopped; how far the fit has come is in {self._path}: fit again with the same "
                "data and settings, and it goes on from there."
                if self._path.exists()
                else "stopped; nothing is kept of the fit."
            )

    def finish(self) -> None:
        """The fit is over: the next one of another kind may take the file."""
        self._write(None, over=True)

    @contextmanager
    def heeding_interrupts(self) -> Iterator[None]:
        """Ctrl-C waits until a step is over; a second one does not."""
        ours = (
            self._group.size == 1
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if not ours:
            yield
            return

        def stop(number: int, frame: FrameType | None) -> None:
            if self._stop:
                signal.default_int_handler(number, frame)
            self._stop = True

        signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def read(self) -> tuple[list[State], int]:
        """The states in the file, if there is one, and the seed."""
        if not self._path.exists():
            return [], self.seed
        try:
            manifest, tensors = store.read(self._path)
        except BrokenFile as error:
            raise BrokenFile(
                f"{self._path} is no checkpoint that can be read ({error}) Remove it, and the fit "
                "begins anew, or name another file."
            ) from error
        if manifest["kind"] != store.CHECKPOINT:
            raise InvalidParameter(f"{self._path} is no checkpoint but a model: name another file.")
        if manifest["over"] and (self._anew or manifest["identity"] != self._identity):
            return [], self.seed
        if manifest.get("layout") != LAYOUT:
            raise InvalidParameter(
                f"{self._path} is the checkpoint of a fit by another version of hopefold, which "
                "this one cannot resume: remove it, and the fit begins anew, or name another file."
            )
        if manifest["identity"] != self._identity:
            raise InvalidParameter(
                f"{self._path} is the checkpoint of another fit, of other data or settings, that "
                "is not over: name another file, or remove it."
            )
        runs, seed = manifest["runs"], manifest["seed"]
        found: list[dict[str, Tensor]] = [{} for _ in runs]
        for name, tensor in tensors.items():
            number, _, rest = name.partition(".")
            found[int(number)][rest] = torch.from_numpy(tensor)
        return [State(*pair) for pair in zip(runs, found, strict=True)], seed

    def _write(self, last: State | None, *, over: bool = False) -> None:
        if not self._group.is_first:
            return
        start = time.monotonic()
        states = [*self._over, *([] if last is None else [last])]
        manifest = {
            "kind": store.CHECKPOINT,
            "layout": LAYOUT,
            "identity": self._identity,
            "seed": self.seed,
            "over": over,
            "runs": [state.plain for state in states],
        }
        tensors = {
            f"{number}.{name}": tensor.cpu().numpy()
            for number, state in enumerate(states)
            for name, tensor in state.tensors.items()
        }
        try:
            store.write(self._path, manifest, tensors)
        except OSError as error:  # a full disk does not end the fit
            warn(
                f"cannot write the checkpoint {self._path} ({error.strerror or error}): make "
                "room; the fit goes on, and the last one that could be written stays.",
                CheckpointWarning,
            )
        self._saved = time.monotonic()
        self._cost = self._saved - start


@contextmanager
def hold(
    path: str | PathLike[str],
    identity: str,
    seed: int,
    minutes: float,
    group: ProcessGroup = SINGLE_PROCESS,
    *,
    anew: bool = False,
) -> Iterator[Checkpoint]:
    """The checkpoint of one fit at a time: a second one is told that the first one has it.

    Of several processes, the first reads it for all, and writes it. A fit that is over is given
    back as it was, or done ``anew``.
    """
    target = Path(os.path.realpath(path))
    checkpoint = Checkpoint(target, identity, seed, minutes, group, anew=anew)
    with ExitStack() as held:

        def read() -> tuple[list[State], int]:
            if not group.is_first:
                return [], seed
            held.enter_context(_locked(target))
            try:
                return checkpoint.read()
            except (LookupError, TypeError, ValueError) as error:
                if isinstance(error, HopefoldError):
                    raise
                raise BrokenFile(f"{path} is no checkpoint that makes sense ({error}).") from error

        checkpoint.go_on(*group.broadcast_object(group.together(read)))
        yield checkpoint


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """A lock beside the target, which is itself replaced with each save."""
    if not target.parent.is_dir():  # whoever writes there reports it
        yield
        return
    lock = FileLock(target.with_name(f".{target.name}.lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise InvalidParameter(
            f"{target} is the checkpoint of a fit that is running: name another file."
        ) from error
    except OSError as error:
        raise CannotWrite(
            f"no checkpoint can be written in {target.parent} ({error.strerror or error}): choose "
            "another folder."
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):  # Windows keeps it while it is open
            os.unlink(lock.lock_file)
        lock.release()
