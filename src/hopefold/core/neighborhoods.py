"""What the baselines minimise: NCA, the large margin, and affinities of t-SNE.

As in `objectives`, weights are one a row, and every formula has a slow twin in tests/oracles.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hopefold.core.kernels import log_student, squared_distances
from hopefold.core.objectives import Kernel, log_similarities, weighted_mean

if TYPE_CHECKING:
    from jaxtyping import Float, Int

#: Halvings of the interval in which the width of a Gaussian is sought.
HALVINGS = 30


def miss_neighbors(
    y: Float[Tensor, "n d"],
    labels: Int[Tensor, " n"],
    weights: Float[Tensor, " n"] | None = None,
    *,
    log_kernel: Kernel,
) -> Float[Tensor, ""]:
    r"""How often a neighbour drawn at random is of another class (NCA).

    :math:`1 - \frac1n \sum_i w_i \sum_{j \ne i: L_j = L_i} q_{j|i}`, with q the kernel over all
    other points of the batch. Costs O(n²), and is not a sum over rows.
    """
    misses = labels[:, None] != labels[None, :]
    misses.fill_diagonal_(True)
    q = log_similarities(y, log_kernel).softmax(dim=1)
    hits = q.masked_fill(misses, 0).sum(dim=1)  # one row alone: no q, no hit
    return 1 - weighted_mean(hits, weights)


def large_margin(
    y: Float[Tensor, "n d"],
    labels: Int[Tensor, " n"],
    targets: Float[Tensor, "n k d"],
    weights: Float[Tensor, " n"] | None = None,
    *,
    pull: float = 0.5,
) -> Float[Tensor, ""]:
    r"""Keep a margin of 1 between target neighbours and impostors (LMNN).

    :math:`\frac1{nk} \sum_{i, j \in T_i} w_i \bigl( \mu d_{ij} + (1 - \mu)
    \sum_{l: L_l \ne L_i} [1 + d_{ij} - d_{il}]_+ \bigr)`, with the k target neighbours of a row
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
    r"""Give pairs of points the similarities that are asked for (t-SNE).

    :math:`\mathrm{KL}(p \Vert q) = \sum_{i \ne j} p_{ij} \log p_{ij}/q_{ij}`, with q the Student
    kernel normalised over all pairs of the batch. Costs O(n²), and is not a sum over rows.
    """
    similarities = log_similarities(y, log_student)
    log_q = similarities - similarities.logsumexp(dim=(0, 1))
    log_q = log_q.masked_fill(similarities.isneginf(), 0)  # a point with itself: p leaves it out
    return torch.xlogy(affinities, affinities).sum() - (affinities * log_q).sum()


@torch.no_grad()
def input_affinities(x: Float[Tensor, "n features"], perplexity: float) -> Float[Tensor, "n n"]:
    r"""The similarities of rows that t-SNE asks for: symmetric, summing to 1.

    Each row's Gaussian gets the width at which the entropy of its neighbours is log(perplexity),
    found by halving; :math:`p_{ij} = (p_{j|i} + p_{i|j}) / 2n`. Fewer rows than the perplexity
    asks for have half of the others for neighbours.
    """
    squared = squared_distances(x, x).fill_diagonal_(torch.inf)
    wanted = torch.log(torch.tensor(min(perplexity, (len(x) - 1) / 2), dtype=x.dtype))
    middle = squared[squared.isfinite()].mean()
    if middle > 0:  # else all rows are alike, or there is one only
        squared = squared / middle
    low = torch.full((len(x), 1), -20.0, dtype=x.dtype, device=x.device)  # of log(precision)
    high = torch.full_like(low, 20.0)
    for _ in range(HALVINGS):
        half = (low + high) / 2
        log_p = (-squared * half.exp()).log_softmax(dim=1)
        p = log_p.exp()
        too_wide = -(p * log_p.masked_fill(p == 0, 0)).sum(dim=1, keepdim=True) > wanted
        low, high = torch.where(too_wide, half, low), torch.where(too_wide, high, half)
    p.fill_diagonal_(0)
    return (p + p.T) / (2 * len(x))
