"""A model within a budget: its file is never larger, and it is the same after it is read."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.datasets import load_digits, make_blobs

from hopefold import HOPE, SHOPE, load
from hopefold.data.scaling import Scale
from hopefold.errors import InvalidParameter
from hopefold.evaluation import kept_by_model, operations
from hopefold.fitting.size_budget import is_handy
from hopefold.persistence.quantization import pack, pack_scale, round_values, unpack_scale

QUICK = {"max_epochs": 3, "random_state": 0}

tables = arrays(
    np.float32,
    array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(-1e4, 1e4, width=32, allow_subnormal=False),
)


@given(tables)
def test_whole_numbers_are_at_most_half_a_step_off(table):
    step = np.abs(table).max(axis=1, keepdims=True) / 127
    assert (np.abs(round_values(table, "int8") - table) <= 0.502 * step).all()


@pytest.mark.parametrize("precision", ["int8", "float16"])
@given(table=tables)
def test_packed_again_gives_the_same_bits(precision, table):
    first = pack("t", table, precision)
    again = pack("t", round_values(table, precision), precision)
    assert first.keys() == again.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])


def test_a_scale_of_few_values_takes_a_byte_a_column():
    shift = np.zeros(784)
    gain = np.where(np.arange(784) % 7, 1 / 255, 0)
    packed = pack_scale(Scale(shift, gain))
    assert sum(tensor.nbytes for tensor in packed.values()) < 784 + 64
    again = unpack_scale(packed)
    np.testing.assert_array_equal(again.shift, shift)
    np.testing.assert_array_equal(again.gain, gain)


def test_a_scale_of_many_values_stays_as_it_is():
    rng = np.random.RandomState(0)
    scale = Scale(rng.normal(size=500), rng.normal(size=500))
    again = unpack_scale(pack_scale(scale))
    np.testing.assert_array_equal(again.shift, scale.shift)
    np.testing.assert_array_equal(again.gain, scale.gain)


@pytest.mark.parametrize("cls", [HOPE, SHOPE])
@pytest.mark.parametrize("exemplars", ["joint", "kmeans", None])
@pytest.mark.parametrize("max_bytes", [12_000, 65_536])
def test_the_file_fits_and_is_the_same_model(cls, exemplars, max_bytes, tmp_path):
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    model = cls(**QUICK, exemplars=exemplars, max_bytes=max_bytes).fit(X, y)
    path = tmp_path / "small.hope"
    model.save(path)
    assert path.stat().st_size <= max_bytes
    assert kept_by_model(model).bytes == path.stat().st_size
    again = load(path)
    assert again.precision_ == model.precision_ == "int8"
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    if exemplars:
        np.testing.assert_array_equal(again.exemplars_, model.exemplars_)
        np.testing.assert_array_equal(model.transform(model.exemplars_), model.exemplar_embedding_)
    again.save(tmp_path / "again.hope")
    assert load(tmp_path / "again.hope").validation_error_ == model.validation_error_


def test_a_larger_budget_gives_a_larger_map_up_to_the_usual_one():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    costs = [
        operations(SHOPE(**QUICK, max_bytes=n).fit(X, y)).end_to_end
        for n in (8_000, 30_000, 10_000_000)
    ]
    assert costs == sorted(set(costs))
    usual = SHOPE(**QUICK, n_units=600, n_factors=400).fit(X, y)
    assert costs[-1] == operations(usual).end_to_end


def test_long_names_count(tmp_path):
    rng = np.random.RandomState(0)
    names = [f"größe der säule {n} in μm ({'x' * 50})" for n in range(40)]
    X = pd.DataFrame(rng.normal(size=(200, 40)), columns=names)
    y = np.array(["Ärger", 'a "quoted" label', "\\"])[(X.to_numpy()[:, 0] > 0).astype(int)]
    model = SHOPE(**QUICK, max_bytes=30_000, class_weight={"Ärger": 1, 'a "quoted" label': 2})
    model.fit(X, y).save(tmp_path / "named.hope")
    assert (tmp_path / "named.hope").stat().st_size <= 30_000


@pytest.mark.parametrize("weight", [1, np.float32(0.3), 0.1234567890123])
@pytest.mark.parametrize("make", [str, np.int64])
def test_class_weights_count(make, weight, tmp_path):
    rng = np.random.RandomState(0)
    n_classes = 200
    y = np.arange(2 * n_classes) % n_classes
    X = rng.normal(size=(len(y), 5)) + 3 * y[:, None]
    labels = np.array([make(label) for label in y])
    model = SHOPE(
        max_bytes=16_000,
        class_weight=dict.fromkeys(np.unique(labels), weight),
        n_exemplars=1,
        max_epochs=1,
        refit=False,
        random_state=0,
    )
    model.fit(X, labels).save(tmp_path / "many.hope")
    assert (tmp_path / "many.hope").stat().st_size <= 16_000


def test_free_sizes_are_chosen_around_those_that_are_given():
    X, y = load_digits(return_X_y=True)
    X, y = X[:200], y[:200]
    wide = SHOPE(**QUICK, max_bytes=20_000, n_factors=100).fit(X, y)
    assert wide.map_.W.shape[1] == 100
    assert 1 < len(wide.map_.W) < 200
    deep = SHOPE(**QUICK, max_bytes=20_000, n_units=100).fit(X, y)
    assert len(deep.map_.W) == 100


def test_sorted_rows_are_judged_by_all_of_them():
    """Without exemplars, the first rows alone would be of the first class."""
    random = np.random.RandomState(0)
    y = np.repeat([0, 1], [5_500, 600])
    X = random.normal(size=(len(y), 2)) + 9 * y[:, None]
    settings = {"order": 1, "n_factors": 4, "exemplars": None, "max_epochs": 2, "refit": False}
    model = HOPE(**settings, max_bytes=90_000, random_state=0).fit(X, y)
    assert model.validation_error_ < 0.01


def test_too_small_a_budget_says_what_is_needed(three_blobs):
    with pytest.raises(InvalidParameter, match=r"max_bytes=1500 is too little: \d+ are needed"):
        SHOPE(max_bytes=1_500).fit(*three_blobs)
    with pytest.raises(InvalidParameter, match="too little"):
        SHOPE(max_bytes=20_000, n_factors=400, n_units=600).fit(*three_blobs)
    with pytest.raises(InvalidParameter, match="max_bytes=0"):
        SHOPE(max_bytes=0.5).fit(*three_blobs)


def test_where_whole_numbers_are_too_coarse_halves_are_used():
    """Far from zero, what int8 rounds off a weight is as large as what tells classes apart."""
    X, y = make_blobs(3_000, 6, centers=4, cluster_std=2, random_state=1)
    X = X / X.std() + 300
    settings = {"scale": None, "order": 1, "learning_rate": 1e-3, "max_epochs": 60}
    fine = HOPE(**settings, random_state=0).fit(X[:600], y[:600])
    small = HOPE(**settings, random_state=0, max_bytes=5_000).fit(X[:600], y[:600])
    assert small.precision_ == "float16"
    assert small.score(X[600:], y[600:]) >= fine.score(X[600:], y[600:]) - 0.02


def test_sizes_are_rounded_where_it_costs_little():
    handy = [size for size in range(1, 130) if is_handy(size)]
    assert {48, 64, 63, 55, 15, 1} <= set(handy)
    assert not {49, 54, 65, 33, 17} & set(handy)
    assert all(before >= 7 / 8 * size - 1 for before, size in itertools.pairwise(handy[14:]))
