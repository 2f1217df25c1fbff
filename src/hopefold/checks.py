"""Checks of single arguments. Each raises an error that quotes the argument's name and value.

Standard library only: ``hopefold --help`` imports these checks, and NumPy is slow to import.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

from hopefold.errors import InvalidParameter, NoSuchFolder


def is_bool(value: Any) -> bool:
    """Whether the value is a bool of Python or of NumPy."""
    numpy = sys.modules.get("numpy")  # a bool of NumPy exists only if NumPy has been imported
    return isinstance(value, bool) or (numpy is not None and isinstance(value, numpy.bool_))


def is_auto(value: Any) -> bool:
    """Whether the value is the text ``"auto"``."""
    return isinstance(value, str) and value == "auto"


def check_whole(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> None:
    """Check for a whole number within bounds."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < at_least or (at_most is not None and value > at_most):
        bounds = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
        raise InvalidParameter(f"{name}={value!r}: give a whole number {bounds}.")


def check_whole_or_auto(name: str, value: Any, *, at_least: int) -> None:
    """Check for ``"auto"`` or a whole number within bounds."""
    if not is_auto(value):
        check_whole(name, value, at_least=at_least)


def check_whole_or_none(name: str, value: Any, *, at_least: int) -> None:
    """Check for ``None`` or a whole number within bounds."""
    if value is not None:
        check_whole(name, value, at_least=at_least)


def check_whole_or_bool(name: str, value: Any, *, at_least: int) -> None:
    """Check for a bool or a whole number within bounds."""
    if not is_bool(value):
        check_whole(name, value, at_least=at_least)


def check_number(name: str, value: Any, low: float, high: float, *, open_low: bool = False) -> None:
    """Check for a number in [low, high), or in (low, high)."""
    fits = isinstance(value, Real) and not isinstance(value, bool)
    if not fits or not low <= value < high or (open_low and value == low):
        bounds = f"{'above' if open_low else 'of at least'} {low:g}"
        below = f" and below {high:g}" if math.isfinite(high) else ""
        raise InvalidParameter(f"{name}={value!r}: give a number {bounds}{below}.")


def check_number_or_none(
    name: str, value: Any, low: float, high: float, *, open_low: bool = False
) -> None:
    """A number between two others, or None."""
    if value is not None:
        check_number(name, value, low, high, open_low=open_low)


def check_number_or_auto(
    name: str, value: Any, low: float, high: float, *, open_low: bool = False
) -> None:
    """Check for ``"auto"``, or a number in [low, high), or in (low, high)."""
    if isinstance(value, str) and not is_auto(value):
        raise InvalidParameter(f"{name}={value!r} is not known: give a number, or 'auto'.")
    if not is_auto(value):
        check_number(name, value, low, high, open_low=open_low)


def check_share_or_auto(name: str, value: Any) -> None:
    """Check for ``"auto"`` or a number from 0 to 1, both included."""
    fits = isinstance(value, Real) and not isinstance(value, bool)
    if not is_auto(value) and not (fits and 0 <= value <= 1):
        raise InvalidParameter(f"{name}={value!r}: give a number from 0 to 1, or 'auto'.")


def check_path(name: str, value: Any) -> None:
    """Check for ``None`` or the path of a file in an existing folder."""
    if value is None:
        return
    if not isinstance(value, str | PathLike) or not str(value):
        raise InvalidParameter(f"{name}={value!r}: give the path of a file, or None.")
    folder = Path(value).resolve().parent
    if not folder.is_dir():
        raise NoSuchFolder(f"cannot write {name}={str(value)!r}: make the folder {folder} first.")
    if Path(value).is_dir():
        raise InvalidParameter(f"{name}={str(value)!r} is a folder: name a file in it.")


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Check for one of the choices."""
    if not (isinstance(value, str | None) or is_bool(value)) or value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise InvalidParameter(f"{name}={value!r} is not known: choose one of {known}.")


def check_layer_sizes(
    name: str, value: Any, *, at_most: int | None = None, auto: bool = True
) -> None:
    """Check for a size of at least 1, or for a tuple with the size of each layer."""
    if not isinstance(value, tuple | list):
        if not (auto and is_auto(value)):
            check_whole(name, value, at_least=1, at_most=at_most)
        return
    if not value:
        raise InvalidParameter(f"{name}={value!r} is empty: give a number for each layer.")
    for size in value:
        check_whole(f"{name} of a layer", size, at_least=1, at_most=at_most)


def check_hidden_layers(name: str, value: Any) -> None:
    """Check for a tuple or a list with the number of units of each layer."""
    if not isinstance(value, list | tuple) or not value:
        raise InvalidParameter(f"{name}={value!r}: give the units of each layer, e.g. (500, 500).")
    for size in value:
        check_whole(name, size, at_least=1)


def check_missing_label(name: str, value: Any) -> None:
    """Check for a number, a text or a missing value, or ``()`` for no marker at all."""
    plain = isinstance(value, str | Real) and not is_bool(value)
    none = value is None or type(value).__name__ == "NAType"  # pandas.NA
    if not (plain or none or (isinstance(value, tuple) and not value)):
        raise InvalidParameter(
            f"{name}={value!r}: give the one number or text that stands for a missing label, None "
            "for None and NaN, or () if no label is missing."
        )


def check_image_shape(image_shape: Any) -> None:
    """Check for a pair of whole numbers."""
    pair = isinstance(image_shape, tuple | list) and len(image_shape) == 2
    if not (pair and all(isinstance(n, Integral) and not isinstance(n, bool) for n in image_shape)):
        raise InvalidParameter(
            f"image_shape={image_shape!r}: give the height and the width as whole numbers, "
            "e.g. (28, 28)."
        )
