"""Time an epoch with torch's private fused AdamW and with its public one, in turns.

The public function does the same arithmetic and checks more around it. The roofline's epoch on
MNIST (maps of 400 factors and 400 units), on one thread; the median ratio of pairs of epochs.

    python benchmarks/fused_adamw.py
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.optim.adamw import adamw

from hopefold.training import optimizers
from hopefold_bench.one_pass import as_float32, one_pass, timed_model
from hopefold_bench.splits import load_splits
from hopefold_bench.timing import seconds_of

ROUNDS, ROWS = 15, 10_000


def public_adamw(*arguments: Any) -> None:
    """`optimizers.fused_adamw` by the public function, which counts the step itself."""
    *tensors, steps, rate = arguments
    counts = [step - 1 for step in steps]
    adamw(*tensors, [], counts, fused=True, lr=rate, **optimizers.ADAM)


@contextmanager
def using(function: Any) -> Iterator[None]:
    """Replace the private call."""
    private, optimizers.fused_adamw = optimizers.fused_adamw, function
    try:
        yield
    finally:
        optimizers.fused_adamw = private


if __name__ == "__main__":
    torch.set_num_threads(1)
    splits = load_splits("mnist", 0, final=False)
    X, y = as_float32(splits.X)[:ROWS], splits.y[:ROWS]
    for name, settings in {
        "defaults of the roofline": {"adversarial": 0, "input_dropout": 0},
        "adversarial": {},
    }.items():
        for batch in (100, 250, 500):
            model = timed_model(batch_size=batch, **settings)
            epoch = one_pass(model, X, y)
            epoch()
            ratios = []
            for _ in range(ROUNDS):
                private = seconds_of(epoch)
                with using(public_adamw):
                    public = seconds_of(epoch)
                ratios.append(public / private)
            print(
                f"{name}, batches of {batch}: the public function takes {np.median(ratios):.3f} × "
                f"the time of the private one ({min(ratios):.3f} to {max(ratios):.3f})",
                flush=True,
            )
