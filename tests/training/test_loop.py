"""The loop on problems whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from hopefold.errors import Diverged, SmallerStepWarning
from hopefold.training.loop import minimize
from hopefold.training.optimizers import one_cycle
from hopefold.training.progress import Progress
from hopefold.training.settings import Training

SETTINGS = Training(
    max_epochs=200,
    batch_size=10,
    learning_rate=0.1,
    optimizer="adam",
    batch_iterations=5,
    weight_decay=0.0,
    patience=1000,
)
TARGETS = torch.randn(30, 3, generator=torch.Generator().manual_seed(5))


def run(loss_of, groups, settings=SETTINGS, **options):
    with Progress("test", settings.max_epochs, verbose=False) as progress:
        generator = torch.Generator().manual_seed(0)
        return minimize(loss_of, groups, 30, settings, generator, progress, **options)


def to_the_mean(parameter):
    """Mean squared distance to the targets: lowest at their mean."""
    return lambda batch, _seed, _done: (parameter - TARGETS[batch]).square().sum(dim=1).mean()


def at_zero():
    return nn.Parameter(torch.zeros(3))


@pytest.mark.parametrize("optimizer", ["adam", "cg", "lbfgs"])
def test_every_optimizer_finds_the_lowest_point(optimizer):
    parameter = at_zero()
    settings = replace(SETTINGS, optimizer=optimizer, batch_size=30, max_epochs=150)
    run(to_the_mean(parameter), {"map": [parameter]}, settings)
    torch.testing.assert_close(parameter.detach(), TARGETS.mean(dim=0), atol=1e-3, rtol=0)


@pytest.mark.parametrize("optimizer", ["adam", "cg", "lbfgs"])
def test_a_parameter_may_lie_transposed_in_memory(optimizer):
    wanted = torch.arange(6.0).reshape(2, 3) / 6
    parameter = nn.Parameter(torch.zeros(3, 2).T)
    settings = replace(SETTINGS, optimizer=optimizer, batch_size=30)
    run(
        lambda _batch, _seed, _done: (parameter - wanted).square().sum(),
        {"map": [parameter]},
        settings,
    )
    torch.testing.assert_close(parameter.detach(), wanted, atol=1e-2, rtol=0)


def test_every_row_is_visited_once_an_epoch():
    parameter, seen = at_zero(), []

    def loss_of(batch, _seed, _done):
        seen.extend(batch.tolist())
        return parameter.sum() * 0

    run(loss_of, {"map": [parameter]}, replace(SETTINGS, max_epochs=2, batch_size=7))
    assert sorted(seen[:30]) == list(range(30))
    assert sorted(seen[30:]) == list(range(30))
    assert seen[:30] != seen[30:]


def test_the_same_generator_gives_the_same_bits():
    results = []
    for _ in range(2):
        parameter = at_zero()
        run(to_the_mean(parameter), {"map": [parameter]}, replace(SETTINGS, max_epochs=7))
        results.append(parameter.detach().clone())
    assert torch.equal(*results)


def test_a_line_search_sees_the_same_masks_again():
    parameter, seeds = at_zero(), {}

    def loss_of(batch, seed, _done):
        seeds.setdefault(tuple(batch.tolist()), set()).add(seed)
        return (parameter - TARGETS[batch]).square().sum()

    run(loss_of, {"map": [parameter]}, replace(SETTINGS, optimizer="cg", max_epochs=1))
    assert len(seeds) == 3
    assert all(len(mine) == 1 for mine in seeds.values())
    assert len(set.union(*seeds.values())) == 3


@pytest.mark.parametrize("optimizer", ["adam", "cg"])
def test_groups_take_turns_in_the_first_fifth_and_then_learn_together(optimizer):
    groups = {"map": [at_zero()], "exemplars": [at_zero()]}
    moves = []

    def loss_of(batch, _seed, _done):
        moves.append([float(p.detach().norm()) for (p,) in groups.values()])
        return sum((p - TARGETS[batch]).square().sum() for (p,) in groups.values())

    settings = replace(
        SETTINGS, optimizer=optimizer, max_epochs=5, batch_size=30, batch_iterations=1
    )
    run(loss_of, groups, settings)
    norms = np.array(moves)
    first_exemplar_move = np.flatnonzero(norms[:, 1])[0]
    assert norms[first_exemplar_move - 1, 0] > 0  # the map had moved while the exemplars waited
    if optimizer == "adam":  # one evaluation a step: 2 in the first epoch, then 1 each
        assert len(moves) == 2 + 4


def test_the_best_epoch_is_restored():
    parameter = at_zero()
    snapshots, wrong_rows = [], iter([9, 5, 0, 6, 7, 8, 9, 9])

    def mistakes():
        snapshots.append(parameter.detach().clone())
        return (np.arange(20) < next(wrong_rows)).astype(float)

    settings = replace(SETTINGS, max_epochs=8)
    outcome = run(to_the_mean(parameter), {"map": [parameter]}, settings, misclassified=mistakes)
    assert outcome.epochs == 3
    torch.testing.assert_close(parameter.detach(), snapshots[2])
    assert [r["validation_error"] for r in outcome.history][:3] == [0.45, 0.25, 0.0]


def test_an_epoch_that_is_worse_by_chance_only_counts_as_equal():
    parameter = at_zero()
    wrong = iter([*np.eye(4).tolist(), [1.0] * 4])
    outcome = run(
        to_the_mean(parameter),
        {"map": [parameter]},
        replace(SETTINGS, max_epochs=5),
        misclassified=lambda: np.array(next(wrong)),
    )
    assert outcome.epochs == 4


def test_a_run_that_no_longer_improves_stops():
    parameter = at_zero()
    outcome = run(
        to_the_mean(parameter),
        {"map": [parameter]},
        replace(SETTINGS, patience=4),
        misclassified=lambda: np.ones(10),
    )
    assert len(outcome.history) == 5


@pytest.mark.parametrize("optimizer", ["adam", "cg", "lbfgs"])
def test_a_run_that_diverges_says_so(optimizer):
    parameter = nn.Parameter(torch.ones(3))
    settings = replace(SETTINGS, optimizer=optimizer)
    with pytest.raises(Diverged, match=r"diverged in epoch \d+.*(learning_rate|optimizer)"):
        run(lambda *_: (parameter * 1e30).square().sum(), {"map": [parameter]}, settings)


def test_weight_decay_shrinks_the_matrices_of_the_map_but_no_bias_and_no_exemplars():
    groups = {
        "map": [nn.Parameter(torch.ones(3, 2)), nn.Parameter(torch.ones(3))],
        "exemplars": [nn.Parameter(torch.ones(3, 2))],
    }
    settings = replace(SETTINGS, weight_decay=0.5, max_epochs=20)
    run(lambda *_: sum(p.sum() * 0 for one in groups.values() for p in one), groups, settings)
    matrix, bias = groups["map"]
    assert (matrix < 0.9).all()
    assert (bias == 1).all()
    assert (groups["exemplars"][0] == 1).all()


def test_the_learning_rate_warms_up_and_comes_down():
    rates = [one_cycle(progress) for progress in np.linspace(0, 1, 101)]
    assert rates[0] == 0
    assert max(rates) == rates[10] == pytest.approx(1)
    assert rates[-1] == pytest.approx(0)
    assert rates[:11] == sorted(rates[:11])
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_history_is_plain_data():
    parameter = at_zero()
    history = run(
        to_the_mean(parameter), {"map": [parameter]}, replace(SETTINGS, max_epochs=3)
    ).history
    assert [record["epoch"] for record in history] == [1, 2, 3]
    assert all(type(value) in (int, float) for record in history for value in record.values())


def test_a_verbose_run_shows_epochs_loss_and_error(capfd):
    parameter = at_zero()
    with Progress("S-HOPE", 3, verbose=True) as progress:
        minimize(
            to_the_mean(parameter),
            {"map": [parameter]},
            30,
            replace(SETTINGS, max_epochs=3),
            torch.Generator().manual_seed(0),
            progress,
            misclassified=lambda: np.array([1.0, 0, 0, 0]),
        )
    shown = capfd.readouterr()
    assert "3/3" in shown.err
    assert "held-out error 25.00%" in shown.err
    assert shown.out == ""


def jumping(parameter, *, times):
    """To the mean, but for some early losses that are no numbers."""
    fine, bad = to_the_mean(parameter), iter(range(times))

    def loss_of(batch, seed, done):
        if done > 0.02 and next(bad, None) is not None:
            return fine(batch, seed, done) * float("nan")
        return fine(batch, seed, done)

    return loss_of


def test_a_loss_that_is_no_number_leads_back_to_smaller_steps():
    parameter = at_zero()
    with pytest.warns(SmallerStepWarning, match="quarter of the learning rate"):
        result = run(jumping(parameter, times=2), {"map": [parameter]})
    assert [record["epoch"] for record in result.history] == list(range(1, 201))
    rates = [record["learning_rate"] for record in result.history]
    assert max(rates) <= SETTINGS.learning_rate / 4
    torch.testing.assert_close(parameter.detach(), TARGETS.mean(dim=0), atol=1e-2, rtol=0)


def test_a_loss_that_stays_no_number_ends_the_run_after_a_few_tries():
    parameter = at_zero()
    with (
        pytest.warns(SmallerStepWarning) as told,
        pytest.raises(Diverged, match="lower learning_rate"),
    ):
        run(jumping(parameter, times=10_000), {"map": [parameter]})
    assert len(told) == 3
    assert parameter.isfinite().all()
