"""Maximally collapsing metric learning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hopefold.baselines.projection import LinearGradient
from hopefold.core.kernels import log_gaussian
from hopefold.core.objectives import collapse_onto_pairs
from hopefold.fitting.learning import Task
from hopefold.fitting.losses import Loss, onto_pairs

if TYPE_CHECKING:
    from numpy import ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class MCML(LinearGradient):
    """Maximally collapsing metric learning: a linear map in which classes collapse.

    Collapse onto pairs with a Gaussian kernel, each row normalised by itself, on mini-batches.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold.baselines import MCML
    >>> X, y = load_iris(return_X_y=True)
    >>> MCML(random_state=0).fit(X, y).score(X, y) > 0.9
    True

    """

    def _make_loss(self, task: Task, training: ndarray) -> Loss:
        return onto_pairs(partial(collapse_onto_pairs, conditional=True, log_kernel=log_gaussian))
