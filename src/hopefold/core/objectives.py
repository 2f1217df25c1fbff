"""Objectives of HOPE: collapse onto exemplars (a sum over rows), and collapse onto pairs.

Objectives that preserve neighbors (affinities), and those of the baselines, are in `neighborhoods`.

Every objective takes optional weights, one per row and equal within a class, whose mean over the
training rows is 1. Exemplars can have weights, too: weight 2 counts twice in q. tests/oracles.py
has a slow version of each objective, written in loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hopefold.core.kernels import log_student, squared_distances

if TYPE_CHECKING:
    from jaxtyping import Float, Int

#: A function from squared distances to log-similarities.
Kernel = Callable[[Tensor], Tensor]


def collapse_onto_exemplars(
    y: Float[Tensor, "n d"],
    labels: Int[Tensor, " n"],
    exemplars: Float[Tensor, "z d"],
    exemplar_labels: Int[Tensor, " z"],
    weights: Float[Tensor, " n"] | None = None,
    exemplar_weights: Float[Tensor, " z"] | None = None,
) -> Float[Tensor, ""]:
    r"""Pull each point onto the exemplars of its own class (eq. 9).

    :math:`\frac1n \sum_i w_i \mathrm{KL}(p_i \Vert q_i)`, with p uniform over the exemplars of the
    point's class and q the Student kernel over all of them. Zero when classes have collapsed.
    Costs O(n z), and is a sum over points: shards of a batch may be averaged.
    """
    arguments = (y, labels, exemplars, exemplar_labels, weights, exemplar_weights)
    return _exemplar_loss(*arguments, spread=False)


def spread_over_exemplars(
    y: Float[Tensor, "n d"],
    labels: Int[Tensor, " n"],
    exemplars: Float[Tensor, "z d"],
    exemplar_labels: Int[Tensor, " z"],
    weights: Float[Tensor, " n"] | None = None,
    exemplar_weights: Float[Tensor, " z"] | None = None,
    log_kernel: Kernel = log_student,
) -> Float[Tensor, ""]:
    r"""Pull each point to any exemplar of its own class.

    :math:`-\frac1n \sum_i w_i \log \sum_{j: L_j = L_i} q_{j|i}`. Unlike the uniform p of
    `collapse_onto_exemplars`, it lets the exemplars of a class lie apart. Same cost, same sum.
    """
    if log_kernel is log_student:
        arguments = (y, labels, exemplars, exemplar_labels, weights, exemplar_weights)
        return _exemplar_loss(*arguments, spread=True)
    same_class = labels[:, None] == exemplar_labels[None, :]
    similarity = log_kernel(squared_distances(y, exemplars))
    if exemplar_weights is not None:
        similarity = similarity + exemplar_weights.log()
    log_q = similarity.log_softmax(dim=1)
    surprise = -log_q.masked_fill(~same_class, -torch.inf).logsumexp(dim=1)
    return weighted_mean(surprise, weights)


def exemplar_loss_and_gradient(
    points: Float[Tensor, "n+z d"],
    labels: Int[Tensor, " n"],
    exemplar_labels: Int[Tensor, " z"],
    weights: Float[Tensor, " n"] | None = None,
    exemplar_weights: Float[Tensor, " z"] | None = None,
    *,
    spread: bool = False,
) -> tuple[Float[Tensor, ""], Float[Tensor, "n+z d"]]:
    r"""Return an exemplar loss and its exact gradient; the last points are the exemplars.

    With W = 1/(1 + d) and the share r_i of row i in the loss, both losses have

        ∂ℓ/∂d_ij = r_i (p_ij − q_ij) W_ij

    where p is a distribution over the exemplars of the row's class: uniform or, with ``spread``,
    proportional to q.
    """
    # Points are columns: operations over a few long rows are faster than over many short ones.
    n_rows, columns = labels.shape[0], points.T.contiguous()
    y, exemplars = columns[:, :n_rows], columns[:, n_rows:]
    similarity = squared_distances(exemplars.T, y.T).add_(1).reciprocal_()
    mass = similarity if exemplar_weights is None else similarity * exemplar_weights[:, None]
    q = mass / mass.sum(dim=0)
    inside = torch.eq(labels, exemplar_labels[:, None], out=torch.empty_like(q))
    if spread:
        inside.mul_(q)
    own = inside.sum(dim=0)
    p = inside.div_(own)
    shares = 1 / n_rows if weights is None else weights / n_rows
    agreement = own.log() if spread else q.mul(own).log_().mul_(p)
    value = agreement.mul_(shares).sum().neg_()
    push = similarity.mul_(q.sub_(p)).mul_(2 * shares)
    gradient = torch.empty_like(columns)
    torch.mm(exemplars, push, out=gradient[:, :n_rows]).addcmul_(push.sum(dim=0), y, value=-1)
    torch.mm(y, push.T, out=gradient[:, n_rows:]).addcmul_(push.sum(dim=1), exemplars, value=-1)
    return value, gradient.T


def _exemplar_loss(
    y: Tensor,
    labels: Tensor,
    exemplars: Tensor,
    exemplar_labels: Tensor,
    weights: Tensor | None,
    exemplar_weights: Tensor | None,
    *,
    spread: bool,
) -> Float[Tensor, ""]:
    """Return an exemplar loss as a function of points and exemplars, for autograd."""
    points = torch.cat([y, exemplars]).detach()
    others = (labels, exemplar_labels, weights, exemplar_weights)
    value, gradient = exemplar_loss_and_gradient(points, *others, spread=spread)
    return known(value, gradient.tensor_split([len(y)]), y, exemplars)


@torch.no_grad()
def class_probabilities(
    y: Float[Tensor, "n d"], exemplars: Float[Tensor, "z d"], exemplar_labels: Int[Tensor, " z"]
) -> Float[Tensor, "n classes"]:
    """Return the probability of each class under q, without class weights."""
    mass = squared_distances(y, exemplars).add_(1).reciprocal_()
    shares = mass.new_zeros(len(y), int(exemplar_labels.max()) + 1)
    return shares.index_add_(1, exemplar_labels, mass).div_(mass.sum(dim=1, keepdim=True))


@torch.no_grad()
def pseudo_labels(
    shares: Float[Tensor, "n classes"], factors: Float[Tensor, " classes"]
) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"]]:
    """Return the most probable class of each point, and its margin over the second one.

    Shares are multiplied by the factors first. The margin is 0 where the predicted class changes,
    so a loss that is weighted by it is continuous.
    """
    shares = shares * factors
    shares /= shares.sum(dim=1, keepdim=True)
    shares = torch.nn.functional.pad(shares, (0, 1))  # an empty class: margin 1 if alone
    (first, second), (guesses, _) = (found.unbind(1) for found in shares.topk(2, dim=1))
    return guesses, first - second


def collapse_onto_pairs(
    y: Float[Tensor, "n d"],
    labels: Int[Tensor, " n"],
    weights: Float[Tensor, " n"] | None = None,
    *,
    conditional: bool = False,
    log_kernel: Kernel = log_student,
) -> Float[Tensor, ""]:
    r"""Pull all points of a class onto each other (eq. 8; MCML with another kernel).

    Joint (the default): :math:`\mathrm{KL}(p \Vert q) = \sum_{i \ne j} p_{ij} \log p_{ij}/q_{ij}`,
    with p uniform over the pairs of one class and q normalized over all pairs of the batch.
    Conditional: the mean over the rows of :math:`\mathrm{KL}(p_i \Vert q_i)`, each row normalized
    separately; a row without another row of its class is ignored. Costs O(n²), and is *not* a sum
    over rows: the objective of two half-batches differs from that of the whole.
    """
    if log_kernel is not log_student:
        return _collapse_onto_pairs(y, labels, weights, conditional, log_kernel)
    return known(*pair_loss_and_gradient(y, labels, weights, conditional=conditional), y)


def _collapse_onto_pairs(
    y: Tensor, labels: Tensor, weights: Tensor | None, conditional: bool, log_kernel: Kernel
) -> Tensor:
    """Return the pairwise loss under any kernel, differentiable by autograd."""
    same_class = labels[:, None] == labels[None, :]
    same_class.fill_diagonal_(False)
    partners = same_class.sum(dim=1, dtype=y.dtype)
    shares = partners.clamp_max(1) if conditional else partners
    if weights is not None:
        shares = shares * weights
    shares = shares / shares.sum().clamp_min(torch.finfo(y.dtype).tiny)  # zero if there is no pair

    log_q = log_similarities(y, log_kernel)
    log_q = log_q - log_q.logsumexp(dim=1 if conditional else (0, 1), keepdim=True)
    inside = log_q.masked_fill(~same_class, 0).sum(dim=1)
    p = 1 / partners.clamp_min(1) if conditional else shares / partners.clamp_min(1)
    return torch.xlogy(shares, p).sum() - (shares / partners.clamp_min(1) * inside).sum()


@torch.no_grad()
def pair_loss_and_gradient(
    y: Float[Tensor, "n d"],
    labels: Int[Tensor, " n"],
    weights: Float[Tensor, " n"] | None = None,
    *,
    conditional: bool = False,
) -> tuple[Float[Tensor, ""], tuple[Float[Tensor, "n d"]]]:
    r"""Return the pairwise loss and its exact gradient with respect to the points.

    Both forms of q share one computation. With W = 1/(1 + d), the share r_i of row i in the loss
    and the number n_i of other rows in its class,

        ∂ℓ/∂d_ij = [same class] W_ij r_i/n_i − repel_i W_ij²
        joint:        r_i ∝ w_i n_i   repel_i = 1/Z       Z   = Σ_{k≠l} W_kl
        conditional:  r_i ∝ w_i       repel_i = r_i/Z_i   Z_i = Σ_{k≠i} W_ik

    Rows are sorted by class, so that a class is a diagonal block. Logarithms are computed only in
    the blocks; the rest of the matrix costs one reciprocal and one square.
    """
    order = labels.argsort(stable=True)
    y, sizes = y[order], torch.bincount(labels)
    partners = (sizes[labels[order]] - 1).to(y.dtype)
    shares = partners.clamp_max(1) if conditional else partners.clone()
    if weights is not None:
        shares *= weights[order]
    shares /= shares.sum().clamp_min(torch.finfo(y.dtype).tiny)  # zero if there is no pair
    attract = shares / partners.clamp_min(1)

    similarity = squared_distances(y, y).add_(1).reciprocal_()
    similarity.fill_diagonal_(1)  # exactly: log 1 = 0, and no force on itself
    extended = homogeneous(y)
    gradient = torch.empty_like(y)
    loss = y.new_zeros(())
    for block in _blocks(sizes):
        inside, pull = similarity[block, block], attract[block.start]
        loss -= pull * inside.log().sum()
        gradient[block] = 4 * pull * force(inside @ extended[block], y[block])

    similarity.fill_diagonal_(0)
    normalizer = similarity.sum(dim=1)
    if not conditional:
        normalizer = normalizer.sum().expand_as(normalizer)
    p = 1 / partners.clamp_min(1) if conditional else attract
    loss += torch.xlogy(shares, p * normalizer).sum()

    tiny = torch.finfo(y.dtype).tiny  # a single row has no pairs
    repel = (shares if conditional else shares.sum()) / normalizer.clamp_min(tiny)
    both = torch.cat([extended, repel[:, None] * extended], dim=1)
    out, back = (similarity.square_() @ both).chunk(2, dim=1)
    gradient -= 2 * force(repel[:, None] * out + back, y)

    return loss, (torch.empty_like(gradient).index_copy_(0, order, gradient),)


class _Known(torch.autograd.Function):
    """A value whose gradients have been computed already."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: tuple[Tensor, ...], *_inputs: Tensor) -> Tensor:
        ctx.save_for_backward(*gradients)
        return value

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *(grad_output * gradient for gradient in ctx.saved_tensors)


def known(value: Tensor, gradients: tuple[Tensor, ...], *inputs: Tensor) -> Tensor:
    """Return the value with these gradients with respect to the inputs, for autograd."""
    apply: Callable[..., Tensor] = _Known.apply
    return apply(value, gradients, *inputs)


def _blocks(sizes: Tensor) -> list[slice]:
    """Return the slice of each nonempty class among rows sorted by class."""
    ends = sizes.cumsum(0).tolist()
    return [slice(a, b) for a, b in zip([0, *ends], ends, strict=False) if b > a]


def homogeneous(y: Float[Tensor, "n d"]) -> Float[Tensor, "n d+1"]:
    """Return [y, 1]."""
    return torch.nn.functional.pad(y, (0, 1), value=1.0)


def force(product: Float[Tensor, "n d+1"], y: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Return Σ_j G_ij (y_i − y_j), given the product of G with [y, 1]."""
    return product[:, -1:] * y - product[:, :-1]


def log_similarities(y: Float[Tensor, "n d"], log_kernel: Kernel) -> Float[Tensor, "n n"]:
    """Return the logarithm of the kernel between all points, −inf on the diagonal."""
    itself = torch.eye(len(y), dtype=torch.bool, device=y.device)
    return log_kernel(squared_distances(y, y)).masked_fill(itself, -torch.inf)


def weighted_mean(values: Tensor, weights: Tensor | None) -> Tensor:
    """Return the weighted mean of values; without weights, the mean."""
    return values.mean() if weights is None else (values * weights).mean()
