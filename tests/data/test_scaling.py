"""Scales: what they do to columns, what auto chooses, and the way back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from hopefold.data.rows import Rows
from hopefold.data.scaling import Scale, learn_scale
from hopefold.errors import InvalidInput

TABLE = np.random.RandomState(0).normal(size=(200, 3)) * [1, 100, 1e-3] + [0, 2020, 5]


def test_standard_columns_have_mean_zero_and_deviation_one():
    scaled = learn_scale(TABLE, "standard").apply(TABLE)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-5)
    assert scaled.dtype == np.float32


def test_range_keeps_proportions_between_columns():
    X = np.array([[0, 10], [255, 20.0]])
    np.testing.assert_allclose(
        learn_scale(X, "range").apply(X), [[0, 10 / 255], [1, 20 / 255]], rtol=1e-6
    )


def test_no_scale_is_no_change():
    X = TABLE.astype(np.float32)
    np.testing.assert_array_equal(learn_scale(X, None).apply(X), X)


@pytest.mark.parametrize("how", ["auto", "standard", "range", None])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_every_scale_can_be_undone(how, make):
    X = TABLE.copy()
    X[:, 1] = 7  # a constant column comes back too
    scale = learn_scale(make(X), how)
    np.testing.assert_allclose(scale.undo(scale.apply(X)), X, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", ["auto", "standard", "range"])
def test_a_column_that_was_constant_is_not_listened_to(how):
    X = np.column_stack([TABLE, np.full(200, 3.0)])
    scale = learn_scale(X, how)
    assert (scale.apply(X)[:, 3] == 0).all()
    strange = X[:1].copy()
    strange[0, 3] = 1e9
    np.testing.assert_array_equal(scale.apply(strange), scale.apply(X[:1]))


def _same(a: Scale, b: Scale) -> bool:
    return np.array_equal(a.gain, b.gain) and np.array_equal(a.shift, b.shift)


@pytest.mark.parametrize("factor", [1, 1 / 16, 255 / 16])
def test_auto_takes_pixels_for_pixels(factor):
    X = load_digits().data * factor
    assert _same(learn_scale(X, "auto"), learn_scale(X, "range"))


def test_some_images_are_taken_for_pixels_as_all_of_them_are():
    """At the border of a few images, some pixels are never bright and often not dark."""
    X, chance = load_digits().data, np.random.RandomState(0)
    for _ in range(20):
        some = X[chance.permutation(len(X))[:600]]
        assert learn_scale(some, "auto").is_one


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_auto_standardises_tables(load):
    X = load().data
    assert _same(learn_scale(X, "auto"), learn_scale(X, "standard"))


def test_auto_keeps_the_zeros_of_sparse_columns(sparse_rows):
    X = sparse_rows(50, 20, 0.1) * 40
    scaled = learn_scale(X, "auto").apply(X)
    np.testing.assert_array_equal(scaled == 0, X.toarray() == 0)
    assert np.abs(scaled).max() == pytest.approx(1)


def test_an_offset_is_subtracted_before_rounding_to_float32():
    X = np.array([[1e9], [1e9 + 1], [1e9 + 2]])
    np.testing.assert_allclose(
        learn_scale(X, "standard").apply(X).ravel(), [-1.2247449, 0, 1.2247449], atol=1e-6
    )


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e200, 1e300])
def test_no_unit_is_too_small_or_too_large_to_standardize(unit):
    scaled = learn_scale(TABLE * unit, "standard").apply(TABLE * unit)
    np.testing.assert_allclose(scaled, learn_scale(TABLE, "standard").apply(TABLE), atol=1e-5)


def test_columns_without_bounds_are_not_pixels_though_they_reach_as_far():
    for seed in range(100):
        X = np.random.RandomState(seed).normal(size=(500, 2 + seed % 20))
        assert _same(learn_scale(X, "auto"), learn_scale(X, "standard"))


def test_percentages_beside_rates_are_not_pixels():
    random = np.random.RandomState(0)
    X = np.c_[random.randint(0, 101, (500, 6)), random.rand(500, 4)]
    X[0] = 0
    assert _same(learn_scale(X, "auto"), learn_scale(X, "standard"))


def test_numbers_beside_indicators_are_not_pixels():
    random = np.random.RandomState(0)
    X = np.c_[random.randint(0, 101, (500, 6)), np.eye(3)[random.randint(3, size=500)]]
    assert _same(learn_scale(X, "auto"), learn_scale(X, "standard"))


def test_values_too_large_for_float32_are_refused_by_column():
    X = np.array([[1.0, 1e200], [2.0, 0]])
    with pytest.raises(InvalidInput, match=r"column 1.*float32"):
        Rows.prepare(X, learn_scale(X, None))


def test_sparse_rows_are_made_dense_only_as_fetched(sparse_rows):
    X = sparse_rows(40, 6, 0.3)
    rows = Rows.prepare(X, learn_scale(X, "standard"))
    which = np.array([3, 17])
    expected = learn_scale(X, "standard").apply(X.toarray()[which])
    np.testing.assert_allclose(rows.fetch(which), expected, rtol=1e-6)


def test_a_subset_is_a_table_of_its_own(sparse_rows):
    X = sparse_rows(40, 6, 0.3)
    which, some = np.array([30, 3, 17]), np.array([2, 0])
    for table in (X, X.toarray()):
        rows = Rows.prepare(table, learn_scale(table, "standard"))
        subset = rows.subset(which)
        assert len(subset) == 3
        np.testing.assert_array_equal(subset.fetch(some), rows.fetch(which[some]))
        centers = [
            part.fetch_for_clustering(numbers).mean(axis=0)
            for part, numbers in [(subset, some), (rows, which[some])]
        ]
        np.testing.assert_array_equal(*centers)


def test_sparse_clusters_come_back_at_the_right_place(sparse_rows):
    X = sparse_rows(40, 6, 0.3)
    rows = Rows.prepare(X, learn_scale(X, "standard"))
    which = np.arange(40)
    center = rows.fetch_for_clustering(which).mean(axis=0) + rows.clustering_shift
    np.testing.assert_allclose(center, rows.fetch(which).mean(axis=0), atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("how", ["standard", "range", None])
@pytest.mark.parametrize("low", [0, 3])
def test_rows_are_written_as_they_would_be_given(how, dtype, low):
    X = (low + 5 * np.random.RandomState(0).rand(20, 4)).astype(dtype)
    X[0] = low
    scale = learn_scale(X, how)
    out = np.full((20, 4), np.nan, np.float32)
    scale.write(X, out)
    np.testing.assert_array_equal(out, scale.apply(X))


EXTREMES = (0, 5e-324, 1e-320, 1e-308, 1e-160, 1, 1e38, 1e160, 1e300, 8e307)


@pytest.mark.parametrize("how", ["auto", "standard", "range"])
def test_the_most_extreme_numbers_have_a_finite_scale(how):
    for low, high in itertools.product(EXTREMES, EXTREMES):
        X = np.array([[-low, 1.0], [high, 2.0], [-low, 0.5], [-low, 1.0]])
        scale = learn_scale(X, how)
        assert np.isfinite(scale.shift).all()
        assert np.isfinite(scale.gain).all()
        assert np.isfinite(scale.apply(X)).all()


def test_the_scale_of_rows_that_do_not_vary_is_in_floats():
    scale = learn_scale(np.ones((3, 2)), "range")
    assert scale.gain.dtype == scale.shift.dtype == np.float64


@pytest.mark.parametrize("shifted", [True, False])
@pytest.mark.parametrize(
    "layout", ["plain", "read-only", "columns", "backwards", "field", "double"]
)
def test_what_is_written_is_what_apply_gives(layout, shifted):
    rows = TABLE.astype(np.float32)
    record = np.zeros(len(rows), dtype=[("label", "u1"), ("x", "f4", (3,))])
    record["x"] = rows
    X = {
        "plain": rows,
        "read-only": np.frombuffer(rows.tobytes(), np.float32).reshape(rows.shape),
        "columns": np.asfortranarray(rows),
        "backwards": rows[::-1, ::-1],
        "field": record["x"],
        "double": TABLE,
    }[layout]
    shift, gain = np.array([1.5, -2, 0.1]) * shifted, np.array([0.3, 2, 0])
    scale, out = Scale(shift, gain), np.empty(rows.shape, dtype=np.float32)
    scale.write(X, out)
    np.testing.assert_array_equal(out, scale.apply(X))


def test_columns_that_vary_are_filled_up_with_others_to_a_multiple():
    gain = np.array([0, 2, 0, 0, 3, 0, 1, 0, 0])
    scale = Scale(np.zeros(9), gain)
    assert scale.columns_that_vary(multiple=2).tolist() == [0, 1, 4, 6]
    assert scale.columns_that_vary(multiple=3).tolist() == [1, 4, 6]
    assert scale.columns_that_vary(multiple=16).tolist() == list(range(9))


def test_where_no_column_varies_some_are_left():
    scale = Scale(np.ones(5), np.zeros(5))
    assert scale.columns_that_vary(multiple=2).tolist() == [0, 1]
