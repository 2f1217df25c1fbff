"""A model within a budget of bytes: how large its map may be, and how coarse its numbers.

Most of a model is two matrices of weights and the exemplars. Kept as whole numbers from −127 to
127, with a factor for each row, they take a quarter of their room; as float16, half.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from hopefold.data.fingerprints import KEPT
from hopefold.errors import InvalidParameter
from hopefold.fitting.learning import Learned, Task, judge
from hopefold.persistence.quantization import (
    PRECISIONS,
    coarse_bytes,
    is_coarse,
    label_type,
    pack_scale,
    round_values,
)
from hopefold.training.loop import worse_beyond_chance

if TYPE_CHECKING:
    from numpy import ndarray


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


def bytes_of_map(map_: Any, precision: str) -> int:
    """What the weights of a map take in a file."""
    numbers = sum(
        coarse_bytes(weights.shape, precision) if is_coarse(f"map.{name}") else 4 * weights.numel()
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
        exemplars = coarse_bytes((n_references, task.rows.n_features), precision)
    references = n_references * (4 * n_components + label_type(task.n_classes).itemsize)
    packed_scale = sum(tensor.nbytes for tensor in pack_scale(task.scale).values())
    quoted = sum(len(json.dumps(json.dumps(text, default=str))) for text in texts)
    seen = 8 * KEPT
    return HEADER + exemplars + references + packed_scale + seen + 8 * task.n_classes + quoted
