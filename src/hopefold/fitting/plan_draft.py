"""A plan under construction: its values so far, with their reasons."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hopefold.fitting.layer_sizes import is_several
from hopefold.fitting.plan_values import DEFAULT, GIVEN, Facts, Plan, Request
from hopefold.specification import CHECKPOINT_PARAMETERS, METHODS

#: A map with fewer factors is small: it drops less and takes larger steps. One with so many times
#: fewer learns longer.
USUAL_FACTORS, SMALL = 400, 2

#: The most rows of which a basis is found: its time grows with their third power.
MOST_IN_SPAN = 1_500

#: Where there are fewer rows, each of them is held out once, to estimate the error.
FEW_ROWS = 280


class Draft:
    """A plan under construction."""

    def __init__(self, request: Request, facts: Facts, decided: dict[str, tuple[Any, str]]) -> None:
        self.request, self.facts, self.defaults = request, facts, request.defaults
        self.values = dict(request.parameters)
        self.decided = decided
        self.reasons: dict[str, str] = {}

    def auto(self, name: str, value: Any, why: str) -> None:
        """Set a parameter that is "auto" to what was decided before, or else to this value."""
        asked = self.values[name]
        if isinstance(asked, str) and asked == "auto":
            self.values[name], self.reasons[name] = self.decided.get(name, (value, why))

    @property
    def is_adam(self) -> bool:
        """Is the map learned by Adam?"""
        return bool(self.values["optimizer"] == "adam")

    @property
    def effort(self) -> str:
        """How much time to spend, for high-order maps."""
        return str(self.values["effort"])

    @property
    def has_pseudo_labels(self) -> bool:
        """Are rows without a label held to the class that the map predicts for them?"""
        return self.values["exemplars"] == "joint" and self.facts.is_partly_labeled

    @property
    def preserves_structure(self) -> bool:
        """Does structure, and not the classes alone, decide what the usual settings are?"""
        return self.values["structure"] > 0 and not self.has_pseudo_labels

    @property
    def is_labeled(self) -> bool:
        """Do classes alone decide the map, and do all rows have one?"""
        known = self.facts.n_classes > 0 and not self.facts.is_partly_labeled
        return known and not self.values["structure"]

    @property
    def learns_fast(self) -> bool:
        """Can two layers learn in a short schedule?"""
        joint = self.values["exemplars"] == "joint" and self.values["augment"] is None
        return joint and self.is_adam and self.values["max_bytes"] is None

    @property
    def has_short_schedule(self) -> bool:
        """Is it a stack that learns by `labeled_defaults`?"""
        if not self.defaults.is_high_order or self.n_layers == 1:
            return False
        return self.learns_fast and self.is_labeled

    @property
    def cross_fits(self) -> bool:
        """Is the error of few rows estimated on all of them?"""
        open_to_it = self.request.parameters["validation_fraction"] == "auto"
        settled = self.values["patience"] is None and self.values["max_bytes"] is None
        few = self.facts.n_rows < FEW_ROWS
        return open_to_it and few and settled and self.values["refit"] and self.is_labeled

    @property
    def in_row_span(self) -> bool:
        """Is a basis of the rows worth finding?"""
        facts = self.facts
        few = facts.n_training <= MOST_IN_SPAN and facts.n_training < facts.n_columns
        return few and facts.is_dense and not facts.has_pixels and self.has_short_schedule

    @property
    def n_layers(self) -> int:
        """Number of layers."""
        return len(self.values["n_units"]) if is_several(self.values.get("n_units")) else 1

    @property
    def smallness(self) -> float:
        """How many times fewer factors there are than usual; 1 for more."""
        factors = self.values["n_factors"]
        return max(1.0, USUAL_FACTORS / (min(factors) if is_several(factors) else factors))

    def plan(self) -> Plan:
        """The plan, with a reason for each setting."""
        known = {f.name for f in fields(Plan)} - {"options", "reasons", "method"}
        passed = (
            "class_weight",
            "random_state",
            "verbose",
            "missing_label",
            *CHECKPOINT_PARAMETERS,
        )
        values = {name: value for name, value in self.values.items() if name not in passed}
        options = {name: value for name, value in values.items() if name not in known}
        asked = self.request.parameters
        usual = METHODS[self.request.method].defaults()
        reasons = {
            name: self.reasons.get(name, DEFAULT if _same(asked[name], usual.get(name)) else GIVEN)
            for name in values
            if name in asked
        }
        if "structure" in values:
            values["pseudo_labels"] = self.has_pseudo_labels
            values["cross_fits"] = self.cross_fits
            values["in_row_span"] = self.in_row_span
            if self.has_short_schedule:
                values["taking_turns"] = 0.0
        return Plan(
            method=self.request.method,
            options=options,
            reasons=reasons,
            **{name: value for name, value in values.items() if name in known},
        )


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)
