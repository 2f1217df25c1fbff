"""Disturbed writes: a full disk, a read-only folder, a kill, a second writer."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from faults.outcome import Outcome
from hopefold.errors import HopefoldError
from hopefold.estimators.shope import SHOPE
from hopefold.persistence import store

#: A process that rewrites a file until it is killed: a number, and a tensor filled with it.
WRITER = """
import sys, numpy
from hopefold.persistence import store
number = int(sys.argv[2])
while True:
    tensors = {"numbers": numpy.full(200_000 + number % 1_000, number)}
    store.write(sys.argv[1], {"number": number}, tensors)
    print(number, flush=True)
    number += 1
"""

#: Limit the size of files to this many bytes.
SIZE_LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))"

#: Root may write to any folder unless it drops a capability: PR_CAPBSET_DROP, CAP_DAC_OVERRIDE.
WITHOUT_PRIVILEGE = """
import ctypes, os, sys
if os.geteuid() == 0 and ctypes.CDLL(None).prctl(24, 1, 0, 0, 0):
    sys.exit("root can write to any folder here: run this test as another user")
"""

#: The command that writes each kind of output, by the file's name.
OUTPUTS = {
    "new.hope": ("fit", "TABLE", "--max-epochs", "3", "--random-state", "0"),
    "points.csv": ("transform", "MODEL", "TABLE"),
    "exemplars.png": ("exemplars", "MODEL", "--image-shape", "4,4"),
    "report.html": ("report", "MODEL", "TABLE", "--image-shape", "4,4"),
    "found.json": ("evaluate", "MODEL", "TABLE"),
    "points.parquet": ("transform", "MODEL", "TABLE"),
    "labels.npz": ("predict", "MODEL", "TABLE"),
    "products.json": ("interactions", "MODEL", "TABLE"),
}

#: All outputs are larger than this; the first error message gives the actual size.
SMALLEST = 300

OLD = b"what was there before"


def killed(times: int, folder: Path) -> Outcome:
    """Send SIGKILL at random moments of writing."""
    path, rng, broken = folder / "numbers.hope", random.Random(0), []
    for number in range(times):
        with _writer(path, 1_000_000 * number):
            time.sleep(rng.uniform(0, 0.05))
        if problem := find_problem(path):
            broken.append(f"kill {number}: {problem}")
    return Outcome(times, tuple(broken))


def two_at_once(times: int, folder: Path) -> Outcome:
    """Two processes write the same path, and this process reads it repeatedly."""
    path = folder / "numbers.hope"
    with _writer(path, 0), _writer(path, 1_000_000):
        found = [find_problem(path) for _ in range(times)]
    return Outcome(times, tuple(problem for problem in found if problem))


def find_problem(path: Path) -> str | None:
    """None if the file is complete and of one process; else the broken promise."""
    try:
        manifest, tensors = store.read(path)
    except (HopefoldError, OSError) as error:
        return str(error)
    number, numbers = manifest["number"], tensors["numbers"]
    whole = len(numbers) == 200_000 + number % 1_000 and (numbers == number).all()
    return None if whole else f"the file of {number} contains other numbers"


@contextmanager
def _writer(path: Path, first: int) -> Iterator[None]:
    """Run a process that has written once and goes on writing; kill it at the end."""
    command = [sys.executable, "-c", WRITER, str(path), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            yield
        finally:
            process.send_signal(signal.SIGKILL)


def full_disk(times: int, folder: Path) -> Outcome:
    """Limit the size of files: the command fails with a one-line error."""
    commands, rng, broken = commands_that_write(folder), random.Random(0), []
    sizes = dict.fromkeys(commands, SMALLEST)
    for number in range(times):
        name = list(commands)[number % len(commands)]
        target = folder / name
        limit = rng.randrange(sizes[name])
        target.write_bytes(OLD)
        done = call(commands[name], SIZE_LIMIT.format(limit))
        if wanted := re.search(r"([\d,]+) bytes are needed", done.stderr):
            sizes[name] = int(wanted[1].replace(",", ""))
        if problem := _problem_after(done, target) or (
            not wanted and "the error does not name the number of bytes"
        ):
            broken.append(f"{name}, {limit} bytes: {problem}")
    return Outcome(times, tuple(broken))


def read_only_folder(times: int, folder: Path) -> Outcome:
    """Write outputs to a folder without write permission."""
    commands, broken = commands_that_write(folder), []
    closed = folder / "closed"
    closed.mkdir()
    for name in commands:
        (closed / name).write_bytes(OLD)
    closed.chmod(0o555)
    for number in range(times):
        name = list(commands)[number % len(commands)]
        arguments = [
            str(closed / name) if one == str(folder / name) else one for one in commands[name]
        ]
        if problem := _problem_after(call(arguments, WITHOUT_PRIVILEGE), closed / name):
            broken.append(f"{name}: {problem}")
    return Outcome(times, tuple(broken))


def commands_that_write(folder: Path) -> dict[str, list[str]]:
    """The arguments for each kind of output, in this folder."""
    model, table = model_and_table(folder)
    given = {"MODEL": model, "TABLE": table}
    return {
        name: [*(given.get(one, one) for one in command), "-o", str(folder / name), "--force"]
        for name, command in OUTPUTS.items()
    }


def model_and_table(folder: Path) -> tuple[str, str]:
    """The paths of a small model and of a table for it."""
    random_state = np.random.RandomState(0)
    y = np.arange(90) % 3
    X = 4 * random_state.normal(size=(3, 16))[y] + random_state.normal(size=(90, 16))
    model, table = folder / "model.hope", folder / "table.npz"
    SHOPE(max_epochs=3, random_state=0).fit(X, y).save(model)
    np.savez(table, X=X, y=y)
    return str(model), str(table)


def call(arguments: list[str], before: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a process, after the Python code ``before`` in the same process."""
    become = "import os, sys; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    command = [sys.executable, "-c", f"{before}\n{become}", "-m", "hopefold", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def _problem_after(done: subprocess.CompletedProcess[str], target: Path) -> str | None:
    """The promise that a failed command has broken, or None."""
    *_, last = done.stderr.splitlines() or [""]  # there may be a progress bar above
    clear = last.startswith(f"hopefold: cannot write {target} ")
    if done.returncode != 2 or not clear or "Traceback" in done.stderr:
        return f"exit status {done.returncode}, {done.stderr[-300:]!r}"
    if target.read_bytes() != OLD:
        return "the old file has changed"
    if left := list(target.parent.glob("*.part")):
        return f"{left} remains"
    return None
