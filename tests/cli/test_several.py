"""The command in several processes: one model, one voice, and no process left waiting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hopefold import load

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "GOMP_SPINCOUNT": "0", "COLUMNS": "80"}
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
SETTINGS = ("--random-state", "0", "--max-epochs", "40", "--n-factors", "40", "--n-units", "40")

#: Fits in which each process has other data, one after the other.
ODD_DATA = """
import os
import numpy as np
from hopefold import SHOPE, HopefoldError
from hopefold.baselines import LDA
rank = int(os.environ["RANK"])
for what in ("columns", "labels", "rows", "seeds", "NaN", "baseline", "nothing"):
    y = np.arange(60) % 3
    X = np.random.RandomState(0).normal(size=(60, 4)) + y[:, None]
    model = LDA() if what == "baseline" else SHOPE(max_epochs=2, random_state=0)
    if rank and what == "seeds":
        model.set_params(random_state=1)
    if rank and what == "columns":
        X = X[:, :3]
    if rank and what == "labels":
        y = y[::-1]
    if rank and what == "rows":
        X = X + 1
    if rank and what == "NaN":
        X[3, 2] = np.nan
    try:
        model.fit(X, y)
        print(f"rank {rank}, {what}: fitted", flush=True)
    except HopefoldError as error:
        print(f"rank {rank}, {what}: {error}", flush=True)
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Four files of three row groups."""
    folder = tmp_path_factory.mktemp("files")
    random = np.random.RandomState(0)
    y = np.arange(1_200) % 3
    X = (2 * random.normal(size=(3, 6))[y] + random.normal(size=(1_200, 6))).astype(np.float32)
    for number in range(4):
        part = slice(300 * number, 300 * (number + 1))
        columns = {f"x{place}": column for place, column in enumerate(X[part].T)}
        parquet.write_table(
            pa.table({**columns, "kind": y[part]}), folder / f"{number}.parquet", row_group_size=100
        )
    return folder


def begin(*command, n_processes=2, **options):
    return subprocess.Popen(
        [*TORCHRUN, f"--nproc-per-node={n_processes}", *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        **options,
    )


def end(process, seconds=60):
    """What a process has said; it has so many seconds to end."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        raise AssertionError(process.communicate()) from None
    return process.returncode, out, err


def test_a_fit_of_files_in_two_processes_is_that_of_one(files, tmp_path):
    fit = ("fit", f"{files}/*.parquet", "--label", "kind", *SETTINGS, "--verbose", "0", "-o")
    status, out, err = end(begin("-m", "hopefold", *fit, tmp_path / "two.hope"))
    assert status == 0, err
    assert out.count("S-HOPE of") == out.count("wrote") == 1
    command = [sys.executable, "-m", "hopefold", *fit, str(tmp_path / "one.hope")]
    subprocess.run(command, check=True, env=ENVIRONMENT, capture_output=True)
    one, two = (load(tmp_path / name).transform(str(files)) for name in ("one.hope", "two.hope"))
    assert np.abs(one - two).max() <= 1e-3 * np.ptp(one)


def pid_of_rank(rank, launcher):
    """The process of that rank which a launcher has started."""
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = environ.read_bytes().split(b"\0")
            parent = (environ.parent / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == launcher.pid and b"RANK=%d" % rank in variables:
            return int(environ.parent.name)
    return None


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc")
def test_a_process_that_is_killed_is_started_again_and_the_model_is_the_same(files, tmp_path):
    settings = ("--label", "kind", *SETTINGS, "--batch-size", "100", "--no-refit")
    fit = ("-m", "hopefold", "fit", files, *settings, "--verbose", "0")
    status, _, err = end(begin(*fit, "-o", tmp_path / "calm.hope"))
    assert status == 0, err
    checkpoint = tmp_path / "fit.ckpt"
    process = begin(
        "--max-restarts=2", *fit, "-o", tmp_path / "killed.hope", "--checkpoint", checkpoint
    )
    while not checkpoint.exists() and process.poll() is None:
        time.sleep(0.02)
    os.kill(pid_of_rank(1, process), signal.SIGKILL)
    status, _, err = end(process)
    assert status == 0, err
    assert "SIGKILL" in err or "Signal 9" in err or "exitcode" in err
    assert (tmp_path / "killed.hope").read_bytes() == (tmp_path / "calm.hope").read_bytes()


@pytest.fixture
def machines():
    """What goes before a command that is to run on one of two machines, by their addresses.

    They are namespaces of this one, with a network between them and none else.
    """
    names = [f"hopefold-{os.getpid()}-{place}" for place in range(2)]
    addresses = ["10.77.0.1", "10.77.0.2"]
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no right to make namespaces, or no ip command")
    wires = f"link add wire netns {names[0]} type veth peer name wire netns {names[1]}"
    subprocess.run(["ip", *wires.split()], check=True)
    for name, address in zip(names, addresses, strict=True):
        for what in (f"addr add {address}/24 dev wire", "link set wire up", "link set lo up"):
            subprocess.run(["ip", "-n", name, *what.split()], check=True)
    yield {
        address: ["ip", "netns", "exec", name, "env", "GLOO_SOCKET_IFNAME=wire"]
        for name, address in zip(names, addresses, strict=True)
    }
    for name in names:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def test_a_process_killed_on_one_of_two_machines_is_started_again(files, machines, tmp_path):
    settings = ("--label", "kind", *SETTINGS, "--batch-size", "100", "--no-refit")
    fit = ["-m", "hopefold", "fit", str(files), *settings, "--verbose", "0", "-o"]
    command = [sys.executable, *fit, str(tmp_path / "one.hope")]
    subprocess.run(command, check=True, env=ENVIRONMENT, capture_output=True)
    host, checkpoint, launchers = next(iter(machines)), tmp_path / "fit.ckpt", []
    for address, there in machines.items():
        launch = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--max-restarts=2"]
        launch += ["--rdzv-backend=c10d", f"--rdzv-endpoint={host}:29400", "--rdzv-id=test"]
        launch += [f"--rdzv-conf=is_host={int(address == host)}", f"--local-addr={address}"]
        launch += [*fit, str(tmp_path / "two.hope"), "--checkpoint", str(checkpoint)]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        launchers.append(subprocess.Popen([*there, *launch], env=ENVIRONMENT, **options))
    while not checkpoint.exists() and all(each.poll() is None for each in launchers):
        time.sleep(0.02)
    os.kill(next(filter(None, (pid_of_rank(1, each) for each in launchers))), signal.SIGKILL)
    for status, _, err in (end(each, seconds=90) for each in launchers):
        assert status == 0, err
    one, two = (load(tmp_path / name).transform(str(files)) for name in ("one.hope", "two.hope"))
    assert np.abs(one - two).max() <= 1e-3 * np.ptp(one)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What two processes say that do not agree."""
    script = tmp_path_factory.mktemp("odd") / "odd.py"
    script.write_text(ODD_DATA)
    status, out, err = end(begin(script))
    assert status == 0, err
    return out


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("columns", "process 1 has other columns than process 0 (3, not 4)"),
        ("labels", "process 1 has other labels than process 0"),
        ("rows", "process 1 has other rows than process 0"),
        ("seeds", "process 1 has other seeds than process 0"),
        ("NaN", "column 2 has 1 missing value"),
        ("baseline", "LDA learns in one process, and there are 2"),
        ("nothing", "fitted"),
    ],
)
def test_processes_that_do_not_agree_all_get_a_clear_error(said, rank, what, words):
    assert f"rank {rank}, {what}: {words}" in said


@pytest.mark.parametrize(
    ("source", "label", "words"),
    [
        ("", "sort", "has no column 'sort'"),
        ("/0.parquet", "kind", "3 row groups for 4 processes"),
    ],
)
def test_a_mistake_is_told_once(files, tmp_path, source, label, words):
    output = tmp_path / "m.hope"
    fit = ("-m", "hopefold", "fit", f"{files}{source}", "--label", label, "-o", output)
    status, _, err = end(begin(*fit, n_processes=4 if "row groups" in words else 2))
    assert status != 0
    assert err.count("hopefold: ") == 1
    assert words in err
    assert not output.exists()
