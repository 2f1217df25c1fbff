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
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TextIO

import torch
from torch import Tensor

from hopefold import store
from hopefold.errors import (
    BrokenFile,
    CannotWrite,
    CheckpointWarning,
    InvalidParameter,
    Stopped,
)

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

KIND = "checkpoint"

#: At the end of an epoch, a state is saved unless saving takes more than this share of the time.
SHARE = 0.05


class State(NamedTuple):
    """All that the rest of a run depends on."""

    plain: dict[str, Any]
    tensors: dict[str, Tensor]


class Checkpoint:
    """The states of a fit's runs in a file, written whole, each time in place of the last."""

    def __init__(self, path: Path, identity: str, seed: int, minutes: float) -> None:
        self._path, self._identity, self._minutes = path, identity, minutes
        self.seed = seed
        self._over: list[State] = []
        self._found: list[State] = []
        self._stop = False
        self._saved, self._cost = time.monotonic(), 0.0
        if path.exists():
            self._read()

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
            threading.current_thread() is threading.main_thread()
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

    def _read(self) -> None:
        manifest, tensors = store.read(self._path)
        if manifest["kind"] != KIND:
            raise InvalidParameter(f"{self._path} is no checkpoint but a model: name another file.")
        if manifest["identity"] != self._identity:
            if manifest["over"]:
                return
            raise InvalidParameter(
                f"{self._path} is the checkpoint of another fit, of other data or settings, that "
                "is not over: name another file, or remove it."
            )
        runs, self.seed = manifest["runs"], manifest["seed"]
        found: list[dict[str, Tensor]] = [{} for _ in runs]
        for name, tensor in tensors.items():
            number, _, rest = name.partition(".")
            found[int(number)][rest] = torch.from_numpy(tensor)
        self._found = [State(*pair) for pair in zip(runs, found, strict=True)]

    def _write(self, last: State | None, *, over: bool = False) -> None:
        start = time.monotonic()
        states = [*self._over, *([] if last is None else [last])]
        manifest = {
            "kind": KIND,
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
            warnings.warn(
                f"cannot write the checkpoint {self._path} ({error.strerror or error}): make "
                "room; the fit goes on, and the last one that could be written stays.",
                CheckpointWarning,
                stacklevel=2,
            )
        self._saved = time.monotonic()
        self._cost = self._saved - start


@contextmanager
def hold(
    path: str | PathLike[str], identity: str, seed: int, minutes: float
) -> Iterator[Checkpoint]:
    """The checkpoint of one fit at a time: a second process is told that the first one has it."""
    target = Path(os.path.realpath(path))
    with _locked(target):
        try:
            checkpoint = Checkpoint(target, identity, seed, minutes)
        except (LookupError, TypeError) as error:
            raise BrokenFile(f"{path} is no checkpoint that makes sense ({error}).") from error
        yield checkpoint


def _open(lock: Path) -> TextIO:
    try:
        return open(lock, "w", encoding="utf-8")
    except OSError as error:
        raise CannotWrite(
            f"no checkpoint can be written in {lock.parent} ({error.strerror or error}): choose "
            "another place."
        ) from error


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """A lock beside the target, which is itself replaced with each save; it ends with us."""
    if fcntl is None or not target.parent.is_dir():  # whoever writes there says what is wrong
        yield
        return
    lock = target.with_name(f".{target.name}.lock")
    while True:
        with _open(lock) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InvalidParameter(
                    f"{target} is the checkpoint of a fit that is running: name another file."
                ) from error
            if not lock.exists() or not os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                continue  # the one before us removed it just now
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return
