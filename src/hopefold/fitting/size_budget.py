"""A model within a budget of bytes: how large its map may be, and how coarse its numbers.

Most of a model is two matrices of weights and the exemplars. Kept as whole numbers from −127 to
127, with a factor for each row, they take a quarter of their room; as float16, half.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from hopefold.data.fingerprints import KEPT
from hopefold.errors import InvalidParameter
from hopefold.fitting.held_out import evaluate
from hopefold.fitting.plan_values import GIVEN, Plan
from hopefold.fitting.runs import Runs
from hopefold.fitting.task import COLUMNS_AT_ONCE, Learned, Task
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
HEADER, HEADER_OF_LAYER = 2_400, 700

#: Bytes that tell where the fills of missing values lie.
FILLS = 100


def is_handy(size: int) -> bool:
    """Is a layer of this size quick for what it is, or would the next that is be much smaller?"""
    too_many = size % COLUMNS_AT_ONCE
    return too_many == 0 or too_many > size // 8


def learn_within_budget(
    trainer: Runs,
    plan: Plan,
    task: Task,
    training: ndarray,
    held_out: ndarray,
    like: Learned | None,
) -> Learned:
    """The coarsest numbers that cost no accuracy, and a map as large as they allow."""
    tried: list[Learned] = []
    for precision in PRECISIONS if like is None else (like.precision,):
        try:
            sizes = largest_within(trainer, plan, task, precision)
        except InvalidParameter:
            if tried:  # coarser numbers do fit
                break
            raise
        sized = replace(trainer.plan(task, len(training), **sizes), max_bytes=None)
        exact = trainer.run(sized, task, training, held_out, like)
        exact = replace(exact, plan=replace(exact.plan, max_bytes=plan.max_bytes))
        coarse = round_learned(exact, precision)
        if not len(held_out):
            return coarse
        wrong, wrong_before = (
            evaluate(
                plan, task, learned.map, _exemplars(learned), learned.labels, training, held_out
            )
            for learned in (coarse, exact)
        )
        tried.append(coarse.with_validation_error(wrong.mean()))
        if not worse_beyond_chance(wrong, wrong_before):
            break
    return min(tried, key=lambda learned: learned.run.kept["validation_error"])


def _exemplars(learned: Learned) -> Tensor:
    return torch.empty(0) if learned.exemplars is None else torch.from_numpy(learned.exemplars)


def largest_within(
    trainer: Runs, plan: Plan, task: Task, precision: str
) -> dict[str, tuple[Any, str]]:
    """The largest sizes of a map whose model fits the budget, as decided settings."""
    assert plan.max_bytes is not None
    needed, others = 0, bytes_without_map(plan, task, precision)
    for sizes in _sizes_to_try(plan):
        method = trainer.make_method(replace(plan, **sizes))
        with torch.device("meta"):
            map_ = method.make_map(task.rows.n_features)
        needed = others + bytes_of_map(map_, precision)
        if needed <= plan.max_bytes:
            why = f"the largest map within {plan.max_bytes:,} bytes in {precision}"
            return {name: (value, why) for name, value in sizes.items()}
    raise InvalidParameter(
        f"max_bytes={plan.max_bytes} is too little: {needed} are needed, {others} of them for what "
        "is kept in addition to the map: allow more, or ask for fewer exemplars or a smaller map."
    )


def _sizes_to_try(plan: Plan) -> Iterator[dict[str, Any]]:
    """Ever smaller sizes, as far as the user has left them open; the plan has the largest."""
    is_free = {name: plan.reasons.get(name) != GIVEN for name in ("n_factors", "n_units")}
    most_factors = min(plan.layers.n_factors)
    all_factors = range(most_factors, 0, -1) if is_free["n_factors"] else range(1)
    most_units = plan.n_units
    for n_factors in all_factors:
        sizes = {"n_factors": n_factors} if is_free["n_factors"] else {}
        if "n_units" not in plan.reasons or not is_free["n_units"]:
            yield sizes
            continue
        assert isinstance(most_units, int)
        if is_free["n_factors"] and not is_handy(n_factors):  # more units instead
            continue
        known = n_factors if is_free["n_factors"] else most_factors
        least = min(most_units, 2 * known) if is_free["n_factors"] else 1
        for n_units in range(min(most_units, 3 * known), least - 1, -1):
            if is_handy(n_units) or n_units == least:
                yield {**sizes, "n_units": n_units}


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


def bytes_without_map(plan: Plan, task: Task, precision: str) -> int:
    """What a model file takes in addition to the map: exemplars, references, the scale, names."""
    n_references = len(task.labels)
    exemplars = 0
    if plan.exemplars is not None:
        rows = task.labeled(task.learned_from(plan))
        sizes = np.bincount(task.labels[rows], minlength=task.n_classes)
        n_references = int(np.minimum(sizes, plan.n_exemplars).sum())
        exemplars = coarse_bytes((n_references, task.rows.n_features), precision)
    references = n_references * (4 * plan.n_components + label_type(task.n_classes).itemsize)
    packed_scale = sum(tensor.nbytes for tensor in pack_scale(task.scale).values())
    quoted = sum(len(json.dumps(json.dumps(text, default=str))) for text in task.file_texts)
    fills = FILLS + task.n_fill_bytes if task.n_fill_bytes else 0
    seen = 8 * KEPT
    parts = (exemplars, references, packed_scale, seen, 8 * task.n_classes, quoted, fills)
    return HEADER + sum(parts)
