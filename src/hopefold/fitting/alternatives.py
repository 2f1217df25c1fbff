"""What is compared before a map is learned: settings that no rule can decide without the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hopefold.fitting import labeled_defaults as labeled
from hopefold.fitting.plan import resolve, structure_shares
from hopefold.fitting.plan_values import Facts, Plan, Request

#: The part of the epochs that an alternative is trained for, and the most rows that it may visit.
TRIAL, TRIAL_VISITS = 1 / 4, 1_000_000

#: Weight decays that are compared with none.
DECAYS = (0.3, 1.0)

#: Rows to learn from below which nothing is compared: too few would be left to compare on. Columns
#: are eliminated from more rows on, or where there are many columns. Many rows need no decay.
FEWEST_ROWS, ROWS_FOR_COLUMNS, MANY_COLUMNS = 250, 1_000, 200
FEWEST_COLUMNS, MOST_ROWS_OF_DECAYS = 2, 10_000


def alternatives(request: Request, facts: Facts) -> list[dict[str, tuple[Any, str]]]:
    """What is to be compared on held-out rows, the usual choice first; most often there is one."""
    asked = request.parameters
    if not (request.defaults.is_high_order and facts.is_partly_labeled):
        return [{}]
    if asked["structure"] != "auto" or not asked["validation_fraction"]:
        return [{}]
    shares = structure_shares(request, facts)
    tried = ", ".join(f"{share:g}" for share in sorted(shares))
    why = f"fewest held-out errors among {tried}"
    return [{"structure": (share, why)} for share in shares]


@dataclass(frozen=True)
class Comparisons:
    """What is compared with the usual settings on a part of the training rows."""

    columns: bool
    decays: tuple[float, ...]
    one_layer: dict[str, tuple[Any, str]] | None


def comparisons(request: Request, facts: Facts) -> Comparisons:
    """What there is to compare. Nothing for pixels and sparse rows, nor for few rows."""
    asked, n_rows = request.parameters, facts.n_training
    plain = not (facts.has_pixels or facts.is_sparse)
    if not plain or n_rows < FEWEST_ROWS or not request.defaults.is_high_order:
        return Comparisons(False, (), None)
    plan = resolve(request, facts)
    if (
        asked["effort"] == "fast"
        or not plan.learns_classes
        or facts.is_partly_labeled
        or not facts.n_classes
    ):
        return Comparisons(False, (), None)
    enough = n_rows >= ROWS_FOR_COLUMNS or facts.n_columns >= MANY_COLUMNS
    columns = asked["select_columns"] == "auto" and enough and facts.n_columns > FEWEST_COLUMNS
    decays = DECAYS if asked["weight_decay"] == "auto" and n_rows <= MOST_ROWS_OF_DECAYS else ()
    one_layer = None
    if request.leaves_layers:
        lower = "one layer has a lower loss on compared rows"
        sizes = {"n_units": labeled.WIDE, "n_factors": labeled.WIDE}
        settings = {**sizes, "max_epochs": labeled.epochs(n_rows, facts.n_classes, asked["effort"])}
        one_layer = {name: (value, lower) for name, value in settings.items()}
    return Comparisons(columns, decays, one_layer)


def for_trial(plan: Plan, n_training: int) -> tuple[int, str]:
    """The number of epochs of an alternative, and why."""
    epochs = min(TRIAL * plan.max_epochs, TRIAL_VISITS / n_training)
    return max(1, round(epochs)), "a trial"
