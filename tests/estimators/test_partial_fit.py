"""partial_fit: learning from some rows at a time."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hopefold import HOPE, SHOPE, load
from hopefold.errors import InvalidInput, InvalidParameter

SMALL = {"n_factors": 60, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(y))
    return X[order], y[order]


def pieces(X, y, n):
    return zip(np.array_split(X, n), np.array_split(y, n), strict=True)


@pytest.mark.parametrize("method", [SHOPE, HOPE])
def test_a_map_that_is_learned_piece_by_piece_knows_new_rows(method, digits):
    X, y = digits
    model = method(**SMALL)
    for _ in range(14):
        for rows, labels in pieces(X[:1_400], y[:1_400], 7):
            model.partial_fit(rows, labels)
    assert model.score(X[1_400:], y[1_400:]) > 0.9
    assert model.n_iter_ == len(model.history_) == 98
    assert model.history_[-1]["loss"] < 0.3 * model.history_[0]["loss"]


def test_the_validation_error_is_that_of_rows_not_yet_learned(digits):
    X, y = digits
    model = SHOPE(**SMALL).partial_fit(X[:600], y[:600])
    assert model.validation_error_ is None
    before = model.score(X[600:900], y[600:900])
    model.partial_fit(X[600:900], y[600:900])
    assert model.validation_error_ == pytest.approx(1 - before)


def test_a_fitted_model_goes_on(digits, tmp_path):
    X, y = digits
    model = SHOPE(**SMALL, max_epochs=20).fit(X[:900], y[:900])
    before = model.score(X[1_400:], y[1_400:])
    model.save(tmp_path / "digits.hope")
    again = load(tmp_path / "digits.hope")
    for one in (model, again):
        one.partial_fit(X[900:1_400], y[900:1_400])
        assert one.score(X[1_400:], y[1_400:]) > before - 0.02
    np.testing.assert_allclose(again.transform(X[:5]), model.transform(X[:5]), atol=1e-4)


def test_the_same_pieces_give_the_same_bits(digits):
    X, y = digits
    one, two = SHOPE(**SMALL), SHOPE(**SMALL)
    for rows, labels in pieces(X, y, 5):
        one.partial_fit(rows, labels)
        two.partial_fit(rows, labels)
        np.testing.assert_array_equal(one.transform(X[:9]), two.transform(X[:9]))


def test_fit_begins_anew(digits):
    X, y = digits
    fresh = SHOPE(**SMALL, max_epochs=2).fit(X, y)
    used = SHOPE(**SMALL, max_epochs=2).partial_fit(X, y).fit(X, y)
    np.testing.assert_array_equal(used.transform(X[:9]), fresh.transform(X[:9]))
    assert used.n_iter_ == fresh.n_iter_


def test_a_copy_goes_on_by_itself(digits):
    X, y = digits
    model = SHOPE(**SMALL).partial_fit(X[:500], y[:500])
    before = model.transform(X[:9])
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other.partial_fit(X[500:], y[500:])
        np.testing.assert_array_equal(model.transform(X[:9]), before)


def test_a_class_may_come_later(digits):
    X, y = digits
    model, few = SHOPE(**SMALL), y < 9
    model.partial_fit(X[few], y[few], classes=range(10))
    assert (model.exemplar_labels_ == 9).sum() == 2
    for _ in range(12):
        model.partial_fit(X, y)
    assert (model.predict(X[y == 9]) == 9).mean() > 0.8


def test_labels_that_were_not_announced_are_refused(digits):
    X, y = digits
    model = SHOPE(**SMALL).partial_fit(X[y < 9], y[y < 9])
    before = model.transform(X[:9])
    with pytest.raises(InvalidInput, match="the label 9, which is not among the classes"):
        model.partial_fit(X, y)
    with pytest.raises(InvalidInput, match="the first call had"):
        model.partial_fit(X[y < 9], y[y < 9], classes=range(10))
    with pytest.raises(InvalidInput, match="features"):
        model.partial_fit(X[:, :9], y)
    with pytest.raises(InvalidInput, match="missing"):
        model.partial_fit(np.where(X > 5, np.nan, X)[y < 9], y[y < 9])
    np.testing.assert_array_equal(model.transform(X[:9]), before)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"exemplars": None}, "exemplars=None needs all of them: set exemplars='joint'"),
        ({"optimizer": "cg"}, "optimizer='cg' needs all of them"),
        ({"max_bytes": 65_536}, "max_bytes=65536 needs all of them"),
        ({"class_weight": "balanced"}, "give partial_fit a dict"),
    ],
)
def test_what_needs_all_rows_is_refused(settings, message, digits):
    with pytest.raises(InvalidParameter, match=message):
        SHOPE(**settings).partial_fit(*digits)


def test_columns_that_the_fit_has_eliminated_stay_so():
    random = np.random.RandomState(0)
    X = random.normal(size=(1_500, 40))
    y = X[:, 2] * X[:, 7] > 0
    model = SHOPE(random_state=0).fit(X[:1_300], y[:1_300])
    ignored = model.column_gains_ == 0
    assert 0 < ignored.sum() <= 38
    model.partial_fit(X[1_300:], y[1_300:])
    np.testing.assert_array_equal(model.column_gains_ == 0, ignored)
