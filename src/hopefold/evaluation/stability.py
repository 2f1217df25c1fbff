"""Do two fits agree on which interactions drive the map?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sklearn.base import clone

from hopefold import checks
from hopefold.errors import InvalidParameter, UnstableInteractionsWarning, warn
from hopefold.estimators.high_order_embedding import HighOrderEmbedding
from hopefold.explain.explainer import check_explains
from hopefold.explain.term_tables import Interactions

if TYPE_CHECKING:
    from numpy import ndarray

#: Two fits that have a smaller share of their interactions in common do not agree.
STABLE = 0.5


class Stability(NamedTuple):
    """The products of features that two fits name, and the share of them that both do."""

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
    """Do two fits that differ in their seed alone agree on what drives the map?

    The model is fitted anew twice, and the ``top`` interactions on the rows are compared. Warns
    (`UnstableInteractionsWarning`) if less than half of them are the same: then the products stand
    in for each other, and no single one of them should be believed. The model stays as it is.

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
        raise InvalidParameter(f"{model!r} multiplies no features: give a HOPE or a SHOPE.")
    check_explains(model.request().n_layers)
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
            f"in two fits with the seeds {random_states[0]} and {random_states[1]}: do not read "
            "meaning into single ones; give more rows, a lower order, or fewer columns that say "
            "the same.",
            UnstableInteractionsWarning,
        )
    return Stability(overlap, shared, (one, other))
