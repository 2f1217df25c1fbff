"""Fitted models that are kept on this machine, so that figures need no second fit."""

from __future__ import annotations

from pathlib import Path

from hopefold_bench.folders import BENCHMARKS

#: In the clone, beside its results, and never committed.
MODELS = BENCHMARKS / "models"

#: The methods that the figures show.
SHOWN = ("MCML", "DeepMCML pre-trained", "HOPE", "S-HOPE")


def models_folder(results: Path | None) -> Path:
    """Where models are kept: below the user's folder of results, or in the clone."""
    return results / "models" if results else MODELS


def model_file(data: str, method: str, part: str, folder: Path = MODELS) -> Path:
    """Where the model of seed 0 is kept, if it is."""
    return folder / f"{data}-{method}-{part}.hope"
