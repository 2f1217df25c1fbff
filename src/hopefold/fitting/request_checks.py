"""Checks of parameters that depend on the data."""

from __future__ import annotations

from hopefold.errors import InvalidInput, InvalidParameter
from hopefold.fitting.plan_values import Plan, Request
from hopefold.fitting.task import Task


def check_request(request: Request, task: Task, plans: list[Plan]) -> None:
    """Do the parameters suit the labels and the columns that there are?"""
    asked = request.parameters
    structure = asked.get("structure", 0)
    if not task.is_labeled:
        if asked["class_weight"] is not None:
            raise InvalidParameter(
                f"class_weight={asked['class_weight']!r}, but there are no labels: leave it out, "
                "or give y."
            )
        if structure not in ("auto", 1):
            raise InvalidParameter(
                f"structure={structure!r} leaves a share of the loss to labels, but there "
                "are none: leave it 'auto', or give y."
            )
    if not any(plan.structure for plan in plans):
        return
    if not task.scale.gain.any():
        raise InvalidInput("no column of X varies: there are no neighbors to keep.")
    if asked["max_bytes"] is not None:
        raise InvalidParameter(
            f"max_bytes={asked['max_bytes']} is for maps that classes alone decide: leave it out, "
            "or give labels and structure=0."
        )
