"""What the baselines minimize: its value by the loops, its gradient, an invariance, how it shards.

And the affinities that t-SNE asks for.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold._t_sne import _joint_probabilities

import oracles
from hopefold.core.kernels import log_gaussian, log_student
from hopefold.core.neighborhoods import (
    input_affinities,
    landmark_loss_and_gradient,
    large_margin,
    match_affinities,
    miss_neighbors,
    neighbor_shares,
    precisions,
)

LABELS = torch.tensor([2, 0, 1, 0, 2, 2, 1, 0, 3])  # class 3 has one row only
CLASS_WEIGHTS = torch.tensor([0.5, 2.0, 1.25, 3.0], dtype=torch.float64)
HALVES = (slice(4), slice(4, 8))

KERNEL = pytest.mark.parametrize(
    ("log_kernel", "kernel"),
    [(log_student, oracles.student), (log_gaussian, oracles.gaussian)],
    ids=["student", "gaussian"],
)
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


def points(*shape, seed=0, scale=0.8):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, generator=generator, dtype=torch.float64)


def weights_of(labels, weighted):
    return CLASS_WEIGHTS[labels] if weighted else None


def plain(tensor):
    return None if tensor is None else tensor.tolist()


def moved(y):
    """Turned by 33 degrees, then shifted."""
    turn = math.radians(33)
    rotation = [[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]]
    shift = torch.tensor([30.0, -7.0], dtype=torch.float64)
    return y @ torch.tensor(rotation, dtype=torch.float64) + shift


def affinities_of(n, seed=5):
    """Symmetric, summing to 1, with a pair that is not to be near at all."""
    p = points(n, n, seed=seed).abs()
    p[0, 1] = p[1, 0] = 0
    p = (p + p.T).fill_diagonal_(0)
    return p / p.sum()


# -- NCA --------------------------------------------------------------------------------------


@WEIGHTED
@KERNEL
def test_missed_neighbors_equal_the_loops(log_kernel, kernel, weighted):
    y, weights = points(9, 2), weights_of(LABELS, weighted)
    mine = miss_neighbors(y, LABELS, weights, log_kernel=log_kernel)
    loops = oracles.miss_neighbors(y.tolist(), LABELS.tolist(), plain(weights), kernel=kernel)
    assert float(mine) == pytest.approx(loops, rel=1e-12)


@WEIGHTED
@KERNEL
def test_the_gradient_of_missed_neighbors_is_exact(log_kernel, kernel, weighted):
    objective = partial(
        miss_neighbors,
        labels=LABELS,
        weights=weights_of(LABELS, weighted),
        log_kernel=log_kernel,
    )
    assert torch.autograd.gradcheck(objective, points(9, 2).requires_grad_())


@KERNEL
def test_missed_neighbors_do_not_see_where_the_points_lie_or_how_they_are_turned(
    log_kernel, kernel
):
    y = points(9, 2)
    torch.testing.assert_close(
        miss_neighbors(moved(y), LABELS, log_kernel=log_kernel),
        miss_neighbors(y, LABELS, log_kernel=log_kernel),
    )


@KERNEL
def test_half_batches_of_missed_neighbors_are_another_objective(log_kernel, kernel):
    y, labels = points(8, 2), LABELS[:8]
    whole = miss_neighbors(y, labels, log_kernel=log_kernel)
    halves = [miss_neighbors(y[h], labels[h], log_kernel=log_kernel) for h in HALVES]
    assert abs(float(sum(halves) / 2 - whole)) > 0.01


@KERNEL
def test_neighbors_are_never_missed_where_classes_lie_far_apart(log_kernel, kernel):
    labels = torch.tensor([0, 0, 1, 1])
    y = torch.tensor([[0.0, 0.0], [1e4, 0.0]], dtype=torch.float64)[labels]
    assert float(miss_neighbors(y, labels, log_kernel=log_kernel)) == pytest.approx(0, abs=1e-6)


@KERNEL
def test_a_batch_of_one_row_has_no_neighbor_and_pulls_nowhere(log_kernel, kernel):
    y = points(1, 2).requires_grad_()
    loss = miss_neighbors(y, LABELS[:1], log_kernel=log_kernel)
    (gradient,) = torch.autograd.grad(loss, y)
    assert float(loss.detach()) == 1
    assert not gradient.any()


# -- the large margin -------------------------------------------------------------------------


@WEIGHTED
@pytest.mark.parametrize("pull", [0.0, 0.3, 0.5])
def test_the_large_margin_equals_the_loops(pull, weighted):
    y, targets, weights = points(9, 2), points(9, 3, 2, seed=1), weights_of(LABELS, weighted)
    mine = large_margin(y, LABELS, targets, weights, pull=pull)
    arguments = (plain(value) for value in (y, LABELS, targets, weights))
    assert float(mine) == pytest.approx(oracles.large_margin(*arguments, pull=pull), rel=1e-12)


@WEIGHTED
def test_the_gradient_of_the_large_margin_reaches_points_and_targets(weighted):
    assert torch.autograd.gradcheck(
        lambda y, targets: large_margin(y, LABELS, targets, weights_of(LABELS, weighted)),
        (points(9, 2).requires_grad_(), points(9, 3, 2, seed=1).requires_grad_()),
    )


def test_the_large_margin_does_not_see_where_the_points_lie_or_how_they_are_turned():
    y, targets = points(9, 2), points(9, 3, 2, seed=1)
    torch.testing.assert_close(
        large_margin(moved(y), LABELS, moved(targets)), large_margin(y, LABELS, targets)
    )


def test_half_batches_have_other_impostors():
    y, labels, targets = points(8, 2), LABELS[:8], points(8, 3, 2, seed=1)
    whole = large_margin(y, labels, targets)
    halves = [large_margin(y[h], labels[h], targets[h]) for h in HALVES]
    assert abs(float(sum(halves) / 2 - whole)) > 0.01


def test_without_impostors_the_pull_is_a_sum_over_rows():
    y, labels, targets = points(8, 2), torch.zeros(8, dtype=int), points(8, 3, 2, seed=1)
    halves = [large_margin(y[h], labels[h], targets[h]) for h in HALVES]
    torch.testing.assert_close(sum(halves) / 2, large_margin(y, labels, targets))


def test_an_impostor_at_the_margin_costs_nothing():
    y = torch.tensor([[0.0], [math.sqrt(1 + 0.25)]], dtype=torch.float64)
    targets = torch.tensor([[[0.5]], [[math.sqrt(1.25)]]], dtype=torch.float64)
    loss = large_margin(y, torch.tensor([0, 1]), targets, pull=0.0)
    assert float(loss) == pytest.approx(0, abs=1e-12)


# -- affinities: what a map of them costs -----------------------------------------------------


def test_matching_affinities_equals_the_loops():
    y, p = points(9, 2), affinities_of(9)
    loops = oracles.match_affinities(y.tolist(), p.tolist())
    assert float(match_affinities(y, p)) == pytest.approx(loops, rel=1e-12)


def test_the_gradient_of_matching_affinities_is_exact():
    objective = partial(match_affinities, affinities=affinities_of(9))
    assert torch.autograd.gradcheck(objective, points(9, 2).requires_grad_())


def test_matching_affinities_does_not_see_where_the_points_lie_or_how_they_are_turned():
    y, p = points(9, 2), affinities_of(9)
    torch.testing.assert_close(match_affinities(moved(y), p), match_affinities(y, p))


def test_half_batches_of_affinities_are_another_objective():
    y, p = points(8, 2), affinities_of(8)
    halves = [match_affinities(y[h], p[h, h] / p[h, h].sum()) for h in HALVES]
    assert abs(float(sum(halves) / 2 - match_affinities(y, p))) > 0.01


def test_points_that_have_the_affinities_asked_for_cost_nothing():
    y = points(9, 2)
    similarity = 1 / (1 + torch.cdist(y, y).square())
    q = similarity.fill_diagonal_(0) / similarity.sum()
    assert float(match_affinities(y, q)) == pytest.approx(0, abs=1e-12)


# -- landmarks --------------------------------------------------------------------------------


def shares_of(n, z):
    """Rows that sum to 1; the first has nothing to do with the first landmark."""
    shares = points(n, z, seed=3).softmax(dim=1)
    shares[0, 0] = 0
    return shares / shares.sum(dim=1, keepdim=True)


def test_keeping_near_landmarks_equals_the_loops():
    y, landmarks, p = points(9, 2), points(5, 2, seed=1), shares_of(9, 5)
    loops = oracles.keep_near_landmarks(y.tolist(), landmarks.tolist(), p.tolist())
    assert float(landmark_loss_and_gradient(y, landmarks, p)[0]) == pytest.approx(loops, rel=1e-12)


def test_the_gradients_of_keeping_near_landmarks_are_exact():
    y, landmarks, p = points(9, 2), points(5, 2, seed=1), shares_of(9, 5)
    _, slopes = landmark_loss_and_gradient(y, landmarks, p)
    y.requires_grad_()
    landmarks.requires_grad_()
    similarity = (1 + torch.cdist(y, landmarks).square()).reciprocal()
    q = similarity / similarity.sum(dim=1, keepdim=True)
    loss = (torch.xlogy(p, p) - p * q.log()).sum() / 9
    torch.testing.assert_close(slopes, torch.autograd.grad(loss, (y, landmarks)))


def test_keeping_near_landmarks_is_a_sum_over_rows():
    y, landmarks, p = points(8, 2), points(5, 2, seed=1), shares_of(8, 5)
    halves = [landmark_loss_and_gradient(y[h], landmarks, p[h])[0] for h in HALVES]
    torch.testing.assert_close(sum(halves) / 2, landmark_loss_and_gradient(y, landmarks, p)[0])


@pytest.mark.parametrize("perplexity", [1.5, 4.0])
def test_the_neighbors_of_a_row_have_the_entropy_that_is_asked_for(perplexity):
    squared = torch.cdist(points(6, 3), points(20, 3, seed=1)).square()
    for row in neighbor_shares(squared, precisions(squared, perplexity)).tolist():
        assert oracles.entropy(row) == pytest.approx(math.log(perplexity), abs=1e-5)


# -- affinities: what is asked for ------------------------------------------------------------


def rows(n, n_features=4, seed=0, dtype=torch.float64):
    return points(n, n_features, seed=seed, scale=2.0).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    "x",
    [
        rows(40),
        rows(10).repeat(4, 1),
        torch.cat([rows(20), 0 * rows(20)]),
        torch.ones(40, 4),
        1e-19 * rows(40),
        torch.cat([rows(39), torch.full((1, 4), 1e4)]),
        rows(7),
        rows(2),
    ],
    ids=["plain", "copies", "many alike", "all alike", "tiny", "outlier", "few", "two"],
)
def test_affinities_are_symmetric_and_sum_to_one(x, dtype):
    p = input_affinities(x.to(dtype), perplexity=10)
    assert p.dtype == dtype
    assert (p >= 0).all()
    assert not p.diagonal().any()
    torch.testing.assert_close(p, p.T)
    assert float(p.sum()) == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("perplexity", [1.5, 5, 10])
def test_affinities_equal_the_loops(perplexity, dtype):
    x = rows(25)
    conditional = np.array(oracles.conditional_affinities(x.tolist(), perplexity))
    mine = input_affinities(x.to(dtype), perplexity)
    np.testing.assert_allclose(mine, (conditional + conditional.T) / 50, rtol=2e-3, atol=1e-7)


def test_the_entropy_of_a_rows_neighbors_is_the_log_of_the_perplexity():
    """On a ring all rows are alike, so that a row of the joint is the conditional / n."""
    angles = 2 * math.pi * torch.arange(24, dtype=torch.float64) / 24
    ring = torch.stack([angles.cos(), angles.sin()], dim=1)
    p = input_affinities(ring, perplexity=7)
    for row in (24 * p).tolist():
        assert oracles.entropy(row) == pytest.approx(math.log(7), abs=1e-6)


@pytest.mark.parametrize("perplexity", [5, 15, 30])
def test_affinities_are_those_of_scikit_learn(iris, perplexity):
    x = iris[0][::2]
    squared = squareform(pdist(x, "sqeuclidean"))
    theirs = _joint_probabilities(squared, perplexity, verbose=0)
    mine = input_affinities(torch.from_numpy(x), perplexity).numpy()
    np.testing.assert_allclose(len(x) * mine, len(x) * squareform(theirs), atol=1e-4)


def test_fewer_rows_than_the_perplexity_have_half_of_the_others_for_neighbors():
    x = rows(9)
    torch.testing.assert_close(input_affinities(x, 1000), input_affinities(x, 4))


def test_rows_that_are_all_alike_are_alike_to_all():
    p = input_affinities(torch.ones(6, 3), perplexity=2)
    torch.testing.assert_close(p, (1 - torch.eye(6)) / 30)


def test_copies_of_a_row_are_nearer_than_all_others():
    x = torch.cat([rows(10), rows(10)])
    p = input_affinities(x, perplexity=2)
    assert (p.argmax(dim=1) == torch.arange(20).roll(10)).all()


def test_one_row_has_no_affinity():
    assert input_affinities(rows(1), perplexity=5).tolist() == [[0.0]]


def test_affinities_do_not_see_units_or_the_origin():
    x = rows(30)
    torch.testing.assert_close(input_affinities(1000 * x + 5, 8), input_affinities(x, 8))
