"""scikit-learn's own checks, all of them, and what its users take for granted."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from hopefold import HOPE, SHOPE

STACKED = SHOPE(n_units=(16, 16), n_factors=16, max_epochs=4)
QUICK = {"n_factors": 20, "max_epochs": 15, "random_state": 0}


@pytest.mark.filterwarnings("ignore")  # the checks make and expect warnings of their own
@parametrize_with_checks([HOPE(), SHOPE(), STACKED])
def test_scikit_learn_finds_nothing_to_complain_of(estimator, check):
    check(estimator)


@pytest.mark.parametrize("cls", [HOPE, SHOPE])
def test_a_pipeline_fits_transforms_and_predicts(cls, iris):
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), cls(**QUICK)).fit(X, y)
    assert pipeline.transform(X).shape == (150, 2)
    assert pipeline.score(X, y) > 0.9


def test_set_output_gives_a_named_frame():
    frame = load_iris(as_frame=True)
    model = SHOPE(**QUICK).set_output(transform="pandas").fit(frame.data, frame.target)
    out = model.transform(frame.data)
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == ["shope0", "shope1"] == list(model.get_feature_names_out())
    assert list(out.index) == list(frame.data.index)
    assert list(model.feature_names_in_) == list(frame.data.columns)


def _threads(estimator, X, y):
    return torch.get_num_threads()


def test_grid_search_runs_in_two_processes_without_oversubscribing(iris):
    X, y = iris
    grid = {"n_exemplars": [1, 2], "order": [1, 2]}
    search = GridSearchCV(SHOPE(**QUICK), grid, cv=2, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.9
    counting = GridSearchCV(
        SHOPE(**QUICK), {"order": [1]}, cv=2, n_jobs=2, scoring=_threads, refit=False
    ).fit(X, y)
    available = joblib.cpu_count()
    assert counting.cv_results_["mean_test_score"][0] <= max(1, available // 2)


def test_a_fit_leaves_the_number_of_threads_alone(three_blobs):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        SHOPE(**QUICK).fit(*three_blobs).predict(three_blobs[0])
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_a_fit_leaves_the_global_random_state_alone(three_blobs):
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    SHOPE(**QUICK, dropout=0.1).fit(*three_blobs)
    after = torch.rand(1), np.random.rand()  # noqa: NPY002
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    assert after == (torch.rand(1), np.random.rand())  # noqa: NPY002


def test_a_clone_has_the_settings_and_not_the_fit(three_blobs):
    model = HOPE(order=2, **QUICK).fit(*three_blobs)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "map_")


@pytest.mark.parametrize("way", [pickle, joblib], ids=["pickle", "joblib"])
def test_pickle_and_joblib_keep_a_fitted_model(way, three_blobs, tmp_path):
    X, y = three_blobs
    model = SHOPE(**QUICK).fit(X, y)
    with open(tmp_path / "model", "wb") as file:
        way.dump(model, file)
    with open(tmp_path / "model", "rb") as file:
        again = way.load(file)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_the_docstring_lists_every_parameter():
    for cls in (HOPE, SHOPE):
        text = cls.__doc__
        assert "{parameters}" not in text
        for name in cls().get_params():
            assert f"\n    {name} : " in text, name
