"""A process that is measured by `scale`, started by torchrun.

`torchrun … -m hopefold_bench.scale_worker 24000` starts a process group. Its first process reads
requests from standard input, and prints a line when all processes have done what was requested.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch

from hopefold.estimators.shope import SHOPE
from hopefold.training.distributed import current_process_group
from hopefold.training.sharding import Sharding
from hopefold_bench.one_pass import one_pass
from hopefold_bench.scale import ALL_REDUCE, GRADIENTS, STEPS
from hopefold_bench.scale_estimate import SIZE, WIDTH
from hopefold_bench.timing import Operation


def main() -> None:
    """Serve requests until standard input is closed."""
    n_rows = int(sys.argv[1])
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    group = current_process_group()
    y = np.arange(n_rows) % 10
    X = np.random.RandomState(0).rand(n_rows, WIDTH).astype(np.float32)
    gradients = [torch.zeros(n_numbers) for n_numbers in GRADIENTS]

    def all_reduce(times: int) -> None:
        for _ in range(times):
            group.all_reduce(gradients)

    @lru_cache(maxsize=1)
    def operation(what: str, size: int) -> Operation:
        if what == ALL_REDUCE:
            return partial(all_reduce, size)
        sizes: dict[str, Any] = {"n_factors": SIZE, "n_units": SIZE, "spare_components": 0}
        model = SHOPE(**sizes, **STEPS[what], batch_size=size, random_state=0)
        return one_pass(model, X, y, Sharding(group))

    while request := group.broadcast_object(sys.stdin.readline() if group.is_first else ""):
        what, size = request.split()
        operation(what, int(size))()
        if group.is_first:
            print("done", flush=True)


if __name__ == "__main__":
    main()
