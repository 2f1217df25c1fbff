"""From rows and labels to a map and its exemplars: the choices of a method, put to work."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from hopefold.core.exemplars import kmeans_per_class
from hopefold.core.maps import Pressed
from hopefold.core.masks import Chances
from hopefold.core.neighbors import decide
from hopefold.data.rows import Rows
from hopefold.data.scaling import Scale
from hopefold.fitting.landmarks import TRUSTED_NEIGHBORS, Landmarks, trust
from hopefold.fitting.losses import Batch, Belief, Loss, Whole
from hopefold.inference.embedding import embed
from hopefold.training.checkpoints import Checkpoint
from hopefold.training.distributed import ALL_MINE, Dealing
from hopefold.training.loop import Run, minimise
from hopefold.training.optimizers import Groups, Known
from hopefold.training.progress import Progress
from hopefold.training.settings import Training

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from numpy import ndarray

#: Rows of a class that k-means sees, where its centres are what joint exemplars start from, and
#: where they are what is kept.
START_ROWS_A_CLASS, MOST_ROWS_A_CLASS = 2_000, 100_000

#: Share of the run after which spare coordinates are flat.
FLAT = 0.8

#: Rows by which the spread of all is judged, in how many parts: sparse rows are made dense.
SPREAD_ROWS, SPREAD_PARTS = 1_000, 10

#: The number of a class that is not known.
UNKNOWN = -1

#: The share of a pass that rows with a class have at the least, where others have none, and the
#: share of the run after which the map's guesses for the others count as much.
KNOWN_SHARE, BELIEVED = 0.05, 0.5

#: Training points that serve as references for the validation error of an epoch.
VALIDATION_REFERENCES = 5_000


@dataclass(frozen=True)
class Task:
    """What is to be learned from: the data in the map's scale, and what it is judged against."""

    rows: Rows
    scale: Scale
    #: Numbers of classes; `UNKNOWN` where a row has none.
    labels: Int[ndarray, " n"]
    classes: ndarray
    class_weights: Float[ndarray, " classes"]
    exemplars: str | None
    n_exemplars: int
    n_neighbors: int | None
    device: torch.device
    seed: int
    checkpoint: Checkpoint | None = None
    dealing: Dealing = ALL_MINE
    #: The share of the loss that asks for neighbours to be kept, and what rows are near to.
    structure: float = 0.0
    landmarks: Landmarks | None = None

    @property
    def n_features(self) -> int:
        """Columns of the table, those that are left out of the learning, too."""
        return len(self.scale.gain)

    @property
    def varies(self) -> Bool[ndarray, " features"]:
        """Which columns of the rows are not constant."""
        columns = slice(None) if self.rows.columns is None else self.rows.columns
        varies: ndarray = self.scale.gain[columns] != 0
        return varies

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_weights)

    @property
    def is_labelled(self) -> bool:
        """Has any row a class?"""
        return self.n_classes > 0

    @property
    def is_guessing(self) -> bool:
        """Are rows without a class held to the one that the map takes them for?"""
        return self.exemplars == "joint" and self.is_labelled and bool((self.labels < 0).any())

    def known(self, which: Int[ndarray, " w"]) -> Int[ndarray, " k"]:
        """Those of these rows that have a class."""
        return which[self.labels[which] >= 0]

    def heard(self) -> Int[ndarray, " h"]:
        """The rows that count: those without a class where something can be learned from them."""
        everything = np.arange(len(self.labels))
        return everything if self.structure or self.is_guessing else self.known(everything)

    def visits(self, training: Int[ndarray, " t"]) -> Int[ndarray, " v"]:
        """The rows of a pass, ascending: those with a class more than once where they are few."""
        known = self.known(training)
        times = round(KNOWN_SHARE * len(training) / len(known)) if len(known) else 0
        if times <= 1:
            return training
        return np.sort(np.concatenate([training, np.tile(known, times - 1)]))

    def spread(self, which: Int[ndarray, " w"]) -> float:
        """How far these rows lie from their mean, as the root of the mean square."""
        sample = which[:: max(1, len(which) // SPREAD_ROWS)]
        mean, square = torch.zeros(self.rows.n_features, dtype=torch.float64), torch.zeros(())
        for part in np.array_split(sample, SPREAD_PARTS):
            x = self.rows.fetch(part).double()
            mean += x.sum(dim=0) / len(sample)
            square = square + x.square().sum() / len(sample)
        return float((square - mean.square().sum()).clamp_min(0).sqrt())

    def shares(self, which: Int[ndarray, " w"]) -> Float[ndarray, " classes"]:
        """The weighted share of each class among these rows."""
        sizes = np.bincount(self.labels[self.known(which)], minlength=self.n_classes)
        weights = sizes * self.class_weights
        shares: ndarray = weights / weights.sum()
        return shares


@dataclass(frozen=True)
class Learned:
    """A map, and its exemplars in the map's scale (none: training points are the references)."""

    map: nn.Module
    exemplars: ndarray | None
    labels: Int[ndarray, " z"]
    run: Run
    precision: str = "float32"
    #: Of neighbours in the map, how far they can be trusted; where neighbours are to be kept.
    trustworthiness: float | None = None

    def with_all_columns(self, columns: Int[ndarray, " c"] | None, n_columns: int) -> Learned:
        """The same for rows of which only these columns were learned from; 0 for the others."""
        if columns is None:
            return self
        map_: Any = copy.deepcopy(self.map)
        first = map_.layers[0]
        first.C = nn.Parameter(_spread(first.C, columns, n_columns), requires_grad=False)
        if self.exemplars is None:
            return replace(self, map=map_)
        exemplars = _spread(torch.from_numpy(self.exemplars), columns, n_columns).numpy()
        return replace(self, map=map_, exemplars=exemplars)

    def with_validation_error(self, error: float) -> Learned:
        """The same, with another error on the held-out rows for the epoch that was kept."""
        history = [dict(record) for record in self.run.history]
        run = Run(self.run.epochs, history)
        run.kept["validation_error"] = float(error)
        return replace(self, run=run)


def _spread(values: Tensor, columns: Int[ndarray, " c"], n_columns: int) -> Tensor:
    """The values in these of so many columns, and 0 in the others."""
    wide = values.new_zeros(len(values), n_columns)
    wide[:, torch.from_numpy(columns)] = values.detach()
    return wide


@dataclass(frozen=True)
class Start:
    """What a map starts from: the rows it may see, and its chances."""

    task: Task
    training: Int[ndarray, " t"]
    random: np.random.RandomState
    generator: torch.Generator

    def sample(self, n_rows: int) -> Int[ndarray, " s"]:
        """Numbers of some training rows at random, at the most so many."""
        return np.sort(self.random.permutation(self.training)[:n_rows])

    def fetch(self, n_rows: int) -> Float[Tensor, "s features"]:
        """Some training rows at random, at the most so many."""
        return self.task.rows.fetch(self.sample(n_rows))


class Method(Protocol):
    """What a gradient method chooses: its map, how the map starts, and what it minimises."""

    def _map_to_learn(self, n_features: int) -> nn.Module: ...

    def _start_map(self, map_: Any, start: Start) -> None: ...

    def _with_spare(self, map_: Any, start: Start) -> nn.Module: ...

    def _make_loss(self, task: Task, training: ndarray) -> Loss: ...


def learn(
    method: Method,
    task: Task,
    training: Int[ndarray, " t"],
    held_out: Int[ndarray, " h"],
    settings: Training,
    progress: Progress,
) -> Learned:
    """Start the map and the exemplars, minimise the loss, and hand both back on the CPU."""
    attempt, groups, start = begin(method, task, training)
    run = minimise(
        attempt.loss,
        groups,
        len(attempt.training),
        settings,
        start.generator,
        progress,
        mistakes=attempt.validation_on(held_out, start.random) if len(held_out) else None,
        shuffle=partial(task.rows.shuffle, attempt.training),
        checkpoint=task.checkpoint,
    )
    map_ = attempt.map.cpu().requires_grad_(False)
    if task.exemplars is None:
        return Learned(map_, None, task.labels, run)
    exemplars, labels = attempt.learned_exemplars().detach().cpu().numpy(), attempt.exemplar_labels
    if task.is_labelled:  # landmarks have done their work
        exemplars, labels = exemplars[labels >= 0], labels[labels >= 0]
    return Learned(map_, exemplars, labels, run)


def begin(
    method: Method, task: Task, training: Int[ndarray, " t"]
) -> tuple[Attempt, Groups, Start]:
    """A map and exemplars where they start, what is to be learned of them, and the chances."""
    random = np.random.RandomState(task.seed)
    start = Start(task, training, random, torch.Generator().manual_seed(task.seed))
    map_ = method._map_to_learn(task.rows.n_features)
    method._start_map(map_, start)
    learning_map = method._with_spare(map_, start).to(task.device)
    exemplars, labels = start_exemplars(task, training, random)
    loss = method._make_loss(task, training)
    often = task.visits(training)
    attempt = Attempt(task, map_, learning_map, loss, often, exemplars, labels)
    groups = {"map": list(learning_map.parameters())}
    if task.exemplars == "joint":
        groups["exemplars"] = [attempt.exemplars]
    task.dealing.world.level([*learning_map.state_dict().values(), attempt.exemplars])
    return attempt, groups, start


def hold_out(
    labels: Int[ndarray, " n"], fraction: float, keep: int, random: np.random.RandomState
) -> tuple[Int[ndarray, " t"], Int[ndarray, " h"]]:
    """A stratified split into training and held-out rows; a class keeps at least ``keep`` rows.

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


def start_exemplars(
    task: Task, training: Int[ndarray, " t"], random: np.random.RandomState
) -> tuple[Float[Tensor, "z features"], Int[ndarray, " z"]]:
    """The k-means centres of each class among the training rows, in the map's scale.

    Landmarks come after them.
    """
    nothing = torch.empty(0, task.rows.n_features), np.empty(0, dtype=int)
    if task.exemplars is None:
        return nothing
    centres, labels = _centres_of_classes(task, training, random) if task.is_labelled else nothing
    if task.landmarks is not None:
        more = task.landmarks.centres.cpu()
        centres, labels = torch.cat([centres, more]), np.append(labels, [UNKNOWN] * len(more))
    return centres, labels


def _centres_of_classes(
    task: Task, training: Int[ndarray, " t"], random: np.random.RandomState
) -> tuple[Float[Tensor, "z features"], Int[ndarray, " z"]]:
    training = task.known(training)
    labels = task.labels[training]
    sizes = np.bincount(labels, minlength=task.n_classes)
    centres, exemplar_labels = kmeans_per_class(
        lambda members: task.rows.fetch_for_clustering(training[members]),
        labels,
        np.minimum(sizes, task.n_exemplars).tolist(),
        random,
        max_rows=START_ROWS_A_CLASS if task.exemplars == "joint" else MOST_ROWS_A_CLASS,
    )
    centres = (centres + task.rows.clustering_shift).astype(np.float32)
    return torch.from_numpy(centres), exemplar_labels


def mistakes(
    task: Task,
    held_out: Int[ndarray, " h"],
    points: Float[ndarray, "h d"],
    references: Float[ndarray, "r d"],
    labels: Int[ndarray, " r"],
) -> Float[ndarray, " h"]:
    """How wrong each held-out row is judged, by the rule of `predict`, weighted to mean 1."""
    if not (np.isfinite(points).all() and np.isfinite(references).all()):
        return np.full(len(held_out), np.nan)
    decisions = decide(points, references, labels, task.class_weights, task.n_neighbors)
    labels = task.labels[held_out]
    weights: ndarray = task.class_weights[labels]
    weights /= weights.mean()  # in place: there may be very many rows
    weights *= decisions != labels
    return weights


@torch.no_grad()
def judge(
    task: Task,
    map_: nn.Module,
    exemplars: Float[Tensor, "z features"],
    exemplar_labels: Int[ndarray, " z"],
    references: Int[ndarray, " r"],
    held_out: Int[ndarray, " h"],
) -> Float[ndarray, " h"]:
    """How wrong each held-out row is judged: by the exemplars or, without any, by references."""
    if task.exemplars is None:
        points, labels = _points(task, map_, references), task.labels[references]
    else:
        points, labels = map_(exemplars).cpu().numpy(), exemplar_labels
    return mistakes(task, held_out, _points(task, map_, held_out), points, labels)


def trust_held_out(task: Task, map_: nn.Module, held_out: Int[ndarray, " h"]) -> float | None:
    """How far neighbours in the map can be trusted; ``None`` where too few rows were held out."""
    if len(held_out) < 3 * TRUSTED_NEIGHBORS:
        return None
    return trust(task.rows, held_out, lambda some: _points(task, map_, some))


def _points(task: Task, map_: nn.Module, which: Int[ndarray, " w"]) -> ndarray:
    return task.rows.each(lambda rows: embed(map_, rows, task.device), which)


class Attempt:
    """A map and exemplars on their way: the loss of a batch, and the mistakes on held-out rows."""

    def __init__(
        self,
        task: Task,
        map_: nn.Module,
        learning_map: nn.Module,
        loss: Loss,
        training: ndarray,
        exemplars: Tensor,
        exemplar_labels: ndarray,
    ) -> None:
        if not isinstance(exemplars, nn.Parameter):
            exemplars = nn.Parameter(exemplars.to(task.device))
        self.exemplars: nn.Parameter = exemplars
        self.exemplar_labels = exemplar_labels
        self._task = task
        self.map = map_
        self._learning_map = learning_map
        self._loss = loss
        self.training = training
        self._varies = torch.from_numpy(task.varies).float().to(task.device)
        size = (0, task.rows.n_features)
        self._table = torch.empty(size, dtype=torch.float32, device=task.device)
        self._chances = Chances(task.seed, task.device)
        self._targets = torch.from_numpy(exemplar_labels).to(task.device)
        known = task.known(training)
        weights = task.class_weights
        if len(known):
            weights = weights / weights[task.labels[known]].mean()
        self._weights = torch.from_numpy(weights).float().to(task.device)
        self._weighted = bool((weights != 1).any())
        self._is_guessing = task.is_guessing
        shares = np.bincount(task.labels[known], minlength=task.n_classes) / max(1, len(known))
        self._expected = torch.from_numpy(shares).float().to(task.device)
        self._numbers: Tensor | None = None

    def loss(self, numbers: Tensor, seed: int, done: float) -> Tensor | Known:
        """The loss of the rows with these numbers, with masks that the seed decides."""
        if numbers is not self._numbers:  # a line search and taking turns come back to the same
            self._numbers, self._batch = numbers, self._next(self.training[numbers.numpy()])
            if self._is_guessing:
                belief = Belief(min(1.0, done / BELIEVED), self._expected, self._weights)
                self._batch = replace(self._batch, belief=belief)
        if isinstance(self._learning_map, Pressed):
            self._learning_map.height = max(0.0, 1 - done / FLAT)
        whole, world = self._batch.whole, self._task.dealing.world
        masks = self._chances.masks(seed, numbers.shape[0], whole.places if whole else None)
        loss = self._loss(self._learning_map, self._batch, masks)
        if world.size > 1:
            assert isinstance(loss, Known)  # checked before the fit
            world.add_up([loss.value, *loss.slopes.values()])
        return loss

    def learned_exemplars(self) -> Float[Tensor, "z features"]:
        """The exemplars as they stand; nothing is learned for a column that is constant."""
        return self.exemplars * self._varies

    def validation_on(
        self, held_out: ndarray, random: np.random.RandomState
    ) -> Callable[[], ndarray]:
        """How wrong the map, as it stands, is on each held-out row."""
        task, neighbours = self._task, self.training[:0]
        if task.exemplars is None:
            neighbours = np.unique(task.known(self.training))
            neighbours = np.sort(random.permutation(neighbours)[:VALIDATION_REFERENCES])

        def now() -> ndarray:
            exemplars, labels = self.learned_exemplars(), self.exemplar_labels
            if (labels < 0).any():
                exemplars, labels = exemplars[torch.from_numpy(labels >= 0)], labels[labels >= 0]
            return judge(task, self.map, exemplars, labels, neighbours, held_out)

        return now

    def _next(self, which: ndarray) -> Batch:
        """A batch: its rows, or those of them that are for this process."""
        dealing = self._task.dealing
        if dealing.world.size == 1:
            return self._fetch(which)
        places, gather = dealing.share(which)
        labels = torch.from_numpy(self._task.labels[which]).to(self._task.device)
        weights = self._weights[labels] if self._weighted else None  # of no class: any
        here = torch.from_numpy(places).to(self._task.device)
        return replace(self._fetch(which[places]), whole=Whole(here, labels, weights, gather))

    def _fetch(self, which: ndarray) -> Batch:
        """Rows that are here, in memory that was that of the last ones."""
        task, n_rows, n_exemplars = self._task, len(which), self.exemplars.shape[0]
        if self._table.shape[0] < n_rows + n_exemplars:
            self._table = self._table.new_empty(n_rows + n_exemplars, task.rows.n_features)
        if task.device.type == "cpu":
            task.rows.here(which, out=self._table[:n_rows])
        else:
            self._table[:n_rows] = task.rows.here(which)
        labels = torch.from_numpy(task.labels[which]).to(task.device)
        x = self._table[:n_rows]
        return Batch(
            numbers=which,
            table=self._table[: n_rows + n_exemplars],
            labels=labels,
            weights=self._weights[labels] if self._weighted else None,
            exemplars=self.exemplars,
            varies=self._varies,
            exemplar_labels=self._targets,
            exemplar_weights=self._weights[self._targets] if self._weighted else None,
            affinities=task.landmarks.affinities(x, which) if task.landmarks else None,
        )
