"""Plans: every "auto" is decided, once, with a reason."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from hopefold import HOPE, SHOPE, load
from hopefold.fitting import labeled_defaults as labeled
from hopefold.fitting.alternatives import Comparisons, alternatives, comparisons
from hopefold.fitting.plan import resolve
from hopefold.fitting.plan_values import Facts, Plan
from hopefold.specification import METHODS, choices
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
    assert plan.n_factors == (30, 20)
    given = ("batch_size", "n_units", "learning_rate")
    assert {plan.reasons[name] for name in given} == {"given"}
    assert plan.reasons["refit"] == plan.reasons["order"] == "default"


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
    shares = alternatives(request_of("SHOPE", missing_label=-1), KINDS["partly labeled"])
    assert [one["structure"][0] for one in shares] == [0.1, 0.0, 0.5]
    assert alternatives(request_of("SHOPE", validation_fraction=0), FACTS) == [{}]


def test_labeled_rows_have_two_layers_and_a_short_schedule():
    few, many = (plan_for(SHOPE(), 20, n_rows=n) for n in (500, 60_000))
    assert (few.n_units, few.n_factors, few.batch_size, few.max_epochs) == (
        (labeled.NARROW,) * 2,
        (labeled.NARROW,) * 2,
        labeled.SMALLEST,
        labeled.EPOCHS,
    )
    assert (many.n_units, many.batch_size) == ((labeled.WIDE,) * 2, labeled.LARGEST)
    assert many.max_epochs == labeled.FEWEST_EPOCHS
    assert few.patience is many.patience is None
    pixels = plan_for(SHOPE(), 256, one_scale=True, has_pixels=True)
    assert (pixels.adversarial, pixels.input_dropout) == (labeled.RADIUS, labeled.PIXEL_DROPOUT)
    assert pixels.max_epochs == round(labeled.EPOCHS_LEFT * labeled.EPOCHS)


def test_more_than_ten_classes_have_more_epochs_and_narrow_layers_larger_steps():
    epochs = [plan_for(SHOPE(), n_classes=n).max_epochs for n in (2, 10, 20, 30, 90)]
    assert epochs == [60, 60, 120, 180, 180]
    rates = [plan_for(SHOPE(n_units=(n, n))).learning_rate for n in (20, 100, 200, 300)]
    assert rates[0] > rates[1] == rates[2] == labeled.LEARNING_RATE > rates[3]


def test_row_visits_grow_with_the_rows_but_more_slowly():
    visits = [n * labeled.epochs(n, 2, "balanced") for n in (1_000, 6_000, 10_000, 30_000, 100_000)]
    assert visits == sorted(visits)
    assert visits[2] / visits[1] < 10 / 6


def test_effort_decides_widths_epochs_and_whether_settings_are_compared():
    fast, usual, best = (plan_for(SHOPE(effort=name)) for name in choices.EFFORTS)
    assert fast.n_units < usual.n_units < best.n_units
    assert fast.max_epochs < usual.max_epochs < best.max_epochs
    assert plan_for(SHOPE(effort="best", max_epochs=7, n_units=50)).max_epochs == 7
    enough = replace(FACTS, n_rows=2_000, n_training=1_800, n_labeled=2_000)
    assert comparisons(request_of("SHOPE", effort="fast"), enough) == Comparisons(False, (), None)
    kinds = (KINDS["unlabeled"], KINDS["partly labeled"])
    for facts in kinds:
        less, more = (resolve(request_of("SHOPE", effort=e), facts) for e in ("fast", "best"))
        assert less.max_epochs < more.max_epochs


@pytest.mark.parametrize("name", ["HOPE", "SHOPE"])
def test_columns_and_decays_are_compared_where_there_are_enough_rows(name):
    enough = replace(FACTS, n_rows=2_000, n_training=1_800, n_labeled=2_000)
    found = comparisons(request_of(name), enough)
    assert (found.columns, bool(found.decays)) == (True, True)
    assert (found.one_layer is None) == (name == "HOPE")
    assert not comparisons(request_of(name), FACTS).columns  # 810 rows
    assert comparisons(request_of(name), replace(FACTS, n_columns=500)).columns
    assert not comparisons(request_of(name, select_columns=False), enough).columns
    assert not comparisons(request_of(name, weight_decay=0.1), enough).decays


@pytest.mark.parametrize(
    "facts",
    [
        replace(FACTS, n_training=100),
        replace(FACTS, has_pixels=True),
        KINDS["unlabeled"],
        KINDS["partly labeled"],
    ],
)
def test_nothing_is_compared_for_few_rows_for_pixels_or_without_all_labels(facts):
    assert comparisons(request_of("SHOPE"), facts) == Comparisons(False, (), None)
    for parameters in ({"max_bytes": 10_000}, {"structure": 0.1}, {"optimizer": "cg"}):
        none = comparisons(request_of("SHOPE", **parameters), FACTS)
        assert none == Comparisons(False, (), None)


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
    quick = {"max_epochs": 3, "random_state": 0, "n_factors": 8, "n_units": 8}
    model = SHOPE(exemplars="kmeans", batch_size="auto", **quick).fit(X, y)
    assert model.plan_.reasons["batch_size"] == "90 rows to learn from"
    held_out = model.set_params(refit=False).fit(X, y)
    assert held_out.plan_.reasons["batch_size"] == "81 rows to learn from"


def test_the_plan_of_a_fit_that_goes_on_from_all_rows_is_that_of_its_first_run(three_blobs):
    quick = {"max_epochs": 3, "random_state": 0, "n_factors": 8, "n_units": 8}
    model = SHOPE(**quick, validation_fraction=0.1).fit(*three_blobs)
    assert model.plan_.reasons["batch_size"] == "81 rows to learn from"
