"""Parts made by a real Dask cluster: two workers in processes, of which one is killed."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from hopefold import SHOPE
from hopefold.cli.batch import cluster as ours

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

N_PARTS, N_ROWS, N_COLUMNS = 60, 500, 20

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture(autouse=True)
def _a_minute_at_most():
    """No case hangs: after 60 s it fails."""

    def ring(*_):
        raise TimeoutError("this has taken a minute")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@contextmanager
def started(n_workers):
    with distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def two_workers():
    """A cluster whose workers have imported what they need."""
    with started(2) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        client.run(_warm_up)
        yield client


def _warm_up():
    import hopefold.cli.batch.parts
    import hopefold.estimators.hope

    return os.getpid(), hopefold


def pids(client):
    return list(client.run(os.getpid).values())


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A folder of files with numbered rows, all rows, and a model of them."""
    folder = tmp_path_factory.mktemp("rows")
    random = np.random.RandomState(0)
    X = random.normal(size=(N_PARTS * N_ROWS, N_COLUMNS))
    frame = pd.DataFrame(X, columns=[f"x{column}" for column in range(N_COLUMNS)])
    model = SHOPE(max_epochs=1, n_factors=32, n_units=32, random_state=0)
    model.fit(frame[:300], (X[:300, 0] > 0).astype(int))
    model.save(folder / "model.hope")
    (folder / "in").mkdir()
    numbered = frame.assign(number=np.arange(len(frame)))
    for part in range(N_PARTS):
        mine = numbered[part * N_ROWS : (part + 1) * N_ROWS]
        mine.to_parquet(folder / "in" / f"{part:02}.parquet")
    return folder, frame, model


@pytest.fixture
def command(rows, tmp_path):
    """What to call, but for the cluster, and where its results go."""
    folder, out = rows[0], tmp_path / "out"
    pattern = folder / "in" / "*.parquet"
    return ("transform", folder / "model.hope", pattern, "--id", "number", "-o", out), out


def parts_in(out):
    return {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet")}


def when_some_are_there(out, then, seen):
    """In a thread: when a few parts are there, do something, and note how many there were."""

    def watch():
        while len(parts_in(out)) < 5:
            time.sleep(0.001)
        then()
        seen.append(len(parts_in(out)))

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    return watching


def check_every_row(out, rows):
    """Each row once, where it lies in memory."""
    _, frame, model = rows
    points = parquet.read_table(out).to_pandas().sort_values("number")
    assert list(points["number"]) == list(range(len(frame)))
    expected = model.transform(frame)
    np.testing.assert_allclose(points[["shope0", "shope1"]], expected, rtol=1e-5, atol=1e-5)
    assert json.loads((out / "_manifest.json").read_text())["rows"] == len(frame)


def test_a_worker_killed_half_way_loses_no_row_and_doubles_none(run, two_workers, command, rows):
    arguments, out = command
    victim, _ = pids(two_workers)
    seen = []
    watching = when_some_are_there(out, lambda: os.kill(victim, signal.SIGKILL), seen)
    run(*arguments, "--dask", two_workers.scheduler.address)
    watching.join()
    assert 5 <= seen[0] < N_PARTS, "killed half-way"
    two_workers.wait_for_workers(2)
    assert victim not in pids(two_workers)
    check_every_row(out, rows)


def test_a_command_killed_half_way_goes_on_with_what_is_missing(run, two_workers, command, rows):
    arguments, out = command
    arguments = [*map(str, arguments), "--dask", two_workers.scheduler.address]
    killed = subprocess.Popen([sys.executable, "-m", "hopefold", *arguments], env=ENVIRONMENT)
    seen = []
    when_some_are_there(out, killed.kill, seen).join()
    assert killed.wait() == -signal.SIGKILL
    before = parts_in(out)
    assert 5 <= len(before) < N_PARTS
    assert not (out / "_manifest.json").exists()
    run(*arguments)
    after = parts_in(out)
    assert before.items() <= after.items()
    check_every_row(out, rows)


def test_a_part_that_workers_die_over_is_named(run, two_workers, command, rows, monkeypatch):
    arguments, out = command
    arguments = (*arguments, "--dask", two_workers.scheduler.address)
    monkeypatch.setattr(two_workers.cluster.scheduler, "allowed_failures", 0)
    victim, _ = pids(two_workers)
    watching = when_some_are_there(out, lambda: os.kill(victim, signal.SIGKILL), [])
    said = run(*arguments, status=2).stderr
    watching.join()
    assert "parquet has failed, 1 worker died over it" in said
    two_workers.wait_for_workers(2)
    run(*arguments)
    check_every_row(out, rows)


def test_what_a_model_says_lazily_is_computed_by_the_workers(two_workers, rows):
    _, frame, _ = rows
    X = frame.to_numpy()[:1000]
    model = SHOPE(max_epochs=1, n_factors=32, n_units=32, random_state=0)
    model.fit(X[:300], (X[:300, 0] > 0).astype(int))
    lazy = model.transform(da.from_array(X, chunks=(100, 7)))
    computed = two_workers.compute(lazy).result()
    np.testing.assert_allclose(computed, model.transform(X), rtol=1e-5, atol=1e-5)


def test_a_bad_file_is_named_by_whichever_worker_meets_it(run, two_workers, rows, tmp_path):
    folder = rows[0]
    bad = tmp_path / "bad.parquet"
    rows[1][:5].drop(columns="x3").to_parquet(bad)
    arguments = ("predict", folder / "model.hope", bad, "-o", tmp_path / "out")
    said = run(*arguments, "--dask", two_workers.scheduler.address, status=2).stderr
    assert "bad.parquet lacks column 'x3'" in said


def test_a_cluster_for_the_work_alone(run, rows, tmp_path):
    folder, frame, model = rows
    arguments = (
        "predict",
        folder / "model.hope",
        folder / "in" / "0[12].parquet",
        "--ignore-extra",
    )
    run(*arguments, "-o", tmp_path / "out", "--dask", "local")
    expected = model.predict(frame[N_ROWS : 3 * N_ROWS])
    assert list(parquet.read_table(tmp_path / "out")["predicted"].to_pylist()) == list(expected)


def test_a_scheduler_that_is_not_there_is_waited_for_ten_seconds(run, command):
    arguments, out = command
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    start = time.monotonic()
    said = run(*arguments, "--dask", address, status=2).stderr
    assert time.monotonic() - start < 15
    assert f"no Dask scheduler answers at {address}" in said
    assert not parts_in(out)


def test_something_that_listens_and_says_nothing_is_no_scheduler(run, command, monkeypatch):
    monkeypatch.setattr(ours, "ANSWERS_WITHIN", 1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        assert "no Dask scheduler answers" in run(*command[0], "--dask", address, status=2).stderr


@pytest.mark.parametrize(
    ("address", "why"), [("scheduler", "missing port"), ("http://a:80", "unknown address scheme")]
)
def test_an_address_that_is_none_is_told_with_the_reason(run, command, address, why):
    assert why in run(*command[0], "--dask", address, status=2).stderr


def test_a_cluster_without_workers_is_not_waited_for_forever(run, command, monkeypatch):
    monkeypatch.setattr(ours, "WORKERS_WITHIN", 2)
    with started(0) as cluster:
        said = run(*command[0], "--dask", cluster.scheduler_address, status=2).stderr
    assert "no worker for 2 s" in said


def test_without_dask_the_error_says_what_to_install(run, command, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    said = run(*command[0], "--dask", "local", status=2).stderr
    assert "pip install 'hopefold[dask]'" in said


def test_a_scheduler_that_goes_away_is_told(run, command, monkeypatch):
    arguments, _ = command
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    where = ("--host", "127.0.0.1", "--port", port, "--no-dashboard")
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "dask", "scheduler", *where], stderr=subprocess.DEVNULL
    )
    look = ours._has_workers

    def look_when_it_is_killed(client):
        scheduler.kill()
        return look(client)

    monkeypatch.setattr(ours, "_has_workers", look_when_it_is_killed)
    try:
        said = run(*arguments, "--dask", f"tcp://127.0.0.1:{port}", status=2).stderr
    finally:
        scheduler.kill()
        scheduler.wait()
    assert "the Dask scheduler has stopped" in said
