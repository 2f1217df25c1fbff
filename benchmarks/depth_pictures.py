"""Draw the maps of one and of two layers that the docs show.

python benchmarks/depth_pictures.py
"""

from __future__ import annotations

from pathlib import Path

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hopefold import SHOPE
from hopefold.report.figures import Panel, draw_maps

IMAGES = Path(__file__).parents[1] / "docs" / "images"
LAYERS = {"one layer, n_units=600": 600, "two layers, n_units=(400, 400)": (400, 400)}


def main() -> None:
    """Draw the test rows of digits in both maps."""
    torch.set_num_threads(1)
    X, y = load_digits(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    panels = []
    for title, n_units in LAYERS.items():
        model = SHOPE(n_units=n_units, random_state=0).fit(X, y)
        points, misclassified = model.transform(X_new), model.predict(X_new) != y_new
        panels.append(Panel(points, y_new, model.exemplar_embedding_, misclassified, title))
    draw_maps(panels).savefig(IMAGES / "depth.png", dpi=80)


if __name__ == "__main__":
    main()
