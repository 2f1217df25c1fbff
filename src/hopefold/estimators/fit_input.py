"""The input of a fit: the rows of this process, and all labels."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefold.data import labels as label_checks
from hopefold.data import validation
from hopefold.data.columns import Columns
from hopefold.data.disk import BUFFER
from hopefold.data.fingerprints import KEPT, sketch
from hopefold.data.rows import Rows, ShardedRows
from hopefold.data.scaling import Scale, learn_scale
from hopefold.data.streams import is_list_of_batches, is_stream, read_all
from hopefold.data.tables import Table
from hopefold.errors import InvalidInput
from hopefold.fitting.task import UNKNOWN
from hopefold.training.distributed import ProcessGroup
from hopefold.training.sharding import NOT_SHARDED, Sharding

if TYPE_CHECKING:
    from jaxtyping import Bool, Int
    from numpy import ndarray


@dataclass(frozen=True)
class FitInput:
    """The rows of this process, the labels of all rows, and the distribution of rows."""

    X: Any
    #: The labels that are known (``None``: not requested), and which rows have one.
    y: ndarray | None
    labeled: Bool[ndarray, " n"]
    columns: Columns | None
    sharding: Sharding

    @property
    def group(self) -> ProcessGroup:
        """All processes of the fit."""
        return self.sharding.group

    def classes(self) -> tuple[ndarray, Int[ndarray, " n"]]:
        """Return the sorted classes and the class number of each row, or `UNKNOWN`."""
        codes = np.full(len(self.labeled), UNKNOWN)
        if self.y is None:
            return np.empty(0, dtype=int), codes
        classes, codes[self.labeled] = np.unique(self.y, return_inverse=True)
        label_checks.check_classes(classes, len(codes), len(self.y))
        return classes, codes

    def learn_scale(self, how: str | None) -> Scale:
        """Learn the scale of all rows."""
        if self.sharding.bounds is None:
            return learn_scale(self.X, how)
        return learn_scale(self.X, how, self.group.all_gather_object)

    def prepare(
        self, scale: Scale, names: ndarray | None, columns: Int[ndarray, " c"] | None
    ) -> Rows:
        """Return all rows in their scale, restricted to these columns if they are dense."""
        bounds = self.sharding.bounds
        by_blocks = bounds is not None and self._n_bytes > BUFFER
        if by_blocks:  # then some processes may have their rows on disk, with all columns
            columns = None
        rows = self.group.together(lambda: Rows.prepare(self.X, scale, names, columns))
        if bounds is None:
            return rows
        return ShardedRows(
            rows, bounds, self.group.rank, self.group.all_gather_object, by_blocks=by_blocks
        )

    @property
    def _n_bytes(self) -> int:
        """Return the bytes of the rows of all processes."""
        n_bytes: int = len(self.labeled) * self.X.shape[1] * self.X.itemsize
        return n_bytes

    def seed(self, random_state: Any) -> np.random.RandomState:
        """Return a random state that is the same in all processes."""
        random = validation.check_seed(random_state)
        if random_state is None and self.group.size > 1:
            return np.random.RandomState(self.group.broadcast_object(random.randint(2**31)))
        return random

    def sketch(self) -> ndarray:
        """Return a few fingerprints of all rows."""
        mine = sketch(self.X)
        if self.sharding.bounds is None:
            return mine
        return np.unique(self.group.all_gather_array(mine))[:KEPT]


def read_fit_input(model: Any, X: Any, y: Any, group: ProcessGroup) -> FitInput:
    """Read and validate the input of a fit."""
    names, columns, dealt = None, None, False
    if isinstance(X, Table):
        X, y, names, columns = X.X, X.y if y is None else y, X.names, X.columns
    elif is_stream(X) or (y is None and is_list_of_batches(X)):
        source, label, dealt = X, y, group.size > 1
        X, y, names = group.together(
            lambda: read_all(
                source,
                label,
                part=group.rank,
                n_parts=group.size,
                label_needed=not model.method.learns_without_labels,
            )
        )

    def check() -> tuple[Any, ndarray | None, ndarray]:
        try:
            return _check(model, X, y, names)
        except InvalidInput as error:
            if not dealt:
                raise
            raise InvalidInput(
                f"{error} (Rows are counted from the first that process {group.rank} has read.)"
            ) from error

    X, y, labeled = group.together(check)
    if group.size == 1:
        return FitInput(X, y, labeled, columns, NOT_SHARDED)
    _check_agreement(model, X, group)
    if not dealt:
        group.agree("rows", (X.shape, sketch(X).tolist()))
        group.agree("labels", _digest(y, labeled))
        return FitInput(X, y, labeled, columns, Sharding(group))
    bounds = (0, *np.cumsum(group.all_gather_object(len(labeled))).tolist())
    labeled = group.all_gather_array(labeled)
    if y is not None:
        y = _joined_labels(y, group)
    return FitInput(X, y, labeled, columns, Sharding(group, bounds))


def _check(
    model: Any, X: Any, y: Any, names: ndarray | None
) -> tuple[Any, ndarray | None, Bool[ndarray, " n"]]:
    """Return the rows, their labels, and the mask of labeled rows."""
    marker = getattr(model, "missing_label", ())
    if y is None or not label_checks.is_marker(marker):
        X, y = validation.check_rows(
            model,
            X,
            y,
            fitting=True,
            names=names,
            needs_labels=not model.method.learns_without_labels,
        )
        return X, y, np.full(X.shape[0], y is not None)
    X, _ = validation.check_rows(model, X, None, fitting=True, names=names, needs_labels=False)
    labels, known = label_checks.split_labels(y, marker, X.shape[0])
    if known.all():
        label_checks.warn_of_marker(marker, labels)
    return X, labels, known


def _check_agreement(model: Any, X: Any, group: ProcessGroup) -> None:
    names = getattr(model, "feature_names_in_", None)
    group.agree("columns", X.shape[1] if names is None else names.tolist())
    group.agree("types of numbers", str(X.dtype))
    apart = ("verbose", "device", "random_state")  # the seed itself is compared later
    settings = {name: value for name, value in model.get_params().items() if name not in apart}
    group.agree("settings", repr(settings))


def _joined_labels(mine: ndarray, group: ProcessGroup) -> ndarray:
    """Concatenate the labels of all processes; NumPy would convert a mix to text."""
    labels = [some for some in group.all_gather_object(mine) if len(some)]

    def check() -> None:
        if len({some.dtype.kind in "OUS" for some in labels}) > 1:
            raise InvalidInput("labels are numbers in some files and text in others: use one kind.")

    group.together(check)
    return np.concatenate(labels) if labels else mine


def _digest(y: ndarray | None, labeled: ndarray) -> str:
    if y is None:
        return "none"
    classes, codes = np.unique(y, return_inverse=True)
    parts = repr(classes.tolist()).encode(), codes.tobytes(), labeled.tobytes()
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]


def file_texts(model: Any, classes: ndarray, weights: ndarray) -> tuple[Any, ...]:
    """Return what the file of a model holds as text, for a budget of bytes."""
    names = getattr(model, "feature_names_in_", np.array([])).tolist()
    pairs = [list(pair) for pair in zip(classes.tolist(), weights, strict=True)]
    columns = model.columns_.as_plain() if model.columns_ else None
    return classes.tolist(), pairs if model.class_weight else None, names, columns


def n_fill_bytes(model: Any) -> int:
    """Return the bytes of the values that replace missing ones."""
    fills = model.columns_.fills if model.columns_ else None
    return 0 if fills is None else int(fills.nbytes)
