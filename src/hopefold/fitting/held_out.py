"""Held-out rows: which they are, and what a map gets wrong on them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from hopefold.core.calibration import fit_temperature, reliability_bins, temper
from hopefold.core.neighbors import class_shares, decide
from hopefold.data.rows import Rows
from hopefold.fitting.landmarks import TRUSTED_NEIGHBORS, trust
from hopefold.fitting.plan_values import Plan
from hopefold.fitting.task import Learned, Task
from hopefold.inference.embedding import embed
from hopefold.training.loop import worse_beyond_chance

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy import ndarray

#: A temperature is not learned from fewer held-out rows.
FEWEST_ROWS = 20

#: Nor where the classes without a held-out row have a larger share of the rows than this.
LARGEST_UNSEEN_SHARE = 0.05

#: Probabilities that are compared with labels at the most, rows times classes: 80 MB of float64.
MOST_PROBABILITIES = 10_000_000

#: The least size of a sample of the training rows, where there are as many.
TRAINING_SAMPLE = 5_000

#: Bins of the calibration error.
N_BINS = 15


def split(
    plan: Plan, task: Task, random: np.random.RandomState
) -> tuple[Int[ndarray, " t"], Int[ndarray, " h"]]:
    """Rows to learn from, and rows with a label to evaluate on.

    Of rows without a label as large a share is in neither: neighbors are evaluated on them, too.
    """
    everything = task.learned_from(plan)
    labeled = task.labeled(everything)
    keep = plan.n_exemplars if plan.exemplars else 1
    _, places = stratified_split(task.labels[labeled], plan.validation_fraction, keep, random)
    held_out = labeled[places]
    unlabeled = np.setdiff1d(everything, labeled, assume_unique=True)
    n_aside = round(plan.validation_fraction * len(unlabeled))
    aside = random.permutation(unlabeled)[:n_aside] if n_aside else unlabeled[:0]
    apart = np.concatenate([held_out, aside])
    return np.setdiff1d(everything, apart, assume_unique=True), held_out


def stratified_split(
    labels: Int[ndarray, " n"], fraction: float, keep: int, random: np.random.RandomState
) -> tuple[Int[ndarray, " t"], Int[ndarray, " h"]]:
    """Training and held-out rows, stratified; a class keeps at least ``keep`` rows for training.

    Each class gives the whole part of its share; what is missing to the share of the table comes
    from the classes with the largest rest.
    """
    sizes = np.bincount(labels)
    most = np.maximum(sizes - keep, 0)
    numbers = np.minimum(np.floor(fraction * sizes).astype(int), most)
    rest = fraction * sizes - numbers + 1e-6 * random.rand(len(sizes))
    rest[numbers == most] = -1
    missing = min(round(fraction * len(labels)) - numbers.sum(), np.count_nonzero(rest >= 0))
    numbers[np.argsort(-rest, kind="stable")[: max(missing, 0)]] += 1
    shuffled = random.permutation(len(labels))
    by_class = [shuffled[labels[shuffled] == label][:n] for label, n in enumerate(numbers)]
    chosen = np.sort(np.concatenate(by_class))
    return np.setdiff1d(np.arange(len(labels)), chosen, assume_unique=True), chosen


def misclassified(
    task: Task,
    n_neighbors: int | None,
    which: Int[ndarray, " h"],
    points: Float[ndarray, "h d"],
    references: Float[ndarray, "r d"],
    labels: Int[ndarray, " r"],
) -> Float[ndarray, " h"]:
    """0 for each of these rows that is classified rightly, else its weight, which is 1 on average.

    By the rule of `predict`; not a number where a point is none.
    """
    if not (np.isfinite(points).all() and np.isfinite(references).all()):
        return np.full(len(which), np.nan)
    decisions = decide(points, references, labels, task.class_weights, n_neighbors)
    labels = task.labels[which]
    weights: ndarray = task.class_weights[labels]
    weights /= weights.mean()  # in place: there may be very many rows
    weights *= decisions != labels
    return weights


@torch.no_grad()
def evaluate(
    plan: Plan,
    task: Task,
    map_: nn.Module,
    exemplars: Float[Tensor, "z features"],
    exemplar_labels: Int[ndarray, " z"],
    references: Int[ndarray, " r"],
    held_out: Int[ndarray, " h"],
) -> Float[ndarray, " h"]:
    """`misclassified` held-out rows: by the exemplars or, without any, by the reference rows."""
    if plan.exemplars is None:
        points, labels = points_of(plan, task, map_, references), task.labels[references]
    else:
        points, labels = map_(exemplars).cpu().numpy(), exemplar_labels
    found = points_of(plan, task, map_, held_out)
    return misclassified(task, plan.n_neighbors, held_out, found, points, labels)


def training_error(learned: Learned, task: Task, references: Float[ndarray, "r d"]) -> float | None:
    """Return the error by the references on the rows learned from; ``None`` without labels."""
    if not task.is_labeled:
        return None
    labeled = task.labeled(np.arange(len(task.labels)))
    points, labels = references, learned.labels
    if learned.exemplars is not None:
        points = points_of(learned.plan, task, learned.map, labeled)
    else:
        labels = labels[labeled]
    votes = learned.plan.n_neighbors
    return float(misclassified(task, votes, labeled, points, references, labels).mean())


def calibrate(
    learned: Learned, task: Task, training: Int[ndarray, " t"], held_out: Int[ndarray, " h"]
) -> Learned:
    """The same with the temperature of its probabilities, and their calibration error.

    Both are learned from the held-out rows, of which every process gets the same points.
    """
    n_rows = min(len(held_out), max(FEWEST_ROWS, MOST_PROBABILITIES // task.n_classes))
    rows = held_out[np.linspace(0, len(held_out) - 1, n_rows).astype(int)]
    shares = held_out_shares(learned, task, training, rows)
    return learned if shares is None else with_temperature(learned, task, shares, rows)


def held_out_shares(
    learned: Learned, task: Task, training: Int[ndarray, " t"], rows: Int[ndarray, " h"]
) -> Float[ndarray, "h classes"] | None:
    """The class shares of rows that the map was not learned from; ``None`` if a point is none."""
    references, labels = _references(learned, task, training)
    points = points_of(learned.plan, task, learned.map, rows)
    if not (np.isfinite(points).all() and np.isfinite(references).all()):
        return None
    votes = learned.plan.n_neighbors
    return class_shares(points, references, labels, task.class_weights, votes)


def with_temperature(
    learned: Learned, task: Task, shares: Float[ndarray, "h classes"], rows: Int[ndarray, " h"]
) -> Learned:
    """The same with the temperature that suits these rows, and the calibration error there.

    The calibration error is cross-fitted: the rows are divided into two halves of the same classes,
    and each is evaluated with the temperature of the other. Votes, which may be 0, are not
    tempered.
    """
    labels = task.labels[rows]
    weights, temperature, probabilities = task.class_weights[labels], 1.0, shares
    if learned.plan.n_neighbors is None and _can_learn_temperature(task, rows):
        temperature = fit_temperature(shares, labels, weights)
        places = np.argsort(labels, kind="stable")
        halves = places[::2], places[1::2]
        probabilities = np.empty_like(shares)
        for one, other in (halves, halves[::-1]):
            of_other = fit_temperature(shares[other], labels[other], weights[other])
            probabilities[one] = temper(shares[one], of_other)
    correct = probabilities.argmax(axis=1) == labels
    error = reliability_bins(probabilities.max(axis=1), correct, N_BINS, weights).error
    return replace(learned, temperature=temperature, calibration_error=error)


def _can_learn_temperature(task: Task, held_out: Int[ndarray, " h"]) -> bool:
    """Are there enough held-out rows, of nearly all classes?"""
    unseen = task.class_shares(held_out) == 0
    share = task.class_shares(np.arange(len(task.labels)))[unseen].sum()
    return len(held_out) >= FEWEST_ROWS and bool(share <= LARGEST_UNSEEN_SHARE)


def training_sample(task: Task, training: Int[ndarray, " t"]) -> Int[ndarray, " s"]:
    """Training rows with a label, evenly spread, that tell whether a map is worse than another."""
    rows = task.labeled(training)
    return rows[:: max(1, len(rows) // TRAINING_SAMPLE)]


def misclassifies_more(
    one: Learned, other: Learned, task: Task, training: Int[ndarray, " t"]
) -> bool:
    """Does a map misclassify more of the rows that both were learned from, by more than chance?"""
    rows = training_sample(task, training)

    def wrong(learned: Learned) -> Float[ndarray, " r"]:
        references, labels = _references(learned, task, rows)
        points = points_of(learned.plan, task, learned.map, rows)
        return misclassified(task, learned.plan.n_neighbors, rows, points, references, labels)

    return worse_beyond_chance(wrong(one), wrong(other))


@torch.no_grad()
def _references(
    learned: Learned, task: Task, training: Int[ndarray, " t"]
) -> tuple[Float[ndarray, "r d"], Int[ndarray, " r"]]:
    """The points of the exemplars or, without any, of the training rows; and their labels."""
    if learned.exemplars is not None:
        return learned.map(torch.from_numpy(learned.exemplars)).numpy(), learned.labels
    rows = task.labeled(training)
    return points_of(learned.plan, task, learned.map, rows), task.labels[rows]


def trust_held_out(
    plan: Plan, task: Task, map_: nn.Module, held_out: Int[ndarray, " h"]
) -> float | None:
    """Trustworthiness of neighbors in the map; ``None`` where too few rows were held out."""
    if len(held_out) < 3 * TRUSTED_NEIGHBORS:
        return None
    return trust(task.rows, held_out, lambda some: points_of(plan, task, map_, some))


def points_of(
    plan: Plan, task: Task, map_: nn.Module, which: Int[ndarray, " w"] | None = None
) -> Float[ndarray, "w d"]:
    """The points of these rows, or of all."""
    device = torch.device(plan.device)

    def of(rows: Rows) -> ndarray:
        return embed(map_, rows, device)

    return task.rows.each(of, which)
