"""What a step of Adam takes where another processor has read the weights since the last one.

Printed beside how far processors are from each other just then: where they share no cache, what was
read by both takes long to write. A virtual machine may be moved from one state to the other.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import torch

from hopefold.bench.ruler import far_reading, seconds_of

N_WEIGHTS, STEPS, ROUNDS = 486_000, 40, 10


def seconds_of_adam(*, read: bool) -> float:
    """The median of some steps; before each, one thread reads all weights, or nobody does."""
    n_threads = torch.get_num_threads()
    weights, slopes, means, squares = (torch.rand(N_WEIGHTS) for _ in range(4))
    tensors = [weights], [slopes], [means], [squares], [], [torch.ones(())]
    how = {"lr": 1e-4, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "eps": 1e-8}
    step = partial(torch._fused_adamw_, *tensors, **how, amsgrad=False, maximize=False)
    seconds = []
    for _ in range(STEPS):
        if read:
            torch.set_num_threads(1)
            weights.sum()
            torch.set_num_threads(n_threads)
        seconds.append(seconds_of(step))
    return float(np.median(seconds))


if __name__ == "__main__":
    for _ in range(ROUNDS):
        before = far_reading()
        alone, read = (1e6 * seconds_of_adam(read=read) for read in (False, True))
        print(
            f"others' numbers take {before:.1f} to {far_reading():.1f} times as long to read as own"
            f" ones: a step {alone:.0f} µs, {read:.0f} µs where one processor has read all weights",
            flush=True,
        )
        time.sleep(1)
