"""Checks of parameters that depend on each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hopefold.errors import InvalidParameter


def check_augment(values: Mapping[str, Any]) -> None:
    """Check that the shape of the images is known if images are to be distorted."""
    if values["augment"] is not None and values["image_shape"] is None:
        raise InvalidParameter(
            f"augment={values['augment']!r} needs the shape of the images: set image_shape, "
            "e.g. (28, 28)."
        )


def check_spread(values: Mapping[str, Any]) -> None:
    """Check that exemplars are learned if they are to spread."""
    if values["objective"] == "spread" and values["exemplars"] != "joint":
        raise InvalidParameter(
            "objective='spread' needs exemplars that are learned with the map, but exemplars="
            f"{values['exemplars']!r}: set exemplars='joint', or objective='collapse'."
        )


def check_layers(values: Mapping[str, Any]) -> None:
    """Check that tuples of sizes have one number for each layer; ``n_units`` counts the layers."""
    n_units = values["n_units"]
    n_layers = len(n_units) if isinstance(n_units, tuple | list) else 1
    for name in ("order", "n_factors"):
        value = values[name]
        if isinstance(value, tuple | list) and len(value) != n_layers:
            raise InvalidParameter(
                f"{name}={value!r} is for {len(value)} layer{'s' * (len(value) != 1)}, but "
                f"n_units={n_units!r} for {n_layers}: give {name} as one number, or n_units and "
                f"{name} one for each layer."
            )
