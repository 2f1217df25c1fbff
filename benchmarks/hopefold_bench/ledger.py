"""The ledger: one line for each time that test parts are read."""

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
    """Record what is about to read a test part, before it is read."""
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
    """The file of the ledger."""
    return folder / "ledger.jsonl"


def commit() -> str | None:
    """The commit of this clone, with ``-dirty`` if files are changed; None outside a clone."""
    if not (REPOSITORY / ".git").exists():
        return None
    command = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None
