"""Explanations of a map: feature interactions with the largest weight, contributions to a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from hopefold import checks
from hopefold.core.interactions import (
    Polynomial,
    Term,
    largest_terms,
    monomials,
    powers_of_terms,
    squared_slices,
)
from hopefold.core.linearization import linearize
from hopefold.data import labels as label_checks
from hopefold.data import validation
from hopefold.errors import ConstantRows, InvalidInput, InvalidParameter
from hopefold.explain.contributions import (
    CANDIDATES,
    CONSTANT,
    ScaledRows,
    Unit,
    format_terms,
    note,
    rank,
    tell,
)
from hopefold.explain.term_tables import Explanation, Interactions

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray

UNITS = ("standard", "data")
SLOPES = ("mean", "local")

#: Said of the terms of a map of several layers that are not ranked on rows.
ROUGH = "a rough ranking, as the map has several layers: give rows for a better one"


class Explainer:
    """A fitted HOPE or S-HOPE as a polynomial of its features, exact or approximate."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._linearization = linearize(model.map_)

    def interactions(
        self,
        top: int = 20,
        X: Any = None,
        y: Any = None,
        *,
        order: int | None = None,
        units: str = "standard",
        slope: str = "mean",
        feature_names: Sequence[str] | None = None,
    ) -> Interactions:
        """Return the products of features with the largest weight on the map."""
        checks.check_whole("top", top, at_least=1)
        checks.check_choice("units", units, UNITS)
        checks.check_choice("slope", slope, SLOPES)
        names = self.feature_names(feature_names)
        degrees = self._degrees(order)
        if X is None and y is not None:
            raise InvalidParameter("y has the classes of the rows X: give X, too, or no y.")
        rows = None if X is None else ScaledRows(self._model, X)
        unit = self._unit(units, rows)
        units = self._reported_units(units, rows)
        if rows is not None and slope == "mean":
            polynomial = self._linearization.polynomial_on(rows, self._middle)
        else:
            polynomial = self._polynomial(rows, slope)
        polynomial = polynomial.in_units(unit.factor, unit.offset)
        if rows is None:
            found = largest_terms(polynomial, top, degrees)
            terms = tell(found, names, units, self._model.n_features_in_)
            if len(self._model.map_.layers) == 1:
                return terms
            return replace(terms, note="; ".join(filter(None, (terms.note, ROUGH))))
        if not polynomial.A.any():
            raise ConstantRows(CONSTANT)
        found = largest_terms(polynomial, max(top, CANDIDATES), degrees)
        labels = self._model.predict(X) if y is None else _check_labels(y, len(rows))
        return rank(found, rows, unit, labels, top, names, units)

    def explain(
        self,
        x: Any,
        top: int = 10,
        *,
        order: int | None = None,
        units: str = "standard",
        slope: str = "mean",
        feature_names: Sequence[str] | None = None,
    ) -> Explanation:
        """Return the terms that add up to the point of a row."""
        checks.check_whole("top", top, at_least=1)
        checks.check_choice("units", units, UNITS)
        checks.check_choice("slope", slope, SLOPES)
        names = self.feature_names(feature_names)
        unit = self._unit(units, None)
        rows = ScaledRows(self._model, _one_row(x))
        polynomial = self._polynomial(rows, slope).in_units(unit.factor, unit.offset)
        (scaled,) = rows
        own = unit.count(scaled)[0]
        found = largest_terms(
            polynomial.in_units(own, torch.zeros_like(own)), top, self._degrees(order)
        )
        middle = self._middle
        start, point = self._linearization.points(torch.stack([middle, scaled[0]]))
        validation.check_points(point[None].float().numpy())
        at_start, at_point = polynomial.at(torch.stack([unit.count(middle), own]))
        others = at_point - polynomial.constant - found.coefficients.sum(dim=0)
        remainder = point - start - (at_point - at_start)
        return Explanation(
            point=point.numpy(),
            constant=(start - at_start + polynomial.constant).numpy(),
            terms=found.terms,
            names=format_terms(found.terms, names),
            values=found.coefficients.numpy(),
            others=others.numpy(),
            remainder=remainder.numpy(),
            units=self._reported_units(units, None),
            note=note(found, int(own.count_nonzero())),
        )

    def contributions(self, X: Any, terms: Sequence[Term]) -> Float[ndarray, "n terms d"]:
        """Return how far each of the given terms moves each row."""
        unit = self._unit("standard", None)
        inputs = self._linearization.inputs.in_units(unit.factor, unit.offset)
        parts = powers_of_terms(inputs, terms) @ inputs.P.T
        blocks = []
        for rows in ScaledRows(self._model, X):
            values = monomials(unit.count(rows), terms)
            moved = self._linearization.moves(rows, unit.offset, parts)
            blocks.append(values[:, :, None] * moved)
        return torch.cat(blocks).numpy()

    def feature_importances(self) -> Float[ndarray, " features"]:
        """Return the importance of each feature for the map; they sum to 1."""
        unit = self._unit("standard", None)
        norms = squared_slices(self._polynomial(None).in_units(unit.factor, unit.offset)).sqrt()
        return (norms / norms.sum().clamp(min=torch.finfo(norms.dtype).tiny)).numpy()

    def _polynomial(self, rows: ScaledRows | None, slope: str = "mean") -> Polynomial:
        """Return the polynomial in the scale of the map, linearized at the mean multipliers."""
        middle = self._middle if slope == "mean" else None
        return self._linearization.polynomial(self._known_rows() if rows is None else rows, middle)

    @property
    def _middle(self) -> Float[Tensor, " features"]:
        """Return the mean row in the scale of the map, as far as the model knows it."""
        return self._unit("standard", None).offset

    def _known_rows(self) -> ScaledRows:
        """Return the rows that the model keeps: its exemplars, or else the center of its scale."""
        known = self._model.exemplars_
        return ScaledRows(
            self._model, self._model.scale_.shift[None] if known is None else known, checked=True
        )

    def _unit(self, units: str, rows: ScaledRows | None) -> Unit:
        shift, gain = (
            torch.from_numpy(v).double()
            for v in (self._model.scale_.shift, self._model.scale_.gain)
        )
        if units == "data":
            return Unit(gain, -shift * gain)
        if rows is None and (self._learned_in_deviations or not self._knows_rows):
            return Unit((gain != 0).double(), torch.zeros_like(shift))
        moments = StandardScaler()
        for some in self._known_rows() if rows is None else rows:
            moments.partial_fit(some.numpy())
        return Unit(torch.from_numpy(np.sqrt(moments.var_)), torch.from_numpy(moments.mean_))

    @property
    def _knows_rows(self) -> bool:
        return self._model.exemplars_ is not None

    def _reported_units(self, units: str, rows: ScaledRows | None) -> str:
        """Return the units, ``"map"`` if nothing determines standard deviations."""
        unknown = rows is None and not (self._learned_in_deviations or self._knows_rows)
        return "map" if units == "standard" and unknown else units

    @property
    def _learned_in_deviations(self) -> bool:
        """Return whether the model's scale is in standard deviations."""
        how = self._model.settings_["scale"]
        if how != "auto":
            return bool(how == "standard")
        varies = self._model.scale_.gain != 0
        shift, gain = self._model.scale_.shift[varies], self._model.scale_.gain[varies]
        pixels = len(np.unique(shift)) <= 1 and len(np.unique(gain)) <= 1
        return bool(shift.any() and not pixels)  # sparse columns are not shifted

    def feature_names(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return the names of the columns: the given ones, those of the fit, or x0, x1, …."""
        n_features = self._model.n_features_in_
        if names is None:
            numbered = [f"x{number}" for number in range(n_features)]
            names = getattr(self._model, "feature_names_in_", numbered)
        if isinstance(names, str) or not hasattr(names, "__len__"):
            raise InvalidParameter(
                f"feature_names={names!r} is not a list: give one name per column."
            )
        if len(names) != n_features:
            raise InvalidParameter(
                f"feature_names has {len(names)} entries for {n_features} features: give one each."
            )
        repeated = [name for name, times in Counter(map(str, names)).items() if times > 1]
        if repeated:
            raise InvalidParameter(
                f"feature_names has {repeated[0]!r} more than once: use unique names."
            )
        return tuple(map(str, names))

    def _degrees(self, order: int | None) -> range:
        most = self._linearization.inputs.order
        if order is None:
            return range(1, most + 1)
        checks.check_whole("order", order, at_least=1)
        if order > most:
            raise InvalidParameter(
                f"order={order}, but the map multiplies {most} features at the most: ask for at "
                f"most {most}, or fit with order={order}."
            )
        return range(order, order + 1)


def _one_row(x: Any) -> Any:
    """Return a row as a table of one row."""
    if isinstance(x, list | tuple):
        x = np.asarray(x)
    if getattr(x, "ndim", None) == 1:
        x = x.to_frame().T if hasattr(x, "to_frame") else np.asarray(x)[None]
    shape = getattr(x, "shape", (1,))
    if shape[0] != 1:
        raise InvalidInput(f"one row can be explained, but there are {shape[0]}: give one of them.")
    return x


def _check_labels(y: Any, n_rows: int) -> ndarray:
    label_checks.check_sortable(y)
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise InvalidInput(f"there are {n_rows} rows and labels of shape {labels.shape}.")
    return labels
