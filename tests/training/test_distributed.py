"""Several real processes learn what one would."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

import several
from hopefold.errors import LostProcess
from hopefold.training import shared_memory
from hopefold.training.shared_memory import SharedMemoryReducer

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "GOMP_SPINCOUNT": "0"}


def start(n_processes, *command, timeout=120, **options):
    """A command in so many processes, on loopback."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return subprocess.run(
        [*torchrun, f"--nproc-per-node={n_processes}", *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
        timeout=timeout,
        **options,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of unequal length, with several row groups each."""
    X, y = several.table()
    folder = tmp_path_factory.mktemp("files")
    for number, (first, last) in enumerate([(0, 8), (8, 80), (80, 101)]):
        columns = {f"x{place}": column for place, column in enumerate(X[first:last].T)}
        table = pa.table({**columns, "label": y[first:last]})
        parquet.write_table(table, folder / f"{number}.parquet", row_group_size=20)
    return folder


@pytest.fixture(scope="module")
def alone(folder):
    """What one process finds."""
    found = {name: steps(None) for name, steps in several.STEPS.items()}
    return found | several.whole_fits(folder)


@pytest.fixture(scope="module", params=[2, 3])
def together(request, folder, tmp_path_factory):
    """What so many processes find, all of them the same, bit for bit."""
    output = tmp_path_factory.mktemp("found") / "found.npz"
    done = start(request.param, several.__file__, folder, output)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(np.load(output))


@pytest.mark.parametrize("name", several.STEPS)
def test_a_gradient_and_the_weights_after_ten_steps_are_those_of_one_process(alone, together, name):
    np.testing.assert_allclose(together[name], alone[name], rtol=0, atol=1e-9)


@pytest.mark.parametrize("source", ["arrays", "files"])
@pytest.mark.parametrize("name", several.METHODS)
def test_a_whole_fit_is_that_of_one_process(alone, together, name, source):
    wanted, found = alone[f"{name} {source}"], together[f"{name} {source}"]
    assert np.abs(found - wanted).max() <= 1e-3 * np.ptp(wanted)


@pytest.mark.parametrize("name", several.METHODS)
def test_the_errors_that_are_told_are_those_of_one_process(alone, together, name):
    np.testing.assert_allclose(together[f"{name} error"], alone[f"{name} error"], atol=0.02)


@pytest.mark.parametrize("source", ["arrays", "files"])
def test_the_temperature_is_that_of_one_process(alone, together, source):
    wanted, found = alone[f"calibration {source}"], together[f"calibration {source}"]
    assert wanted[0] != 1
    np.testing.assert_allclose(found, wanted, rtol=0.02)


def board_with(pid):
    """A board of this process and another one, which never writes."""
    return SharedMemoryReducer(torch.zeros(2, 2, 3), np.zeros((2, 1), int), [os.getpid(), pid])


@pytest.mark.parametrize("reaped", [True, False])
def test_a_process_that_is_gone_is_not_waited_for(reaped):
    """Whether or not its parent, which is this process, has looked how it ended."""
    gone = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    gone.stdout.read()  # until it ends
    if reaped:
        gone.wait()
    begun = time.monotonic()
    with pytest.raises(LostProcess, match=f"process {gone.pid} is gone"):
        board_with(gone.pid).all_reduce(0, [torch.ones(3)])
    assert time.monotonic() - begun < 10
    gone.communicate()


def test_a_process_that_stands_still_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(shared_memory, "PATIENCE", timedelta(seconds=0.1))
    with pytest.raises(LostProcess, match=f"no response from process {os.getpid()}"):
        board_with(os.getpid()).all_reduce(0, [torch.ones(3)])
