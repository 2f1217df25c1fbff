"""A line for each time that test parts are read."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from hopefold_bench.folders import REPOSITORY
from hopefold_bench.records import append


def enter(
    folder: Path, plan: str, *, only: Sequence[str], data: Sequence[str], n_jobs: int
) -> None:
    """Write down, before any test part is read, what is about to read it."""
    entry = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "plan": plan,
        "only": list(only),
        "data": list(data),
        "jobs": n_jobs,
    }
    append(ledger_file(folder), json.dumps(entry))


def ledger_file(folder: Path) -> Path:
    """Where the lines are."""
    return folder / "ledger.jsonl"


def commit() -> str | None:
    """The commit of the clone that this runs from, ``-dirty`` if it is changed; None elsewhere."""
    if not (REPOSITORY / ".git").exists():
        return None
    command = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    told = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return told.stdout.strip() or None
