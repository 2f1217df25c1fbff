"""Columns that are constant: they are left out of the learning, and nothing else changes."""

import numpy as np
import pytest

from hopefold import HOPE, SHOPE, load
from hopefold.data.scaling import learn_scale
from hopefold.fitting.task import columns_to_learn

#: Columns that vary, so many that none is needed to fill them up, and where constant ones are put.
N_VARYING = 16
PLACES = np.r_[np.zeros(9, int), np.full(4, 7), np.full(20, N_VARYING)]

METHODS = pytest.mark.parametrize(
    "make",
    [
        lambda **more: SHOPE(n_factors=8, n_units=8, **more),
        lambda **more: SHOPE(n_factors=8, n_units=(8, 6), **more),
        lambda **more: HOPE(n_factors=16, **more),
        lambda **more: SHOPE(n_factors=8, n_units=8, exemplars=None, **more),
        lambda **more: SHOPE(n_factors=8, n_units=8, exemplars="kmeans", **more),
    ],
    ids=["S-HOPE", "stacked", "HOPE", "pairs", "k-means"],
)


@pytest.fixture(scope="module")
def table():
    random = np.random.RandomState(0)
    y = random.randint(3, size=120)
    X = random.normal(size=(120, N_VARYING)) + 2 * np.eye(3, N_VARYING)[y]
    return X, np.insert(X, PLACES, 5.0, axis=1), y


def is_constant(wide):
    return np.ptp(wide, axis=0) == 0


@METHODS
def test_constant_columns_leave_the_map_as_it_is(make, table):
    X, wide, y = table
    alone, among = (make(max_epochs=3, random_state=0).fit(rows, y) for rows in (X, wide))
    np.testing.assert_allclose(among.transform(wide), alone.transform(X), rtol=0, atol=1e-5)
    assert among.validation_error_ == alone.validation_error_
    assert among.train_error_ == alone.train_error_


@METHODS
def test_nothing_is_learned_for_constant_columns(make, table):
    _, wide, y = table
    model = make(max_epochs=2, random_state=0).fit(wide, y)
    C = model.map_.layers[0].C
    assert C.shape[1] == wide.shape[1]
    assert (C[:, is_constant(wide)] == 0).all()
    assert (C[:, ~is_constant(wide)] != 0).all()


def test_exemplars_hold_the_constants(table):
    _, wide, y = table
    model = SHOPE(max_epochs=2, random_state=0).fit(wide, y)
    assert model.exemplars_.shape == (6, wide.shape[1])
    assert (model.exemplars_[:, is_constant(wide)] == 5).all()


def test_a_table_without_constant_columns_is_not_copied_for_them(table):
    scale = learn_scale(table[0], "standard")
    assert columns_to_learn(SHOPE().request(), scale) is None
    few_constant = learn_scale(table[1][:, :16], "standard")  # all needed to fill up
    assert columns_to_learn(SHOPE().request(), few_constant) is None


def test_such_a_model_is_saved_and_goes_on(table, tmp_path):
    _, wide, y = table
    model = SHOPE(max_epochs=2, random_state=0).fit(wide, y)
    model.save(tmp_path / "model.hope")
    again = load(tmp_path / "model.hope")
    np.testing.assert_array_equal(again.transform(wide), model.transform(wide))
    assert again.partial_fit(wide, y).transform(wide).shape == (120, 2)


def test_columns_that_are_all_constant_are_learned_from(table):
    _, wide, y = table
    rows = np.full_like(wide, 3)
    with pytest.warns(UserWarning, match="clearly better"):
        model = SHOPE(max_epochs=2, random_state=0).fit(rows, y)
    assert np.ptp(model.transform(rows), axis=0).max() == 0
