"""A model within a budget of bytes: how large its map may be, and how coarse its numbers.

Most of a model is two matrices of weights and the exemplars. Kept as whole numbers from −127 to
127, with a factor for each row, they take a quarter of their room; as float16, half.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from hopefold.data.scaling import Scale
from hopefold.data.seen import KEPT
from hopefold.errors import InvalidParameter
from hopefold.estimators.learning import Learned, Task, judge
from hopefold.training.loop import worse_beyond_chance

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

#: Bytes of a model file besides its numbers and names: settings, errors, where each tensor lies;
#: and where those of a further layer do.
HEADER, HEADER_OF_LAYER = 2_350, 700

#: Bytes that tell where the fills of missing values lie.
FILLS = 100


#: Processors multiply by so many columns at a time: a few less take as long.
COLUMNS_AT_ONCE = 16


def is_handy(size: int) -> bool:
    """Is a layer of this size quick for what it is, or would the next that is be much smaller?"""
    too_many = size % COLUMNS_AT_ONCE
    return too_many == 0 or too_many > size // 8


def learn_within_budget(
    method: Any,
    max_bytes: int,
    task: Task,
    training: ndarray,
    held_out: ndarray,
    like: Learned | None,
) -> Learned:
    """The coarsest numbers that cost no accuracy, and a map as large as they allow."""
    tried: list[Learned] = []
    for precision in PRECISIONS if like is None else (like.precision,):
        try:
            sized = largest_within(method, max_bytes, task, precision)
        except InvalidParameter:
            if tried:  # coarser numbers do fit
                break
            raise
        exact = sized._learn_from(task, training, held_out, like)
        coarse = round_learned(exact, precision)
        if not len(held_out):
            return coarse
        wrong, wrong_before = (
            judge(task, learned.map, _exemplars(learned), learned.labels, training, held_out)
            for learned in (coarse, exact)
        )
        tried.append(coarse.with_validation_error(wrong.mean()))
        if not worse_beyond_chance(wrong, wrong_before):
            break
    return min(tried, key=lambda learned: learned.run.kept["validation_error"])


def _exemplars(learned: Learned) -> Tensor:
    return torch.empty(0) if learned.exemplars is None else torch.from_numpy(learned.exemplars)


def largest_within(method: Any, max_bytes: int, task: Task, precision: str) -> Any:
    """The method with the largest sizes whose model fits the budget."""
    names = getattr(method, "feature_names_in_", np.array([])).tolist()
    weights = [list(pair) for pair in zip(task.classes.tolist(), task.class_weights, strict=True)]
    columns = method.columns_.as_plain() if method.columns_ else None
    texts = (task.classes.tolist(), weights if method.class_weight else None, names, columns)
    besides = bytes_besides(task, method.n_components, texts, precision)
    if columns and method.columns_.fills is not None:
        besides += FILLS + method.columns_.fills.nbytes
    for smaller in method._smaller():
        with torch.device("meta"):
            map_ = smaller._make_map(task.rows.n_features)
        needed = besides + bytes_of_map(map_, precision)
        if needed <= max_bytes:
            return smaller
    raise InvalidParameter(
        f"max_bytes={max_bytes} is too little: {needed} are needed, {besides} of them for what "
        "is kept besides the map: allow more, or ask for fewer exemplars or a smaller map."
    )


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


def round_learned(learned: Learned, precision: str) -> Learned:
    """The same map and exemplars in coarse numbers."""
    map_ = copy.deepcopy(learned.map)
    with torch.no_grad():
        for name, weights in map_.named_parameters():
            if is_coarse(f"map.{name}"):
                weights.copy_(torch.from_numpy(round_values(weights, precision)))
    exemplars = learned.exemplars
    if exemplars is not None:
        exemplars = round_values(exemplars, precision)
    return replace(learned, map=map_, exemplars=exemplars, precision=precision)


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


def bytes_of_map(map_: Any, precision: str) -> int:
    """What the weights of a map take in a file."""
    numbers = sum(
        _coarse_bytes(weights.shape, precision) if is_coarse(f"map.{name}") else 4 * weights.numel()
        for name, weights in map_.named_parameters()
    )
    return numbers + HEADER_OF_LAYER * (len(map_.layers) - 1)


def bytes_besides(task: Task, n_components: int, texts: Iterable[Any], precision: str) -> int:
    """What a model file takes besides the map: exemplars, references, the scale, names."""
    n_references = len(task.labels)
    exemplars = 0
    if task.exemplars is not None:
        sizes = np.bincount(task.labels[task.known(task.heard())], minlength=task.n_classes)
        n_references = int(np.minimum(sizes, task.n_exemplars).sum())
        exemplars = _coarse_bytes((n_references, task.rows.n_features), precision)
    references = n_references * (4 * n_components + label_type(task.n_classes).itemsize)
    packed_scale = sum(tensor.nbytes for tensor in pack_scale(task.scale).values())
    quoted = sum(len(json.dumps(json.dumps(text, default=str))) for text in texts)
    seen = 8 * KEPT
    return HEADER + exemplars + references + packed_scale + seen + 8 * task.n_classes + quoted


def label_type(n_classes: int) -> np.dtype[Any]:
    """The smallest whole numbers that tell the classes apart."""
    return np.min_scalar_type(n_classes - 1)


def _coarse_bytes(shape: tuple[int, ...], precision: str) -> int:
    n_rows, n_columns = shape
    return n_rows * (n_columns * PRECISIONS[precision] + (4 if precision == "int8" else 0))
