"""What comparisons, folds and size budgets need of the trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from hopefold.fitting.build import Method
from hopefold.fitting.plan_values import Plan
from hopefold.fitting.task import Learned, Task

if TYPE_CHECKING:
    from numpy import ndarray


class Runs(Protocol):
    """Plans and runs: `hopefold.fitting.trainer.Trainer` describes them."""

    def plan(self, task: Task, n_training: int, **decided: tuple[Any, str]) -> Plan:
        """The plan of a run, with these settings decided."""

    def make_method(self, plan: Plan) -> Method:
        """The method under a plan."""

    def run(
        self,
        plan: Plan,
        task: Task,
        training: ndarray,
        held_out: ndarray,
        like: Learned | None = None,
        stage: str = "",
        *,
        is_fold: bool = False,
    ) -> Learned:
        """One run."""
