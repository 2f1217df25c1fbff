"""Exported models beside the model itself: bytes, differences, and rows per second.

The models are fitted for a few epochs on a part of the rows: sizes and times do not depend on the
weights, and differences hardly do. New rows are those of the validation part.
"""

from __future__ import annotations

import ctypes
import json
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.errors import CannotExport
from hopefold.estimators.hope import HOPE
from hopefold.estimators.shope import SHOPE
from hopefold.evaluation import seconds_in_turns
from hopefold.export import compiling, graph, source, to_c, to_onnx
from hopefold.export.formula import formula_of
from hopefold.persistence.model_files import size_of
from hopefold_bench.markdown import NOT_RUN, markdown
from hopefold_bench.measure import machine, versions
from hopefold_bench.methods import SMALL
from hopefold_bench.records import append, read_lines
from hopefold_bench.run import Report
from hopefold_bench.speed import all_on_one_thread
from hopefold_bench.splits import load_splits

if TYPE_CHECKING:
    from numpy import ndarray

#: Training rows, epochs, and new rows.
N_ROWS, EPOCHS, N_NEW = 5_000, 20, 1_000

MODELS: dict[str, Callable[..., Any]] = {
    "S-HOPE": SHOPE,
    "HOPE": HOPE,
    "S-HOPE, 64 kB": lambda **settings: SHOPE(max_bytes=SMALL, **settings),
}
SETS = ("mnist", "usps", "digits")

#: Many rows per call, so that the time of calling C from Python does not count.
LOOP = """
void many(const float *rows, long n_rows, float *probabilities)
{
    for (; n_rows > 0; n_rows--, rows += HOPEFOLD_FEATURES, probabilities += HOPEFOLD_CLASSES)
        hopefold_predict(rows, probabilities);
}
"""


def exports_file(folder: Path) -> Path:
    """The file of the records."""
    return folder / "exports.jsonl"


def measure(
    folder: Path,
    *,
    sets: tuple[str, ...] = SETS,
    n_rows: int = N_ROWS,
    epochs: int = EPOCHS,
    report: Report = print,
) -> None:
    """Measure each model and append one line for it."""
    for data in sets:
        splits = load_splits(data, 0, final=False)
        rows = splits.X_new[:N_NEW].astype(np.float32)
        for name, make in MODELS.items():
            with all_on_one_thread():
                model = make(max_epochs=epochs, validation_fraction=0, random_state=0)
                model.fit(splits.X[:n_rows].astype(np.float32), splits.y[:n_rows])
                line = {
                    "measured": datetime.now(UTC).isoformat(timespec="seconds"),
                    "data": data,
                    "model": name,
                    "n_new": len(rows),
                    **_measured(model, rows),
                    "versions": versions()
                    | {package.__name__: package.__version__ for package in graph.need_onnx()},
                    "machine": machine(),
                }
            append(exports_file(folder), json.dumps(line, sort_keys=True))
            speeds = ", ".join(
                f"{way} {each:,.0f}" for way, each in line["rows_per_second"].items()
            )
            report(f"{data}, {name}: rows per second: {speeds}")


def _measured(model: Any, rows: ndarray) -> dict[str, Any]:
    """Bytes, differences and times of the model, its ONNX graph and its C code, if any."""
    ways: dict[str, Callable[[ndarray], object]] = {"torch": model.predict_proba}
    n_bytes, differences = {"torch": size_of(model)}, {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        exported = to_onnx(model, path / "model.onnx", rows)
        n_bytes["onnx"], differences["onnx"] = exported.n_bytes, _differences(exported.parity)
        ways["onnx"] = graph.Session((path / "model.onnx").read_bytes())
        try:
            exported = to_c(model, path / "model.c", rows)
        except CannotExport:  # the model is too large
            pass
        else:
            n_bytes["c"], differences["c"] = exported.n_bytes, _differences(exported.parity)
            ways["c"], n_bytes["tables"] = _compiled(path, model)
        # not C: it takes rows one by one anyway, and calling it from Python takes most of the time
        alone = {way: predict for way, predict in ways.items() if way != "c"}
        return {
            "bytes": n_bytes,
            "differences": differences,
            "rows_per_second": {
                way: len(rows) / min(seconds) for way, seconds in _times(ways, rows).items()
            },
            "seconds_of_one_row": {
                way: min(seconds) for way, seconds in _times(alone, rows[:1], repeats=200).items()
            },
        }


def _differences(parity: Any) -> dict[str, float]:
    return {"absolute": parity.largest_difference, "relative": parity.relative_difference}


def _times(
    ways: dict[str, Callable[[ndarray], object]], rows: ndarray, repeats: int = 15
) -> dict[str, list[float]]:
    calls = {way: (lambda predict=predict: predict(rows)) for way, predict in ways.items()}
    return seconds_in_turns(calls, repeats=repeats)


def _compiled(path: Path, model: Any) -> tuple[Callable[[ndarray], object], int]:
    """A function that runs the C code on many rows, and the bytes of its tables."""
    compiler = compiling.find_compiler()
    assert compiler is not None
    command = (*compiler, *compiling.FLAGS)
    text = (path / "model.c").read_bytes()
    formula = formula_of(model)
    library = compiling.compile_to(path / "many.so", text + LOOP.encode(), command)
    many = ctypes.CDLL(str(library)).many
    numbers = ctypes.POINTER(ctypes.c_float)
    many.argtypes, many.restype = (numbers, ctypes.c_long, numbers), None

    def predict(rows: ndarray) -> object:
        shares = np.empty((len(rows), len(formula.classes)), np.float32)
        many(rows.ctypes.data_as(numbers), len(rows), shares.ctypes.data_as(numbers))
        return shares

    return predict, source.bytes_of_tables(formula)


def exports_table(folder: Path) -> str:
    """The newest measurement of each model."""
    lines = {(line["data"], line["model"]): line for line in read_lines(exports_file(folder))}
    if not lines:
        return f"**Exports**\n\n{NOT_RUN}"
    headings = ["", "bytes: model file", ".onnx", "tables of C", "difference: .onnx", "C"]
    headings += ["rows per second: torch", ".onnx", "C", "µs for one row: torch", ".onnx", "C"]
    rows = []
    for (data, model), line in lines.items():
        n_bytes, speed, one = (
            line[name] for name in ("bytes", "rows_per_second", "seconds_of_one_row")
        )
        differences = line["differences"]
        if "c" in speed:
            one["c"] = 1 / speed["c"]
        rows.append(
            [
                f"{data}, {model}",
                *(_shown(n_bytes.get(way), ",") for way in ("torch", "onnx", "tables")),
                *(
                    _shown(differences[way]["absolute"] if way in differences else None, ".1e")
                    for way in ("onnx", "c")
                ),
                *(_shown(speed.get(way), ",.0f") for way in ("torch", "onnx", "c")),
                *(_shown(one.get(way), ",.0f", 1e6) for way in ("torch", "onnx", "c")),
            ]
        )
    return markdown(headings, rows)


def _shown(number: float | None, how: str, factor: float = 1) -> str:
    """A number, or a dash where the model is too large for C."""
    return "–" if number is None else format(factor * number, how)
