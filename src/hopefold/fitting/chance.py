"""Warnings about held-out errors that are not better than chance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scipy.special import bdtr, betaincinv

from hopefold.errors import ChanceWarning, NoValidationWarning, warn

if TYPE_CHECKING:
    from numpy import ndarray

#: The significance level of the test.
CHANCE = 0.001

#: The confidence of the interval of an error.
CONFIDENCE = 0.95


def warn_of_chance(error: float, shares: ndarray, n_held_out: int) -> None:
    """Warn unless the held-out error is clearly below that of always predicting the majority class.

    By a one-sided binomial test. The error is that of the last epochs, since the error of the best
    epoch is optimistically biased.
    """
    blind = 1 - float(shares.max())
    n_misclassified = round(error * n_held_out)
    if bdtr(n_misclassified, n_held_out, blind) < CHANCE:
        return
    if bdtr(0, n_held_out, blind) < CHANCE:
        message = (
            f"the map may show what is not there: its error on {n_held_out} held-out rows is "
            f"{error:.1%} in the last epochs, not clearly better than the {blind:.1%} of always "
            "predicting the most common class. Do not interpret clusters in it; give more rows, "
            "or more informative features."
        )
    else:
        message = (
            f"{n_held_out} held-out rows are too few to tell whether the map shows anything: "
            "even without an error it could be chance. Give more rows, a larger "
            "validation_fraction, or use hopefold.evaluation.permutation_test."
        )
    warn(message, ChanceWarning)


def warn_of_no_validation() -> None:
    """Warn that no error is known."""
    warn(
        "no row could be held out, so there is no validation error: give more rows, fewer "
        "exemplars, or validation_fraction=0.",
        NoValidationWarning,
    )


def error_interval(error: float, n_rows: float) -> tuple[float, float]:
    """The 95 % confidence interval of an error on so many rows (Clopper and Pearson, 1934)."""
    wrong = min(max(error * n_rows, 0.0), n_rows)
    tail = (1 - CONFIDENCE) / 2
    low = betaincinv(wrong, n_rows - wrong + 1, tail) if wrong > 0 else 0.0
    high = betaincinv(wrong + 1, n_rows - wrong, 1 - tail) if wrong < n_rows else 1.0
    return float(low), float(high)


def warn_of_bad_refit(train_error: Any, validation_error: Any, n_held_out: float) -> None:
    """Warn if the map of all rows has a larger training error than the held-out error before.

    The threshold is three standard errors of the held-out error, and one row more.
    """
    guess = max(validation_error, 1 / n_held_out)
    deviation = math.sqrt(guess * (1 - min(guess, 1)) / n_held_out)
    if train_error > validation_error + 3 * deviation + 1 / n_held_out:
        warn(
            f"the map may show what is not there: learned again from all rows, it misclassifies "
            f"{train_error:.1%} of them, though the held-out error was {validation_error:.1%} "
            "before. Lower learning_rate, or set refit=False.",
            ChanceWarning,
        )
