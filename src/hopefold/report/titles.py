"""What methods are called; quick to import, as the command line's help needs it."""

from __future__ import annotations

TITLES = {"SHOPE": "S-HOPE"}


def title(kind: str) -> str:
    """What people call the method of a class."""
    return TITLES.get(kind, kind)
