"""Display names of methods; quick to import, as the command line's help needs them."""

from __future__ import annotations

TITLES = {"SHOPE": "S-HOPE"}


def title(kind: str) -> str:
    """Return the display name of a method's class."""
    return TITLES.get(kind, kind)
