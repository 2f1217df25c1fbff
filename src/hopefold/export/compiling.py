"""Compilation of an exported C file, and calls of its functions."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.errors import CannotExport
from hopefold.export.formula import Formula
from hopefold.export.parity import Answer

if TYPE_CHECKING:
    from numpy import ndarray

COMPILERS = ("cc", "gcc", "clang")

FLAGS = ("-std=c99", "-O3", "-shared", "-fPIC")


def find_compiler() -> list[str] | None:
    """Return the user's C compiler as a command, or the first that is found."""
    for name in (os.environ.get("CC", ""), *COMPILERS):
        command = shlex.split(name)
        if command and shutil.which(command[0]):
            return command
    return None


@contextmanager
def compiled(content: bytes, formula: Formula, compiler: Sequence[str]) -> Iterator[Answer]:
    """Return a function from rows to points (and classes), as computed by the compiled file."""
    # a library that is in use cannot be removed everywhere
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        made = compile_to(Path(folder) / "model.so", content, (*compiler, *FLAGS))
        try:
            library = ctypes.CDLL(str(made))
        except OSError as error:  # for another machine
            raise CannotExport(
                f"the output of the C compiler {compiler[0]} cannot be run here, so nothing is "
                "written: name one for this machine in the variable CC."
            ) from error
        yield _answers(library, formula)


def compile_to(target: Path, content: bytes, command: Sequence[str]) -> Path:
    """Return the shared library that a compiler makes of a C file."""
    file = target.with_suffix(".c")
    file.write_bytes(content)
    done = subprocess.run(
        [*command, str(file), "-o", str(target), "-lm"],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        trouble = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)
        raise CannotExport(
            f"the C compiler {command[0]} cannot compile the file ({trouble.strip()}): nothing is "
            "written. Name another compiler in the variable CC."
        )
    return target


def _answers(library: ctypes.CDLL, formula: Formula) -> Answer:
    numbers = ctypes.POINTER(ctypes.c_float)
    place = library.hopefold_transform
    place.argtypes, place.restype = (numbers, numbers), None

    def call(function: Any, rows: ndarray, n_answers: int) -> tuple[ndarray, list[Any]]:
        answers = np.empty((len(rows), n_answers), np.float32)
        codes = [
            function(row.ctypes.data_as(numbers), mine.ctypes.data_as(numbers))
            for row, mine in zip(rows, answers, strict=True)
        ]
        return answers, codes

    def answer(rows: ndarray) -> tuple[ndarray, ...]:
        rows = np.ascontiguousarray(rows, dtype=np.float32)
        points, _ = call(place, rows, formula.n_components)
        if not formula.names_classes:
            return (points,)
        judge = library.hopefold_predict
        judge.argtypes, judge.restype = (numbers, numbers), ctypes.c_int
        shares, codes = call(judge, rows, len(formula.classes))
        return points, formula.classes[np.array(codes, int)], shares

    return answer
