"""ONNX: the same answers from a real runtime, for every kind of model, label and batch."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from cells import with_gaps, write_cells
from hopefold import HOPE, SHOPE
from hopefold.core.maps import Products
from hopefold.data.tables import read_table
from hopefold.errors import CannotExport, MissingPackage
from hopefold.export import formula, graph, to_onnx
from hopefold.persistence.quantization import round_values

QUICK = {"n_factors": 6, "n_units": 5, "max_epochs": 1, "random_state": 0}


#: Whatever a label can be; NumPy takes zeros off the end of text.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def ask(path, rows):
    """Points, labels and probabilities, by nothing but onnxruntime."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["embedding", "label", "probabilities"], {"rows": rows})


def check_same(model, path, rows):
    points, labels, shares = ask(path, rows)
    np.testing.assert_allclose(points, model.transform(rows), atol=1e-4)
    np.testing.assert_allclose(shares, model.predict_proba(rows), atol=1e-4)
    assert labels.tolist() == model.predict(rows).tolist()


def test_every_kind_of_model_answers_the_same(model, rows, tmp_path):
    export = to_onnx(model, tmp_path / "m.onnx", rows)
    assert export.parity.largest_difference <= 1e-4
    assert export.parity.n_clear >= 130
    check_same(model, tmp_path / "m.onnx", rows)


def test_another_runtime_gives_the_same(model, rows):
    evaluator = ReferenceEvaluator(onnx.load_from_string(graph.to_bytes(formula.formula_of(model))))
    points, labels, shares = evaluator.run(None, {"rows": rows[::10]})
    np.testing.assert_allclose(points, model.transform(rows[::10]), atol=1e-4)
    np.testing.assert_allclose(shares, model.predict_proba(rows[::10]), atol=1e-4)
    assert labels.tolist() == model.predict(rows[::10]).tolist()


def test_the_graph_has_the_temperature(tempered, rows, tmp_path):
    to_onnx(tempered, tmp_path / "m.onnx", rows)
    check_same(tempered, tmp_path / "m.onnx", rows)


def test_a_class_that_is_far_away_has_a_finite_probability(tempered, rows):
    """In float32, its share would be 0."""
    tempered.reference_embedding_ = tempered.reference_embedding_.copy()
    tempered.reference_embedding_[tempered.reference_labels_ == 2] = 1e18
    shares = graph.Session(graph.to_bytes(formula.formula_of(tempered)))(rows)[2]
    np.testing.assert_allclose(shares, tempered.predict_proba(rows), atol=1e-4)


def test_at_temperature_one_the_graph_has_no_further_operation(tempered):
    right = formula.formula_of(tempered)
    with_one, without = (
        onnx.load_from_string(graph.to_bytes(replace(right, temperature=temperature))).graph.node
        for temperature in (right.temperature, 1.0)
    )
    operators = [node.op_type for node in without]
    assert "Log" not in operators
    assert len(with_one) == len(operators) + 4


@settings(max_examples=25, deadline=None)
@given(
    n_features=st.integers(1, 5),
    order=st.integers(1, 7),
    n_components=st.integers(1, 4),
    n_neighbors=st.sampled_from(["auto", 1, 4]),
    labels=st.lists(TEXT, min_size=2, max_size=4, unique=True)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=4, unique=True)
    | st.lists(st.integers(-99, 99).map(float), min_size=2, max_size=4, unique=True)
    | st.just([False, True]),
    seed=st.integers(0, 99),
)
def test_any_shape_order_and_labels(
    tmp_path_factory, n_features, order, n_components, n_neighbors, labels, seed
):
    random = np.random.RandomState(seed)
    codes = np.arange(20) % len(labels)
    X = (random.normal(size=(20, n_features)) + 3 * codes[:, None]).astype(np.float32)
    kind = SHOPE if seed % 2 else HOPE
    sizes = {name: QUICK[name] for name in QUICK if kind is SHOPE or name != "n_units"}
    own = {"order": order, "n_components": n_components, "n_neighbors": n_neighbors}
    y = np.array(labels)[codes]
    model = kind(**sizes, **own, validation_fraction=0).fit(X, y)
    path = tmp_path_factory.mktemp("any") / "m.onnx"
    to_onnx(model, path, X)
    points, found, _ = ask(path, X)
    scale = max(1, np.abs(points).max())
    np.testing.assert_allclose(points / scale, model.transform(X) / scale, atol=1e-4)
    best, second = np.sort(model.predict_proba(X), axis=1)[:, [-1, -2]].T
    if n_neighbors == "auto":
        clear = best - second > 1e-4
        assert found[clear].tolist() == model.predict(X)[clear].tolist()


@pytest.mark.parametrize("n_rows", [0, 1, 2, 1_000])
def test_a_batch_has_any_size(shope, rows, n_rows, tmp_path):
    to_onnx(shope, tmp_path / "m.onnx")
    points, labels, shares = ask(tmp_path / "m.onnx", np.resize(rows, (n_rows, 5)))
    assert points.shape == (n_rows, 2)
    assert labels.shape == (n_rows,)
    assert shares.shape == (n_rows, 3)


def test_negative_sums_have_odd_powers(rows, tmp_path):
    model = HOPE(order=3, n_factors=2, max_epochs=1, random_state=0).fit(rows, np.arange(150) % 3)
    model.map_.C.data.fill_(-1)
    model.map_.c.data.fill_(-2)
    del model.__dict__["_ready"]
    to_onnx(model, tmp_path / "m.onnx", rows)
    points, _, _ = ask(tmp_path / "m.onnx", rows)
    np.testing.assert_allclose(points, model.transform(rows), rtol=1e-4)


def test_labels_keep_their_kind(rows, tmp_path):
    kinds = {
        "O": ["ä", "b", 'c"\n'],
        "i": [3, 5, 9],
        "f": [1.0, 2.0, 5.0],
        "b": [False, True, True],
    }
    for kind, labels in kinds.items():
        model = SHOPE(**QUICK).fit(rows, np.array(labels)[np.arange(150) % 3])
        to_onnx(model, tmp_path / "m.onnx")
        _, found, _ = ask(tmp_path / "m.onnx", rows)
        assert found.dtype.kind == kind
        assert found.tolist() == model.predict(rows).tolist()


@pytest.mark.parametrize("precision", ["int8", "float16"])
def test_coarse_weights_stay_coarse_in_the_file_and_exact(precision):
    weights = round_values(np.random.RandomState(0).normal(size=(30, 40)), precision)
    layer = formula.Layer(weights, None, precision=precision)
    nodes = graph.Nodes()
    name = graph._weights(nodes, layer)
    assert sum(len(one.raw_data) for one in nodes.constants) < 0.6 * weights.nbytes
    whole = onnx.helper.make_graph(
        nodes.nodes,
        "weights",
        [],
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)],
        nodes.constants,
    )
    opset = onnx.helper.make_opsetid("", graph.OPSET)
    evaluator = ReferenceEvaluator(onnx.helper.make_model(whole, opset_imports=[opset]))
    np.testing.assert_array_equal(evaluator.run(None, {})[0], weights)


def test_a_small_model_is_a_small_graph(rows, tmp_path):
    model = SHOPE(max_bytes=20_000, max_epochs=1, random_state=0).fit(rows, np.arange(150) % 3)
    assert model.precision_ == "int8"
    assert to_onnx(model, tmp_path / "m.onnx").n_bytes < 22_000


def test_old_runtimes_can_read_it(model):
    made = onnx.load_from_string(graph.to_bytes(formula.formula_of(model)))
    assert [(one.domain, one.version) for one in made.opset_import] == [("", 13)]
    assert made.ir_version == 8
    kinds = {one.data_type for one in made.graph.initializer}
    plain = ("FLOAT", "INT64", "INT8", "FLOAT16", "STRING", "DOUBLE", "BOOL")
    assert kinds <= {onnx.TensorProto.DataType.Value(kind) for kind in plain}


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """A table with an encoded column and filled gaps, and a model of it."""
    path = write_cells(tmp_path_factory.mktemp("cells") / "cells.csv", age=with_gaps())
    table = read_table(path, "type", ids=["cell"], encode=True, missing="mean")
    return path, SHOPE(**QUICK).fit(table)


def test_the_file_says_what_it_takes(cells, tmp_path):
    _, model = cells
    to_onnx(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    told = session.get_modelmeta().custom_metadata_map
    assert told["method"] == "SHOPE"
    assert json.loads(told["feature_names"]) == model.feature_names_in_.tolist()
    assert json.loads(told["encoded_columns"]) == {"tissue": ["liver", "lung", "skin"]}
    assert json.loads(told["classes"]) == ["B cell", "NK", "T cell"]
    assert "NaN is filled" in told["missing_values"]
    assert session.get_inputs()[0].shape == ["n", len(model.feature_names_in_)]


def test_gaps_are_filled_in_the_graph(cells, tmp_path):
    path, model = cells
    to_onnx(model, tmp_path / "m.onnx")
    frame = pd.read_csv(path)
    features = model.columns_.make({name: frame[name].to_numpy() for name in model.columns_.names})
    assert np.isnan(features).any()
    points, labels, _ = ask(tmp_path / "m.onnx", features.astype(np.float32))
    np.testing.assert_allclose(points, model.transform(frame), atol=1e-4)
    assert labels.tolist() == model.predict(frame).tolist()


def test_any_rows_that_the_model_takes_can_check_it(cells, shope, rows, tmp_path):
    path, model = cells
    n_cells = to_onnx(model, tmp_path / "m.onnx", pd.read_csv(path)).parity.n_rows
    assert n_cells == 90
    for data in (rows.astype(float), sparse.csr_array(rows), rows.tolist()):
        assert to_onnx(shope, tmp_path / "m.onnx", data).parity.n_rows == 150
    assert to_onnx(shope, tmp_path / "m.onnx", np.tile(rows, (9, 1))).parity.n_rows == 1_000
    assert to_onnx(shope, tmp_path / "m.onnx").parity.n_rows == 1_000


def test_without_onnx_it_says_what_to_install(shope, tmp_path, monkeypatch):
    for name in ("onnxruntime", "onnx"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MissingPackage, match=rf"{name}.*pip install 'hopefold\[onnx\]'"):
            to_onnx(shope, tmp_path / "m.onnx")


def test_too_many_references_are_refused(rows, tmp_path):
    y = np.arange(150) % 3
    model = HOPE(exemplars=None, n_factors=2, max_epochs=1, random_state=0).fit(rows, y)
    model.reference_embedding_ = np.resize(model.reference_embedding_, (10_001, 2))
    model.reference_labels_ = np.resize(y, 10_001)
    with pytest.raises(CannotExport, match=r"10,001 training rows.*exemplars='kmeans'"):
        to_onnx(model, tmp_path / "m.onnx")


def test_only_fitted_models_of_hopefold_are_exported(shope, tmp_path):
    with pytest.raises(TypeError, match="Pipeline is not a hopefold model"):
        to_onnx(make_pipeline(shope), tmp_path / "m.onnx")
    with pytest.raises(NotFittedError):
        to_onnx(SHOPE(), tmp_path / "m.onnx")


def test_a_row_that_is_no_number_has_no_probability(shope, rows, tmp_path):
    to_onnx(shope, tmp_path / "m.onnx")
    _, _, shares = ask(tmp_path / "m.onnx", np.where([[True], [False]], np.nan, rows[:2]))
    assert np.isnan(shares).all(axis=1).tolist() == [True, False]


def test_a_map_of_an_unknown_kind_is_refused_by_name():
    with pytest.raises(CannotExport, match="kind Products cannot be exported"):
        formula.layers_of(Products(3, 2, 2, 4))


def test_a_scale_beyond_float32_is_refused_by_name(rows, tmp_path):
    X = pd.DataFrame({"mass": np.linspace(0, 1e300, 150), "b": rows[:, 0]})
    model = SHOPE(**QUICK).fit(X, np.arange(150) % 3)
    with pytest.raises(CannotExport, match="column 'mass' is scaled by numbers beyond"):
        to_onnx(model, tmp_path / "m.onnx")


def test_labels_that_no_file_holds_are_refused():
    with pytest.raises(TypeError, match="of type complex"):
        formula.plain_classes(np.array([1j, 2j]))
    with pytest.raises(CannotExport, match="class 18446744073709551615 is neither"):
        formula.plain_classes(np.array([1, 2**64 - 1], dtype=np.uint64))
    with pytest.raises(CannotExport, match="neither text that UTF-8 can hold"):
        formula.plain_classes(np.array(["\ud800", "a"]))


def test_a_model_without_labels_has_points_and_nothing_else(unlabeled, rows, tmp_path):
    export = to_onnx(unlabeled, tmp_path / "m.onnx", rows)
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    assert [output.name for output in session.get_outputs()] == ["embedding"]
    (points,) = session.run(None, {"rows": rows})
    np.testing.assert_allclose(points, unlabeled.transform(rows), atol=1e-4)
    assert export.parity.n_rows == 150
    assert "there were none in the fit" in str(export.parity)
