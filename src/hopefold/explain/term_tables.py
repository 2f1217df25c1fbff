"""Results of explanations: tables of feature interactions, and of contributions to a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy import ndarray

#: Superscript digits, for powers.
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

#: Smaller magnitudes are printed as 0.
ROUNDING = 1e-12


def pixel_names(image_shape: tuple[int, int]) -> tuple[str, ...]:
    """Name pixels by their position, row by row."""
    height, width = image_shape
    return tuple(f"pixel {row},{column}" for row in range(height) for column in range(width))


def product(features: Sequence[str]) -> str:
    """Format a product, e.g. alcohol² × hue."""
    counts = Counter(features)
    return " × ".join(
        name + (str(times).translate(RAISED) if times > 1 else "") for name, times in counts.items()
    )


#: The units of features, by name.
UNITS = {
    "standard": "standard deviations",
    "data": "the data's units",
    "map": "the scale of the map, since no rows are known: give X for standard deviations",
}


@dataclass(frozen=True, repr=False)
class Interactions:
    """The feature interactions with the largest weight on a map, in descending order.

    They are products of at most as many features as the order of the first layer. All that S-HOPE
    has above these products is linearized.

    Parameters
    ----------
    terms : tuple of tuples of int
        The columns that are multiplied, in ascending order; a square has one twice.
    names : tuple of str
        The products in the names of the columns: ``"alcohol × proline"``.
    coefficients : ndarray of shape (n_terms, n_components)
        Coefficients of the product in each coordinate of the map.
    weights : ndarray of shape (n_terms,)
        The norm of the coefficients over the coordinates.
    deviations : ndarray of shape (n_terms,) or None
        With data: the standard deviation of the term on them, in units of the map.
    classes : ndarray or None
        With data: the classes of the columns of ``shifts``.
    shifts : ndarray of shape (n_terms, n_classes) or None
        How far the term moves a class, along the direction of its coefficients, relative to the
        mean of all rows.
    units : {"standard", "data", "map"}
        The units of the features. ``"map"``: the scale of the map, if standard deviations were
        requested but neither rows nor exemplars determine them.
    note : str
        The set of terms that was searched, if not all terms were.

    """

    terms: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    coefficients: ndarray
    weights: ndarray
    deviations: ndarray | None
    classes: ndarray | None
    shifts: ndarray | None
    units: str
    note: str = ""

    def __len__(self) -> int:
        return len(self.terms)

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per term, from column to value: ready for CSV, JSON and pandas."""
        return list(self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        for place, name in enumerate(self.names):
            row = {"term": name, "order": len(self.terms[place])}
            row["weight"] = float(self.weights[place])
            if self.deviations is not None:
                row["deviation"] = float(self.deviations[place])
            for number, value in enumerate(self.coefficients[place], start=1):
                row[f"y{number}"] = float(value)
            if self.classes is not None and self.shifts is not None:
                for label, shift in zip(self.classes, self.shifts[place], strict=True):
                    row[f"class {label}"] = float(shift)
            yield row

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        import pandas  # type: ignore[import-untyped]

        return pandas.DataFrame(self.rows())

    def __repr__(self) -> str:
        head = f"{len(self)} products of features, in {UNITS[self.units]}{_aside(self.note)}"
        return f"{head}\n{as_text(self.rows())}"


@dataclass(frozen=True, repr=False)
class Explanation:
    """The position of a row in the map as a sum of contributions.

    ``point = constant + values.sum(axis=0) + others + remainder``

    Parameters
    ----------
    point : ndarray of shape (n_components,)
        The point of the row.
    constant : ndarray of shape (n_components,)
        The point of the mean row; with ``units="data"``, of a row of zeros.
    terms, names : as in `Interactions`
        The row's largest terms, largest first.
    values : ndarray of shape (n_terms, n_components)
        How far each of them moves the row.
    others : ndarray of shape (n_components,)
        The sum of all other terms.
    remainder : ndarray of shape (n_components,)
        The error of linearizing S-HOPE above the products of its first layer: nearly zero with
        ``slope="mean"``, and for HOPE.
    units : {"standard", "data", "map"}
        The units of the features, as in `Interactions`.
    note : str
        The set of terms that was searched, if not all terms were.

    """

    point: ndarray
    constant: ndarray
    terms: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    values: ndarray
    others: ndarray
    remainder: ndarray
    units: str
    note: str = ""

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per part, from column to value; the parts add up to the point."""
        parts = [("(constant)", self.constant), *zip(self.names, self.values, strict=True)]
        parts += [("(all other terms)", self.others)]
        parts += [("(remainder)", self.remainder)]
        return [
            {"term": name, "length": float(np.linalg.norm(value))}
            | {f"y{number}": float(one) for number, one in enumerate(value, start=1)}
            for name, value in parts
        ]

    def __repr__(self) -> str:
        place = ", ".join(f"{value:.3g}" for value in self.point)
        return f"contributions to ({place}){_aside(self.note)}\n{as_text(self.rows())}"


def _aside(note: str) -> str:
    return f" ({note})" if note else ""


def as_text(rows: Sequence[dict[str, Any]]) -> str:
    """Format rows as lines with aligned columns."""
    if not rows:
        return ""
    cells = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if abs(value) > ROUNDING else "0"
