"""The plan of a fit: every setting as a value, and why. Each "auto" is decided here and only here.

`resolve` is a function of the parameters that the user has set, of a few facts of the data, and of
what earlier runs have decided on held-out rows. `alternatives` names what is compared there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from hopefold.fitting.landmarks import NEAR
from hopefold.fitting.layer_sizes import Layers, as_parameter, is_several
from hopefold.fitting.plan_values import DEFAULT, GIVEN, Facts, Plan, Request
from hopefold.specification import CHECKPOINT_PARAMETERS, METHODS

#: The usual share of features that are dropped in training, and from how many features on: the more
#: there are, the more of them others can stand in for.
INPUT_DROPOUT, MANY_FEATURES = 0.25, 250

#: Fewer features are few: units are dropped, steps are larger, and rows are not perturbed, as that
#: would move them to where others are, unless they are images.
FEW_FEATURES = 100

#: The largest step of S-HOPE with one layer where structure is preserved.
STRUCTURE_LEARNING_RATE = 6e-3

#: The layers that S-HOPE stacks by default: without labels, where there are more than few features;
#: with many classes and few features, where they misclassify fewer held-out rows than one layer.
TWO_LAYERS = (400, 400)

#: The radius of adversarial perturbations, as a share of the spread of all rows; the same where
#: rows without a label have pseudo-labels, which are to hold around the row, too.
RADIUS, RADIUS_WITH_PSEUDO_LABELS = 0.1, 0.2

#: A map with fewer factors is small: it drops less and takes larger steps. One with so many times
#: fewer learns longer.
USUAL_FACTORS, SMALL = 400, 2

#: Classes that find their places in a plane in the usual number of epochs. More need more.
MANY_CLASSES = 10

#: Steps after which no data need more than a few epochs.
MANY_STEPS = 20_000

#: Shares of the loss for structure that are compared where some labels are missing, the usual one
#: first: where there are few labels per class, and where there are more.
SHARES_FEW, SHARES_MORE = (0.1, 0.0, 0.5), (0.0, 0.1, 0.5)

#: Labels per class from which on there are not few.
FEW_LABELS = 50

#: The fewest and the most rows of a batch that is compared with landmarks.
BATCH_WITH_LANDMARKS = 64, 500

#: Landmarks at most, and rows for each of them. Of few rows more are landmarks, `NEAR` times the
#: perplexity: a row is to have neighbors among them, and others.
LANDMARKS, ROWS_PER_LANDMARK = 1_000, 8

#: The part of the epochs that an alternative is trained for, and the most rows that it may visit.
TRIAL, TRIAL_VISITS = 1 / 4, 1_000_000

#: Rows up to which NCA takes scikit-learn's exact form, which compares all pairs in every step.
EXACT_UP_TO = 2_000


def resolve(
    request: Request, facts: Facts, decided: Mapping[str, tuple[Any, str]] | None = None
) -> Plan:
    """Decide everything that is "auto".

    ``decided`` holds what held-out rows have decided in earlier runs, each with a reason: it takes
    the place of an "auto", and of the number of epochs.
    """
    draft = _Draft(request, facts, dict(decided or {}))
    if draft.defaults.is_high_order:
        _decide_structure(draft)
        _decide_sizes(draft)
        _decide_dropout(draft)
        _decide_adversarial(draft)
    if "optimizer" in draft.values:
        _decide_schedule(draft)
    if "solver" in draft.values:
        exact = facts.n_rows <= EXACT_UP_TO
        draft.auto("solver", "exact" if exact else "batches", f"{facts.n_rows:,} rows")
    _decide_evaluation(draft)
    return draft.plan()


def alternatives(request: Request, facts: Facts) -> list[dict[str, tuple[Any, str]]]:
    """What is to be compared on held-out rows, the usual choice first; most often there is one."""
    parameters = request.parameters
    if not request.defaults.is_high_order or not parameters["validation_fraction"]:
        return [{}]
    if facts.is_partly_labeled:
        if parameters["structure"] != "auto":
            return [{}]
        shares = _shares(request, facts)
        tried = ", ".join(f"{share:g}" for share in sorted(shares))
        why = f"fewest held-out errors among {tried}"
        return [{"structure": (share, why)} for share in shares]
    plan = resolve(request, facts)
    crowded = facts.n_classes > MANY_CLASSES and facts.n_features < FEW_FEATURES
    if plan.structure or not crowded or not _may_stack(request):
        return [{}]
    why = "{} layers have fewer held-out errors"
    return [
        {"n_units": (request.defaults.n_units, why.format(1))},
        {"n_units": (TWO_LAYERS, why.format(2))},
    ]


def for_trial(plan: Plan, n_training: int) -> tuple[int, str]:
    """The number of epochs of an alternative, and why."""
    epochs = min(TRIAL * plan.max_epochs, TRIAL_VISITS / n_training)
    return max(1, round(epochs)), "a trial"


class _Draft:
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
        return bool(self.values["optimizer"] == "adam")

    @property
    def has_pseudo_labels(self) -> bool:
        """Are rows without a label held to the class that the map predicts for them?"""
        return self.values["exemplars"] == "joint" and self.facts.is_partly_labeled

    @property
    def preserves_structure(self) -> bool:
        """Does structure, and not the classes alone, decide what the usual settings are?"""
        return self.values["structure"] > 0 and not self.has_pseudo_labels

    @property
    def n_layers(self) -> int:
        return len(self.values["n_units"]) if is_several(self.values.get("n_units")) else 1

    @property
    def smallness(self) -> float:
        """How many times fewer factors there are than usual; 1 for more."""
        factors = self.values["n_factors"]
        return max(1.0, USUAL_FACTORS / (min(factors) if is_several(factors) else factors))

    def plan(self) -> Plan:
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
        return Plan(
            method=self.request.method,
            options=options,
            reasons=reasons,
            **{name: value for name, value in values.items() if name in known},
        )


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _shares(request: Request, facts: Facts) -> tuple[float, ...]:
    """Shares of the loss for structure that are compared where some labels are missing."""
    few = facts.n_labeled < FEW_LABELS * facts.n_classes
    joint = request.parameters["exemplars"] == "joint"
    return tuple(share for share in (SHARES_FEW if few else SHARES_MORE) if share or joint)


def _may_stack(request: Request) -> bool:
    """Is the number of layers left to the fit?"""
    asked = request.parameters
    several = is_several(asked["order"]) or is_several(asked["n_factors"])
    return asked.get("n_units") == "auto" and not several and asked["max_bytes"] is None


def _decide_structure(draft: _Draft) -> None:
    facts = draft.facts
    if not facts.n_classes:
        draft.auto("structure", 1.0, "there are no labels")
    elif facts.is_partly_labeled:
        usual = _shares(draft.request, facts)[0]
        per_class = facts.n_labeled / facts.n_classes
        draft.auto("structure", usual, f"{per_class:,.0f} labels per class, others are missing")
    else:
        draft.auto("structure", 0.0, "all labels are known")
    draft.values["structure"] = float(draft.values["structure"])
    if not draft.values["structure"]:
        draft.auto("n_landmarks", 0, "no structure is preserved")
    enough = max(facts.n_rows // ROWS_PER_LANDMARK, round(NEAR * draft.values["perplexity"]) + 1)
    draft.auto("n_landmarks", min(LANDMARKS, facts.n_rows, enough), f"{facts.n_rows:,} rows")


def _decide_sizes(draft: _Draft) -> None:
    facts, defaults = draft.facts, draft.defaults
    usual = "as many as max_bytes allows, at most the usual" if draft.values["max_bytes"] else ""
    if "n_units" not in draft.values:
        draft.auto("n_factors", defaults.n_factors, usual or "the usual number for HOPE")
        return
    unlabeled = draft.preserves_structure and not facts.n_classes
    if unlabeled and _may_stack(draft.request) and facts.n_features >= FEW_FEATURES:
        draft.auto("n_units", TWO_LAYERS, f"no labels, and at least {FEW_FEATURES} features")
    draft.auto("n_units", defaults.n_units, usual or "the usual number")
    draft.auto("n_factors", defaults.n_factors, usual or "the usual number")
    layers = Layers.of(*(draft.values[name] for name in ("order", "n_factors", "n_units")))
    draft.values["n_factors"] = as_parameter(layers.n_factors)
    draft.values["n_units"] = as_parameter(layers.n_units)


def _decide_dropout(draft: _Draft) -> None:
    facts, small = draft.facts, draft.smallness**0.5
    few = (
        f"{facts.n_features:,} features are {'' if facts.n_features < FEW_FEATURES else 'not '}few"
    )
    if draft.preserves_structure and "n_units" in draft.values and draft.n_layers == 1:
        draft.auto("input_dropout", 0.0, "one layer that preserves structure needs all features")
    inputs = INPUT_DROPOUT * min(1, facts.n_columns / MANY_FEATURES)
    distorted = draft.values["augment"] is not None
    why = "images are distorted instead" if distorted else f"{facts.n_columns:,} features vary"
    draft.auto("input_dropout", 0.0 if distorted else inputs / small, why)
    units = draft.defaults.dropout if facts.n_features < FEW_FEATURES else 0.0
    draft.auto("dropout", units / small, few)


def _decide_adversarial(draft: _Draft) -> None:
    facts = draft.facts
    if draft.has_pseudo_labels:
        radius = RADIUS_WITH_PSEUDO_LABELS if draft.is_adam else 0.0
        draft.auto("adversarial", radius, "pseudo-labels are to hold around a row")
    elif draft.preserves_structure:
        draft.auto("adversarial", 0.0, "structure is preserved")
    many = facts.n_features >= FEW_FEATURES
    pixels = draft.values["scale"] is not None and facts.one_scale and facts.n_features > 1
    suits = draft.values["augment"] is None and draft.is_adam and not facts.is_sparse
    if suits and (many or pixels):
        why = f"{facts.n_features:,} features" if many else "features share one range"
        draft.auto("adversarial", RADIUS, why)
    draft.auto(
        "adversarial",
        0.0,
        f"{facts.n_features:,} features of different ranges"
        if suits
        else "not with augment, sparse rows, or this optimizer",
    )
    draft.values["adversarial"] = float(draft.values["adversarial"])


def _decide_schedule(draft: _Draft) -> None:
    """The batch size, the number of epochs, the patience and the step."""
    values, facts = draft.values, draft.facts
    high_order = draft.defaults.is_high_order
    if (
        high_order
        and draft.preserves_structure
        and draft.is_adam
        and values["exemplars"] == "joint"
    ):
        smallest, largest = BATCH_WITH_LANDMARKS
        size = min(max(facts.n_rows // 20, smallest), largest)
        draft.auto("batch_size", size, f"{facts.n_rows:,} rows, compared with landmarks")
    draft.auto("batch_size", _batch_size(draft), f"{facts.n_training:,} rows to learn from")
    epochs, why = _epochs(draft)
    draft.auto("max_epochs", epochs, why)
    if "max_epochs" in draft.decided:
        values["max_epochs"], draft.reasons["max_epochs"] = draft.decided["max_epochs"]
    draft.auto("patience", max(10, values["max_epochs"] // 2), "half of max_epochs, at least 10")
    if high_order:
        draft.auto("learning_rate", *_learning_rate(draft))
    values["learning_rate"] = float(values["learning_rate"])


def _batch_size(draft: _Draft) -> int:
    """Small enough for a score of steps per epoch, large enough for matrix products to pay."""
    n_rows = draft.facts.n_training
    if not draft.is_adam:  # a batch of sparse rows is made dense
        return min(5_000, max(n_rows // 4, 32)) if draft.facts.is_sparse else 5_000
    smallest, largest = (32, 250) if draft.values["exemplars"] == "joint" else (64, 1_000)
    return min(max(n_rows // 20, smallest), largest)


def _epochs(draft: _Draft) -> tuple[int, str]:
    """Enough epochs of so many steps; more than others need for high-order maps, as inputs drop."""
    if not draft.is_adam:
        return 50, f"optimizer={draft.values['optimizer']!r}"
    facts = draft.facts
    steps = facts.n_training / draft.values["batch_size"]
    usual = min(max(round(2_000 / steps), 30), 100)
    why = f"{steps:,.0f} steps per epoch"
    if not draft.defaults.is_high_order:
        return usual, why
    fewest = 50 if draft.values["adversarial"] else 70  # an adversarial epoch is two
    if draft.smallness > SMALL:
        fewest = 100
    crowded = min(max(1, facts.n_classes / MANY_CLASSES), 3)
    if crowded > 1:
        why += f", {facts.n_classes} classes"
    return round(min(crowded * max(usual, fewest), max(MANY_STEPS / steps, 10))), why


def _learning_rate(draft: _Draft) -> tuple[float, str]:
    few_rate, many_rate = draft.defaults.learning_rates
    n_features, layers = draft.facts.n_features, draft.n_layers
    if draft.preserves_structure and "n_units" in draft.values:
        return STRUCTURE_LEARNING_RATE / layers, "structure is preserved"
    many = n_features >= FEW_FEATURES
    rate = many_rate if many else few_rate / layers
    small = ", few factors" if draft.smallness > 1 else ""
    return rate * draft.smallness ** (1 / 3), f"{n_features:,} features{small}"


def _decide_evaluation(draft: _Draft) -> None:
    facts, values = draft.facts, draft.values
    with_exemplars = values["exemplars"] is not None
    votes = draft.request.votes(with_exemplars=with_exemplars)
    why = "exemplars vote by the kernel's mass" if votes is None else "training rows vote"
    if values["n_neighbors"] == "auto":
        draft.reasons["n_neighbors"] = "exemplars vote" if votes and with_exemplars else why
    values["n_neighbors"] = votes
    if values.get("augment"):
        draft.auto("scale", draft.request.scale, "pixels move between columns")
    elif facts.is_sparse:
        draft.auto("scale", "largest magnitude", "sparse rows keep their zeros")
    elif facts.one_scale:
        draft.auto("scale", "range", "columns share one range, as pixels do")
    else:
        draft.auto("scale", "standard", "columns have ranges of their own")
    if values["device"] == "auto":
        values["device"] = facts.best_device
        found = "no GPU was found" if facts.best_device == "cpu" else "a GPU was found"
        draft.reasons["device"] = found
    values["device"] = str(values["device"])
