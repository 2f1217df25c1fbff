"""Is the error on held-out rows better than chance? If not, a warning says so."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scipy.special import bdtr

from hopefold.errors import ChanceWarning, warn

if TYPE_CHECKING:
    from numpy import ndarray

#: A held-out error that guessing reaches with at least this probability is no evidence of anything.
CHANCE = 0.001


def warn_of_chance(error: float, shares: ndarray, n_held_out: int) -> None:
    """One warning unless the held-out error is below that of always naming the commonest class.

    Below beyond chance: one-sided binomial test. The error is not that of the best epoch, which is
    the luckiest of many.
    """
    blind = 1 - float(shares.max())
    mistakes = round(error * n_held_out)
    if bdtr(mistakes, n_held_out, blind) < CHANCE:
        return
    if bdtr(0, n_held_out, blind) < CHANCE:
        message = (
            f"the map may show what is not there: its error on {n_held_out} held-out rows is "
            f"{error:.1%} in the last epochs, not clearly better than the {blind:.1%} of always "
            "naming the commonest class. Do not read clusters into it; give more rows, or features "
            "that tell more."
        )
    else:
        message = (
            f"{n_held_out} held-out rows are too few to tell whether the map shows anything: "
            "even without a mistake it could be chance. Give more rows, a larger "
            "validation_fraction, or ask hopefold.evaluation.permutation_test."
        )
    warn(message, ChanceWarning)


def warn_of_bad_refit(train_error: Any, validation_error: Any, n_held_out: float) -> None:
    """One warning if the map of all rows is worse on its own rows than held-out rows said.

    Worse beyond chance: by three standard errors of what the held-out rows tell, and one row more.
    """
    guess = max(validation_error, 1 / n_held_out)
    deviation = math.sqrt(guess * (1 - min(guess, 1)) / n_held_out)
    if train_error > validation_error + 3 * deviation + 1 / n_held_out:
        warn(
            f"the map may show what is not there: learned again from all rows, it judges "
            f"{train_error:.1%} of them wrongly, though held-out rows had {validation_error:.1%} "
            "before. Lower learning_rate, or set refit=False.",
            ChanceWarning,
        )
