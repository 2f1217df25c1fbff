"""The peak memory of fits whose data are larger than memory, each in a process of its own.

`python -m hopefold_bench.footprint parquet 10000000` runs one fit, and prints the peak of its
resident memory, in MiB, as its last line.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hopefold_bench.markdown import NOT_RUN, markdown
from hopefold_bench.measure import machine, versions
from hopefold_bench.records import append, read_lines
from hopefold_bench.run import Report

#: Rows and columns of the Parquet file and of the sparse table, and entries per sparse row.
ROWS, WIDTH = 10_000_000, 100
SPARSE_ROWS, SPARSE_WIDTH, ENTRIES = 100_000, 50_000, 100

#: Rows that are written at a time.
PIECE = 100_000

#: A small map and one epoch: most of the memory is used for the data.
SETTINGS: dict[str, Any] = {"n_factors": 32, "n_units": 32, "max_epochs": 1, "random_state": 0}


@dataclass(frozen=True)
class Bound:
    """A row of the table: the fit, and the memory that it may use."""

    what: str
    fit: Callable[[int], int]
    n_rows: int
    #: MiB of resident memory.
    limit: int


def fit_parquet(n_rows: int) -> int:
    """Fit a Parquet file, which another process writes first; returns the bytes of its rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        command = [sys.executable, "-c", _WRITE, str(path), str(n_rows)]
        subprocess.run(command, check=True)

        from hopefold import SHOPE

        SHOPE(**SETTINGS, refit=False).fit(path, "label")
    return n_rows * WIDTH * 4


def write_parquet(path: Path, n_rows: int) -> None:
    """Write rows of ten classes, a piece at a time."""
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    random = np.random.default_rng(0)
    centers = random.normal(size=(10, WIDTH)).astype(np.float32)
    names = [*(f"x{place}" for place in range(WIDTH)), "label"]
    kinds = [*[pa.float32()] * WIDTH, pa.int64()]
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    with parquet.ParquetWriter(path, schema, use_dictionary=False, compression=None) as writer:
        for start in range(0, n_rows, PIECE):
            labels = random.integers(10, size=min(PIECE, n_rows - start))
            X = centers[labels] + random.standard_normal((len(labels), WIDTH), dtype=np.float32)
            writer.write_table(pa.table([*X.T, labels], schema=schema))


_WRITE = """
import sys
from pathlib import Path
from hopefold_bench.footprint import write_parquet
write_parquet(Path(sys.argv[1]), int(sys.argv[2]))
"""


def fit_sparse(n_rows: int) -> int:
    """Fit a CSR matrix; returns the bytes of the same matrix if it were dense."""
    from scipy import sparse

    from hopefold import SHOPE

    random = np.random.default_rng(0)
    labels = random.integers(10, size=n_rows)
    columns = random.integers(SPARSE_WIDTH, size=(n_rows, ENTRIES), dtype=np.int32)
    columns[:, : ENTRIES // 4] = 1_000 * labels[:, None] + columns[:, : ENTRIES // 4] % 1_000
    starts = np.arange(0, n_rows * ENTRIES + 1, ENTRIES, dtype=np.int32)
    values = np.ones(n_rows * ENTRIES, dtype=np.float32)
    X = sparse.csr_matrix((values, columns.ravel(), starts), shape=(n_rows, SPARSE_WIDTH))
    X.sum_duplicates()
    SHOPE(**SETTINGS, refit=False).fit(X, labels)
    return n_rows * SPARSE_WIDTH * 4


BOUNDS = {
    "parquet": Bound("10⁷ rows of 100 features, from Parquet", fit_parquet, ROWS, 1536),
    "sparse": Bound("CSR, 100,000 × 50,000, 100 entries per row", fit_sparse, SPARSE_ROWS, 1536),
}


def footprint_file(folder: Path) -> Path:
    """The file of the records."""
    return folder / "footprint.jsonl"


def measure(folder: Path, *, n_rows: int | None = None, report: Report = print) -> None:
    """Measure each fit and append one line for it."""
    for name, bound in BOUNDS.items():
        command = [sys.executable, "-m", "hopefold_bench.footprint", name]
        command.append(str(n_rows or bound.n_rows))
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        line = {
            **json.loads(done.stdout.splitlines()[-1]),
            "measured": datetime.now(UTC).isoformat(timespec="seconds"),
            "name": name,
            "n_rows": n_rows or bound.n_rows,
            "versions": versions(),
            "machine": machine(),
        }
        append(footprint_file(folder), json.dumps(line, sort_keys=True))
        report(f"{bound.what}: {line['peak_mib']:,} MiB at peak; limit {bound.limit:,} MiB")


def footprint_table(folder: Path) -> str:
    """The newest measurement of each fit."""
    lines = {line["name"]: line for line in read_lines(footprint_file(folder))}
    if not lines:
        return f"**Memory**\n\n{NOT_RUN}"
    rows = [
        [
            bound.what,
            f"{lines[name]['dense_bytes'] / 2**30:,.1f} GiB",
            f"< {bound.limit:,} MiB",
            f"{lines[name]['peak_mib']:,} MiB",
        ]
        for name, bound in BOUNDS.items()
        if name in lines
    ]
    headings = ["data", "size as a dense table", "limit", "peak memory, with all libraries"]
    return markdown(headings, rows)


def main() -> None:
    """Run one fit in this process, and print its peak memory."""
    name, n_rows = sys.argv[1], int(sys.argv[2])
    dense = BOUNDS[name].fit(n_rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"dense_bytes": dense, "peak_mib": peak}), flush=True)


if __name__ == "__main__":
    main()
