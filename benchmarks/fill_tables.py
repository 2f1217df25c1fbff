"""Regenerate the tables in the README and the docs with the commands in their markers.

    python benchmarks/fill_tables.py

A table is between `<!-- table: python … -->` and `<!-- end -->`. A test fails if it differs from
the output of its command.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TABLE = re.compile(r"<!-- table: python (.*?) -->\n.*?<!-- end -->", flags=re.S)


def filled(text: str) -> str:
    """The page with all tables regenerated."""
    return TABLE.sub(_make, text)


def _make(table: re.Match[str]) -> str:
    command = [sys.executable, *table[1].split()]
    paths = [str(ROOT / "tests"), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return f"<!-- table: python {table[1]} -->\n{done.stdout.strip()}\n<!-- end -->"


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text()))
