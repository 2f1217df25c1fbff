"""Temperature scaling, the fit of the temperature, and the expected calibration error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from hopefold.core import calibration


def some_shares(seed, n_rows=30, n_classes=4, spread=2.0):
    logs = spread * np.random.RandomState(seed).normal(size=(n_rows, n_classes))
    return np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_tempered_shares_equal_the_loops(temperature):
    shares = some_shares(0)
    expected = [oracles.tempered(row, temperature) for row in shares.tolist()]
    np.testing.assert_allclose(calibration.temper(shares, temperature), expected)


def test_two_classes_by_hand():
    """(4/5, 1/5) at T = 2: 2 to 1. At T = 1/2: 16 to 1."""
    shares = np.array([[0.8, 0.2]])
    np.testing.assert_allclose(calibration.temper(shares, 2.0), [[2 / 3, 1 / 3]])
    np.testing.assert_allclose(calibration.temper(shares, 0.5), [[16 / 17, 1 / 17]])
    np.testing.assert_allclose(shares, [[0.8, 0.2]])


def test_at_temperature_one_nothing_is_computed():
    shares = some_shares(0)
    assert calibration.temper(shares, 1.0) is shares


@given(temperature=st.floats(1e-6, 1e6), seed=st.integers(0, 99))
def test_probabilities_sum_to_one_and_keep_the_most_probable_class(temperature, seed):
    shares = some_shares(seed, spread=8.0)
    shares[:3] = [1, 0, 0, 0], [0.25] * 4, [0.25, 0.25, 0.25, np.nextafter(0.25, 1)]
    tempered = calibration.temper(shares, temperature)
    np.testing.assert_allclose(tempered.sum(axis=1), 1)
    np.testing.assert_array_equal(tempered.argmax(axis=1), shares.argmax(axis=1))


@given(seed=st.integers(0, 99), n_rows=st.sampled_from([1, 5, 200]), wrong=st.floats(0, 1))
def test_the_temperature_minimizes_the_penalized_log_loss(seed, n_rows, wrong):
    shares, random = some_shares(seed, n_rows), np.random.RandomState(seed)
    labels = np.where(random.rand(n_rows) < wrong, random.randint(4, size=n_rows), shares.argmax(1))
    weights = np.array([3.0, 1.0, 1.0, 0.5])[labels]
    best = calibration.fit_temperature(shares, labels, weights)
    assert calibration.LOWEST <= best <= calibration.HIGHEST

    def loss(temperature):
        given = shares.tolist(), labels.tolist(), weights.tolist()
        prior = math.log(temperature) ** 2 / (2 * calibration.PRIOR_SPREAD**2 * n_rows)
        return oracles.tempered_log_loss(*given, temperature) + prior

    for other in (1.001 * best, best / 1.001, 1.0):
        within = np.clip(other, calibration.LOWEST, calibration.HIGHEST)
        assert loss(best) <= loss(within) + 1e-12


@pytest.mark.parametrize("temperature", [0.6, 1.0, 4.0])
def test_the_temperature_of_labels_drawn_from_it_is_found(temperature):
    shares = some_shares(1, n_rows=20_000)
    drawn = np.random.RandomState(0).rand(20_000, 1)
    labels = (calibration.temper(shares, temperature).cumsum(axis=1) < drawn).sum(axis=1)
    found = calibration.fit_temperature(shares, labels, np.ones(20_000))
    assert found == pytest.approx(temperature, rel=0.05)


def test_many_equal_rows_by_hand():
    """Three of four rows right with shares 9 to 1: 3 to 1 = 9^(1/2) to 1, so T = 2."""
    shares = np.tile([0.9, 0.1], (400_000, 1))
    labels = (np.arange(400_000) % 4 == 0).astype(int)
    found = calibration.fit_temperature(shares, labels, np.ones(400_000))
    assert found == pytest.approx(2, rel=1e-4)


def test_a_weight_is_a_number_of_equal_rows(monkeypatch):
    shares, labels = some_shares(2, 40), np.arange(40) % 4
    times = 1 + np.arange(40) % 3
    rows = np.repeat(np.arange(40), times)
    one = calibration.fit_temperature(shares[rows], labels[rows], np.ones(len(rows)))
    ratio = np.sqrt(len(rows) / 40)  # the prior counts rows
    monkeypatch.setattr(calibration, "PRIOR_SPREAD", ratio * calibration.PRIOR_SPREAD)
    assert calibration.fit_temperature(shares, labels, times * 1.0) == pytest.approx(one)


def test_few_rows_without_a_mistake_do_not_ask_for_certainty():
    shares = np.tile([0.9, 0.1], (20, 1))
    found = calibration.fit_temperature(shares, np.zeros(20, int), np.ones(20))
    assert calibration.temper(shares, found).max() < 0.99


def test_shares_that_say_nothing_leave_the_temperature_at_one():
    shares = np.full((50, 3), 1 / 3)
    found = calibration.fit_temperature(shares, np.arange(50) % 3, np.ones(50))
    assert found == pytest.approx(1)


def test_a_share_of_zero_for_the_true_class_has_a_finite_loss():
    shares = np.array([[1.0, 0.0], [0.0, 1.0]] * 50)
    found = calibration.fit_temperature(shares, np.zeros(100, int), np.ones(100))
    assert 1 < found <= calibration.HIGHEST


@pytest.mark.parametrize("n_bins", [1, 4, 10])
def test_the_calibration_error_equals_the_loops(n_bins):
    random = np.random.RandomState(0)
    confidence = np.append(random.randint(0, 33, size=200) / 32, 1.0)  # also on bins' borders
    correct = random.rand(201) < confidence**2
    found = calibration.reliability_bins(confidence, correct, n_bins)
    assert found.error == pytest.approx(oracles.calibration_error(confidence, correct, n_bins))
    assert found.counts.sum() == 201
    whole = calibration.reliability_bins(confidence.repeat(2), correct.repeat(2), n_bins)
    weighted = calibration.reliability_bins(confidence, correct, n_bins, np.full(201, 2.0))
    assert weighted.error == pytest.approx(whole.error)


def test_the_calibration_error_by_hand():
    found = calibration.reliability_bins(
        np.array([0.95, 0.95, 0.55, 0.55]), np.array([True, True, True, False]), 10
    )
    assert found.counts.tolist() == [2, 2]
    np.testing.assert_allclose(found.confidence, [0.55, 0.95])
    np.testing.assert_allclose(found.accuracy, [0.5, 1])
    assert found.error == pytest.approx(0.05)
