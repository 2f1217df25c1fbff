"""Draw the picture of planted products that the README shows.

python benchmarks/interaction_pictures.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from hopefold import HOPE
from hopefold.report.interaction_figures import draw_interactions
from planted import CASES, COLUMNS, SMALL, planted

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def main() -> None:
    """Draw two planted pairs among twenty columns, as HOPE finds them."""
    torch.set_num_threads(1)
    X, y, *_ = planted(CASES["x3 × x7 + x1 × x4"], seed=0)
    model = HOPE(order=2, random_state=0, **SMALL[2]).fit(X, y)
    names = [f"x{column}" for column in range(COLUMNS)]
    pairs = model.interactions(top=COLUMNS**2, order=2)
    figure = draw_interactions(model.interactions(top=12), pairs, names)
    figure.savefig(IMAGES / "interactions.png", dpi=110)


if __name__ == "__main__":
    main()
