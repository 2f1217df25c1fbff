"""Fits that are killed and resumed must give the model of an uninterrupted fit."""

from __future__ import annotations

import multiprocessing
import random
import time
from pathlib import Path

import torch
from sklearn.datasets import load_digits

from faults.outcome import Outcome
from hopefold.estimators.shope import SHOPE

#: Imported once by the server, so that kills hit the fit and not its imports. The server does not
#: see pytest's additions to sys.path, so this module cannot be among them.
PRELOADED = ["sklearn.datasets", "hopefold.estimators.hope"]

#: Epochs of the fit. It runs twice: with held-out rows, and as the refit on all rows.
EPOCHS = 12

#: How often each fit is killed before it may finish.
MAX_KILLS = 3


def killed_fits(times: int, folder: Path) -> Outcome:
    """Send SIGKILL at random moments of fits with a checkpoint, then let each fit finish.

    Every second fit writes its checkpoint after each step, the others at the end of epochs. The
    model files must be identical, byte for byte, to that of an uninterrupted fit without a
    checkpoint.
    """
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(PRELOADED)
    reference, model, checkpoint = (
        folder / name for name in ("reference.hope", "a.hope", "a.ckpt")
    )
    for _ in range(2):  # the first run also starts the server
        start = time.perf_counter()
        process = processes.Process(target=fit_and_save, args=(reference,))
        process.start()
        process.join()
        seconds = time.perf_counter() - start
    rng, broken, killed = random.Random(0), [], 0
    while killed < times:
        model.unlink(missing_ok=True)
        checkpoint.unlink(missing_ok=True)
        minutes = 5.0 if killed % 2 else 0.0
        for _ in range(MAX_KILLS):
            process = processes.Process(target=fit_and_save, args=(model, checkpoint, minutes))
            process.start()
            process.join(rng.uniform(0, seconds))
            killed += process.exitcode is None
            process.kill()
            process.join()
        process = processes.Process(target=fit_and_save, args=(model, checkpoint, minutes))
        process.start()
        process.join()
        if process.exitcode or model.read_bytes() != reference.read_bytes():
            broken.append(f"kill {killed}: exit status {process.exitcode}, or a different file")
    return Outcome(killed, tuple(broken))


def fit_and_save(model: Path, checkpoint: Path | None = None, minutes: float = 0.0) -> None:
    """Fit for a second or two, and save the model."""
    torch.set_num_threads(1)
    X, y = load_digits(return_X_y=True)
    method = SHOPE(max_epochs=EPOCHS, n_units=100, random_state=0)
    method.set_params(checkpoint=checkpoint, checkpoint_minutes=minutes)
    method.fit(X, y).save(model)
