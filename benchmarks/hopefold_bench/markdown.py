"""Markdown tables, and the cells that many of them share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hopefold_bench.records import Record

NOT_RUN = "not run yet"

MARKS = "¹²³⁴⁵⁶⁷⁸⁹"


def markdown(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table."""
    rows = [headings, ["---"] * len(headings), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def percent(runs: Sequence[Record], error: str) -> str:
    """Mean ± standard deviation over several runs, the mean of one run, or an empty cell."""
    if not runs:
        return ""
    values = 100 * np.array([record.errors[error] for record in runs])
    spread = f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else ""
    return f"{values.mean():.2f}{spread}"


def mark(note: str, notes: list[str]) -> str:
    """The mark of a note. The note is appended to ``notes``, once, and printed below the table."""
    if not note:
        return ""
    if note not in notes:
        notes.append(note)
    return f" {MARKS[notes.index(note)]}"


def footnotes(notes: Sequence[str]) -> list[str]:
    """The notes with their marks."""
    return [f"{sign} {note}." for sign, note in zip(MARKS, notes, strict=False)]
