"""Squared distances, and kernels that map them to similarities: Student and Gaussian."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float


#: Up to this number of coordinates, differences are faster than a matrix product, and exact.
FEW_COORDINATES = 2


def squared_distances(a: Float[Tensor, "n d"], b: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    """Return ‖aᵢ − bⱼ‖², never negative: by differences if d is small, else by a product.

    For the matrix product, both sides are centered at the mean of b: in float32 the expansion
    a² + b² − 2ab loses digits when the points are far from the origin.
    """
    if 0 < a.shape[1] <= FEW_COORDINATES:
        differences = a.T[:, :, None] - b.T.contiguous()[:, None]
        return differences.square_().sum(dim=0)
    center = b.mean(dim=0).detach()
    a, b = a - center, b - center
    norms = a.square().sum(dim=1)[:, None] + b.square().sum(dim=1)[None, :]
    return torch.addmm(norms, a, b.T, alpha=-2).clamp_min(0)


def log_student(squared: Tensor) -> Tensor:
    """Return log 1/(1 + d)."""
    return -torch.log1p(squared)


def log_gaussian(squared: Tensor) -> Tensor:
    """Return log exp(−d)."""
    return -squared
