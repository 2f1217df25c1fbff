"""The sizes of maps; and the folder of saved models, so that figures need no second fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hopefold.fitting.plan import resolve
from hopefold.fitting.plan_values import Facts
from hopefold_bench.folders import BENCHMARKS

#: Beside the results, and never committed.
MODELS = BENCHMARKS / "models"

#: The methods in the figures.
SHOWN = ("MCML", "DeepMCML pre-trained", "HOPE", "S-HOPE")


def models_folder(results: Path | None) -> Path:
    """The folder of models: below the given folder of results, or in the clone."""
    return results / "models" if results else MODELS


def model_file(data: str, method: str, part: str, folder: Path = MODELS) -> Path:
    """The path of the saved model of seed 0."""
    return folder / f"{data}-{method}-{part}.hope"


def sizes_of_map(model: Any) -> dict[str, Any]:
    """The sizes of the map that a labeled table gets, by the names of their parameters."""
    facts = Facts(n_features=2, n_columns=2, n_classes=2, n_labeled=1)
    plan = resolve(model.request(), facts)
    return {"order": plan.order, **model.method(plan).sizes}
