"""Stability of the feature interactions of a map across two fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sklearn.base import clone

from hopefold import checks
from hopefold.errors import InvalidParameter, UnstableInteractionsWarning, warn
from hopefold.estimators.high_order_embedding import HighOrderEmbedding
from hopefold.explain.term_tables import Interactions

if TYPE_CHECKING:
    from numpy import ndarray

#: With a smaller share of common interactions, two fits are considered unstable.
STABLE = 0.5


class Stability(NamedTuple):
    """The feature interactions of two fits, and the share of them that is common to both."""

    overlap: float
    shared: tuple[str, ...]
    fits: tuple[Interactions, Interactions]


def interaction_stability(
    model: HighOrderEmbedding,
    X: ndarray,
    y: ndarray,
    top: int = 20,
    random_states: tuple[int, int] = (0, 1),
) -> Stability:
    """Compare the feature interactions of two fits that differ only in their seed.

    The model is fitted twice, and the ``top`` interactions on the rows are compared. Warns
    (`UnstableInteractionsWarning`) if less than half of them are the same: then products are
    interchangeable, and single ones should not be interpreted. The model itself is not changed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import HOPE
    >>> from hopefold.evaluation import interaction_stability
    >>> X, y = load_iris(return_X_y=True)
    >>> interaction_stability(HOPE(order=1, max_epochs=20), X, y, top=4).overlap
    1.0

    """
    if not isinstance(model, HighOrderEmbedding):
        raise InvalidParameter(f"{model!r} has no feature interactions: give a HOPE or a SHOPE.")
    checks.check_whole("top", top, at_least=1)
    one, other = (
        clone(model).set_params(random_state=seed).fit(X, y).interactions(top, X, y)
        for seed in random_states
    )
    shared = tuple(name for name in one.names if name in other.names)
    overlap = len(shared) / max(len(one), 1)
    if overlap < STABLE:
        warn(
            f"of the {len(one)} products that drive the map most, only {len(shared)} are the same "
            f"in two fits with the seeds {random_states[0]} and {random_states[1]}: do not "
            "interpret single ones; give more rows, a lower order, or fewer redundant columns.",
            UnstableInteractionsWarning,
        )
    return Stability(overlap, shared, (one, other))
