"""Sizes of stacked layers: one number for each of them, or one for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hopefold import checks
from hopefold.errors import InvalidParameter

#: The highest order: powers of more features are beyond what float32 holds.
MOST_ORDER = 20


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


def check_layers(order: Any, n_factors: Any, n_units: Any) -> None:
    """Are all sizes whole numbers, and are there as many of each as there are layers?"""
    bounds = {"order": (order, MOST_ORDER), "n_factors": (n_factors, None)}
    for name, (value, at_most) in (bounds | {"n_units": (n_units, None)}).items():
        if not is_several(value):
            if name == "order":
                checks.check_whole(name, value, at_least=1, at_most=at_most)
            else:
                checks.check_whole_or_auto(name, value, at_least=1)
        elif not len(value):
            raise InvalidParameter(f"{name}={value!r} is empty: give a number for each layer.")
        else:
            for one in value:
                checks.check_whole(f"{name} of a layer", one, at_least=1, at_most=at_most)
    n_layers = len(n_units) if is_several(n_units) else 1
    for name, (value, _) in bounds.items():
        if is_several(value) and len(value) != n_layers:
            raise InvalidParameter(
                f"{name}={value!r} is for {len(value)} layer{'s' * (len(value) != 1)}, but "
                f"n_units={n_units!r} for {n_layers}: give {name} as one number, or n_units and "
                f"{name} one for each layer."
            )


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
