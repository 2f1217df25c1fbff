"""Time a step of Adam when another core has read the weights since the last step.

Where the cores share no cache, writing what both have read is slow. The printed ratio of read
times shows whether they share one. A virtual machine may move between the two states.

    python benchmarks/shared_weights.py
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import torch

from hopefold_bench.timing import remote_read_ratio, seconds_of

N_WEIGHTS, STEPS, ROUNDS = 486_000, 40, 10


def seconds_of_adam(*, read: bool) -> float:
    """The median over several steps; with ``read``, one thread reads all weights before each."""
    n_threads = torch.get_num_threads()
    weights, gradients, means, squares = (torch.rand(N_WEIGHTS) for _ in range(4))
    tensors = [weights], [gradients], [means], [squares], [], [torch.ones(())]
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
        before = remote_read_ratio()
        alone, read = (1e6 * seconds_of_adam(read=read) for read in (False, True))
        print(
            f"remote reads take {before:.1f} to {remote_read_ratio():.1f} × local reads; "
            f"a step takes {alone:.0f} µs, or {read:.0f} µs after one core has read all weights",
            flush=True,
        )
        time.sleep(1)
