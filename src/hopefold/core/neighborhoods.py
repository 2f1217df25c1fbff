"""Objectives that preserve neighbors: t-SNE affinities, among rows or to landmarks; NCA; LMNN.

As in `objectives`, there is one weight per row, and tests/oracles.py has a loop version of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hopefold.core.kernels import squared_distances
from hopefold.core.objectives import (
    Kernel,
    force,
    homogeneous,
    known,
    log_similarities,
    weighted_mean,
)

if TYPE_CHECKING:
    from jaxtyping import Float, Int

#: Bisection steps in the search for the width of a Gaussian.
HALVINGS = 30


def miss_neighbors(
    y: Float[Tensor, "n d"],
    labels: Int[Tensor, " n"],
    weights: Float[Tensor, " n"] | None = None,
    *,
    log_kernel: Kernel,
) -> Float[Tensor, ""]:
    r"""Return the expected error of a neighbor drawn at random (NCA).

    :math:`1 - \frac1n \sum_i w_i \sum_{j \ne i: L_j = L_i} q_{j|i}`, with q the kernel over all
    other points of the batch. Costs O(n²), and is not a sum over rows.
    """
    misses = labels[:, None] != labels[None, :]
    misses.fill_diagonal_(True)
    q = log_similarities(y, log_kernel).softmax(dim=1)
    hits = q.masked_fill(misses, 0).sum(dim=1)  # a single row has no neighbors
    return 1 - weighted_mean(hits, weights)


def large_margin(
    y: Float[Tensor, "n d"],
    labels: Int[Tensor, " n"],
    targets: Float[Tensor, "n k d"],
    weights: Float[Tensor, " n"] | None = None,
    *,
    pull: float = 0.5,
) -> Float[Tensor, ""]:
    r"""Keep a margin of 1 between target neighbors and impostors (LMNN).

    :math:`\frac1{nk} \sum_{i, j \in T_i} w_i \bigl( \mu d_{ij} + (1 - \mu)
    \sum_{l: L_l \ne L_i} [1 + d_{ij} - d_{il}]_+ \bigr)`, with the k target neighbors of a row
    chosen beforehand and the impostors l among the points of the batch. Costs O(n² k), and is not
    a sum over rows.
    """
    near = (y[:, None, :] - targets).square().sum(dim=2)
    far = squared_distances(y, y)
    impostor = labels[:, None] != labels[None, :]
    intrusions = (1 + near[:, :, None] - far[:, None, :]).clamp_min(0)
    intrusion = (intrusions * impostor[:, None, :]).sum(dim=2)
    cost = (pull * near + (1 - pull) * intrusion).mean(dim=1)
    return weighted_mean(cost, weights)


def match_affinities(
    y: Float[Tensor, "n d"], affinities: Float[Tensor, "n n"]
) -> Float[Tensor, ""]:
    r"""Match the similarities of pairs of points to the given affinities (t-SNE).

    :math:`\mathrm{KL}(p \Vert q) = \sum_{i \ne j} p_{ij} \log p_{ij}/q_{ij}`, with q the Student
    kernel normalized over all pairs of the batch. Costs O(n²), and is not a sum over rows.
    """
    return known(*affinity_loss_and_gradient(y, affinities), y)


@torch.no_grad()
def affinity_loss_and_gradient(
    y: Float[Tensor, "n d"], affinities: Float[Tensor, "n n"]
) -> tuple[Float[Tensor, ""], tuple[Float[Tensor, "n d"]]]:
    r"""The loss of `match_affinities`, and its exact gradient to the points.

    With W = 1/(1 + d), ∂ℓ/∂d_ij = (p_ij − q_ij) W_ij.
    """
    similarity = squared_distances(y, y).add_(1).reciprocal_()
    similarity.fill_diagonal_(0)
    tiny = torch.finfo(y.dtype).tiny  # a single row has no pairs
    q = similarity / similarity.sum().clamp_min(tiny)
    loss = torch.xlogy(affinities, affinities / q.clamp_min(tiny)).sum()
    pull = similarity.mul_(affinities - q).mul_(4)
    return loss, (force(pull @ homogeneous(y), y),)


@torch.no_grad()
def landmark_loss_and_gradient(
    y: Float[Tensor, "n d"], landmarks: Float[Tensor, "z d"], affinities: Float[Tensor, "n z"]
) -> tuple[Float[Tensor, ""], tuple[Float[Tensor, "n d"], Float[Tensor, "z d"]]]:
    r"""Match the similarities of points to landmarks to the given affinities; return gradients.

    :math:`\frac1n \sum_i \mathrm{KL}(p_i \Vert q_i)`, with q the Student kernel over all
    landmarks: ∂ℓ/∂d_ij = (p_ij − q_ij) W_ij / n. Costs O(n z), and is a sum over points.
    """
    similarity = squared_distances(y, landmarks).add_(1).reciprocal_()
    q = similarity / similarity.sum(dim=1, keepdim=True)
    loss = torch.xlogy(affinities, affinities / q).sum() / len(y)
    pull = similarity.mul_(affinities - q).mul_(2 / len(y))
    to_points = force(pull @ homogeneous(landmarks), y)
    return loss, (to_points, force(pull.T @ homogeneous(y), landmarks))


@torch.no_grad()
def input_affinities(x: Float[Tensor, "n features"], perplexity: float) -> Float[Tensor, "n n"]:
    r"""Return the affinities of rows in t-SNE: symmetric, with sum 1.

    :math:`p_{ij} = (p_{j|i} + p_{i|j}) / 2n`, with Gaussians of the precision from `precisions`. If
    there are fewer rows than the perplexity requires, half of the other rows count as neighbors.
    """
    squared = squared_distances(x, x).fill_diagonal_(torch.inf)
    p = neighbor_shares(squared, precisions(squared, min(perplexity, (len(x) - 1) / 2)))
    p.fill_diagonal_(0)
    return (p + p.T) / (2 * len(x))


@torch.no_grad()
def precisions(squared: Float[Tensor, "n m"], perplexity: float) -> Float[Tensor, "n 1"]:
    """Return the precision of each row's Gaussian, whose entropy is log(perplexity).

    Found by bisection on squared distances; neighbors at infinite distance are ignored.
    """
    wanted = torch.log(torch.tensor(perplexity, dtype=squared.dtype))
    middle = squared[squared.isfinite()].mean()
    if not middle > 0:  # all rows are equal, or there is only one
        middle = torch.ones_like(middle)
    low = squared.new_full((len(squared), 1), -20.0)  # of log(precision)
    high = torch.full_like(low, 20.0)
    for _ in range(HALVINGS):
        half = (low + high) / 2
        log_p = (squared * (-half.exp() / middle)).log_softmax(dim=1)
        p = log_p.exp()
        too_wide = -(p * log_p.masked_fill(p == 0, 0)).sum(dim=1, keepdim=True) > wanted
        low, high = torch.where(too_wide, half, low), torch.where(too_wide, high, half)
    return half.exp() / middle


def neighbor_shares(
    squared: Float[Tensor, "n m"], precisions: Float[Tensor, "n 1"]
) -> Float[Tensor, "n m"]:
    """Return the probabilities of each row's neighbors under its Gaussian."""
    return (squared * -precisions).softmax(dim=1)
