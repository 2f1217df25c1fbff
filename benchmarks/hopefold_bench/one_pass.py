"""One epoch as `fit` runs it, and the bare matrix products of that epoch.

All uses of private members of the estimators in the benchmarks of time are in this module.
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
from hopefold.estimators.hope import SHOPE
from hopefold.fitting.learning import begin
from hopefold.training.distributed import ALL_MINE, Dealing
from hopefold.training.loop import minimise
from hopefold.training.optimizers import Known
from hopefold.training.progress import Progress
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
    dealing: Dealing = ALL_MINE,
    before_step: Callable[[int], object] | None = None,
) -> Operation:
    """One epoch over the rows, as `fit` runs it: gather rows, compute gradients, take steps.

    ``before_step`` is called before each step, with the number of the step.
    """
    classes, labels = np.unique(y, return_inverse=True)
    model.n_features_in_ = X.shape[1]
    scale = learn_scale(X, "auto")
    weights, random = np.ones(len(classes)), np.random.RandomState(0)
    rows = Rows.prepare(X, scale, columns=model._columns_to_learn(scale))
    task = model._task(rows, scale, labels, classes, weights, random)
    task = replace(task, dealing=dealing)
    all_rows = np.arange(len(y))
    attempt, groups, start = begin(model, task, all_rows)
    settings = model._settings(len(y), len(classes), sparse=False)
    settings = replace(settings, max_epochs=1, taking_turns=0.0)

    def epoch() -> object:
        steps = count()

        def loss(*batch: Any) -> Tensor | Known:
            if before_step:
                before_step(next(steps))
            return attempt.loss(*batch)

        with Progress("", 1, verbose=False) as progress:
            shuffle = partial(task.rows.shuffle, all_rows)
            args = (loss, groups, len(y), settings, start.generator, progress)
            return minimise(*args, shuffle=shuffle)

    return epoch


def search_alone(model: SHOPE, X: ndarray) -> Operation:
    """The exemplar search of `predict`, for rows that are already transformed."""
    points, references = model.transform(X), model._references()
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
