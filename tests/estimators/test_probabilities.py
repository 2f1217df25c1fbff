"""Probabilities are calibrated on held-out rows: the temperature, and the error that is left."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import oracles
from hopefold import HOPE, SHOPE
from hopefold.baselines import NCA
from hopefold.core.calibration import fit_temperature, reliability_bins, temper
from hopefold.core.neighbors import class_shares
from hopefold.fitting import trainer

QUICK = {"n_factors": 8, "max_epochs": 10, "random_state": 0}


def weak_table(n_rows, seed):
    """Labels are the sign of the first of 20 columns, with as much noise."""
    random = np.random.RandomState(seed)
    X = random.normal(size=(n_rows, 20))
    return X, np.sign(X[:, 0] + random.normal(size=n_rows))


def off_by(model, X, y):
    """The calibration error by loops."""
    shares = model.predict_proba(X)
    return oracles.calibration_error(shares.max(axis=1), model.predict(X) == y, 15)


@pytest.fixture(scope="module")
def weak_model():
    """Overconfident: without columns or a decay that are chosen, it memorizes its rows."""
    return SHOPE(random_state=0, weight_decay=0.0, select_columns=False).fit(*weak_table(3_000, 0))


def test_probabilities_of_a_weak_table_come_true(weak_model):
    X, y = weak_table(5_000, 1)
    assert 0.25 < 1 - weak_model.score(X, y) < 0.35
    assert off_by(weak_model, X, y) <= 0.05
    assert weak_model.calibration_error_ < 0.08
    plain = _at_temperature_one(weak_model)
    assert off_by(plain, X, y) > 0.11
    np.testing.assert_array_equal(plain.predict(X), weak_model.predict(X))
    shares = weak_model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(plain.classes_[shares.argmax(axis=1)], plain.predict(X))


def _at_temperature_one(model):
    """A copy of a fitted model with the probabilities of the kernel."""
    plain = clone(model)
    plain.__dict__.update(vars(model), temperature_=1.0)
    return plain


@pytest.mark.parametrize("class_weight", [None, {-1: 1.0, 1: 3.0}])
def test_the_temperature_and_the_error_are_those_of_the_held_out_rows(monkeypatch, class_weight):
    seen = []
    calibrate = trainer.calibrate
    monkeypatch.setattr(
        trainer, "calibrate", lambda *given: seen.append(given) or calibrate(*given)
    )
    X, y = weak_table(600, 0)
    model = HOPE(class_weight=class_weight, refit=False, **QUICK).fit(X, y)
    (_, task, _, held_out), *others = seen
    assert not others
    assert len(held_out) == 60
    shares = class_shares(model.transform(X[held_out]), *model.references())
    labels, weights = task.labels[held_out], task.class_weights[task.labels[held_out]]
    assert model.temperature_ == pytest.approx(fit_temperature(shares, labels, weights), rel=1e-4)
    order = np.argsort(labels, kind="stable")
    crossed = np.empty_like(shares)
    for mine, others in ((order[::2], order[1::2]), (order[1::2], order[::2])):
        of_others = fit_temperature(shares[others], labels[others], weights[others])
        crossed[mine] = temper(shares[mine], of_others)
    correct = crossed.argmax(axis=1) == labels
    bins = reliability_bins(crossed.max(axis=1), correct, 15, weights)
    assert model.calibration_error_ == pytest.approx(bins.error, rel=1e-3)


def test_a_refit_keeps_the_temperature_of_the_run_that_held_rows_out():
    X, y = weak_table(600, 0)
    first, again = (HOPE(refit=refit, **QUICK).fit(X, y) for refit in (False, True))
    assert first.temperature_ == again.temperature_ != 1
    assert first.calibration_error_ == again.calibration_error_


def test_the_weights_do_not_depend_on_the_calibration(monkeypatch):
    X, y = weak_table(300, 0)
    before = HOPE(**QUICK).fit(X, y)
    monkeypatch.setattr(trainer, "calibrate", lambda learned, *_: learned)
    after = HOPE(**QUICK).fit(X, y)
    np.testing.assert_array_equal(before.transform(X), after.transform(X))


def test_too_few_held_out_rows_leave_the_temperature_at_one():
    for n_rows, tempered in ((190, False), (200, True)):
        model = HOPE(**QUICK, validation_fraction=0.1).fit(*weak_table(n_rows, 0))
        assert (model.temperature_ != 1) == tempered
        assert model.calibration_error_ is not None
    model = HOPE(validation_fraction=0, **QUICK).fit(*weak_table(300, 0))
    assert (model.temperature_, model.calibration_error_) == (1, None)


@pytest.mark.parametrize(("n_rare", "tempered"), [(2, True), (40, False)])
def test_classes_without_a_held_out_row_matter_by_their_size(n_rare, tempered):
    """With 40 exemplars per class, a class of 40 rows has none to hold out."""
    X, y = weak_table(500, 0)
    y[:n_rare] = 5
    n_exemplars = max(2, n_rare)
    model = HOPE(**QUICK, n_exemplars=n_exemplars).fit(X, y)
    assert (model.temperature_ != 1) == tempered


@pytest.mark.parametrize("make", [lambda: HOPE(exemplars=None, **QUICK), lambda: NCA(max_epochs=3)])
def test_votes_are_not_tempered_and_have_a_calibration_error(make):
    model = make().fit(*weak_table(400, 0))
    assert model.temperature_ == 1
    assert 0 < model.calibration_error_ < 1


def test_votes_that_are_asked_for_later_are_not_tempered():
    X, y = weak_table(400, 0)
    model = HOPE(**QUICK).fit(X, y)
    assert model.temperature_ != 1
    votes = model.set_params(n_neighbors=1).predict_proba(X)
    assert set(np.unique(votes)) == {0, 1}


def test_more_rows_keep_the_temperature_of_the_fit():
    X, y = weak_table(500, 0)
    model = HOPE(**QUICK).fit(X[:400], y[:400])
    before = model.temperature_
    model.partial_fit(X[400:], y[400:])
    assert model.temperature_ == before != 1
    assert model.calibration_error_ is None
    fresh = HOPE(**QUICK).partial_fit(X, y)
    assert (fresh.temperature_, fresh.calibration_error_) == (1, None)


def test_a_map_without_labels_has_no_calibration_error():
    X, _ = weak_table(100, 0)
    model = HOPE(perplexity=5, **QUICK).fit(X)
    assert (model.temperature_, model.calibration_error_) == (1, None)
