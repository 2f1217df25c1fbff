"""A run that is broken off and goes on ends as if nothing had happened."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from hopefold.errors import BrokenFile, CannotWrite, InvalidParameter
from hopefold.training import checkpoints
from hopefold.training.checkpoints import State, hold
from hopefold.training.loop import minimize
from hopefold.training.progress import Progress
from hopefold.training.settings import Training

SETTINGS = Training(
    max_epochs=6,
    batch_size=10,
    learning_rate=0.1,
    optimizer="adam",
    batch_iterations=2,
    weight_decay=0.01,
    patience=100,
    taking_turns=0.4,
)
TARGETS = torch.randn(33, 3, generator=torch.Generator().manual_seed(5))


class Crash(Exception):
    """The machine fails."""


class Problem:
    """Two parameters, one of which lies transposed in memory; fails when asked the n-th time."""

    def __init__(self, fails_at=None):
        self.map = nn.Parameter(torch.zeros(3, 2).T)
        self.exemplars = nn.Parameter(torch.ones(3))
        self._fails_at, self._asked = fails_at, 0

    def _answer(self):
        self._asked += 1
        if self._asked == self._fails_at:
            raise Crash

    def loss(self, batch, seed, _done):
        self._answer()
        noise = torch.randn(3, generator=torch.Generator().manual_seed(seed))
        away = self.exemplars - TARGETS[batch] + self.map.sum(dim=0) + 0.1 * noise
        return away.square().sum(dim=1).mean() + self.map.square().sum()

    def mistakes(self):
        self._answer()
        return (self.exemplars.detach() - TARGETS[:5]).abs().mean(dim=1).double().numpy()

    def run(self, path=None, settings=SETTINGS, minutes=0.0, identity="the same"):
        groups = {"map": [self.map], "exemplars": [self.exemplars]}
        with Progress("test", settings.max_epochs, verbose=False) as progress:
            args = (self.loss, groups, 33, settings, torch.Generator().manual_seed(0), progress)
            if path is None:
                return minimize(*args, misclassified=self.mistakes)
            with hold(path, identity, 0, minutes) as checkpoint:
                return minimize(*args, misclassified=self.mistakes, checkpoint=checkpoint)

    def bits(self):
        return np.concatenate([self.map.detach().ravel(), self.exemplars.detach()]).tobytes()


@pytest.mark.parametrize("optimizer", ["adam", "cg", "lbfgs"])
@pytest.mark.parametrize("minutes", [0.0, 60.0], ids=["each step", "each epoch"])
def test_a_run_that_fails_anywhere_ends_with_the_same_bits(tmp_path, optimizer, minutes):
    settings = replace(SETTINGS, optimizer=optimizer)
    undisturbed = Problem()
    wanted = undisturbed.run(settings=settings)
    path = tmp_path / "run.ckpt"
    asked = undisturbed._asked
    for fails_at in range(1, asked + 1, 1 if optimizer == "adam" else asked // 6):
        path.unlink(missing_ok=True)
        with pytest.raises(Crash):
            Problem(fails_at).run(path, settings, minutes)
        again = Problem()
        assert again.run(path, settings, minutes) == wanted
        assert again.bits() == undisturbed.bits()


def test_a_run_that_fails_again_and_again_comes_to_its_end(tmp_path):
    undisturbed, path = Problem(), tmp_path / "run.ckpt"
    undisturbed.run()
    for _ in range(100):
        problem = Problem(fails_at=4)
        try:
            problem.run(path)
        except Crash:
            continue
        break
    assert problem.bits() == undisturbed.bits()


def test_a_run_that_is_over_is_not_done_again(tmp_path):
    first, path = Problem(), tmp_path / "run.ckpt"
    first.run(path)
    again = Problem(fails_at=1)
    again.run(path)
    assert again.bits() == first.bits()


def test_a_checkpoint_of_another_fit_that_is_not_over_is_refused(tmp_path):
    path = tmp_path / "run.ckpt"
    with pytest.raises(Crash):
        Problem(fails_at=9).run(path)
    with pytest.raises(InvalidParameter, match="of another fit"):
        Problem().run(path, identity="other")


def test_a_checkpoint_of_another_fit_that_is_over_makes_room(tmp_path):
    path = tmp_path / "run.ckpt"
    with hold(path, "one", 0, 5) as checkpoint:
        checkpoint.finish()
    problem, undisturbed = Problem(), Problem()
    problem.run(path, identity="other")
    undisturbed.run()
    assert problem.bits() == undisturbed.bits()


def test_two_fits_do_not_share_a_checkpoint(tmp_path):
    path = tmp_path / "run.ckpt"
    with (
        hold(path, "one", 0, 5),
        pytest.raises(InvalidParameter, match="of a fit that is running"),
        hold(path, "one", 0, 5),
    ):
        pass
    with hold(path, "one", 0, 5):  # the first is over
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_checkpoint_that_is_cut_short_is_refused(tmp_path, share):
    path = tmp_path / "run.ckpt"
    Problem().run(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(BrokenFile, match=r"run\.ckpt"):
        Problem().run(path)


def test_a_folder_in_which_nothing_can_be_written_is_told_before_the_fit(tmp_path):
    (tmp_path / ".run.ckpt.lock").mkdir()
    with pytest.raises(CannotWrite, match="no checkpoint can be written"):
        Problem().run(tmp_path / "run.ckpt")


def test_a_fit_that_is_over_is_done_anew_where_nothing_fixes_its_chances(tmp_path):
    path = tmp_path / "run.ckpt"
    with hold(path, "the same", 7, 5) as checkpoint:
        checkpoint.finish()
    with hold(path, "the same", 8, 5, anew=True) as checkpoint:
        assert checkpoint.seed == 8
    with hold(path, "the same", 8, 5) as checkpoint:
        assert checkpoint.seed == 7


def test_a_checkpoint_of_another_layout_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    monkeypatch.setattr(checkpoints, "LAYOUT", 1)
    with hold(path, "the same", 7, 0) as checkpoint:
        checkpoint.end_run(State({"over": False}, {}))
    monkeypatch.undo()
    with (
        pytest.raises(InvalidParameter, match="by another version of hopefold"),
        hold(path, "the same", 7, 0),
    ):
        pass
