"""Fits that are killed at any moment, and go on: do they end as if nothing had happened?"""

from __future__ import annotations

import multiprocessing
import random
import time
from pathlib import Path

import torch
from sklearn.datasets import load_digits

from hopefold.bench.faults import Outcome
from hopefold.estimators.hope import SHOPE

#: Epochs of the fit, which is made twice: with some rows held out, and on all rows.
EPOCHS = 12

#: How often a fit may be killed before it has to come to its end.
MOST_KILLS = 3


def killed_fits(times: int, folder: Path) -> Outcome:
    """SIGKILL at random moments of fits with a checkpoint, until all came to their end.

    Every second one writes its checkpoint after each step, the others at the end of epochs. The
    files of the models must be the same, byte for byte, as that of a fit that was left alone and
    had no checkpoint.
    """
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    alone, model, checkpoint = (folder / name for name in ("alone.hope", "a.hope", "a.ckpt"))
    for _ in range(2):  # the first one starts the server
        begun = time.perf_counter()
        process = processes.Process(target=fit_and_save, args=(alone,))
        process.start()
        process.join()
        seconds = time.perf_counter() - begun
    chance, broken, killed = random.Random(0), [], 0
    while killed < times:
        model.unlink(missing_ok=True)
        checkpoint.unlink(missing_ok=True)
        minutes = 5.0 if killed % 2 else 0.0
        for _ in range(MOST_KILLS):
            process = processes.Process(target=fit_and_save, args=(model, checkpoint, minutes))
            process.start()
            process.join(chance.uniform(0, seconds))
            killed += process.exitcode is None
            process.kill()
            process.join()
        process = processes.Process(target=fit_and_save, args=(model, checkpoint, minutes))
        process.start()
        process.join()
        if process.exitcode or model.read_bytes() != alone.read_bytes():
            broken.append(f"kill {killed}: exit status {process.exitcode}, or another file")
    return Outcome(killed, tuple(broken))


def fit_and_save(model: Path, checkpoint: Path | None = None, minutes: float = 0.0) -> None:
    """A fit that takes a second or two, and its model in a file."""
    torch.set_num_threads(1)
    X, y = load_digits(return_X_y=True)
    method = SHOPE(max_epochs=EPOCHS, n_units=100, random_state=0)
    method.set_params(checkpoint=checkpoint, checkpoint_minutes=minutes)
    method.fit(X, y).save(model)
