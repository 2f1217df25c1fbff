"""The explicit gradient of the pairwise loss against autograd through n × n masks.

    python benchmarks/pairwise.py

Prints one JSON line per batch size: milliseconds of both for value and gradient, and their ratio.
"""

from __future__ import annotations

import json
import time

import torch

from hopefold.core.objectives import collapse_onto_pairs


def masked(y: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The same loss in its simplest form."""
    norms = y.square().sum(dim=1)
    distances = (norms[:, None] + norms[None, :] - 2 * y @ y.T).clamp_min(0)
    off_diagonal = ~torch.eye(len(y), dtype=torch.bool)
    same_class = (labels[:, None] == labels[None, :]) & off_diagonal
    kernel = off_diagonal / (1 + distances)
    log_q = torch.log(kernel.clamp_min(1e-30)) - kernel.sum().log()
    return -(log_q * same_class).sum() / same_class.sum()


def milliseconds(loss_of, y: torch.Tensor, labels: torch.Tensor) -> float:
    """The shortest time of 15 evaluations with gradient."""
    times = []
    for _ in range(15):
        start = time.perf_counter()
        torch.autograd.grad(loss_of(y, labels), y)
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def main() -> None:
    """Measure batches of three sizes, with ten classes, two dimensions and one thread."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    for n in (250, 1000, 5000):
        y = torch.randn(n, 2, generator=generator).requires_grad_()
        labels = torch.randint(10, (n,), generator=generator)
        exact, slow = (milliseconds(f, y, labels) for f in (collapse_onto_pairs, masked))
        line = {"batch": n, "exact_ms": exact, "masked_ms": slow, "ratio": slow / exact}
        print(json.dumps({key: round(value, 2) for key, value in line.items()}))


if __name__ == "__main__":
    main()
