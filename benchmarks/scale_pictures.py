"""Draw docs/images/scale.png: the estimated rows per second by the number of machines.

python -m hopefold_bench scale          # measures the constants of the estimate
python benchmarks/scale_pictures.py     # draws
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from hopefold_bench.folders import BENCHMARKS, REPOSITORY
from hopefold_bench.records import read_lines
from hopefold_bench.scale_estimate import CORES, LARGE_BATCHES, constants, scale_file


def main() -> None:
    """Draw one line for each batch size."""
    *_, line = read_lines(scale_file(BENCHMARKS))
    known = constants(line)
    machines = np.unique(np.geomspace(1, 1_024, 60).astype(int))
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for batch in LARGE_BATCHES:
        rates = [batch / (known.compute(n, batch) + known.all_reduce(n)) for n in machines]
        axes.plot(machines, rates, label=f"batches of {batch:,}")
    best = machines * rates[0] / machines[0]
    axes.plot(machines, best, color="0.6", linestyle=":", label="linear speed-up")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=f"machines of {CORES} cores",
        ylabel="rows per second",
        title="1,000 features, 400 factors and units; 10 Gbit/s, 50 µs",
    )
    axes.set_xticks([1, 8, 64, 512], ["1", "8", "64", "512"])
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(REPOSITORY / "docs" / "images" / "scale.png", dpi=130)


if __name__ == "__main__":
    main()
