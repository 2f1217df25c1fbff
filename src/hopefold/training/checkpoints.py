"""Checkpoints: the state of a fit in a file, from which an interrupted fit resumes.

A fit is a sequence of runs of the training loop: with held-out rows, then on all rows; one per
layer; one per precision. What happens between runs is determined by the data and the seed, and is
repeated. So a checkpoint contains one state per run: the final state of completed runs, and the
current state of the last one. It contains no code: its format is that of a model file.
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

#: The format version of the states; files of other versions are rejected.
LAYOUT = 2

#: A state is saved at the end of an epoch unless saving takes more than this share of the time.
SHARE = 0.05


class State(NamedTuple):
    """Everything that the rest of a run depends on."""

    plain: dict[str, Any]
    tensors: dict[str, Tensor]


class Checkpoint:
    """A file with the states of a fit's runs; each save replaces the file atomically."""

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
        """Set the states of earlier runs and the seed, as read from the file."""
        self._found, self.seed = found, seed

    def next_run(self) -> State | None:
        """Return the state from which the next run of the fit resumes, if it has one."""
        number = len(self._over)
        return self._found[number] if number < len(self._found) else None

    def end_run(self, state: State) -> None:
        """Save the final state of a run."""
        self._over.append(state)
        if len(self._over) > len(self._found):
            self._write(None)

    def offer(self, state: Callable[[], State], *, epoch_is_over: bool) -> None:
        """Save if it is time, and stop if the user has interrupted the fit. Call it per step."""
        waited = time.monotonic() - self._saved
        due = waited >= 60 * self._minutes or (epoch_is_over and waited >= self._cost / SHARE)
        if due or self._stop:
            self._write(state())
        if self._stop:
            raise Stopped(
                f"stopped; the state of the fit is saved in {self._path}: fit again with the same "
                "data and settings to resume."
                if self._path.exists()
                else "stopped; the fit is lost."
            )

    def finish(self) -> None:
        """Mark the fit as completed, unless it was stopped: a different fit may use the file."""
        if not self._stop:
            self._write(None, over=True)

    @contextmanager
    def heeding_interrupts(self) -> Iterator[None]:
        """Delay Ctrl-C until the current step is complete; a second Ctrl-C stops at once."""
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
        """Read the states and the seed from the file, if it exists."""
        if not self._path.exists():
            return [], self.seed
        try:
            manifest, tensors = store.read(self._path)
        except BrokenFile as error:
            raise BrokenFile(
                f"{self._path} is not a readable checkpoint ({error}) Remove it, and the fit "
                "starts anew, or name another file."
            ) from error
        if manifest["kind"] != store.CHECKPOINT:
            raise InvalidParameter(f"{self._path} is a model, not a checkpoint: name another file.")
        if manifest["over"] and (self._anew or manifest["identity"] != self._identity):
            return [], self.seed
        if manifest.get("layout") != LAYOUT:
            raise InvalidParameter(
                f"{self._path} is the checkpoint of a fit by another version of hopefold, which "
                "this one cannot resume: remove it, and the fit starts anew, or name another file."
            )
        if manifest["identity"] != self._identity:
            raise InvalidParameter(
                f"{self._path} is the checkpoint of another fit, with other data or settings, that "
                "is not complete: name another file, or remove it."
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
        except OSError as error:  # a full disk does not stop the fit
            warn(
                f"cannot write the checkpoint {self._path} ({error.strerror or error}): free some "
                "space; the fit continues, and the last complete checkpoint stays.",
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
    """Hold the checkpoint for one fit; an error is raised if another fit uses it.

    With several processes, the first one reads it for all and writes it. A completed fit is
    returned as it was, or repeated if ``anew``.
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
                raise BrokenFile(f"{path} is not a valid checkpoint ({error}).") from error

        checkpoint.go_on(*group.broadcast_object(group.together(read)))
        yield checkpoint


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Lock a file next to the target, since the target itself is replaced with each save."""
    if not target.parent.is_dir():  # writing reports the error
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
