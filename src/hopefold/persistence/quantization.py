"""Quantization of matrices: int8 with a factor per row, or float16; and compression of scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.data.scaling import Scale

if TYPE_CHECKING:
    from numpy import ndarray

#: Bytes per quantized value, in ascending order.
PRECISIONS = {"int8": 1, "float16": 2}

#: The quantized tensors: matrices of each layer of the map, by name, and the exemplars.
COARSE_WEIGHTS = ("C", "W")

#: The largest integer of a row, and the suffix of a row factor's name in a file.
LARGEST = 127

FACTOR = ".factor"

#: The names of a compressed scale's tensors.
PACKED_SCALE = ("scale.kinds", "scale.codes")


def is_coarse(name: str) -> bool:
    """Return whether a tensor of a small model's file is quantized, by its name there."""
    place, _, last = name.rpartition(".")
    return name == "exemplars" or (place.split(".")[0] == "map" and last in COARSE_WEIGHTS)


def pack(name: str, values: Any, precision: str) -> dict[str, ndarray]:
    """Quantize a matrix for a file. Packing an unpacked matrix gives the same bits.

    A factor has 16 significant bits: its products with integers up to 127 are exact, so the factor
    can be recovered from the largest of them.
    """
    values = np.asarray(values)
    if precision == "float16":
        with np.errstate(over="ignore"):  # the caller checks for infinity
            return {name: values.astype(np.float16)}
    mantissa, exponent = np.frexp(np.abs(values).max(axis=1, initial=0) / LARGEST)
    factor = np.ldexp(np.round(mantissa * 2**16), exponent - 16).astype(np.float32)
    codes = np.round(values / np.where(factor > 0, factor, 1)[:, None])
    return {name: codes.clip(-LARGEST, LARGEST).astype(np.int8), name + FACTOR: factor}


def unpack(name: str, tensors: Mapping[str, ndarray]) -> ndarray:
    """Restore the result of `pack` in float32."""
    values: ndarray = tensors[name].astype(np.float32)
    if tensors[name].dtype == np.int8:
        with np.errstate(invalid="ignore", over="ignore"):  # the reader checks for it
            values *= tensors[name + FACTOR][:, None]
    return values


def round_values(values: Any, precision: str) -> ndarray:
    """Return the numbers as they are after saving and loading."""
    return unpack("values", pack("values", values, precision))


def pack_scale(scale: Scale) -> dict[str, ndarray]:
    """Return the scale, or, if it has few distinct values, these and an index per column."""
    columns = np.stack([scale.shift, scale.gain], axis=1)
    kinds, codes = np.unique(columns, axis=0, return_inverse=True)
    if len(kinds) > 256 or kinds.nbytes + len(codes) > columns.nbytes:
        return {"scale.shift": scale.shift, "scale.gain": scale.gain}
    return {"scale.kinds": kinds, "scale.codes": codes.astype(np.uint8)}


def unpack_scale(tensors: Mapping[str, ndarray]) -> Scale:
    """Restore a scale, packed by `pack_scale` or not."""
    if "scale.codes" in tensors:
        return Scale(*tensors["scale.kinds"][tensors["scale.codes"]].T)
    return Scale(tensors["scale.shift"], tensors["scale.gain"])


def label_type(n_classes: int) -> np.dtype[Any]:
    """Return class numbers in the smallest sufficient integer type."""
    return np.min_scalar_type(n_classes - 1)


def coarse_bytes(shape: tuple[int, ...], precision: str) -> int:
    """Return the size of a quantized matrix in bytes."""
    n_rows, n_columns = shape
    return n_rows * (n_columns * PRECISIONS[precision] + (4 if precision == "int8" else 0))
