"""Tables with unusual dtypes, formats, values and labels, and text that looks like a formula."""

from __future__ import annotations

import csv
import io
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from faults.outcome import Outcome
from hopefold.data.csv_files import parse_csv, with_marks
from hopefold.errors import HopefoldError
from hopefold.estimators.shope import SHOPE
from hopefold.persistence.model_files import load

ROWS = 24

DTYPES = ("f2", "f4", "f8", "g", "i1", "u1", "i4", "i8", "u8", "?", "c8", "O", "U4", "S4", ">f8")
SPARSE = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
NUMBERS = (0, 0, 1, -1, 2.5, 5e-324, 1e-38, 1e-7, 1e7, 1e19, 1e30, -1e38, 1e200, 1.7e308)
MISSING = (np.nan, np.inf, -np.inf)
LABELS = (
    (0, 1, 2),
    (-(2**63), 0, 2**63 - 1),
    ("", "ü", " "),
    ("x" * 10_000, "=1+1", "\ud800"),
    (True, False, True),
    (0.0, 1.0, np.nan),
    ("a", 1, None),
    (b"a", b"b", b"c"),
    (1, 1, 1),
)

#: Characters with which spreadsheets begin a formula.
FORMULA = tuple("=+-@\t\r\n＝＋－＠")
CHARACTERS = (*"=+-@'\"", *"＝＋, ;5.eE", "\t", "ü", "日", "\u202e", "\u2028", "x")


def any_table(times: int, folder: Path) -> Outcome:
    """Fit, transform, save and load with tables of every dtype and format and extreme values."""
    import torch

    torch.set_num_threads(1)
    rng, broken = random.Random(0), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(times):
            X, y = make_table(rng), make_labels(rng)
            if problem := find_problem(X, y, folder / "model.hope"):
                kind = f"{type(X).__name__} of {X.dtype}, labels {y[:3]!r}"
                broken.append(f"{number}: {kind[:200]}: {problem}")
    return Outcome(times, tuple(broken))


def make_table(rng: random.Random) -> Any:
    """A few rows, dense or sparse, of ordinary and extreme numbers."""
    n_rows, n_columns = rng.choice([ROWS] * 9 + [0, 1]), rng.choice([1, 2, 4])
    kinds = [rng.choice([NUMBERS, NUMBERS, NUMBERS[:5], (*NUMBERS, *MISSING)])] * n_columns
    kinds = [kind if rng.random() < 0.7 else NUMBERS[:5] for kind in kinds]
    rows = [[rng.choice(kind) for kind in kinds] for _ in range(n_rows)]
    X = np.array(rows, dtype=np.float64).reshape(n_rows, n_columns)
    if n_rows and rng.random() < 0.3:
        return getattr(sparse, f"{rng.choice(SPARSE)}_array")(X)
    return X.astype(rng.choice(("f8", *DTYPES)))


def make_labels(rng: random.Random) -> Any:
    """Labels; most draws give the integers 0, 1, 2."""
    labels = rng.choice([*[LABELS[0]] * 9, *LABELS])
    return [labels[row % 3] for row in range(ROWS)]


def find_problem(X: Any, y: list[Any], path: Path) -> str | None:
    """None if all points are finite and a reloaded model repeats them, or on a hopefold error."""
    try:
        model = SHOPE(max_epochs=1, n_factors=4, n_units=4, random_state=0)
        model.fit(X, y[: X.shape[0]])
        points, shares = model.transform(X), model.predict_proba(X)
        model.save(path)
        reloaded = load(path).transform(X)
    except HopefoldError as error:
        return None if "makes sense" not in str(error) else str(error)
    except BaseException as error:
        return repr(error)[:300]
    if not (np.isfinite(points).all() and np.isfinite(shares).all()):
        return "points or probabilities are not finite"
    return None if np.array_equal(points, reloaded) else "the reloaded model differs"


def formulas(times: int, _: Path) -> Outcome:
    """Write text that could be a formula to CSV, and read it again."""
    import pyarrow  # type: ignore[import-untyped]
    from pyarrow import csv as arrow_csv

    rng, broken = random.Random(0), []
    for number in range(times):
        text = "".join(rng.choice(CHARACTERS) for _ in range(rng.randrange(6))) + "x"
        content = io.BytesIO()
        arrow_csv.write_csv(with_marks(pyarrow.table({text: [text], "n": [-1.5]})), content)
        cells = [*csv.reader(io.StringIO(content.getvalue().decode(), newline=""))]
        columns = parse_csv(content.getvalue(), "the table").columns
        if any(cell[0].startswith(FORMULA) for cell in cells):
            broken.append(f"{number}: {text!r} begins like a formula")
        elif list(columns) != [text.strip(), "n"] or columns["n"][0] != -1.5:
            broken.append(f"{number}: {text!r} becomes the name {list(columns)!r}")
        elif columns[text.strip()].tolist() != [text]:
            broken.append(f"{number}: {text!r} becomes {columns[text.strip()].tolist()!r}")
    return Outcome(times, tuple(broken))
