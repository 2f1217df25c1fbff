"""The time limit of a fit: how much of it has passed. Process 0 decides for all."""

from __future__ import annotations

import time
from collections.abc import Callable

from hopefold.training.distributed import SINGLE_PROCESS, ProcessGroup

#: Shares of the time that is left: for comparisons, for the run, and for the last stretch; for the
#: first of two runs. What remains is for k-means, the evaluation and what the caller does.
FOR_COMPARISONS, FOR_THE_RUN, FOR_THE_REST, FOR_THE_FIRST = 0.3, 0.75, 0.7, 0.4


class TimeLimit:
    """The seconds of a fit; without a limit, there is always time."""

    def __init__(self, seconds: float | None, group: ProcessGroup = SINGLE_PROCESS) -> None:
        self._group, self._seconds = group, seconds
        self._start = time.monotonic()

    @property
    def passed(self) -> float:
        """Seconds since the start."""
        now = time.monotonic() - self._start
        return now if self._group.size == 1 else self._group.broadcast_object(now)

    def portion(self, share: float) -> Callable[[], float] | None:
        """A function that returns how much of a share of the time left has passed since now."""
        if self._seconds is None:
            return None
        begin = self.passed
        length = max(share * (self._seconds - begin), 1e-9)

        def spent() -> float:
            return (self.passed - begin) / length

        return spent
