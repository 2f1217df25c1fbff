"""How long operations take, and whether the processor cores share a cache."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from hopefold.evaluation import seconds_in_turns

Operation = Callable[[], object]


def seconds_of(operation: Operation) -> float:
    """The time of one call."""
    start = time.perf_counter()
    operation()
    return time.perf_counter() - start


def shortest(
    operation: Operation, baseline: Operation | None = None, *, repeats: int
) -> tuple[float, float]:
    """The shortest times of an operation and its baseline, called in turns; NaN without one."""
    operations = {"ours": operation} | ({"baseline": baseline} if baseline else {})
    times = seconds_in_turns(operations, repeats=repeats)
    return min(times["ours"]), min(times.get("baseline", [float("nan")]))


def remote_read_ratio(rounds: int = 40) -> float:
    """The time to read what another core has written, divided by that of a core's own writes."""
    numbers, n_threads = torch.zeros(400, 784), torch.get_num_threads()
    if n_threads == 1:
        return 1.0
    own, other = numbers.chunk(n_threads)[0], numbers.chunk(n_threads)[-1]
    seconds: dict[str, list[float]] = {"own": [], "other": []}
    for name, part in (("own", own), ("other", other)) * rounds:
        torch.set_num_threads(n_threads)
        numbers.add_(1)  # each thread writes its own part
        torch.set_num_threads(1)
        seconds[name].append(seconds_of(part.sum))
    torch.set_num_threads(n_threads)
    return float(np.median(seconds["other"]) / np.median(seconds["own"]))
