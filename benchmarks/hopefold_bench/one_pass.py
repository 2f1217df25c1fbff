"""One epoch as `fit` runs it, and the bare matrix products of that epoch.

It uses the parts of a fit (`resolve`, `build`, `minimize`) as the trainer does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from hopefold.core.neighbors import decide
from hopefold.data.rows import Rows
from hopefold.data.scaling import learn_scale
from hopefold.estimators.shope import SHOPE
from hopefold.fitting.build import Start, build
from hopefold.fitting.plan import resolve
from hopefold.fitting.task import Task, columns_to_learn
from hopefold.training.loop import minimize
from hopefold.training.optimizers import LossWithGradients
from hopefold.training.progress import Progress
from hopefold.training.sharding import NOT_SHARDED, Sharding
from hopefold_bench.timing import Operation

if TYPE_CHECKING:
    from numpy import ndarray

#: Factors and units of the timed map, and rows per batch.
SIZE, BATCH = 400, 500


def timed_model(**settings: Any) -> SHOPE:
    """The timed estimator, without spare components."""
    sizes = {"n_factors": SIZE, "n_units": SIZE, "batch_size": BATCH, "spare_components": 0}
    return SHOPE(**{**sizes, "random_state": 0, **settings})


def one_pass(
    model: SHOPE,
    X: ndarray,
    y: ndarray,
    sharding: Sharding = NOT_SHARDED,
    before_step: Callable[[int], object] | None = None,
) -> Operation:
    """One epoch over the rows, as `fit` runs it: gather rows, compute gradients, take steps.

    ``before_step`` is called before each step, with the number of the step.
    """
    classes, labels = np.unique(y, return_inverse=True)
    request, scale = model.request(), learn_scale(X, "auto")
    rows = Rows.prepare(X, scale, columns=columns_to_learn(request, scale))
    seed = np.random.RandomState(0).randint(2**31)
    task = Task(rows, scale, labels, classes, np.ones(len(classes)), seed, sharding=sharding)
    plan, all_rows = resolve(request, task.facts()), np.arange(len(y))
    random, generator = np.random.RandomState(seed), torch.Generator().manual_seed(seed)
    objective = build(model.method(plan), Start(task, all_rows, random, generator))
    settings = replace(plan.training(), max_epochs=1, taking_turns=0.0)

    def epoch() -> object:
        steps = count()

        def loss(*batch: Any) -> Tensor | LossWithGradients:
            if before_step:
                before_step(next(steps))
            return objective.loss(*batch)

        with Progress("", 1, verbose=False) as progress:
            shuffle = partial(task.rows.shuffle, all_rows)
            args = (loss, objective.groups, len(y), settings, generator, progress)
            return minimize(*args, shuffle=shuffle)

    return epoch


def search_alone(model: SHOPE, X: ndarray) -> Operation:
    """The exemplar search of `predict`, for rows that are already transformed."""
    points, references = model.transform(X), model.references()
    return lambda: decide(points, *references)


def matrix_products(
    X: ndarray, batch: int, *, backward: bool = True, adversarial: bool = False
) -> Operation:
    """The matrix products of one epoch: forward, and backward to the weights but not to the rows.

    With adversarial perturbation, each batch has two forward and backward passes, and the first
    backward pass also computes the gradient with respect to the rows.
    """
    x, z, h = (torch.randn(batch, width) for width in (X.shape[1], SIZE, SIZE))
    C, W, P = torch.randn(SIZE, X.shape[1]), torch.randn(SIZE, SIZE), torch.randn(2, SIZE)
    dy = torch.randn(batch, 2)

    def once(*, to_rows: bool) -> None:
        _ = x @ C.T, z @ W.T, h @ P.T
        if backward:
            _ = dy @ P, h @ W, dy.T @ h, h.T @ z, z.T @ x
        if to_rows:
            _ = z @ C

    def epoch() -> object:
        for _ in range(-(-len(X) // batch)):
            once(to_rows=adversarial)
            if adversarial:
                once(to_rows=False)
        return None

    return epoch


def as_float32(X: Any) -> ndarray:
    """The rows, contiguous in float32."""
    return np.ascontiguousarray(X, dtype=np.float32)
