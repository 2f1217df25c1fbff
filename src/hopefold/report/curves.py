"""Training curves as SVG paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefold.report.words import percent

WIDTH, HEIGHT = 420.0, 150.0


@dataclass(frozen=True)
class Curve:
    """A line over the epochs: its path, axis marks as (position, text), and the epoch kept."""

    name: str
    path: str
    levels: tuple[tuple[float, str], ...]
    epochs: tuple[tuple[float, str], ...]
    kept: tuple[float, float] | None
    last: str


def training_curves(history: Sequence[dict[str, Any]], kept: int) -> list[Curve]:
    """Return the curves of the loss and, with held-out rows, of their error."""
    names = {"loss": "Loss", "validation_error": "Error on held-out rows"}
    return [
        _curve(title, np.array([record[name] for record in history], float), name, kept)
        for name, title in names.items()
        if len(history) > 1 and all(name in record for record in history)
    ]


def _curve(title: str, values: np.ndarray, name: str, kept: int) -> Curve:
    as_text = percent if name == "validation_error" else "{:.3g}".format
    low, high = min(values.min(), 0.0), values.max()
    span = (high - low) or 1.0
    x = WIDTH * np.arange(len(values)) / (len(values) - 1)
    y = HEIGHT * (1 - (values - low) / span)
    path = "M" + " L".join(f"{right:.1f},{down:.1f}" for right, down in zip(x, y, strict=True))
    levels = tuple((HEIGHT * (1 - share), as_text(low + share * span)) for share in (0, 0.5, 1))
    chosen = (float(x[kept - 1]), float(y[kept - 1])) if 1 <= kept <= len(values) else None
    last = as_text(values[kept - 1] if chosen else values[-1])
    return Curve(title, path, levels, ((0.0, "1"), (WIDTH, f"{len(values):,}")), chosen, last)
