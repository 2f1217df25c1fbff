"""The plan of an estimator, and its method under the plan, as a fit would have them."""

from __future__ import annotations

from hopefold.fitting.plan import resolve
from hopefold.fitting.plan_values import Facts


def method_of(model, task):
    """For a fit of all rows of a task."""
    return model.method(resolve(model.request(), task.facts()))


def plan_for(model, n_features=9, **facts):
    """For data of which only so much is known."""
    known = {"n_columns": n_features, "n_classes": 10} | facts
    n_rows = known.setdefault("n_rows", 1_000)
    known = {"n_training": n_rows, "n_labeled": n_rows} | known
    return resolve(model.request(), Facts(n_features=n_features, **known))
