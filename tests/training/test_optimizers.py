"""Adam: the steps of torch's, without what torch does besides."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from torch import nn
from torch.optim.adamw import adamw

from hopefold.training.optimizers import (
    ADAM,
    Adam,
    LossWithGradients,
    fused_adamw,
    one_cycle,
)

ROOT = Path(__file__).parents[2]

RATE, DECAY, TURNS = 0.1, 0.02, [("map",), ("exemplars",), ("map", "exemplars"), ("map",)]


def groups_of_three():
    generator = torch.Generator().manual_seed(0)
    C, c, e = (nn.Parameter(torch.randn(n, 3, generator=generator)) for n in (4, 1, 2))
    return {"map": [C, c], "exemplars": [e]}


def loss_of(groups):
    """Some sum over all parameters, with its gradients."""
    parameters = [p for group in groups.values() for p in group]
    value = sum((p.sin() * (k + 1)).sum() for k, p in enumerate(parameters))
    slopes = torch.autograd.grad(value, parameters)
    return LossWithGradients(value.detach(), dict(zip(parameters, slopes, strict=True)))


def walk(adam, groups, turns):
    for number, turn in enumerate(turns):
        adam.step(lambda: loss_of(groups), turn, 0.3 + 0.1 * number)
    return [p.detach() for group in groups.values() for p in group]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("decay", [0.0, DECAY])
def test_steps_are_those_of_torch(fused, decay):
    groups, theirs = groups_of_three(), groups_of_three()
    adam = Adam(groups, RATE, decay)
    adam._fused = fused  # as on a device on which torch has no such work
    found = walk(adam, groups, TURNS)
    optimizers = {
        name: torch.optim.AdamW(
            [
                {
                    "params": [p for p in group if p.ndim > 1],
                    "weight_decay": decay * (name == "map"),
                },
                {"params": [p for p in group if p.ndim <= 1], "weight_decay": 0.0},
            ],
            betas=(0.9, 0.99),
        )
        for name, group in theirs.items()
    }
    for number, turn in enumerate(TURNS):
        slopes = loss_of(theirs).gradients
        for name in turn:
            for parameter in theirs[name]:
                parameter.grad = slopes[parameter]
            for some in optimizers[name].param_groups:
                some["lr"] = RATE * one_cycle(0.3 + 0.1 * number)
            optimizers[name].step()
    for mine, parameter in zip(found, [p for g in theirs.values() for p in g], strict=True):
        torch.testing.assert_close(mine, parameter.detach())


def test_what_is_remembered_of_each_parameter_has_a_number_of_its_own():
    groups = groups_of_three()
    adam = Adam(groups, RATE, DECAY)
    walk(adam, groups, TURNS)
    memory = adam.memory()
    steps = [int(memory[f"{number}.step"]) for number in range(3)]
    assert (len(memory), steps) == (10, [3, 3, 2])


def test_another_goes_on_from_what_one_remembers():
    groups, others = groups_of_three(), groups_of_three()
    one, other = Adam(groups, RATE, DECAY), Adam(others, RATE, DECAY)
    walk(one, groups, TURNS)
    walk(other, others, TURNS[:2])
    other.remember(one.memory())
    for name, group in groups.items():
        for mine, theirs in zip(others[name], group, strict=True):
            mine.data.copy_(theirs.data)
    expected = walk(one, groups, TURNS)
    for mine, theirs in zip(walk(other, others, TURNS), expected, strict=True):
        assert torch.equal(mine, theirs)


def test_a_parameter_of_which_nothing_is_remembered_begins_anew():
    groups, fresh = groups_of_three(), groups_of_three()
    adam = Adam(groups, RATE, DECAY)
    walk(adam, groups, TURNS)
    for name, group in groups.items():
        for mine, theirs in zip(group, fresh[name], strict=True):
            mine.data.copy_(theirs.data)
    adam.remember({"slowness": torch.tensor(1.0)})
    expected = walk(Adam(fresh, RATE, DECAY), fresh, TURNS)
    for mine, theirs in zip(walk(adam, groups, TURNS), expected, strict=True):
        assert torch.equal(mine, theirs)


def test_the_private_function_of_this_torch_takes_the_steps_of_the_public_one():
    """On another version of torch: check `fused_adamw` against it, then move the bounds."""
    bounds = SpecifierSet(">=2.4,<2.14")
    pinned = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (asked,) = (Requirement(one) for one in pinned if one.startswith("torch"))
    assert asked.specifier == bounds
    assert Version(torch.__version__).base_version in bounds
    generator = torch.Generator().manual_seed(0)
    values = [torch.randn(7, 3, generator=generator) for _ in range(4)]
    values[3].abs_()
    mine, theirs = ([[v.clone()] for v in values] for _ in range(2))
    fused_adamw(*mine, [torch.tensor(3.0)], RATE)
    options = {"lr": RATE, **ADAM, "fused": True}
    adamw(*theirs, [], [torch.tensor(2.0)], **options)
    for one, other in zip(mine, theirs, strict=True):
        assert torch.equal(one[0], other[0])
