"""Squared distances, and the kernels that make similarities of them: Student and Gaussian."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float


#: Up to so many coordinates, differences are quicker than a product, and exact.
FEW_COORDINATES = 2


def squared_distances(a: Float[Tensor, "n d"], b: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    """‖aᵢ − bⱼ‖², never below zero: of few coordinates as it is written, else by one product.

    For the product, both sides are moved to the centre of b first: in float32 the expansion
    a² + b² − 2ab loses digits when the points lie far from the origin.
    """
    if 0 < a.shape[1] <= FEW_COORDINATES:
        differences = a.T[:, :, None] - b.T.contiguous()[:, None]
        return differences.square_().sum(dim=0)
    centre = b.mean(dim=0).detach()
    a, b = a - centre, b - centre
    norms = a.square().sum(dim=1)[:, None] + b.square().sum(dim=1)[None, :]
    return torch.addmm(norms, a, b.T, alpha=-2).clamp_min(0)


def log_student(squared: Tensor) -> Tensor:
    """Log 1/(1 + d)."""
    return -torch.log1p(squared)


def log_gaussian(squared: Tensor) -> Tensor:
    """Log exp(−d)."""
    return -squared
