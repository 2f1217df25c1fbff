"""Draw docs/images/front.png: error against CPU time, for the defaults, efforts and other methods.

python -m hopefold_bench front --final     # measures
python benchmarks/front_pictures.py        # draws
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from hopefold_bench.folders import BENCHMARKS, REPOSITORY
from hopefold_bench.front import DEFAULT, OTHERS, OURS
from hopefold_bench.front_tables import Lines, error_rate, read_front

NAMES = {
    DEFAULT: "S-HOPE (default)",
    'SHOPE {"effort": "fast"}': 'effort="fast"',
    'SHOPE {"effort": "best"}': 'effort="best"',
    'SHOPE {"n_units": 200}': "one layer",
    "UMAP": "supervised UMAP",
    "5-NN": "5-NN of the columns",
}


#: Methods that were measured on fewer sets are not drawn.
FEWEST_SETS = 30


def common_sets(lines: Lines, methods: list[str]) -> list[str]:
    """The sets on which all methods were measured."""
    ours = [data for data, method in lines if method == DEFAULT]
    return [data for data in ours if all((data, method) in lines for method in methods)]


def main() -> None:
    """Draw a point for each method: geometric means over the sets."""
    lines = read_front(BENCHMARKS, "test")
    methods = [m for m in (*OURS, *OTHERS) if sum(one == m for _, one in lines) >= FEWEST_SETS]
    sets = common_sets(lines, methods)
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for method in methods:
        first = [[line for line in lines[data, method] if line["split"] == 0] for data in sets]
        usual = [[line for line in lines[data, DEFAULT] if line["split"] == 0] for data in sets]
        ratios = [error_rate(a) / error_rate(b) for a, b in zip(first, usual, strict=True)]
        seconds = [max(each[0]["cpu_seconds"], 0.001) for each in first]
        x, y = np.exp(np.mean(np.log(seconds))), np.exp(np.mean(np.log(ratios)))
        ours = method in OURS
        axes.plot(x, y, "o", color="C3" if ours else "0.4", ms=10 if method == DEFAULT else 6)
        axes.annotate(NAMES.get(method, method), (x, y), (6, 6), textcoords="offset points")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="CPU seconds of a fit (geometric mean)",
        ylabel="error, relative to the default (geometric mean)",
        title=f"{len(sets)} sets, test parts, one thread",
    )
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.margins(y=0.1)
    left, right = axes.get_xlim()
    axes.set_xlim(left / 1.5, 8 * right)  # room for names
    axes.grid(alpha=0.3, which="both")
    figure.savefig(REPOSITORY / "docs" / "images" / "front.png", dpi=130)


if __name__ == "__main__":
    main()
