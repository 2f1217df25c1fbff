"""A made-up table of cells, for the tests of tables and of the command line."""

from __future__ import annotations

import numpy as np

QUICK = ("--max-epochs", "3", "--n-factors", "8", "--n-units", "8", "--random-state", "0")


def write_cells(path, n_rows=90, **changes):
    """A table of cells: an id, two numbers, a tissue, and their type; columns may be changed."""
    random = np.random.RandomState(0)
    kinds = np.arange(n_rows) % 3
    columns = {
        "cell": [f"c{row}" for row in range(n_rows)],
        "size": (10 + 5 * kinds + random.normal(size=n_rows)).round(3),
        "age": 20 + 10 * kinds + random.randint(5, size=n_rows),
        "tissue": np.array(["liver", "lung", "skin"])[(kinds + (random.rand(n_rows) < 0.2)) % 3],
        "type": np.array(["B cell", "NK", "T cell"])[kinds],
    }
    columns |= changes
    columns = {name: column for name, column in columns.items() if column is not None}
    lines = [",".join(columns)]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def with_gaps(n_rows=90):
    """Ages of which those in data rows 6, 23, 40, … are missing."""
    return ["" if row % 17 == 5 else 20 + 10 * (row % 3) + row % 5 for row in range(n_rows)]
