"""Draws docs/images/scale.png: rows a second by machines, reckoned from what was measured here.

`python -m hopefold_bench scale` measures, `python benchmarks/scale.py` draws.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from hopefold_bench.records import read_lines
from hopefold_bench.scale_estimate import CORES, LARGE_BATCHES, constants, scale_file

HERE = Path(__file__).parent


def main() -> None:
    """A line for each size of batch."""
    *_, line = read_lines(scale_file(HERE))
    known = constants(line)
    machines = np.unique(np.geomspace(1, 1_024, 60).astype(int))
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for batch in LARGE_BATCHES:
        rates = [batch / (known.compute(n, batch) + known.all_reduce(n)) for n in machines]
        axes.plot(machines, rates, label=f"batches of {batch:,}")
    best = machines * rates[0] / machines[0]
    axes.plot(machines, best, color="0.6", linestyle=":", label="as many times as machines")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=f"machines of {CORES} cores",
        ylabel="rows a second",
        title="1,000 features, 400 factors and units; 10 Gbit/s, 50 µs",
    )
    axes.set_xticks([1, 8, 64, 512], ["1", "8", "64", "512"])
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(HERE.parent / "docs" / "images" / "scale.png", dpi=130)


if __name__ == "__main__":
    main()
