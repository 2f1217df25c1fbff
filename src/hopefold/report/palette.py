"""One color per class, distinguishable with any color vision, on white and on black."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray

#: Ten colors that are distinguishable with any color vision (after Petroff, 2021), without red,
#: which is the color of exemplars.
PALETTE = (
    "#3f90da",
    "#ffa90e",
    "#196b10",
    "#b9ac70",
    "#832db6",
    "#94a4a2",
    "#a96b59",
    "#e76300",
    "#5b5e6b",
    "#92dadd",
)
EXEMPLAR_COLOR = "#d1001f"
UNLABELED_COLOR = "#a3a8b1"

#: Range of lightness and maximum chroma of further colors in OKLab: visible on white and on black,
#: with none standing out.
LIGHTNESS = (0.46, 0.84)
VIVIDNESS = 0.17

#: Steps of red, green and blue among which further colors are searched.
STEPS = 18

#: Simulation of color vision deficiencies in linear RGB (Machado, Oliveira and Fernandes, 2009).
VISIONS = np.array(
    [
        np.eye(3),
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ]
)
_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


@cache
def class_colors(n_classes: int) -> tuple[str, ...]:
    """Return one color per class: the fixed ten, then by largest distance to those before.

    The distance of two colors is the smallest over the types of color vision. The colors of fewer
    classes are the first of those of more classes.

    Examples
    --------
    >>> from hopefold.report.palette import class_colors
    >>> class_colors(2)
    ('#3f90da', '#ffa90e')

    """
    if n_classes <= len(PALETTE):
        return PALETTE[:n_classes]
    levels = np.linspace(0, 1, STEPS)
    candidates = np.stack(np.meshgrid(levels, levels, levels), axis=-1).reshape(-1, 3)
    lightness, *hue = oklab(candidates).T
    fits = (lightness > LIGHTNESS[0]) & (lightness < LIGHTNESS[1]) & (np.hypot(*hue) < VIVIDNESS)
    candidates = candidates[fits]
    seen = as_seen(candidates)
    chosen = [*PALETTE]
    taken = as_seen(np.array([_numbers(color) for color in (*PALETTE, EXEMPLAR_COLOR)]))
    nearest = np.min([_difference(seen, color) for color in taken], axis=0)
    while len(chosen) < n_classes:
        best = int(nearest.argmax())
        chosen.append(_name(candidates[best]))
        nearest = np.minimum(nearest, _difference(seen, seen[best]))
    return tuple(chosen)


def as_seen(colors: Float[ndarray, "n 3"]) -> Float[ndarray, "n 4 3"]:
    """Return colors in OKLab, as seen with each type of color vision."""
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.einsum("vij,nj->nvi", VISIONS, linear), 0, 1)
    lab: ndarray = np.cbrt(seen @ _TO_CONES.T) @ _TO_OKLAB.T
    return lab


def oklab(colors: Float[ndarray, "... 3"]) -> Float[ndarray, "... 3"]:
    """Return colors in OKLab, whose distances approximate perceived differences."""
    lab: ndarray = as_seen(np.atleast_2d(colors))[:, 0].reshape(colors.shape)
    return lab


def difference(one: str, other: str) -> float:
    """Return the smallest perceived difference of two colors over the types of color vision."""
    seen = as_seen(np.array([_numbers(one), _numbers(other)]))
    return float(_difference(seen[:1], seen[1])[0])


def _difference(seen: Float[ndarray, "n 4 3"], other: Float[ndarray, "4 3"]) -> ndarray:
    distances: ndarray = np.linalg.norm(seen - other, axis=2).min(axis=1)
    return distances


def _numbers(color: str) -> ndarray:
    return np.array([int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)])


def _name(numbers: ndarray) -> str:
    return "#" + "".join(f"{round(255 * value):02x}" for value in numbers)
