"""Matrices as small numbers: int8 with a factor per row, or float16; and scales of few values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.data.scaling import Scale

if TYPE_CHECKING:
    from numpy import ndarray

#: Bytes of a coarse number, the smallest first.
PRECISIONS = {"int8": 1, "float16": 2}

#: What is kept coarse: matrices of each layer of the map, by their names in it, and the exemplars.
COARSE_WEIGHTS = ("C", "W")

#: The largest whole number of a row, and what the factor of a row is called in a file.
LARGEST = 127

FACTOR = ".factor"

#: What a scale of few values is kept as.
PACKED_SCALE = ("scale.kinds", "scale.codes")


def is_coarse(name: str) -> bool:
    """Is a tensor of a small model's file, by its name there, kept in coarse numbers?"""
    place, _, last = name.rpartition(".")
    return name == "exemplars" or (place.split(".")[0] == "map" and last in COARSE_WEIGHTS)


def pack(name: str, values: Any, precision: str) -> dict[str, ndarray]:
    """A table of numbers as it is kept in a file; packed again, it gives the same bits.

    A factor has 16 significant bits: its products with whole numbers up to 127 are exact, so the
    largest of them tells the factor again.
    """
    values = np.asarray(values)
    if precision == "float16":
        with np.errstate(over="ignore"):  # whoever judges the rounded map sees infinity
            return {name: values.astype(np.float16)}
    mantissa, exponent = np.frexp(np.abs(values).max(axis=1, initial=0) / LARGEST)
    factor = np.ldexp(np.round(mantissa * 2**16), exponent - 16).astype(np.float32)
    codes = np.round(values / np.where(factor > 0, factor, 1)[:, None])
    return {name: codes.clip(-LARGEST, LARGEST).astype(np.int8), name + FACTOR: factor}


def unpack(name: str, tensors: Mapping[str, ndarray]) -> ndarray:
    """The numbers that `pack` has packed, in float32."""
    values: ndarray = tensors[name].astype(np.float32)
    if tensors[name].dtype == np.int8:
        with np.errstate(invalid="ignore", over="ignore"):  # readers look for it
            values *= tensors[name + FACTOR][:, None]
    return values


def round_values(values: Any, precision: str) -> ndarray:
    """The numbers as they come back from a file."""
    return unpack("values", pack("values", values, precision))


def pack_scale(scale: Scale) -> dict[str, ndarray]:
    """The scale as it is, or, where it has few values, these and the number of each column's."""
    columns = np.stack([scale.shift, scale.gain], axis=1)
    kinds, codes = np.unique(columns, axis=0, return_inverse=True)
    if len(kinds) > 256 or kinds.nbytes + len(codes) > columns.nbytes:
        return {"scale.shift": scale.shift, "scale.gain": scale.gain}
    return {"scale.kinds": kinds, "scale.codes": codes.astype(np.uint8)}


def unpack_scale(tensors: Mapping[str, ndarray]) -> Scale:
    """The scale that `pack_scale` has packed, or that a file holds as it is."""
    if "scale.codes" in tensors:
        return Scale(*tensors["scale.kinds"][tensors["scale.codes"]].T)
    return Scale(tensors["scale.shift"], tensors["scale.gain"])


def label_type(n_classes: int) -> np.dtype[Any]:
    """The smallest whole numbers that tell the classes apart."""
    return np.min_scalar_type(n_classes - 1)


def coarse_bytes(shape: tuple[int, ...], precision: str) -> int:
    """Bytes of a matrix in coarse numbers."""
    n_rows, n_columns = shape
    return n_rows * (n_columns * PRECISIONS[precision] + (4 if precision == "int8" else 0))
