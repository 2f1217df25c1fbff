"""What is dropped at random: the share that was asked for, in the rows that were meant."""

from __future__ import annotations

import pytest
import torch

from hopefold.core.masks import MaskSampler, drop


def masks(n_rows, seed=0):
    return MaskSampler(0).masks(seed, n_rows)


@pytest.mark.parametrize("rate", [0.001, 0.25, 0.3, 0.9])
def test_dropping_keeps_the_mean(rate):
    dropped = drop(torch.ones(400, 501), rate, masks(400))
    assert dropped.mean() == pytest.approx(1, abs=0.02)
    assert (dropped == 0).float().mean() == pytest.approx(rate, rel=0.2, abs=0.001)
    assert len(dropped.unique()) == 2


def test_rows_below_those_of_the_batch_stay_whole():
    values = torch.randn(30, 40)
    dropped = drop(values, 0.5, masks(20))
    assert torch.equal(dropped[20:], values[20:])
    assert all((row == 0).any() for row in dropped[:20])


def test_values_are_dropped_independently_of_each_other():
    kept = (drop(torch.ones(20_000, 8), 0.25, masks(20_000)) > 0).double()
    together = torch.corrcoef(kept.T) - torch.eye(8)
    assert together.abs().max() < 0.04


def test_the_same_seed_gives_the_same_mask_whatever_came_before():
    values = torch.ones(5, 7)
    chances = MaskSampler(0)
    once = chances.masks(3, 5)
    first = drop(values, 0.5, once)
    assert not torch.equal(drop(values, 0.5, once), first)
    assert torch.equal(drop(values, 0.5, chances.masks(3, 5)), first)
    assert not torch.equal(drop(values, 0.5, chances.masks(4, 5)), first)
    assert not torch.equal(drop(values, 0.5, MaskSampler(1).masks(3, 5)), first)


def test_two_batches_are_masked_independently_of_each_other():
    """Their masks are cut from one strip: none may tell about the other."""
    chances = MaskSampler(0)
    first, second = (chances.masks(seed, 500).draw(torch.ones(500, 784), 0.25) for seed in (1, 2))
    together = torch.corrcoef(torch.stack([first.ravel(), second.ravel()]))[0, 1]
    assert together.abs() < 0.01


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_without_masks_or_a_rate_the_values_themselves_come_back(rate):
    values = torch.ones(3, 2)
    assert drop(values, rate, None if rate else masks(3)) is values


def test_even_an_extreme_rate_leaves_something():
    dropped = drop(torch.ones(1_000, 1_000), 1 - 1e-9, masks(1_000))
    assert dropped.isfinite().all()
    assert (dropped > 0).any()
