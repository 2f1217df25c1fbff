"""The plan of a fit: every setting as a value, and why. Each "auto" is decided here and only here.

`resolve` is a function of the parameters that the user has set, of a few facts of the data, and of
what earlier runs have decided; `hopefold.fitting.alternatives` names what is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hopefold.fitting import labeled_defaults as labeled
from hopefold.fitting.landmarks import NEAR
from hopefold.fitting.layer_sizes import Layers, as_parameter
from hopefold.fitting.plan_draft import SMALL, Draft
from hopefold.fitting.plan_values import MANY_FEATURES, Facts, Plan, Request

#: The usual share of features that are dropped in training, where there are many.
INPUT_DROPOUT = 0.25

#: Fewer features are few: units are dropped, steps are larger, and rows are not perturbed, as that
#: would move them to where others are, unless they are images.
FEW_FEATURES = 100

#: The largest step of S-HOPE with one layer where structure is preserved.
STRUCTURE_LEARNING_RATE = 6e-3

#: The layers that S-HOPE stacks by default without labels, where there are more than few features.
TWO_LAYERS = (400, 400)

#: The radius of adversarial perturbations, as a share of the spread of all rows; the same where
#: rows without a label have pseudo-labels, which are to hold around the row, too.
RADIUS, RADIUS_WITH_PSEUDO_LABELS = 0.1, 0.2

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

#: The usual share of the rows that is held out.
VALIDATION_FRACTION = 0.1

#: Few rows are held out in folds, the more the fewer rows: all folds together take about as long as
#: one fit of so many rows. The fewest folds, and the most.
FOLDED, FEWEST_FOLDS, MOST_FOLDS = 600, 3, 5

#: Rows up to which NCA takes scikit-learn's exact form, which compares all pairs in every step.
EXACT_UP_TO = 2_000


def resolve(
    request: Request, facts: Facts, decided: Mapping[str, tuple[Any, str]] | None = None
) -> Plan:
    """Decide everything that is "auto".

    ``decided`` holds what held-out rows have decided in earlier runs, each with a reason: it takes
    the place of an "auto", and of the number of epochs.
    """
    draft = Draft(request, facts, dict(decided or {}))
    if draft.defaults.is_high_order:
        _decide_structure(draft)
        _decide_sizes(draft)
        kept = f"{facts.n_columns:,} of {facts.n_features:,} columns"
        draft.auto("select_columns", facts.n_columns, kept)
        _decide_dropout(draft)
        _decide_adversarial(draft)
    if "optimizer" in draft.values:
        _decide_schedule(draft)
    if "solver" in draft.values:
        exact = facts.n_rows <= EXACT_UP_TO
        draft.auto("solver", "exact" if exact else "batches", f"{facts.n_rows:,} rows")
    _decide_evaluation(draft)
    return draft.plan()


def structure_shares(request: Request, facts: Facts) -> tuple[float, ...]:
    """Shares of the loss for structure that are compared where some labels are missing."""
    few = facts.n_labeled < FEW_LABELS * facts.n_classes
    joint = request.parameters["exemplars"] == "joint"
    return tuple(share for share in (SHARES_FEW if few else SHARES_MORE) if share or joint)


def _decide_structure(draft: Draft) -> None:
    facts = draft.facts
    if not facts.n_classes:
        draft.auto("structure", 1.0, "there are no labels")
    elif facts.is_partly_labeled:
        usual = structure_shares(draft.request, facts)[0]
        per_class = facts.n_labeled / facts.n_classes
        draft.auto("structure", usual, f"{per_class:,.0f} labels per class, others are missing")
    else:
        draft.auto("structure", 0.0, "all labels are known")
    draft.values["structure"] = float(draft.values["structure"])
    if not draft.values["structure"]:
        draft.auto("n_landmarks", 0, "no structure is preserved")
    enough = max(facts.n_rows // ROWS_PER_LANDMARK, round(NEAR * draft.values["perplexity"]) + 1)
    draft.auto("n_landmarks", min(LANDMARKS, facts.n_rows, enough), f"{facts.n_rows:,} rows")


def _decide_sizes(draft: Draft) -> None:
    facts, defaults = draft.facts, draft.defaults
    usual = "as many as max_bytes allows, at most the usual" if draft.values["max_bytes"] else ""
    if "n_units" not in draft.values:
        draft.auto("n_factors", defaults.n_factors, usual or "the usual number for HOPE")
        return
    unlabeled = draft.preserves_structure and not facts.n_classes
    if unlabeled and draft.request.leaves_layers and facts.n_features >= FEW_FEATURES:
        draft.auto("n_units", TWO_LAYERS, f"no labels, and at least {FEW_FEATURES} features")
    if draft.is_labeled and draft.learns_fast and draft.request.leaves_layers:
        sizes = labeled.layer_sizes(facts.n_training, facts.n_columns, draft.effort)
        table = f"{facts.n_training:,} rows to learn from, {facts.n_columns:,} columns"
        draft.auto("n_units", sizes, table)
    if draft.has_short_schedule:
        draft.auto("n_factors", tuple(draft.values["n_units"]), "as many as units")
    draft.auto("n_units", defaults.n_units, usual or "the usual number")
    draft.auto("n_factors", defaults.n_factors, usual or "the usual number")
    layers = Layers.of(*(draft.values[name] for name in ("order", "n_factors", "n_units")))
    draft.values["n_factors"] = as_parameter(layers.n_factors)
    draft.values["n_units"] = as_parameter(layers.n_units)


def _decide_dropout(draft: Draft) -> None:
    facts, small = draft.facts, draft.smallness**0.5
    few = (
        f"{facts.n_features:,} features are {'' if facts.n_features < FEW_FEATURES else 'not '}few"
    )
    if draft.preserves_structure and "n_units" in draft.values and draft.n_layers == 1:
        draft.auto("input_dropout", 0.0, "one layer that preserves structure needs all features")
    if draft.has_short_schedule:
        few_columns = facts.n_columns < FEW_FEATURES
        why = f"{facts.n_columns:,} features are {'' if few_columns else 'not '}few"
        draft.auto("dropout", labeled.DROPOUT if few_columns else 0.0, why)
        if facts.has_pixels:
            draft.auto("input_dropout", labeled.PIXEL_DROPOUT, "features are pixels")
        if facts.has_rare_features:
            draft.auto("input_dropout", labeled.SPARSE_DROPOUT, "rows are sparse")
    inputs = INPUT_DROPOUT * min(1, facts.n_columns / MANY_FEATURES)
    distorted = draft.values["augment"] is not None
    why = "images are distorted instead" if distorted else f"{facts.n_columns:,} features vary"
    draft.auto("input_dropout", 0.0 if distorted else inputs / small, why)
    units = draft.defaults.dropout if facts.n_features < FEW_FEATURES else 0.0
    draft.auto("dropout", units / small, few)


def _decide_adversarial(draft: Draft) -> None:
    facts = draft.facts
    if draft.has_pseudo_labels:
        radius = RADIUS_WITH_PSEUDO_LABELS if draft.is_adam else 0.0
        draft.auto("adversarial", radius, "pseudo-labels are to hold around a row")
    elif draft.preserves_structure:
        draft.auto("adversarial", 0.0, "structure is preserved")
    if draft.has_short_schedule:
        pixels = facts.has_pixels and draft.values["scale"] is not None
        why = "features are pixels" if pixels else "features are not pixels"
        draft.auto("adversarial", labeled.RADIUS if pixels else 0.0, why)
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


def _decide_schedule(draft: Draft) -> None:
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
    if draft.has_short_schedule:
        rows = f"{facts.n_training:,} rows to learn from"
        draft.auto("batch_size", labeled.batch_size(facts.n_training), rows)
        sparse, adversarial = facts.has_rare_features, bool(values["adversarial"])
        epochs = labeled.epochs(
            facts.n_training,
            facts.n_classes,
            draft.effort,
            adversarial=adversarial,
            sparse=sparse,
        )
        draft.auto("max_epochs", epochs, f"{rows}{', sparse ones' * sparse}")
        narrowest = min(draft.values["n_factors"])
        rate = labeled.learning_rate(narrowest, sparse=sparse)
        draft.auto("learning_rate", rate, f"{narrowest} factors{', sparse rows' * sparse}")
    draft.auto("batch_size", _batch_size(draft), f"{facts.n_training:,} rows to learn from")
    epochs, why = _epochs(draft)
    draft.auto("max_epochs", epochs, why)
    if "max_epochs" in draft.decided:
        values["max_epochs"], draft.reasons["max_epochs"] = draft.decided["max_epochs"]
    if high_order and draft.is_adam:
        draft.auto("patience", None, "the last epoch is kept")
    draft.auto("patience", max(10, values["max_epochs"] // 2), "half of max_epochs, at least 10")
    draft.auto("weight_decay", 0.0, "the usual one: no other was compared")
    if high_order:
        draft.auto("learning_rate", *_learning_rate(draft))
    values["learning_rate"] = float(values["learning_rate"])


def _batch_size(draft: Draft) -> int:
    """Small enough for a score of steps per epoch, large enough for matrix products to pay."""
    n_rows = draft.facts.n_training
    if not draft.is_adam:  # a batch of sparse rows is made dense
        return min(5_000, max(n_rows // 4, 32)) if draft.facts.is_sparse else 5_000
    smallest, largest = (32, 250) if draft.values["exemplars"] == "joint" else (64, 1_000)
    return min(max(n_rows // 20, smallest), largest)


def _epochs(draft: Draft) -> tuple[int, str]:
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
    epochs = min(crowded * max(usual, fewest), max(MANY_STEPS / steps, 10))
    return max(1, round(labeled.EFFORTS[draft.effort][1] * epochs)), why


def _learning_rate(draft: Draft) -> tuple[float, str]:
    few_rate, many_rate = draft.defaults.learning_rates
    n_features, layers = draft.facts.n_features, draft.n_layers
    if draft.preserves_structure and "n_units" in draft.values:
        return STRUCTURE_LEARNING_RATE / layers, "structure is preserved"
    many = n_features >= FEW_FEATURES
    rate = many_rate if many else few_rate / layers
    small = ", few factors" if draft.smallness > 1 else ""
    return rate * draft.smallness ** (1 / 3), f"{n_features:,} features{small}"


def _decide_evaluation(draft: Draft) -> None:
    facts, values = draft.facts, draft.values
    if draft.defaults.is_high_order and draft.cross_fits:
        n_folds = min(max(FOLDED // facts.n_rows, FEWEST_FOLDS), MOST_FOLDS)
        why = f"{facts.n_rows} rows are few: each is in one of {n_folds} folds"
        draft.auto("validation_fraction", 1 / n_folds, why)
    draft.auto("validation_fraction", VALIDATION_FRACTION, "a tenth of the rows")
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
