"""Cross-fitting: each of few rows is held out once, and the map learns from all of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.datasets import load_iris, make_classification

from hopefold import HOPE, SHOPE, load
from hopefold.core.neighbors import class_shares
from hopefold.fitting.chance import error_interval
from hopefold.fitting.cross_fitting import OutOfFold, cross_fit, deal

QUICK = {"max_epochs": 10, "random_state": 0}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def noisy_table(n_rows, seed):
    X, y = make_classification(
        n_rows + 4_000, 8, n_informative=3, n_redundant=0, flip_y=0.2, random_state=seed
    )
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def test_each_row_is_in_one_fold_and_folds_have_the_same_classes():
    labels = np.repeat([0, 1, 2], [60, 29, 10])
    folds = deal(labels, 5, np.random.RandomState(0))
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(99))
    counts = np.array([np.bincount(labels[fold], minlength=3) for fold in folds])
    assert (np.ptp(counts, axis=0) <= 1).all()
    assert np.ptp([len(fold) for fold in folds]) <= 1


def test_the_only_row_of_a_class_is_always_learned_from():
    labels = np.array([0] * 10 + [1] + [2] * 2)
    folds = deal(labels, 3, np.random.RandomState(0))
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.delete(np.arange(13), 10))
    assert not any({11, 12} <= set(fold) for fold in folds)


@pytest.mark.parametrize("method", [SHOPE, HOPE])
def test_the_error_of_few_rows_is_that_of_all_of_them(iris, method):
    model = method(**QUICK).fit(*iris)
    assert model.n_held_out_ == 150
    assert model.validation_error_ * 150 == pytest.approx(round(model.validation_error_ * 150))
    assert len(model.history_) == 10
    assert all("validation_error" in record for record in model.history_)
    assert model.plan_.validation_fraction == 0.25
    assert "150 rows are few" in str(model.plan_)


def test_the_map_is_learned_from_all_rows(iris):
    X, y = iris
    model = SHOPE(**QUICK).fit(X, y)
    whole = SHOPE(**QUICK, validation_fraction=0).fit(X, y)
    np.testing.assert_array_equal(model.transform(X), whole.transform(X))


@pytest.mark.parametrize(
    "settings",
    [{"validation_fraction": 0.1}, {"refit": False}, {"patience": 20}, {"structure": 0.1}],
    ids=str,
)
def test_one_part_is_held_out_where_it_is_asked_for(iris, settings):
    assert SHOPE(**QUICK, **settings).fit(*iris).n_held_out_ == 15


def test_of_many_rows_a_tenth_is_held_out():
    X, y, *_ = noisy_table(280, 0)
    assert SHOPE(**QUICK).fit(X, y).n_held_out_ == 28


def test_the_folds_are_evaluated_by_maps_that_have_not_seen_them(iris):
    X, y = iris
    task, random, trainer = _parts(SHOPE(**QUICK), X, y)
    folds = deal(task.labels, 3, random)
    left = []
    found = cross_fit(trainer, task, folds, left.append)
    assert left == [4, 3, 2]
    wrong = 0
    for fold in folds:
        training = np.setdiff1d(np.arange(150), fold)
        plan = trainer.plan(task, len(training))
        learned = trainer.run(plan, task, training, training[:0])
        points, references = (
            learned.map(_tensor(rows)).detach().numpy()
            for rows in (task.rows.fetch(fold), learned.exemplars)
        )
        shares = class_shares(points, references, learned.labels, task.class_weights, None)
        wrong += np.count_nonzero(shares.argmax(axis=1) != task.labels[fold])
    assert found.mean_errors(10)[-1] == pytest.approx(wrong / 150)
    accuracy = np.mean(found.shares.argmax(axis=1) == task.labels[found.rows])
    assert 1 - accuracy == pytest.approx(wrong / 150)


def _parts(model, X, y):
    from hopefold.estimators.fit_input import read_fit_input
    from hopefold.fitting.trainer import Trainer
    from hopefold.training.distributed import current_process_group

    given, request = read_fit_input(model, X, y, current_process_group()), model.request()
    task, random = model._task(request, given)
    return task, random, Trainer(request, model.method)


def _tensor(rows):
    import torch

    return torch.as_tensor(rows)


def test_errors_of_runs_that_ended_early_are_stretched():
    found = OutOfFold(np.arange(4), [[0.8, 0.4], [0.6, 0.4, 0.2, 0.0]], [3, 1], None)
    np.testing.assert_allclose(found.mean_errors(4), [0.75, 0.7, 0.35, 0.3])
    np.testing.assert_allclose(found.mean_errors(1), [0.3])


def test_the_interval_is_that_of_clopper_and_pearson():
    for wrong, n_rows in ((0, 10), (3, 20), (20, 20), (17, 150)):
        expected = binomtest(wrong, n_rows).proportion_ci(0.95, "exact")
        assert error_interval(wrong / n_rows, n_rows) == pytest.approx(tuple(expected))


def test_the_interval_holds_the_true_error_of_noisy_tables():
    held, differences = [], []
    for seed in range(8):
        X, y, X_new, y_new = noisy_table(120, seed)
        model = SHOPE(random_state=seed).fit(X, y)
        (low, high), error = model.validation_interval_, 1 - model.score(X_new, y_new)
        held.append(low <= error <= high)
        differences.append(model.validation_error_ - error)
    assert sum(held) >= 6
    assert abs(np.mean(differences)) < 0.04


def test_a_file_keeps_the_number_of_held_out_rows(iris, tmp_path):
    model = SHOPE(**QUICK).fit(*iris)
    model.save(tmp_path / "iris.hope")
    again = load(tmp_path / "iris.hope")
    assert again.n_held_out_ == 150
    assert again.validation_interval_ == model.validation_interval_


def test_a_class_of_one_row_is_learned():
    X, y, *_ = noisy_table(60, 0)
    y = y.copy()
    y[0] = 7
    with pytest.warns(UserWarning, match="7"):
        model = SHOPE(**QUICK).fit(X, y)
    assert model.n_held_out_ == 59
    assert 7 in model.classes_


def test_the_same_seed_gives_the_same_bits_and_the_same_error(iris):
    one, other = (SHOPE(**QUICK).fit(*iris) for _ in range(2))
    assert one.validation_error_ == other.validation_error_
    np.testing.assert_array_equal(one.transform(iris[0]), other.transform(iris[0]))


def test_a_time_limit_holds_for_all_folds(iris):
    import time

    SHOPE(**QUICK).fit(*iris)
    start = time.monotonic()
    with pytest.warns(UserWarning, match="time_limit"):
        model = SHOPE(random_state=0, max_epochs=100_000, time_limit=2).fit(*iris)
    assert time.monotonic() - start < 4
    assert model.n_held_out_ == 150
    assert model.validation_error_ < 0.2


def test_weights_make_the_interval_wider():
    X, y = make_classification(200, 8, weights=[0.9], n_informative=3, random_state=1)
    plain, balanced = (
        SHOPE(**QUICK, class_weight=weight).fit(X, y) for weight in (None, "balanced")
    )
    weights = balanced.class_weight_[y]
    effective = weights.sum() ** 2 / (weights**2).sum()
    assert effective < 100
    expected = error_interval(balanced.validation_error_, effective)
    assert balanced.validation_interval_ == pytest.approx(expected)
    assert plain.validation_interval_ == error_interval(plain.validation_error_, 200)
