"""What a stress test returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """The number of cases, and one line for each case that broke the promise."""

    tried: int
    broken: tuple[str, ...] = ()

    @property
    def survived(self) -> int:
        """Cases in which the promise held."""
        return self.tried - len(self.broken)
