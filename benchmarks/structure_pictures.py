"""Draw the maps without labels, with a few, and with neighbors kept, that the docs show.

python benchmarks/structure_pictures.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits

from hopefold import SHOPE
from hopefold.report.figures import Panel, draw_maps

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def main() -> None:
    """Draw the digits, colored by digit, whatever labels the fit had."""
    torch.set_num_threads(1)
    X, digits = load_digits(return_X_y=True)

    def panel(title: str, model: SHOPE) -> Panel:
        return Panel(model.transform(X), digits, None, np.zeros(len(X), bool), title)

    few = np.full(len(digits), -1)
    known = np.concatenate([np.flatnonzero(digits == digit)[:5] for digit in range(10)])
    few[known] = digits[known]
    blind = panel("no labels", SHOPE(random_state=0).fit(X))
    some = SHOPE(random_state=0, missing_label=-1).fit(X, few)
    draw_maps([blind, panel(f"{len(known)} labels of {len(X):,}", some)]).savefig(
        IMAGES / "unlabeled.png", dpi=80
    )
    panels = [
        panel(
            f"labels: odd or even, structure={structure}",
            SHOPE(random_state=0, structure=structure).fit(X, digits % 2),
        )
        for structure in (0, 0.1)
    ]
    draw_maps(panels).savefig(IMAGES / "structure.png", dpi=80)


if __name__ == "__main__":
    main()
