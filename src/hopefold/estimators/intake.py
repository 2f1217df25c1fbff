"""What a fit is given: its rows, or those of them that are for this process, and all labels."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.data.columns import Columns
from hopefold.data.disk import BUFFER
from hopefold.data.rows import DealtRows, Rows
from hopefold.data.scaling import Scale, learn_scale
from hopefold.data.seen import KEPT, sketch
from hopefold.data.streams import is_list_of_batches, is_stream, read_all
from hopefold.data.tables import Table
from hopefold.errors import InvalidInput
from hopefold.estimators import checks
from hopefold.training.world import ALL_MINE, Dealing, World

if TYPE_CHECKING:
    from numpy import ndarray


@dataclass(frozen=True)
class Intake:
    """Rows that are here, the labels of all rows, and who has which."""

    X: Any
    y: ndarray
    columns: Columns | None
    dealing: Dealing

    @property
    def world(self) -> World:
        """All processes of the fit."""
        return self.dealing.world

    def learn_scale(self, how: str | None) -> Scale:
        """The scale of all rows."""
        if self.dealing.bounds is None:
            return learn_scale(self.X, how)
        return learn_scale(self.X, how, self.world.all_of)

    def prepare(self, scale: Scale, names: ndarray | None) -> Rows:
        """All rows in their scale, wherever they are."""
        rows = self.world.together(lambda: Rows.prepare(self.X, scale, names))
        if (bounds := self.dealing.bounds) is None:
            return rows
        by_blocks = len(self.y) * self.X.shape[1] * self.X.itemsize > BUFFER
        return DealtRows(rows, bounds, self.world.rank, self.world.all_of, by_blocks=by_blocks)

    def seed(self, random_state: Any) -> np.random.RandomState:
        """Chances that are the same in all processes."""
        random = checks.check_seed(random_state)
        if random_state is None and self.world.size > 1:
            return np.random.RandomState(self.world.from_first(random.randint(2**31)))
        return random

    def sketch(self) -> ndarray:
        """A few fingerprints of all rows."""
        mine = sketch(self.X)
        if self.dealing.bounds is None:
            return mine
        return np.unique(self.world.joined(mine))[:KEPT]


def take_in(model: Any, X: Any, y: Any, world: World) -> Intake:
    """Read and check what was given to fit."""
    names, columns, dealt = None, None, False
    if isinstance(X, Table):
        X, y, names, columns = X.X, X.y if y is None else y, X.names, X.columns
    elif is_stream(X) or (y is None and is_list_of_batches(X)):
        source, label, dealt = X, y, world.size > 1
        X, y, names = world.together(
            lambda: read_all(source, label, part=world.rank, n_parts=world.size)
        )

    def check() -> tuple[Any, ndarray]:
        try:
            return checks.check_rows(model, X, y, fitting=True, names=names)
        except InvalidInput as error:
            if not dealt:
                raise
            raise InvalidInput(
                f"{error} (Rows are counted from the first that process {world.rank} has read.)"
            ) from error

    X, y = world.together(check)
    if world.size == 1:
        return Intake(X, y, columns, ALL_MINE)
    _check_agreement(model, X, world)
    if not dealt:
        world.agree("rows", (X.shape, sketch(X).tolist()))
        world.agree("labels", _digest(y))
        return Intake(X, y, columns, Dealing(world))
    _check_labels(y, world)
    bounds = (0, *np.cumsum(world.all_of(len(y))).tolist())
    return Intake(X, world.joined(y), columns, Dealing(world, bounds))


def _check_agreement(model: Any, X: Any, world: World) -> None:
    names = getattr(model, "feature_names_in_", None)
    world.agree("columns", X.shape[1] if names is None else names.tolist())
    world.agree("types of numbers", str(X.dtype))
    apart = ("verbose", "device", "random_state")  # the seed itself is looked at later
    settings = {name: value for name, value in model.get_params().items() if name not in apart}
    world.agree("settings", repr(settings))


def _check_labels(y: ndarray, world: World) -> None:
    """NumPy would make text of numbers that are joined with text."""

    def check() -> None:
        if len({kind in "OUS" for kind in kinds}) > 1:
            raise InvalidInput("labels are numbers in some files and text in others: use one kind.")

    kinds = world.all_of(y.dtype.kind)
    world.together(check)


def _digest(y: ndarray) -> str:
    classes, codes = np.unique(y, return_inverse=True)
    return hashlib.sha256(repr(classes.tolist()).encode() + codes.tobytes()).hexdigest()[:12]
