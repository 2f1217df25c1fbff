"""What a map is learned from, and what was learned: plain values, without any decision."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from hopefold.data.rows import Rows
from hopefold.data.scaling import Scale
from hopefold.fitting.landmarks import Landmarks
from hopefold.fitting.plan_values import Facts, Plan, Request
from hopefold.inference.embedding import best_device
from hopefold.training.checkpoints import Checkpoint
from hopefold.training.loop import Run
from hopefold.training.sharding import NOT_SHARDED, Sharding

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from numpy import ndarray

#: The class number of a row without a label, and of a landmark.
UNKNOWN = -1

#: The least share of an epoch that rows with a label have, where others have none.
LABELED_SHARE = 0.05

#: Processors multiply by so many columns at a time: a few less take as long.
COLUMNS_AT_ONCE = 16

#: The fewest pixels of an image: 7 × 7. Fewer columns of one range are measurements.
FEWEST_PIXELS = 49

#: Rows that tell whether columns are binary.
SAMPLED_ROWS = 1_000

#: Rows from which the spread of all is estimated, in how many parts: sparse rows are made dense.
SPREAD_ROWS, SPREAD_PARTS = 1_000, 10


@dataclass(frozen=True)
class Task:
    """The data in the map's scale, their labels, and who has which rows."""

    rows: Rows
    scale: Scale
    #: Class numbers; `UNKNOWN` where a row has no label.
    labels: Int[ndarray, " n"]
    classes: ndarray
    class_weights: Float[ndarray, " classes"]
    seed: int
    checkpoint: Checkpoint | None = None
    sharding: Sharding = NOT_SHARDED
    #: What rows are compared with where structure is preserved.
    landmarks: Landmarks | None = None
    #: Text that a model file keeps, such as names, and the bytes of fills: for `max_bytes`.
    file_texts: tuple[Any, ...] = ()
    n_fill_bytes: int = 0

    def facts(self, n_training: int | None = None) -> Facts:
        """What a plan depends on, for a run that learns from so many rows (by default, all)."""
        n_rows = len(self.labels)
        return Facts(
            n_features=self.n_features,
            n_columns=self.rows.n_features,
            n_rows=n_rows,
            n_training=n_rows if n_training is None else n_training,
            n_classes=self.n_classes,
            n_labeled=int(np.count_nonzero(self.labels >= 0)),
            is_sparse=self.rows.is_sparse,
            is_dense=self.rows.is_dense,
            one_scale=self.scale.is_one,
            has_pixels=self._has_pixels,
            best_device=str(best_device()),
        )

    @cached_property
    def _has_pixels(self) -> bool:
        """Do many columns share one scale, with more than the two values of binary columns?"""
        if not self.scale.is_one or self.n_features < FEWEST_PIXELS or self.rows.is_sparse:
            return False
        n_rows = len(self.labels)
        sample = self.rows.fetch(np.arange(0, n_rows, max(1, n_rows // SAMPLED_ROWS)))
        lowest, highest = sample.aminmax()
        return bool(((sample != lowest) & (sample != highest)).any())

    @property
    def n_features(self) -> int:
        """Columns of the table, including those that the map is not learned from."""
        return len(self.scale.gain)

    def with_columns(self, which: Int[ndarray, " c"]) -> Task:
        """The same task with only these columns of its rows."""
        return replace(self, rows=self.rows.with_columns(which))

    @property
    def varies(self) -> Bool[ndarray, " features"]:
        """Which columns of the rows are not constant."""
        if self.rows.is_rotated:
            return np.ones(self.rows.n_features, dtype=bool)
        columns = slice(None) if self.rows.columns is None else self.rows.columns
        varies: ndarray = self.scale.gain[columns] != 0
        return varies

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_weights)

    @property
    def is_labeled(self) -> bool:
        """Has any row a label?"""
        return self.n_classes > 0

    def labeled(self, which: Int[ndarray, " w"]) -> Int[ndarray, " k"]:
        """Those of these rows that have a label."""
        return which[self.labels[which] >= 0]

    def learned_from(self, plan: Plan) -> Int[ndarray, " n"]:
        """The rows that count: those without a label where something is learned from them."""
        everything = np.arange(len(self.labels))
        return everything if plan.learns_from_unlabeled else self.labeled(everything)

    def visits(self, training: Int[ndarray, " t"]) -> Int[ndarray, " v"]:
        """The rows of an epoch, ascending: labeled rows several times where they are few."""
        labeled = self.labeled(training)
        times = round(LABELED_SHARE * len(training) / len(labeled)) if len(labeled) else 0
        if times <= 1:
            return training
        return np.sort(np.concatenate([training, np.tile(labeled, times - 1)]))

    def spread(self, which: Int[ndarray, " w"]) -> float:
        """The root of the mean squared distance of these rows from their mean."""
        sample = which[:: max(1, len(which) // SPREAD_ROWS)]
        mean, square = torch.zeros(self.rows.n_features, dtype=torch.float64), torch.zeros(())
        for part in np.array_split(sample, SPREAD_PARTS):
            x = self.rows.fetch(part).double()
            mean += x.sum(dim=0) / len(sample)
            square = square + x.square().sum() / len(sample)
        return float((square - mean.square().sum()).clamp_min(0).sqrt())

    def class_shares(self, which: Int[ndarray, " w"]) -> Float[ndarray, " classes"]:
        """The weighted share of each class among these rows."""
        sizes = np.bincount(self.labels[self.labeled(which)], minlength=self.n_classes)
        weights = sizes * self.class_weights
        shares: ndarray = weights / weights.sum()
        return shares


def columns_to_learn(request: Request, scale: Scale) -> Int[ndarray, " c"] | None:
    """The columns that a map is learned from, where they are dense; ``None``: all.

    Constant columns would be multiplied for nothing. Images that are distorted are whole, and so
    are the weights of a model whose bytes are counted.
    """
    asked = request.parameters
    if not request.defaults.is_high_order or asked["augment"] is not None or asked["max_bytes"]:
        return None
    columns = scale.columns_that_vary(multiple=COLUMNS_AT_ONCE)
    return columns if len(columns) < len(scale.gain) else None


@dataclass(frozen=True)
class Learned:
    """A map, and its exemplars in the map's scale (none: training points are the references)."""

    map: nn.Module
    exemplars: ndarray | None
    labels: Int[ndarray, " z"]
    run: Run
    plan: Plan
    precision: str = "float32"
    #: Of neighbors in the map on held-out rows; where structure was preserved.
    trustworthiness: float | None = None
    #: Of the class probabilities, and their calibration error; learned from held-out rows.
    temperature: float = 1.0
    calibration_error: float | None = None
    #: The rows that its validation error is the error of: how many, and how many of equal weights
    #: would give an error as uncertain.
    n_held_out: int = 0
    n_effective: float = 0.0

    def with_map_of(self, other: Learned) -> Learned:
        """The same, with another map and its exemplars, and how its run ended."""
        run = self.run._replace(interrupted=other.run.interrupted)
        return replace(self, run=run, map=other.map, exemplars=other.exemplars, labels=other.labels)

    def with_all_columns(self, columns: Int[ndarray, " c"] | None, n_columns: int) -> Learned:
        """The same for rows of which only these columns were learned from; 0 for the others."""
        if columns is None:
            return self
        map_: Any = copy.deepcopy(self.map)
        first = map_.layers[0]
        first.C = nn.Parameter(_widen(first.C, columns, n_columns), requires_grad=False)
        if self.exemplars is None:
            return replace(self, map=map_)
        exemplars = _widen(torch.from_numpy(self.exemplars), columns, n_columns).numpy()
        return replace(self, map=map_, exemplars=exemplars)

    def evaluated_on(self, task: Task, rows: Int[ndarray, " h"]) -> Learned:
        """The same, with the number of the held-out rows (their effective number: Kish, 1965)."""
        weights = task.class_weights[task.labels[rows]]
        effective = weights.sum() ** 2 / (weights**2).sum() if len(rows) else 0.0
        return replace(self, n_held_out=len(rows), n_effective=float(effective))

    def with_validation_error(self, error: float) -> Learned:
        """The same, with another error on the held-out rows for the epoch that was kept."""
        history = [dict(record) for record in self.run.history]
        run = self.run._replace(history=history)
        run.kept["validation_error"] = float(error)
        return replace(self, run=run)


def _widen(values: Tensor, columns: Int[ndarray, " c"], n_columns: int) -> Tensor:
    """The values in these of so many columns, and 0 in the others."""
    wide = values.new_zeros(len(values), n_columns)
    wide[:, torch.from_numpy(columns)] = values.detach()
    return wide
