"""Neighbourhood components analysis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sklearn.neighbors import NeighborhoodComponentsAnalysis

from hopefold import checks
from hopefold.baselines.projection import (
    ClosedForm,
    LinearGradient,
    discriminants,
    varies_within_classes,
)
from hopefold.core.kernels import log_gaussian
from hopefold.core.neighborhoods import miss_neighbors
from hopefold.fitting.learning import Learned, Task
from hopefold.fitting.losses import Loss, onto_pairs

if TYPE_CHECKING:
    from numpy import ndarray

#: Rows up to which scikit-learn's exact form is taken: it compares all pairs in every step.
EXACT_UP_TO = 2_000

SOLVERS = ("auto", "exact", "batches")


@dataclass(kw_only=True, eq=False, repr=False)
class NCA(LinearGradient, ClosedForm):
    """Neighbourhood components analysis: a linear map in which neighbours are of one class.

    Parameters
    ----------
    solver : {"auto", "exact", "batches"}, default="auto"
        ``"exact"``: scikit-learn's, on all pairs of rows. ``"batches"``: the same objective on the
        pairs of mini-batches. ``"auto"``: exact up to 2,000 rows.
    max_iter : int, default=50
        Iterations of the exact solver.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the validation error and in `predict`; the map heeds them with
        the solver ``"batches"`` only.
    {parameters}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold.baselines import NCA
    >>> X, y = load_iris(return_X_y=True)
    >>> NCA(random_state=0).fit(X, y).score(X, y) > 0.9
    True

    """

    solver: str = "auto"
    max_iter: int = 50

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_choice("solver", self.solver, SOLVERS)
        checks.check_whole("max_iter", self.max_iter, at_least=1)

    def _make_loss(self, task: Task, training: ndarray) -> Loss:
        return onto_pairs(partial(miss_neighbors, log_kernel=log_gaussian))

    def _learn_from(
        self, task: Task, training: ndarray, held_out: ndarray, like: Learned | None = None
    ) -> Learned:
        exact = self.solver == "exact" or (
            self.solver == "auto" and len(task.labels) <= EXACT_UP_TO
        )
        if not exact:
            return LinearGradient._learn_from(self, task, training, held_out, like)
        return ClosedForm._learn_from(self, task, training, held_out, like)

    def _solve(self, x: ndarray, labels: ndarray, seed: int) -> ndarray:
        lda_fails = not varies_within_classes(x, labels) or not len(discriminants(x, labels))
        nca = NeighborhoodComponentsAnalysis(
            min(self.n_components, x.shape[1]),
            init="identity" if lda_fails else "auto",  # which may start from LDA
            max_iter=self.max_iter,
            random_state=seed,
        )
        directions: ndarray = nca.fit(x, labels).components_
        return directions
