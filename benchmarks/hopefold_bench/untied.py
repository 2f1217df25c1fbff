"""An ablation: S-HOPE with eq. 3, where each of the O factors of a product has its own weights.

The paper ties them, C⁽¹⁾ = … = C⁽ᴼ⁾ = C, which turns a product into a power. HOPE learns products
by default, and expands them to powers after training.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from hopefold.core.layers import product_gradient
from hopefold.core.maps import SigmoidHighOrder
from hopefold.estimators.shope import SHOPE
from hopefold.fitting.high_order import SHOPEMethod

if TYPE_CHECKING:
    from jaxtyping import Float


class UntiedSigmoidHighOrder(SigmoidHighOrder):
    """S-HOPE with untied factors: y = P σ(W Π_o (C⁽ᵒ⁾x + c⁽ᵒ⁾) + b).

    C contains C⁽¹⁾ … C⁽ᴼ⁾, stacked vertically.
    """

    def __init__(self, *sizes: int, **dropout: Any) -> None:
        super().__init__(*sizes, **dropout)
        n_factors, n_features = self.C.shape
        self.C = nn.Parameter(torch.empty(self.order * n_factors, n_features))
        self.c = nn.Parameter(torch.empty(self.order * n_factors))

    def multiply(
        self, sums: Float[Tensor, "n sums"], out: Tensor | None = None
    ) -> Float[Tensor, "n factors"]:
        """The product of O weighted sums of features for each unit."""
        product = reduce(torch.mul, sums.chunk(self.order, dim=1))
        return product if out is None else out.copy_(product)

    def backward_multiply(
        self, sums: Float[Tensor, "n sums"], gradient: Float[Tensor, "n factors"]
    ) -> Float[Tensor, "n sums"]:
        """Overwrite the sums with their gradients."""
        product_gradient(sums.view(len(sums), self.order, -1).movedim(1, 0), gradient)
        return sums


class UntiedMethod(SHOPEMethod):
    """S-HOPE with products in one layer."""

    def make_map(self, n_features: int) -> nn.Module:
        """Products of weighted sums, each with weights of its own."""
        plan = self.plan
        sizes = (n_features, plan.n_components, *(size for (size,) in plan.layers))
        rates = {"input_dropout": plan.input_dropout, "dropout": plan.dropout}
        return UntiedSigmoidHighOrder(*sizes, **rates)


@dataclass(kw_only=True, eq=False, repr=False)
class UntiedSHOPE(SHOPE):
    """S-HOPE with products; ``n_factors`` counts them."""

    method: ClassVar = UntiedMethod
