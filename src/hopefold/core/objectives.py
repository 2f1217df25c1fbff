"""What is minimised: collapse onto exemplars (a sum over rows), and collapse onto pairs.

What keeps neighbours (affinities), and what baselines minimise, is in `neighborhoods`.

Every objective takes optional weights, one a row and equal within a class, whose mean over the
training rows is 1; on exemplars there are weights too: one of weight 2 counts as two in q. Each
objective has a slow twin, written in loops, in tests/oracles.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hopefold.core.kernels import log_student, squared_distances

if TYPE_CHECKING:
    from jaxtyping import Float, Int

#: From squared distances to the logarithms of similarities.
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
    r"""An exemplar loss, and its exact gradient to the points, of which the last are exemplars.

    With W = 1/(1 + d) and the share r_i of row i in the loss, both losses have

        ∂ℓ/∂d_ij = r_i (p_ij − q_ij) W_ij

    where p, over the exemplars of the row's class, is uniform or, to ``spread``, as q is among
    them.
    """
    # An exemplar is a row and a point a column: few long rows are quicker than many short ones.
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
    """An exemplar loss that autograd takes for a function of the points and the exemplars."""
    points = torch.cat([y, exemplars]).detach()
    others = (labels, exemplar_labels, weights, exemplar_weights)
    value, gradient = exemplar_loss_and_gradient(points, *others, spread=spread)
    return known(value, gradient.tensor_split([len(y)]), y, exemplars)


@torch.no_grad()
def class_probabilities(
    y: Float[Tensor, "n d"], exemplars: Float[Tensor, "z d"], exemplar_labels: Int[Tensor, " z"]
) -> Float[Tensor, "n classes"]:
    """How likely each class is for each point by q; weights of classes have no say."""
    mass = squared_distances(y, exemplars).add_(1).reciprocal_()
    shares = mass.new_zeros(len(y), int(exemplar_labels.max()) + 1)
    return shares.index_add_(1, exemplar_labels, mass).div_(mass.sum(dim=1, keepdim=True))


@torch.no_grad()
def pseudo_labels(
    shares: Float[Tensor, "n classes"], factors: Float[Tensor, " classes"]
) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"]]:
    """The likeliest class of each point, and how much likelier it is than the next one.

    Shares are multiplied by the factors first. How much likelier is 0 where the guess would change:
    what is weighted by it has no jumps.
    """
    shares = shares * factors
    shares /= shares.sum(dim=1, keepdim=True)
    shares = torch.nn.functional.pad(shares, (0, 1))  # of no class: one alone is certain
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
    with p uniform over the pairs of one class and q normalised over all pairs of the batch.
    Conditional: the mean over the rows of :math:`\mathrm{KL}(p_i \Vert q_i)`, each row normalised
    by itself; a row that is alone in its class says nothing. Costs O(n²), and is *not* a sum over
    rows: two half-batches are another objective.
    """
    if log_kernel is not log_student:
        return _collapse_onto_pairs(y, labels, weights, conditional, log_kernel)
    return known(*pair_loss_and_gradient(y, labels, weights, conditional=conditional), y)


def _collapse_onto_pairs(
    y: Tensor, labels: Tensor, weights: Tensor | None, conditional: bool, log_kernel: Kernel
) -> Tensor:
    """The pairwise loss under any kernel, its gradient left to autograd."""
    same_class = labels[:, None] == labels[None, :]
    same_class.fill_diagonal_(False)
    partners = same_class.sum(dim=1, dtype=y.dtype)
    shares = partners.clamp_max(1) if conditional else partners
    if weights is not None:
        shares = shares * weights
    shares = shares / shares.sum().clamp_min(torch.finfo(y.dtype).tiny)  # no pair at all: all zero

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
    r"""The pairwise loss, and its exact gradient to the points.

    Both forms of q are one computation. With W = 1/(1 + d), the share r_i of row i in the loss and
    the partners n_i it has in its class,

        ∂ℓ/∂d_ij = [same class] W_ij r_i/n_i − repel_i W_ij²
        joint:        r_i ∝ w_i n_i   repel_i = 1/Z       Z   = Σ_{k≠l} W_kl
        conditional:  r_i ∝ w_i       repel_i = r_i/Z_i   Z_i = Σ_{k≠i} W_ik

    Rows are sorted by class, so that a class is a block: logarithms are taken in the blocks alone,
    and the rest of the matrix costs one reciprocal and one square.
    """
    order = labels.argsort(stable=True)
    y, sizes = y[order], torch.bincount(labels)
    partners = (sizes[labels[order]] - 1).to(y.dtype)
    shares = partners.clamp_max(1) if conditional else partners.clone()
    if weights is not None:
        shares *= weights[order]
    shares /= shares.sum().clamp_min(torch.finfo(y.dtype).tiny)  # no pair at all: all zero
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
    normaliser = similarity.sum(dim=1)
    if not conditional:
        normaliser = normaliser.sum().expand_as(normaliser)
    p = 1 / partners.clamp_min(1) if conditional else attract
    loss += torch.xlogy(shares, p * normaliser).sum()

    tiny = torch.finfo(y.dtype).tiny  # one row alone: nothing to be repelled by
    repel = (shares if conditional else shares.sum()) / normaliser.clamp_min(tiny)
    both = torch.cat([extended, repel[:, None] * extended], dim=1)
    out, back = (similarity.square_() @ both).chunk(2, dim=1)
    gradient -= 2 * force(repel[:, None] * out + back, y)

    return loss, (torch.empty_like(gradient).index_copy_(0, order, gradient),)


class _Known(torch.autograd.Function):
    """A value whose slopes are known already."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, slopes: tuple[Tensor, ...], *_inputs: Tensor) -> Tensor:
        ctx.save_for_backward(*slopes)
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *(gradient * slope for slope in ctx.saved_tensors)


def known(value: Tensor, slopes: tuple[Tensor, ...], *inputs: Tensor) -> Tensor:
    """A value that autograd takes for a function of the inputs with these slopes."""
    apply: Callable[..., Tensor] = _Known.apply
    return apply(value, slopes, *inputs)


def _blocks(sizes: Tensor) -> list[slice]:
    """Where each class lies among rows sorted by class; empty classes left out."""
    ends = sizes.cumsum(0).tolist()
    return [slice(a, b) for a, b in zip([0, *ends], ends, strict=False) if b > a]


def homogeneous(y: Float[Tensor, "n d"]) -> Float[Tensor, "n d+1"]:
    """[y, 1]."""
    return torch.nn.functional.pad(y, (0, 1), value=1.0)


def force(product: Float[Tensor, "n d+1"], y: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Σ_j G_ij (y_i − y_j), given the product of G with [y, 1]."""
    return product[:, -1:] * y - product[:, :-1]


def log_similarities(y: Float[Tensor, "n d"], log_kernel: Kernel) -> Float[Tensor, "n n"]:
    """Logarithm of the kernel between all points; no point is similar to itself."""
    itself = torch.eye(len(y), dtype=torch.bool, device=y.device)
    return log_kernel(squared_distances(y, y)).masked_fill(itself, -torch.inf)


def weighted_mean(values: Tensor, weights: Tensor | None) -> Tensor:
    """The mean of values, each times its weight; plain where there are none."""
    return values.mean() if weights is None else (values * weights).mean()
