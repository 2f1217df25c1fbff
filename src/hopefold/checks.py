"""Checks of single arguments, in the user's own names and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from hopefold.errors import InvalidParameter, NoSuchFolder


def check_whole(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> None:
    """Is the parameter a whole number, and not too small or too large?"""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < at_least or (at_most is not None and value > at_most):
        bounds = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
        raise InvalidParameter(f"{name}={value!r}: give a whole number {bounds}.")


def check_whole_or_auto(name: str, value: Any, *, at_least: int) -> None:
    """Is the parameter ``"auto"``, or a whole number that is not too small?"""
    if not (isinstance(value, str) and value == "auto"):
        check_whole(name, value, at_least=at_least)


def check_number(name: str, value: Any, low: float, high: float, *, open_low: bool = False) -> None:
    """Is the parameter a number in [low, high), or in (low, high)?"""
    fits = isinstance(value, Real) and not isinstance(value, bool)
    if not fits or not low <= value < high or (open_low and value == low):
        bounds = f"{'above' if open_low else 'of at least'} {low:g}"
        below = f" and below {high:g}" if np.isfinite(high) else ""
        raise InvalidParameter(f"{name}={value!r}: give a number {bounds}{below}.")


def check_number_or_auto(
    name: str, value: Any, low: float, high: float, *, open_low: bool = False
) -> None:
    """Is the parameter ``"auto"``, or a number in [low, high), or in (low, high)?"""
    if not (isinstance(value, str) and value == "auto"):
        check_number(name, value, low, high, open_low=open_low)


def check_path(name: str, value: Any) -> None:
    """Is the parameter the path of a file in a folder that is there, or ``None``?"""
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
    """Is the parameter one of those that exist?"""
    if not isinstance(value, str | bool | np.bool_ | None) or value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise InvalidParameter(f"{name}={value!r} is not known: choose one of {known}.")


def check_image_shape(image_shape: Any) -> None:
    """Is it a pair of whole numbers?"""
    pair = isinstance(image_shape, tuple | list) and len(image_shape) == 2
    if not (pair and all(isinstance(n, Integral) and not isinstance(n, bool) for n in image_shape)):
        raise InvalidParameter(
            f"image_shape={image_shape!r}: give the height and the width as whole numbers, "
            "e.g. (28, 28)."
        )
