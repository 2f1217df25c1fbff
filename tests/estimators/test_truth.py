"""A map that shows what is not there says so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hopefold import HOPE, SHOPE, load
from hopefold.baselines import LDA
from hopefold.errors import ChanceWarning, InvalidParameter
from hopefold.evaluation import permutation_test
from hopefold.fitting.chance import CHANCE, warn_of_bad_refit, warn_of_chance
from hopefold.training.loop import Run

QUICK = {"max_epochs": 10, "random_state": 0}


def noise(seed: int, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(seed)
    return random.normal(size=(400, 12)), random.randint(n_classes, size=400)


@pytest.mark.parametrize("method", [SHOPE, HOPE, LDA])
def test_labels_dealt_at_random_are_always_warned_of(method):
    for seed in range(4):
        model = method(random_state=seed, **({} if method is LDA else {"max_epochs": 20}))
        with pytest.warns(ChanceWarning, match="not clearly better than"):
            model.fit(*noise(seed))


def test_a_map_that_has_learned_by_heart_tells_both_errors():
    with pytest.warns(ChanceWarning):
        model = SHOPE(random_state=0, max_epochs=100, input_dropout=0, dropout=0).fit(*noise(0))
    assert model.train_error_ < 0.2
    assert model.validation_error_ > model.train_error_ + 0.25


@pytest.mark.parametrize("method", [SHOPE, HOPE, LDA])
def test_a_map_that_knows_its_classes_is_not_warned_of(method, digits):
    X, _, y, _ = digits
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = method(**({} if method is LDA else QUICK)).fit(X, y)
    assert model.validation_error_ < 0.5


def test_the_training_error_is_that_of_predict(three_blobs, iris):
    for X, y in (three_blobs, iris):
        model = SHOPE(**QUICK).fit(X, y)
        assert model.train_error_ == pytest.approx(1 - model.score(X, y))


def test_where_rows_are_the_references_they_judge_themselves(iris):
    X, y = iris
    model = LDA(exemplars=None).fit(X, y)
    assert model.train_error_ == pytest.approx(1 - model.score(X, y))


def test_both_errors_come_back_from_a_file(tmp_path, iris):
    model = SHOPE(**QUICK).fit(*iris)
    model.save(tmp_path / "iris.hope")
    assert load(tmp_path / "iris.hope").train_error_ == model.train_error_


@pytest.mark.parametrize("mistakes", range(0, 41, 2))
def test_the_warning_is_the_one_sided_binomial_test(mistakes):
    shares = np.array([0.6, 0.3, 0.1])
    p_value = binomtest(mistakes, 40, 0.4, alternative="less").pvalue
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_chance(mistakes / 40, shares, 40)
    assert bool(caught) == (p_value >= CHANCE)


def test_too_few_held_out_rows_cannot_tell():
    with pytest.warns(ChanceWarning, match="5 held-out rows are too few"):
        warn_of_chance(0.0, np.array([0.5, 0.5]), 5)


def test_with_class_weights_the_commonest_class_is_the_heaviest():
    """Always naming the class of 80 % is right on half of the weight when classes are balanced."""
    random = np.random.RandomState(0)
    X, y = random.normal(size=(500, 5)), np.repeat([0, 1], [400, 100])
    with pytest.warns(ChanceWarning, match=r"not clearly better than the 50.0% of"):
        SHOPE(class_weight="balanced", **QUICK).fit(X, y)


def test_the_warning_points_at_the_users_line():
    with pytest.warns(ChanceWarning) as caught:
        SHOPE(**QUICK).fit(*noise(0))
    assert caught[0].filename == __file__


def test_permuted_labels_are_worse_than_true_ones(iris):
    model = SHOPE(**QUICK)
    result = permutation_test(model, *iris, n_permutations=4)
    assert result.error < 0.2
    assert (result.permuted_errors > 0.3).all()
    assert result.p_value == 0.2
    assert not hasattr(model, "map_")


def test_permuted_labels_are_as_good_as_noise():
    """Each p-value is uniform on 0.2, 0.4 … 1: one test may be lucky, hardly all three."""
    tests = [permutation_test(SHOPE(**QUICK), *noise(seed), n_permutations=4) for seed in (1, 2, 3)]
    assert max(test.p_value for test in tests) > 0.2


def test_the_same_seed_gives_the_same_permutations(iris):
    model = LDA(random_state=0)
    results = [permutation_test(model, *iris, n_permutations=3, random_state=5) for _ in range(2)]
    np.testing.assert_array_equal(results[0].permuted_errors, results[1].permuted_errors)


def test_without_held_out_rows_there_is_nothing_to_compare(iris):
    with pytest.raises(InvalidParameter, match="validation_fraction=0"):
        permutation_test(SHOPE(validation_fraction=0), *iris)


def test_what_is_no_map_of_ours_cannot_be_tested(iris):
    with pytest.raises(InvalidParameter, match="is not a hopefold estimator"):
        permutation_test(make_pipeline(StandardScaler(), SHOPE()), *iris)


def test_the_luckiest_epoch_is_not_what_is_tested():
    """Of the late epochs, none was chosen: their mean is what the warning rests on."""
    errors = [0.7] * 8 + [0.2, 0.6]
    history = [{"epoch": n, "validation_error": error} for n, error in enumerate(errors, start=1)]
    run = Run(9, history)
    assert run.kept["validation_error"] == 0.2
    assert run.late_error == pytest.approx(0.4)
    assert Run(1, history[:1]).late_error == 0.7


def test_a_second_fit_that_is_much_worse_than_the_first_is_told():
    with pytest.warns(ChanceWarning, match="learned again from all rows"):
        warn_of_bad_refit(train_error=0.55, validation_error=0.13, n_held_out=15)


@pytest.mark.parametrize(("train", "validation"), [(0.0, 0.0), (0.02, 0.1), (0.1, 0.1), (0.2, 0.1)])
def test_a_second_fit_that_is_as_good_as_the_first_is_not_warned_of(train, validation):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_bad_refit(train, validation, n_held_out=30)
