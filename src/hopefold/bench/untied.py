"""An ablation: the maps of eq. 3, where each of the O factors of a product has weights of its own.

The paper ties them, C⁽¹⁾ = … = C⁽ᴼ⁾ = C, which turns a product into a power. Is that harmless?
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from hopefold.core.maps import HighOrder, SigmoidHighOrder, drop
from hopefold.estimators.hope import HOPE, SHOPE

if TYPE_CHECKING:
    from jaxtyping import Float


class UntiedHighOrder(HighOrder):
    """HOPE before its factors are tied: y = P Π_o (C⁽ᵒ⁾x + c⁽ᵒ⁾), eq. 3.

    C holds C⁽¹⁾ … C⁽ᴼ⁾ below each other.
    """

    def __init__(self, *sizes: int, **dropout: Any) -> None:
        super().__init__(*sizes, **dropout)
        n_factors, n_features = self.C.shape
        self.C = nn.Parameter(torch.empty(self.order * n_factors, n_features))
        self.c = nn.Parameter(torch.empty(self.order * n_factors))

    def interactions(
        self, x: Float[Tensor, "n features"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "n factors"]:
        """The polynomial units: a product of O different weighted sums of features for each."""
        x = drop(x, self.input_dropout, generator)
        sums = torch.addmm(self.c, x, self.C.T).chunk(self.order, dim=1)
        return drop(reduce(torch.mul, sums), self.dropout, generator)


class UntiedSigmoidHighOrder(UntiedHighOrder, SigmoidHighOrder):
    """S-HOPE before its factors are tied: y = P σ(W Π_o (C⁽ᵒ⁾x + c⁽ᵒ⁾) + b)."""


@dataclass(kw_only=True, eq=False, repr=False)
class UntiedHOPE(HOPE):
    """HOPE with the map of eq. 3; ``n_factors`` counts products."""

    def _make_map(self, n_features: int) -> nn.Module:
        sizes = (n_features, self.n_components, self.order, self._n_factors)
        return UntiedHighOrder(*sizes, **self._dropout(n_features))


@dataclass(kw_only=True, eq=False, repr=False)
class UntiedSHOPE(SHOPE):
    """S-HOPE with the map of eq. 3; ``n_factors`` counts products."""

    def _make_map(self, n_features: int) -> nn.Module:
        sizes = (n_features, self.n_components, self.order, self._n_factors, self._n_units)
        return UntiedSigmoidHighOrder(*sizes, **self._dropout(n_features))
