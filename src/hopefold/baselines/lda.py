"""Linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hopefold.baselines.projection import ClosedForm, discriminants

if TYPE_CHECKING:
    from numpy import ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class LDA(ClosedForm):
    """Linear discriminant analysis: scikit-learn's, with a map, references and a file.

    Classes span one direction less than there are classes; further coordinates are 0.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold.baselines import LDA
    >>> X, y = load_iris(return_X_y=True)
    >>> LDA(random_state=0).fit(X, y).transform(X).shape
    (150, 2)

    """

    def _solve(self, x: ndarray, labels: ndarray, seed: int) -> ndarray:
        return discriminants(x, labels)
