"""Sizes of stacked layers: one number for each of them, or one for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Layers(NamedTuple):
    """The sizes of a map, one number for each layer, the first layer first."""

    orders: tuple[int, ...]
    n_factors: tuple[int, ...]
    n_units: tuple[int, ...]

    @classmethod
    def of(cls, order: Any, n_factors: Any, n_units: Any) -> Layers:
        """From parameters, each of them one number for all layers or one number per layer."""
        units = _each(n_units, 1)
        return cls(_each(order, len(units)), _each(n_factors, len(units)), units)


def sizes_of_layers(weights: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """How long the vectors of this name are in the layers of a map, the first layer first."""
    n_below = sum(weight.startswith("below.") and weight.endswith(f".{name}") for weight in weights)
    layers = [*(f"below.{depth}" for depth in range(n_below)), "top"] if n_below else [""]
    return tuple(len(weights[f"{layer}.{name}".lstrip(".")]) for layer in layers)


def is_several(value: Any) -> bool:
    """Is it one number for each layer?"""
    return isinstance(value, tuple | list)


def as_parameter(sizes: Sequence[int]) -> int | tuple[int, ...]:
    """Sizes as a user sets them: of one layer, a number."""
    return sizes[0] if len(sizes) == 1 else tuple(sizes)


def _each(value: Any, n_layers: int) -> tuple[int, ...]:
    several = value if is_several(value) else (value,) * n_layers
    return tuple(int(one) for one in several)
