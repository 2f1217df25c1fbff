"""Whatever the table: it is learned from, and all points are finite, or it is one of our errors."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from hopefold import SHOPE, load
from hopefold.errors import HopefoldError

TRIES = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

DTYPES = (
    "f2",
    "f4",
    "f8",
    "g",
    "i1",
    "u1",
    "i4",
    "i8",
    "u8",
    "?",
    "c8",
    "O",
    "U3",
    "S3",
    "M8[s]",
    ">f8",
)

EXTREMES = st.sampled_from(
    [0.0, -0.0, 1.0, -1.0, 1e-320, 1e-38, 1e-7, 1e7, 1e19, 1e30, 1e38, -1e38, 1e200, 1.7e308]
)
NUMBERS = st.one_of(EXTREMES, st.floats(-1e3, 1e3), st.sampled_from([np.nan, np.inf, -np.inf]))
SANE = st.one_of(EXTREMES, st.floats(-1e3, 1e3))
TEXT = st.text(max_size=8)
NAMES = st.one_of(TEXT, st.sampled_from(["a", "a", "x" * 100_000, "=1+1", "</script>", "\0"]))
LABELS = st.one_of(
    st.lists(st.integers(0, 2), min_size=30, max_size=30),
    st.lists(st.sampled_from([-(2**63), 2**63 - 1, 0]), min_size=30, max_size=30),
    st.lists(
        st.sampled_from(["", "ü", "x" * 10_000, "=1", "\ud800", " a "]), min_size=30, max_size=30
    ),
    st.lists(st.booleans(), min_size=30, max_size=30),
    st.lists(st.sampled_from([0.0, 1.0, -0.0, 1e300, np.nan]), min_size=30, max_size=30),
    st.lists(st.sampled_from(["a", 1, None, b"b", (1,)]), min_size=30, max_size=30),
)


def try_it(X, y, tmp_path):
    """Fit, use, save, load: finite, the same after loading, or refused by one of our errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # ours, and scikit-learn's about labels
        try:
            model = SHOPE(max_epochs=1, n_factors=4, n_units=4, random_state=0).fit(X, y)
            points, labels = model.transform(X), model.predict(X)
            shares = model.predict_proba(X)
            model.save(tmp_path / "model.hope")
        except HopefoldError:
            return None
        assert points.shape == (len(labels), 2)
        assert np.isfinite(points).all()
        assert np.isfinite(shares).all()
        assert set(labels.tolist()) <= set(model.classes_.tolist())
        again = load(tmp_path / "model.hope")
        np.testing.assert_array_equal(again.transform(X), points)
        np.testing.assert_array_equal(again.predict(X), labels)
        return model


@TRIES
@given(
    rows=arrays(
        np.float64, st.tuples(st.sampled_from([0, 1, 2, 30]), st.integers(0, 4)), elements=NUMBERS
    ),
    dtype=st.sampled_from(DTYPES),
)
def test_arrays_of_every_dtype(rows, dtype, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cast of an extreme is not what is tried
        rows = rows.astype("i8").astype(dtype) if dtype == "M8[s]" else rows.astype(dtype)
    try_it(rows, np.arange(len(rows)) % 3, tmp_path)


@TRIES
@given(
    rows=arrays(np.float64, (30, 3), elements=SANE), scale=st.sampled_from([1e-300, 1e-30, 1, 1e30])
)
def test_huge_and_tiny_values(rows, scale, tmp_path):
    try_it(rows * scale if np.abs(rows).max() < 1e200 else rows, np.arange(30) % 3, tmp_path)


@TRIES
@given(labels=LABELS, as_array=st.booleans())
def test_labels_of_every_kind(labels, as_array, tmp_path):
    X = np.random.RandomState(0).normal(size=(30, 3))
    if as_array:
        kind = object if {type(label) for label in labels} & {tuple, bytes, type(None)} else None
        filled = np.empty(30, dtype=object)
        filled[:] = labels
        labels = filled if kind is object else np.array(labels)
    try_it(X, labels, tmp_path)


@TRIES
@given(
    rows=arrays(np.float64, (30, 3), elements=st.sampled_from([0.0, 0.0, 1.0, -2.0, 1e30, 1e-30])),
    kind=st.sampled_from(["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]),
    matrix=st.booleans(),
)
def test_sparse_tables_of_every_format(rows, kind, matrix, tmp_path):
    made = getattr(sparse, f"{kind}_{'matrix' if matrix else 'array'}")(rows)
    try_it(made, np.arange(30) % 3, tmp_path)


@TRIES
@given(names=st.lists(NAMES, min_size=1, max_size=4))
def test_frames_with_names_of_every_kind(names, tmp_path):
    frame = pd.DataFrame(np.random.RandomState(0).normal(size=(30, len(names))), columns=names)
    model = try_it(frame, np.arange(30) % 3, tmp_path)
    if model is not None:
        assert list(model.feature_names_in_) == names


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (30,), (5, 3, 2), ()])
def test_tables_that_are_none_are_refused(shape):
    with pytest.raises(HopefoldError):
        SHOPE().fit(np.zeros(shape), np.arange(shape[0] if shape else 1) % 2)


@pytest.mark.parametrize(
    "X", [np.zeros((0, 5)), np.zeros((3, 4)), np.zeros(5), [], None, "none.csv", 5]
)
def test_rows_that_do_not_fit_a_model_are_refused(three_blobs, X):
    model = SHOPE(max_epochs=1, random_state=0).fit(*three_blobs)
    with pytest.raises(HopefoldError):
        model.transform(X)
