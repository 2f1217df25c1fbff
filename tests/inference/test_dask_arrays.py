"""A model given a dask array or frame: a lazy answer, the same as that in memory."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from cells import write_cells
from hopefold import SHOPE
from hopefold.baselines import LDA
from hopefold.data.tables import read_table
from hopefold.errors import InvalidInput, InvalidParameter, InvalidType

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")

VERBS = ("transform", "predict", "predict_proba")


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def blobs(three_blobs):
    X, y = three_blobs
    return X, np.array(["red", "green", "blue"])[y]


@pytest.fixture(scope="module")
def model(blobs):
    return SHOPE(max_epochs=3, n_factors=8, n_units=8, random_state=0).fit(*blobs)


@pytest.fixture(scope="module")
def frame(blobs):
    return pd.DataFrame(blobs[0], columns=list("abcde"), index=np.arange(100, 190))


@pytest.fixture(scope="module")
def frame_model(frame, blobs):
    return SHOPE(max_epochs=3, n_factors=8, n_units=8, random_state=0).fit(frame, blobs[1])


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """A table with a text column, and a model that has learned to encode it."""
    table = write_cells(tmp_path_factory.mktemp("cells") / "cells.csv")
    rows = read_table(table, "type", ids=["cell"], encode=True)
    return SHOPE(max_epochs=2, n_factors=8, n_units=8, random_state=0).fit(rows), pd.read_csv(table)


def same(said, expected):
    """The same labels; the same numbers but for the rounding of products of other sizes."""
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(said, expected, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(said, expected)


def never(block):
    """A block that must not be computed."""
    raise AssertionError("computed too early")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("chunks", [(40, 5), (7, 2)], ids=["rows", "rows and features"])
def test_what_is_said_of_an_array_is_what_is_said_in_memory(model, blobs, verb, chunks):
    X = blobs[0]
    said = getattr(model, verb)(da.from_array(X, chunks=chunks))
    expected = getattr(model, verb)(X)
    assert said.shape == expected.shape
    assert said.dtype == expected.dtype
    assert said.chunks[0] == da.from_array(X, chunks=chunks).chunks[0]
    assert all(len(sizes) == 1 for sizes in said.chunks[1:])
    computed = said.compute()
    assert computed.dtype == expected.dtype
    same(computed, expected)


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_said_of_a_frame_is_an_array_in_the_same_partitions(frame_model, frame, verb):
    said = getattr(frame_model, verb)(dd.from_pandas(frame, npartitions=4))
    expected = getattr(frame_model, verb)(frame)
    assert isinstance(said, da.Array)
    assert said.dtype == expected.dtype
    assert said.numblocks[0] == 4
    assert said.shape[1:] == expected.shape[1:]
    same(said.compute(), expected)


def test_points_of_a_frame_become_a_lazy_frame_with_its_index(frame_model, frame):
    rows = dd.from_pandas(frame, npartitions=4)
    names = frame_model.get_feature_names_out()
    points = dd.from_dask_array(frame_model.transform(rows), columns=names, index=rows.index)
    computed = points.compute()
    assert list(computed.columns) == ["shope0", "shope1"]
    assert list(computed.index) == list(frame.index)


@pytest.mark.parametrize("verb", VERBS)
def test_nothing_is_computed_before_it_is_asked_for(model, blobs, verb):
    X = da.from_array(blobs[0], chunks=(40, 5)).map_blocks(never, meta=np.empty((0, 5)))
    lazy = getattr(model, verb)(X)
    with pytest.raises(AssertionError, match="too early"):
        lazy.compute()


def test_the_model_is_one_node_of_the_graph(model, frame_model, blobs, frame):
    of_array = model.transform(da.from_array(blobs[0], chunks=(9, 5)))
    of_frame = frame_model.transform(dd.from_pandas(frame, npartitions=9))
    for lazy in (of_array, of_frame):
        named = {str(key) for key in dict(lazy.__dask_graph__()) if "SHOPE" in str(key)}
        assert len(named) == 1


def test_the_model_is_sent_once_and_not_with_every_block(model, blobs):
    from pickle import dumps

    few, many = (
        len(dumps(dict(model.transform(da.zeros((n, 5), chunks=(1, 5))).__dask_graph__())))
        for n in (10, 20)
    )
    assert (many - few) / 10 < 0.2 * len(dumps(model))


def test_a_later_fit_does_not_change_what_was_asked_before(blobs):
    X, y = blobs
    model = SHOPE(max_epochs=2, n_factors=8, n_units=8, random_state=0).fit(X, y)
    expected, lazy = model.transform(X), model.transform(da.from_array(X, chunks=(40, 5)))
    model.set_params(random_state=1).fit(X, y)
    model.partial_fit(X, y)
    same(lazy.compute(), expected)


@pytest.mark.parametrize("verb", VERBS)
def test_empty_blocks_and_partitions_work(model, frame_model, frame, blobs, verb):
    X = blobs[0]
    chunks = ((0, 40, 0, 50), (5,))
    of_array = getattr(model, verb)(da.from_array(X, chunks=chunks))
    same(of_array.compute(), getattr(model, verb)(X))
    rows = dd.from_pandas(frame, npartitions=4)
    late = rows.map_partitions(lambda partition: partition[partition.index > 150])
    of_frame = getattr(frame_model, verb)(late)
    same(of_frame.compute(), getattr(frame_model, verb)(frame[frame.index > 150]))


def test_blocks_of_unknown_length_work(model, blobs):
    X = da.from_array(blobs[0], chunks=(20, 2))
    points = model.transform(X[X[:, 0] > 0])
    assert np.isnan(points.shape[0])
    same(points.compute(), model.transform(blobs[0])[blobs[0][:, 0] > 0])


def test_whole_numbers_are_taken_as_in_memory(model):
    X = np.arange(60).reshape(12, 5)
    lazy = model.transform(da.from_array(X, chunks=(5, 5)))
    same(lazy.compute(), model.transform(X))


def test_columns_of_text_are_encoded_in_every_partition(cells):
    model, raw = cells
    lazy = model.transform(dd.from_pandas(raw, npartitions=3))
    same(lazy.compute(), model.transform(raw))


def test_a_pipeline_passes_lazy_rows_on(blobs):
    X, y = blobs
    pipeline = make_pipeline(
        FunctionTransformer(lambda rows: rows / 16),
        SHOPE(max_epochs=2, n_factors=8, n_units=8, random_state=0),
    ).fit(X, y)
    for verb in VERBS:
        lazy = getattr(pipeline, verb)(da.from_array(X, chunks=(40, 3)))
        assert isinstance(lazy, da.Array)
        same(lazy.compute(), getattr(pipeline, verb)(X))


def test_one_model_may_feed_another(blobs):
    X, y = blobs
    pipeline = make_pipeline(LDA(n_components=2), LDA(n_components=2)).fit(X, y)
    lazy = pipeline.transform(da.from_array(X, chunks=(40, 3)))
    same(lazy.compute(), pipeline.transform(X))


def test_the_wrong_number_of_columns_is_told_at_once(model):
    with pytest.raises(InvalidInput, match="7 features, but SHOPE is expecting 5"):
        model.transform(da.zeros((10, 7), chunks=(5, 7)))


def test_wrong_columns_of_a_frame_are_told_at_once(frame_model, frame):
    rows = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(InvalidInput, match="missing:\n- b\n"):
        frame_model.predict(rows.drop(columns="b"))
    with pytest.raises(InvalidInput, match="unseen at fit time:\n- f\n"):
        frame_model.predict(rows.assign(f=1))


def test_an_encoded_column_that_is_not_there_is_told_at_once(cells):
    model, raw = cells
    with pytest.raises(InvalidInput, match="no column 'tissue'"):
        model.transform(dd.from_pandas(raw.drop(columns="tissue"), npartitions=2))


@pytest.mark.parametrize(
    ("values", "what"), [("words", "text"), (pd.Timestamp("2020-01-01"), "times")]
)
def test_a_column_that_is_no_number_is_told_at_once(frame_model, frame, values, what):
    rows = dd.from_pandas(frame.assign(c=values), npartitions=2)
    with pytest.raises(InvalidInput, match=f"column 'c' holds {what}"):
        frame_model.transform(rows)


def test_a_missing_value_is_told_with_its_block(model, frame_model, frame, blobs):
    X = blobs[0].copy()
    X[45, 2] = np.nan
    with pytest.raises(InvalidInput, match=r"block 2 of X: column 2 has 1 missing .* in row 5"):
        model.transform(da.from_array(X, chunks=(20, 5))).compute()
    rows = frame.copy()
    rows.iloc[89, 2] = np.nan
    with pytest.raises(InvalidInput, match="partition 1 of X: column 'c' has 1 missing"):
        frame_model.transform(dd.from_pandas(rows, npartitions=2)).compute()


def test_what_has_no_rows_and_columns_is_refused(model, frame):
    with pytest.raises(InvalidInput, match="Expected 2D array, got 1D"):
        model.transform(da.zeros(5))
    for strange in (dd.from_pandas(frame, npartitions=2)["a"], dask.delayed(1)):
        with pytest.raises(InvalidType, match="give rows and columns"):
            model.transform(strange)


def test_a_frame_in_memory_is_not_made_of_lazy_points(model, blobs):
    X = da.from_array(blobs[0], chunks=(40, 5))
    with config_context(transform_output="pandas"):
        with pytest.raises(InvalidParameter, match="from_dask_array"):
            model.transform(X)
        assert model.predict(X).shape == (90,)


@pytest.mark.parametrize("verb", VERBS)
def test_blocks_are_answered_alike_where_others_deal_them_out(model, blobs, verb):
    """As dask_ml does it: what one row of zeros gives tells the kind, and blocks come as arrays."""
    X = da.from_array(blobs[0], chunks=(40, 5))
    answer = getattr(model, verb)
    like = answer(np.zeros((1, 5), X.dtype))
    shape = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (X.chunks[0], like.shape[1:])}
    lazy = X.map_blocks(answer, meta=like[:0], **shape)
    ours = answer(X)
    assert (lazy.dtype, lazy.chunks) == (ours.dtype, ours.chunks)
    same(lazy.compute(), ours.compute())


@pytest.mark.parametrize("verb", VERBS)
def test_the_wrapper_of_dask_ml_answers_alike(blobs, verb):
    wrappers = pytest.importorskip("dask_ml.wrappers")
    X, y = blobs
    bare = SHOPE(max_epochs=3, n_factors=8, n_units=8, random_state=0)
    wrapped = wrappers.ParallelPostFit(bare).fit(X, y)
    lazy = getattr(wrapped, verb)(da.from_array(X, chunks=(40, 5)))
    same(lazy.compute(), getattr(wrapped.estimator, verb)(X))


def test_dask_is_not_imported_for_rows_that_are_not_its_own():
    code = (
        "import sys; from hopefold import SHOPE\n"
        "SHOPE(max_epochs=1, n_factors=3).fit([[0], [1]] * 10, [0, 1] * 10).predict([[0]])\n"
        "assert not {'dask', 'distributed'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_threads_may_share_the_model(model, blobs):
    lazy = model.predict_proba(da.from_array(blobs[0], chunks=(4, 5)))
    same(lazy.compute(scheduler="threads", num_workers=4), model.predict_proba(blobs[0]))
