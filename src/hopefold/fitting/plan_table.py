"""Settings and the reasons for them as a plain table. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HEADINGS = ("setting", "value", "why")


def rows_of(settings: Mapping[str, Any], reasons: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """The name, the value and the reason of each setting, as text."""
    return [
        (name, format_value(value), str(reasons.get(name, ""))) for name, value in settings.items()
    ]


def as_table(settings: Mapping[str, Any], reasons: Mapping[str, str]) -> str:
    """Three columns: the setting, its value, and why."""
    rows = [HEADINGS, *rows_of(settings, reasons)]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(
        f"{name:<{widths[0]}}  {value:<{widths[1]}}  {why}".rstrip() for name, value, why in rows
    )


def format_value(value: Any) -> str:
    """A value as short as it can be read; numbers to four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
