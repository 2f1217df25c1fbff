"""Each objective: its value by the loop oracle, its gradient, an invariance, how it shards."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

import oracles
from hopefold.core import objectives
from hopefold.core.kernels import log_gaussian, log_student

ON_EXEMPLARS = ["collapse_onto_exemplars", "spread_over_exemplars"]
CONDITIONAL = pytest.mark.parametrize("conditional", [False, True], ids=["joint", "conditional"])
KERNEL = pytest.mark.parametrize(
    ("log_kernel", "kernel"),
    [(log_student, oracles.student), (log_gaussian, oracles.gaussian)],
    ids=["student", "gaussian"],
)
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


def points(n, seed=0, *, scale=1.5):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(n, 2, generator=generator, dtype=torch.float64)


LABELS = torch.tensor([2, 0, 1, 0, 2, 2, 1, 0, 3])  # class 3 has one row only
EXEMPLAR_LABELS = torch.tensor([0, 0, 1, 2, 2, 2, 3])
CLASS_WEIGHTS = torch.tensor([0.5, 2.0, 1.25, 3.0], dtype=torch.float64)


def weights_of(labels, weighted):
    return CLASS_WEIGHTS[labels] if weighted else None


# -- onto exemplars ---------------------------------------------------------------------------


@WEIGHTED
@pytest.mark.parametrize("name", ON_EXEMPLARS)
def test_exemplar_objectives_equal_the_loops(name, weighted):
    arguments = (
        points(9),
        LABELS,
        points(7, seed=1),
        EXEMPLAR_LABELS,
        weights_of(LABELS, weighted),
        weights_of(EXEMPLAR_LABELS, weighted),
    )
    plain = [None if a is None else a.tolist() for a in arguments]
    assert float(getattr(objectives, name)(*arguments)) == pytest.approx(
        getattr(oracles, name)(*plain), rel=1e-12
    )


@WEIGHTED
@pytest.mark.parametrize("name", ON_EXEMPLARS)
def test_gradients_reach_points_and_exemplars(name, weighted):
    objective = getattr(objectives, name)
    y, exemplars = points(9).requires_grad_(), points(7, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda y, e: objective(
            y,
            LABELS,
            e,
            EXEMPLAR_LABELS,
            weights_of(LABELS, weighted),
            weights_of(EXEMPLAR_LABELS, weighted),
        ),
        (y, exemplars),
    )


def test_the_exemplar_gradient_is_the_one_the_paper_prints():
    y, exemplars = points(9), points(7, seed=1).requires_grad_()
    loss = objectives.collapse_onto_exemplars(y, LABELS, exemplars, EXEMPLAR_LABELS)
    (gradient,) = torch.autograd.grad(loss, exemplars)
    for j in range(7):
        printed = torch.zeros(2, dtype=torch.float64)
        for i in range(9):
            q = oracles.exemplar_q(y[i].tolist(), exemplars.tolist())[j]
            own = (LABELS[i] == EXEMPLAR_LABELS).sum().item()
            p = float(LABELS[i] == EXEMPLAR_LABELS[j]) / own
            kernel = oracles.student(y[i].tolist(), exemplars[j].tolist())
            printed += 2 * kernel * (p - q) * (exemplars[j].detach() - y[i]) / 9
        torch.testing.assert_close(gradient[j], printed)


@pytest.mark.parametrize("name", ON_EXEMPLARS)
def test_exemplar_objectives_do_not_see_where_the_origin_is(name):
    objective = getattr(objectives, name)
    shift = torch.tensor([30.0, -7.0], dtype=torch.float64)
    here = objective(points(9), LABELS, points(7, seed=1), EXEMPLAR_LABELS)
    there = objective(points(9) + shift, LABELS, points(7, seed=1) + shift, EXEMPLAR_LABELS)
    torch.testing.assert_close(here, there)


@pytest.mark.parametrize("name", ON_EXEMPLARS)
def test_two_half_batches_average_to_the_whole(name):
    objective = getattr(objectives, name)
    y, labels = points(8), LABELS[:8]
    rest = (points(7, seed=1), EXEMPLAR_LABELS)
    halves = [objective(y[half], labels[half], *rest) for half in (slice(4), slice(4, 8))]
    torch.testing.assert_close(sum(halves) / 2, objective(y, labels, *rest))


def test_collapsed_classes_cost_nothing():
    corners = torch.tensor([[0.0, 0.0], [1e4, 0.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 1])
    y = corners[labels]
    for name in ON_EXEMPLARS:
        loss = getattr(objectives, name)(y, labels, y, labels)
        assert float(loss) == pytest.approx(0, abs=1e-6)
    assert float(objectives.collapse_onto_pairs(y, labels, conditional=True)) == pytest.approx(
        0, abs=1e-6
    )
    assert float(objectives.collapse_onto_pairs(y, labels)) == pytest.approx(0, abs=1e-6)


def test_only_the_uniform_form_minds_exemplars_that_lie_apart():
    y = torch.tensor([[0.0, 0.0]], dtype=torch.float64)
    labels, exemplar_labels = torch.tensor([0]), torch.tensor([0, 0])
    near_and_far = torch.tensor([[0.0, 0.0], [9.0, 0.0]], dtype=torch.float64)
    spread = objectives.spread_over_exemplars(y, labels, near_and_far, exemplar_labels)
    uniform = objectives.collapse_onto_exemplars(y, labels, near_and_far, exemplar_labels)
    assert float(spread) == pytest.approx(0)
    assert float(uniform) > 0.5


@WEIGHTED
def test_spreading_under_a_gaussian_equals_the_loops(weighted):
    arguments = (
        points(9),
        LABELS,
        points(7, seed=1),
        EXEMPLAR_LABELS,
        weights_of(LABELS, weighted),
        weights_of(EXEMPLAR_LABELS, weighted),
    )
    plain = [None if a is None else a.tolist() for a in arguments]
    mine = objectives.spread_over_exemplars(*arguments, log_kernel=log_gaussian)
    loops = oracles.spread_over_exemplars(*plain, kernel=oracles.gaussian)
    assert float(mine) == pytest.approx(loops, rel=1e-12)


@WEIGHTED
def test_gradients_of_spreading_under_a_gaussian_are_exact(weighted):
    weights = weights_of(LABELS, weighted), weights_of(EXEMPLAR_LABELS, weighted)
    assert torch.autograd.gradcheck(
        lambda y, e: objectives.spread_over_exemplars(
            y, LABELS, e, EXEMPLAR_LABELS, *weights, log_kernel=log_gaussian
        ),
        (points(9).requires_grad_(), points(7, seed=1).requires_grad_()),
    )


def test_spreading_under_a_gaussian_does_not_see_where_the_origin_is():
    objective = partial(objectives.spread_over_exemplars, log_kernel=log_gaussian)
    here = objective(points(9), LABELS, points(7, seed=1), EXEMPLAR_LABELS)
    there = objective(points(9) + 30, LABELS, points(7, seed=1) + 30, EXEMPLAR_LABELS)
    torch.testing.assert_close(here, there)


def test_half_batches_spread_under_a_gaussian_average_to_the_whole():
    objective = partial(objectives.spread_over_exemplars, log_kernel=log_gaussian)
    y, labels = points(8), LABELS[:8]
    rest = (points(7, seed=1), EXEMPLAR_LABELS)
    halves = [objective(y[half], labels[half], *rest) for half in (slice(4), slice(4, 8))]
    torch.testing.assert_close(sum(halves) / 2, objective(y, labels, *rest))


# -- onto pairs -------------------------------------------------------------------------------


@WEIGHTED
@CONDITIONAL
@KERNEL
def test_pairwise_objective_equals_the_loops(conditional, weighted, log_kernel, kernel):
    y, weights = points(9), weights_of(LABELS, weighted)
    mine = objectives.collapse_onto_pairs(
        y, LABELS, weights, conditional=conditional, log_kernel=log_kernel
    )
    plain = None if weights is None else weights.tolist()
    loops = oracles.collapse_onto_pairs(
        y.tolist(), LABELS.tolist(), plain, conditional=conditional, kernel=kernel
    )
    assert float(mine) == pytest.approx(loops, rel=1e-12)


@WEIGHTED
@CONDITIONAL
@KERNEL
def test_pairwise_gradient_is_exact(conditional, weighted, log_kernel, kernel):
    objective = partial(
        objectives.collapse_onto_pairs,
        labels=LABELS,
        weights=weights_of(LABELS, weighted),
        conditional=conditional,
        log_kernel=log_kernel,
    )
    assert torch.autograd.gradcheck(objective, points(9).requires_grad_())


@WEIGHTED
@CONDITIONAL
def test_the_student_kernel_has_one_loss_and_gradient_written_out_or_not(conditional, weighted):
    y, weights = points(9).requires_grad_(), weights_of(LABELS, weighted)
    written_out = objectives.collapse_onto_pairs(y, LABELS, weights, conditional=conditional)
    by_autograd = objectives.collapse_onto_pairs(
        y, LABELS, weights, conditional=conditional, log_kernel=lambda d: -(1 + d).log()
    )
    torch.testing.assert_close(written_out, by_autograd)
    torch.testing.assert_close(
        *(torch.autograd.grad(loss, y)[0] for loss in (written_out, by_autograd))
    )


@CONDITIONAL
def test_a_gaussian_survives_points_that_lie_far_apart_in_float32(conditional):
    y = (1e3 * points(9)).float().requires_grad_()
    loss = objectives.collapse_onto_pairs(
        y, LABELS, conditional=conditional, log_kernel=log_gaussian
    )
    (gradient,) = torch.autograd.grad(loss, y)
    assert loss.isfinite()
    assert gradient.isfinite().all()


@CONDITIONAL
@KERNEL
def test_pairwise_objective_does_not_see_the_order_of_rows_or_a_rotation(
    conditional, log_kernel, kernel
):
    y, turn = points(9), math.radians(33)
    rotation = torch.tensor(
        [[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]], dtype=torch.float64
    )
    shuffle = torch.randperm(9, generator=torch.Generator().manual_seed(3))
    objective = partial(
        objectives.collapse_onto_pairs, conditional=conditional, log_kernel=log_kernel
    )
    there = objective(y[shuffle] @ rotation + 5, LABELS[shuffle])
    torch.testing.assert_close(objective(y, LABELS), there)


@CONDITIONAL
@KERNEL
def test_half_batches_of_pairs_are_another_objective(conditional, log_kernel, kernel):
    y, labels = points(8), LABELS[:8]
    objective = partial(
        objectives.collapse_onto_pairs, conditional=conditional, log_kernel=log_kernel
    )
    whole = objective(y, labels)
    halves = [objective(y[h], labels[h]) for h in (slice(4), slice(4, 8))]
    assert abs(float(sum(halves) / 2 - whole)) > 0.01


@pytest.mark.parametrize("n", [1, 3])
@CONDITIONAL
@KERNEL
def test_a_batch_without_a_pair_says_nothing(conditional, n, log_kernel, kernel):
    y = points(n).requires_grad_()
    loss = objectives.collapse_onto_pairs(
        y, torch.arange(n), conditional=conditional, log_kernel=log_kernel
    )
    (gradient,) = torch.autograd.grad(loss, y)
    assert float(loss.detach()) == 0
    assert not gradient.any()


@CONDITIONAL
def test_the_exact_gradient_beats_autograd_through_masks(conditional):
    """The reason the gradient is written out: see the objective's docstring."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randn(600, 2, generator=generator).requires_grad_()
    labels = torch.randint(10, (600,), generator=generator)

    def masked():
        d = torch.cdist(y, y, compute_mode="donot_use_mm_for_euclid_dist").square()
        off = ~torch.eye(len(y), dtype=torch.bool)
        kernel = (1 / (1 + d)) * off
        same = (labels[:, None] == labels[None, :]) & off
        total = kernel.sum(dim=1, keepdim=True) if conditional else kernel.sum()
        log_q = torch.where(same, (kernel / total).clamp_min(1e-30).log(), 0)
        if conditional:
            per_row = same.sum(dim=1)
            return (-log_q.sum(dim=1) / per_row - per_row.log()).mean()
        return -log_q.sum() / same.sum() - same.sum().log()

    exact = objectives.collapse_onto_pairs(y, labels, conditional=conditional)
    slow = masked()
    torch.testing.assert_close(exact, slow, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        *(torch.autograd.grad(loss, y)[0] for loss in (exact, slow)), rtol=1e-3, atol=1e-7
    )
