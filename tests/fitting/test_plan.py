"""Plans: every "auto" is decided, once, with a reason."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from hopefold import HOPE, SHOPE, load
from hopefold.fitting.plan import TWO_LAYERS, alternatives, resolve
from hopefold.fitting.plan_values import Facts, Plan
from hopefold.specification import METHODS
from methods import plan_for

FACTS = Facts(n_features=20, n_columns=18, n_rows=900, n_training=810, n_classes=3, n_labeled=900)
KINDS = {
    "labeled": FACTS,
    "unlabeled": replace(FACTS, n_classes=0, n_labeled=0),
    "partly labeled": replace(FACTS, n_labeled=100),
    "many features": replace(FACTS, n_features=784, n_columns=700, one_scale=True),
    "sparse": replace(FACTS, is_sparse=True),
    "many classes": replace(FACTS, n_classes=30),
}


def request_of(name, **parameters):
    return METHODS[name].load_class()(**parameters).request()


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("facts", KINDS.values(), ids=KINDS)
def test_no_setting_of_a_plan_is_auto_and_each_has_a_reason(name, facts):
    plan = resolve(request_of(name), facts)
    asked = request_of(name).parameters
    for setting, value in plan.settings().items():
        assert not (isinstance(value, str) and value == "auto")
        assert plan.reasons[setting]
        if isinstance(asked[setting], str) and asked[setting] == "auto":
            assert plan.reasons[setting] not in ("given", "default")


def test_what_the_user_has_set_is_kept_and_called_given():
    plan = plan_for(SHOPE(batch_size=77, n_units=(30, 20), learning_rate=0.01, refit=True))
    assert (plan.batch_size, plan.n_units, plan.learning_rate) == (77, (30, 20), 0.01)
    assert plan.n_factors == (400, 400)
    given = ("batch_size", "n_units", "learning_rate")
    assert {plan.reasons[name] for name in given} == {"given"}
    assert plan.reasons["refit"] == plan.reasons["weight_decay"] == "default"


def test_a_plan_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        plan_for(SHOPE()).batch_size = 3


def test_a_plan_prints_as_a_table_of_settings_values_and_reasons():
    first, *rows = str(plan_for(SHOPE(), n_rows=5_000)).splitlines()
    assert first.split() == ["setting", "value", "why"]
    (row,) = (row for row in rows if row.startswith("batch_size"))
    assert row.split(maxsplit=2)[1:] == ["250", "5,000 rows to learn from"]


@pytest.mark.parametrize("name", METHODS)
def test_a_plan_comes_back_from_json(name):
    plan = resolve(request_of(name), FACTS)
    again = Plan.from_plain(name, json.loads(json.dumps(plan.as_plain())))
    assert again.settings() == plan.settings()
    assert again.reasons == plan.reasons


def test_alternatives_are_named_where_held_out_rows_decide():
    assert alternatives(request_of("SHOPE"), FACTS) == [{}]
    layers = alternatives(request_of("SHOPE"), KINDS["many classes"])
    assert [one["n_units"][0] for one in layers] == [600, TWO_LAYERS]
    shares = alternatives(request_of("SHOPE", missing_label=-1), KINDS["partly labeled"])
    assert [one["structure"][0] for one in shares] == [0.1, 0.0, 0.5]
    assert alternatives(request_of("SHOPE", validation_fraction=0), FACTS) == [{}]


def test_a_fit_publishes_its_plan_and_a_file_keeps_it(three_blobs, tmp_path):
    model = HOPE(max_epochs=3, random_state=0, n_factors=16).fit(*three_blobs)
    assert model.plan_.batch_size == 32
    assert model.plan_.max_epochs == model.n_iter_
    model.save(tmp_path / "model.hope")
    again = load(tmp_path / "model.hope")
    assert str(again.plan_) == str(model.plan_)
    np.testing.assert_array_equal(again.transform(three_blobs[0]), model.transform(three_blobs[0]))


def test_the_plan_of_a_fit_is_that_of_its_refit(three_blobs):
    X, y = three_blobs
    model = SHOPE(max_epochs=3, random_state=0, n_factors=8, n_units=8).fit(X, y)
    assert model.plan_.reasons["batch_size"] == "90 rows to learn from"
    held_out = model.set_params(refit=False).fit(X, y)
    assert held_out.plan_.reasons["batch_size"] == "81 rows to learn from"
