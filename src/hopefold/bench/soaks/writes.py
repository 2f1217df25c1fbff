"""Writes that are disturbed: a full disk, a closed folder, a kill in the middle, a rival."""

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

from hopefold.bench.faults import Outcome
from hopefold.errors import HopefoldError
from hopefold.estimators.hope import SHOPE
from hopefold.persistence import store

#: A process that writes a file anew until it is killed: a number, and a tensor full of it.
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

#: No file may be larger than so many bytes.
SIZE_LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))"

#: To root no folder is closed, unless that is taken from it: PR_CAPBSET_DROP, CAP_DAC_OVERRIDE.
WITHOUT_PRIVILEGE = """
import ctypes, os, sys
if os.geteuid() == 0 and ctypes.CDLL(None).prctl(24, 1, 0, 0, 0):
    sys.exit("root cannot be kept from writing here: run it as somebody else")
"""

#: Every kind of output, by the name of its file, and the command that writes it.
KINDS = {
    "new.hope": ("fit", "TABLE", "--max-epochs", "3", "--random-state", "0"),
    "points.csv": ("transform", "MODEL", "TABLE"),
    "exemplars.png": ("exemplars", "MODEL", "--image-shape", "4,4"),
    "report.html": ("report", "MODEL", "TABLE", "--image-shape", "4,4"),
    "found.json": ("evaluate", "MODEL", "TABLE"),
    "points.parquet": ("transform", "MODEL", "TABLE"),
    "labels.npz": ("predict", "MODEL", "TABLE"),
    "products.json": ("interactions", "MODEL", "TABLE"),
}

#: Every output has more bytes than this; how many, the first failure says.
SMALLEST = 300

OLD = b"what was there before"


def killed(times: int, folder: Path) -> Outcome:
    """SIGKILL at random moments of writing."""
    path, chance, broken = folder / "numbers.hope", random.Random(0), []
    for number in range(times):
        with _writer(path, 1_000_000 * number):
            time.sleep(chance.uniform(0, 0.05))
        if wrong := whats_wrong_with(path):
            broken.append(f"kill {number}: {wrong}")
    return Outcome(times, tuple(broken))


def two_at_once(times: int, folder: Path) -> Outcome:
    """Two processes write the same path, and what is there is read again and again."""
    path = folder / "numbers.hope"
    with _writer(path, 0), _writer(path, 1_000_000):
        found = [whats_wrong_with(path) for _ in range(times)]
    return Outcome(times, tuple(wrong for wrong in found if wrong))


def whats_wrong_with(path: Path) -> str | None:
    """Is the file whole, and of one process alone?"""
    try:
        manifest, tensors = store.read(path)
    except (HopefoldError, OSError) as error:
        return str(error)
    number, numbers = manifest["number"], tensors["numbers"]
    whole = len(numbers) == 200_000 + number % 1_000 and (numbers == number).all()
    return None if whole else f"the file of {number} holds other numbers"


@contextmanager
def _writer(path: Path, first: int) -> Iterator[None]:
    """A process that writes, and has written once; killed in the end."""
    command = [sys.executable, "-c", WRITER, str(path), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            yield
        finally:
            process.send_signal(signal.SIGKILL)


def full_disk(times: int, folder: Path) -> Outcome:
    """No file may grow beyond a number of bytes: the command fails, in a line."""
    verbs, chance, broken = verbs_that_write(folder), random.Random(0), []
    sizes = dict.fromkeys(verbs, SMALLEST)
    for number in range(times):
        name = list(verbs)[number % len(verbs)]
        target = folder / name
        limit = chance.randrange(sizes[name])
        target.write_bytes(OLD)
        done = call(verbs[name], SIZE_LIMIT.format(limit))
        if wanted := re.search(r"([\d,]+) bytes are wanted", done.stderr):
            sizes[name] = int(wanted[1].replace(",", ""))
        if wrong := _broken_by(done, target) or (not wanted and "it does not say the bytes"):
            broken.append(f"{name}, {limit} bytes: {wrong}")
    return Outcome(times, tuple(broken))


def read_only_folder(times: int, folder: Path) -> Outcome:
    """Outputs to a folder that one may not write to."""
    verbs, broken = verbs_that_write(folder), []
    closed = folder / "closed"
    closed.mkdir()
    for name in verbs:
        (closed / name).write_bytes(OLD)
    closed.chmod(0o555)
    for number in range(times):
        name = list(verbs)[number % len(verbs)]
        arguments = [
            str(closed / name) if one == str(folder / name) else one for one in verbs[name]
        ]
        if wrong := _broken_by(call(arguments, WITHOUT_PRIVILEGE), closed / name):
            broken.append(f"{name}: {wrong}")
    return Outcome(times, tuple(broken))


def verbs_that_write(folder: Path) -> dict[str, list[str]]:
    """How the command is asked for each kind of output, in this folder."""
    model, table = model_and_table(folder)
    given = {"MODEL": model, "TABLE": table}
    return {
        name: [*(given.get(one, one) for one in command), "-o", str(folder / name), "--force"]
        for name, command in KINDS.items()
    }


def model_and_table(folder: Path) -> tuple[str, str]:
    """A small model in a file, and rows for it."""
    chance = np.random.RandomState(0)
    y = np.arange(90) % 3
    X = 4 * chance.normal(size=(3, 16))[y] + chance.normal(size=(90, 16))
    model, table = folder / "model.hope", folder / "table.npz"
    SHOPE(max_epochs=3, random_state=0).fit(X, y).save(model)
    np.savez(table, X=X, y=y)
    return str(model), str(table)


def call(arguments: list[str], before: str) -> subprocess.CompletedProcess[str]:
    """The command as a process; what is to be done in it ``before`` is Python, too."""
    become = "import os, sys; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    command = [sys.executable, "-c", f"{before}\n{become}", "-m", "hopefold", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def _broken_by(done: subprocess.CompletedProcess[str], target: Path) -> str | None:
    """What is wrong after a command that had to fail, if anything is."""
    *_, last = done.stderr.splitlines() or [""]  # after a progress bar, perhaps
    clear = last.startswith(f"hopefold: cannot write {target} ")
    if done.returncode != 2 or not clear or "Traceback" in done.stderr:
        return f"exit status {done.returncode}, {done.stderr[-300:]!r}"
    if target.read_bytes() != OLD:
        return "the old file is not what it was"
    if left := list(target.parent.glob("*.part")):
        return f"{left} is left"
    return None
