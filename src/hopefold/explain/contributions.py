"""Contributions of feature interactions on rows: units, ranking and formatting of terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from hopefold.core.interactions import Largest, Term, monomials
from hopefold.data import validation
from hopefold.data.disk import chunks, is_on_disk
from hopefold.data.streams import is_stream, read_batches
from hopefold.data.tables import as_table
from hopefold.errors import ConstantRows
from hopefold.explain.term_tables import Interactions, product

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray

#: The message for rows that are all equal.
CONSTANT = "the rows of X do not vary: give some that differ, or none, for what the map depends on."

#: Number of terms with the largest coefficients that are ranked on data.
CANDIDATES = 10_000

#: Number of values of terms that are held in memory at once: 32 MB of float64.
BLOCK = 2**22


@dataclass(frozen=True)
class Unit:
    """The units of features: a feature of z is z · factor + offset in the map's scale."""

    factor: Float[Tensor, " features"]
    offset: Float[Tensor, " features"]

    def count(self, scaled: Float[Tensor, "n features"]) -> Float[Tensor, "n features"]:
        """Convert rows from the map's scale to these units; 0 for constant columns."""
        counted: Tensor = (scaled - self.offset) / self.factor
        return counted.masked_fill_(self.factor == 0, 0)


class ScaledRows:
    """Rows in the map's scale, in float64, as an iterable of batches."""

    def __init__(self, model: Any, X: Any, *, checked: bool = False) -> None:
        self._model = model
        table = as_table(X, model.columns_)
        if table is not None:
            validation.check_names(model, table.names)
            validation.check_batch(model, table.X)
            X = table.X
        self._by_batches = table is None and (is_stream(X) or is_on_disk(X))
        if table is None and not self._by_batches and not checked:
            X = validation.check_rows(model, X, fitting=False)
        self._X = X
        self.count = 0

    def __len__(self) -> int:
        if not self.count:
            for _ in self:
                pass
        return self.count

    def __iter__(self) -> Iterator[Float[Tensor, "n features"]]:
        self.count = 0
        scale = self._model.scale_
        for batch in self._batches():
            rows = batch.toarray() if sparse.issparse(batch) else batch
            self.count += len(rows)
            yield torch.from_numpy((np.asarray(rows, np.float64) - scale.shift) * scale.gain)

    def _batches(self) -> Iterator[Any]:
        if not self._by_batches:
            yield from chunks(self._X)
            return
        for batch in read_batches(self._X, getattr(self._model, "feature_names_in_", None)):
            validation.check_batch(self._model, batch)
            yield from chunks(batch)


def rank(
    found: Largest,
    rows: ScaledRows,
    unit: Unit,
    labels: ndarray,
    top: int,
    names: tuple[str, ...],
    units: str,
) -> Interactions:
    """Return the terms that vary most on the rows, with their shifts per class."""
    classes, codes = np.unique(labels, return_inverse=True)
    one_hot = torch.nn.functional.one_hot(torch.from_numpy(codes), len(classes)).double()
    step = max(1, BLOCK // max(1, len(found.terms)))
    first: Tensor | None = None
    squares, sums, start = torch.zeros(()), torch.zeros(()), 0
    for some in (part for block in rows for part in torch.split(block, step)):
        values = monomials(unit.count(some), found.terms)
        first = values.mean(dim=0) if first is None else first  # so that squares are small
        values -= first
        squares = squares + values.square().sum(dim=0)
        sums = sums + one_hot[start : start + len(some)].T @ values
        start += len(some)
    mean = sums.sum(dim=0) / start
    counts = one_hot.sum(dim=0)[:, None]
    weights = found.coefficients.norm(dim=1)
    deviations = (squares / start - mean.square()).clamp(min=0).sqrt() * weights
    if not deviations.any():
        raise ConstantRows(CONSTANT)
    best = deviations.argsort(descending=True, stable=True)[:top]
    shifts = ((sums / counts - mean) * weights).T[best]
    exact_among = note(found, len(unit.factor))
    if len(found.terms) >= CANDIDATES:
        largest = f"among the {CANDIDATES:,} largest coefficients"
        exact_among = "; ".join(filter(None, [largest, exact_among]))
    terms = tuple(found.terms[place] for place in best.tolist())
    return Interactions(
        terms=terms,
        names=format_terms(terms, names),
        coefficients=found.coefficients[best].numpy(),
        weights=weights[best].numpy(),
        deviations=deviations[best].numpy(),
        classes=classes,
        shifts=shifts.numpy(),
        units=units,
        note=exact_among,
    )


def tell(found: Largest, names: tuple[str, ...], units: str, n_features: int) -> Interactions:
    """Return the terms that a search has found, without rows to rank them on."""
    return Interactions(
        terms=found.terms,
        names=format_terms(found.terms, names),
        coefficients=found.coefficients.numpy(),
        weights=found.coefficients.norm(dim=1).numpy(),
        deviations=None,
        classes=None,
        shifts=None,
        units=units,
        note=note(found, n_features),
    )


def note(found: Largest, n_features: int) -> str:
    """Return a note about degrees that were not searched completely."""
    cut = {degree: size for degree, size in found.searched.items() if size < n_features}
    return "; ".join(
        f"of order {degree}, among the {size} of {n_features} features with the largest weight"
        for degree, size in cut.items()
    )


def format_terms(terms: Sequence[Term], names: Sequence[str]) -> tuple[str, ...]:
    """Format terms with the names of the features."""
    return tuple(product([names[feature] for feature in term]) for term in terms)
