"""The command as a process of its own: exit status, standard input, Ctrl-C, the disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hopefold import load

HOPEFOLD = Path(sys.executable).with_name("hopefold")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80"}
TABLE = ("--label", "type", "--drop", "cell", "--encode")


def call(*arguments, **more):
    command = [HOPEFOLD, *map(str, arguments)]
    options = {"capture_output": True, "text": True, "env": ENVIRONMENT}
    return subprocess.run(command, check=False, **(options | more))


def one_line(done):
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_standard_input_to_standard_output(cells, cells_model):
    done = call("predict", cells_model, "-", "--id", "cell", input=cells.read_text())
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 91
    assert lines[0].startswith('"cell","predicted"')
    assert not done.stderr


def test_a_mistake_is_one_line_and_exit_status_2(cells):
    assert "no column 'tyep'" in one_line(call("fit", cells, "--label", "tyep", "-o", "m"))
    assert "Missing option" in one_line(call("fit", cells))


def test_a_reader_that_has_seen_enough_gets_no_traceback(cells, cells_model):
    command = f"{HOPEFOLD} predict {cells_model} {cells} | head -1"
    options = {"shell": True, "capture_output": True, "text": True, "env": ENVIRONMENT}
    done = subprocess.run(command, check=False, **options)
    assert "Traceback" not in done.stderr
    assert "predicted" in done.stdout


def test_ctrl_c_keeps_a_fit_that_has_a_checkpoint(here):
    fit = [
        HOPEFOLD,
        "fit",
        "digits",
        "--max-epochs",
        "40",
        "--random-state",
        "0",
        "--n-units",
        "99",
    ]
    with_checkpoint = [*fit, "-o", "m.hope", "--checkpoint", "fit.ckpt"]
    process = subprocess.Popen(with_checkpoint, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    while not Path("fit.ckpt").exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "same data, settings and checkpoint to resume" in " ".join(said.split())
    assert load("m.hope").interrupted_
    assert Path("fit.ckpt").exists()
    subprocess.run(with_checkpoint, check=True, env=ENVIRONMENT, capture_output=True)
    subprocess.run([*fit, "-o", "alone.hope"], check=True, env=ENVIRONMENT, capture_output=True)
    assert Path("m.hope").read_bytes() == Path("alone.hope").read_bytes()
    assert not Path("fit.ckpt").exists()  # the model is safe


def test_ctrl_c_in_the_middle_of_a_fit_is_130_and_writes_the_best_map(here):
    command = [HOPEFOLD, "fit", "digits", "-o", "m.hope", "--max-epochs", "20000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    while psutil.Process(process.pid).cpu_times().user < 12:  # three of them for imports
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "the fit was interrupted after epoch" in said
    model = load("m.hope")
    assert model.interrupted_
    assert model.n_iter_ < 20_000
    assert "interrupted" in call("info", "m.hope").stdout


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks into /proc")
def test_ctrl_c_before_the_first_epoch_is_over_is_130_and_leaves_nothing(here):
    process = subprocess.Popen(
        [HOPEFOLD, "fit", "digits", "-o", "m.hope", "--n-units", "20000", "--n-factors", "20000"],
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    maps = Path(f"/proc/{process.pid}/maps")
    while "libtorch" not in maps.read_text():
        time.sleep(0.1)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert said.endswith("hopefold: stopped; nothing is left half-written.\n")
    assert list(here.iterdir()) == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="a file system that nobody can write to")
def test_a_read_only_disk_is_told_before_any_work(cells):
    start = time.monotonic()
    done = call("fit", cells, *TABLE, "-o", "/proc/m.hope", "--max-epochs", "100000")
    assert "cannot write /proc/m.hope" in one_line(done)
    assert time.monotonic() - start < 20


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "hopefold", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("hopefold ")


def test_without_typer_the_command_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from hopefold.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'hopefold[cli]'" in one_line(done)
