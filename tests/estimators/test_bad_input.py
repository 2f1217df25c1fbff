"""What is wrong, in the user's own names and numbers, and what to do."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from hopefold import HOPE, SHOPE, HopefoldError
from hopefold.baselines import NCA
from hopefold.data import validation
from hopefold.inference import embedding

QUICK = {"n_factors": 10, "max_epochs": 5, "random_state": 0}
X = np.random.RandomState(0).normal(size=(40, 3))
Y = np.repeat([0, 1], 20)
FRAME = pd.DataFrame(X, columns=["height", "age", "income"])


def complaint(action, *kinds):
    """The message of the one error, which is a HopefoldError and the built-in that fits."""
    with pytest.raises(HopefoldError) as caught:
        action()
    for kind in kinds:
        assert isinstance(caught.value, kind)
    return str(caught.value)


def with_value(value, *places):
    bad = FRAME.copy()
    for row, column in places:
        bad.iloc[row, column] = value
    return bad


def test_missing_values_are_named_by_column_and_row():
    bad = with_value(np.nan, (7, 1), (30, 1))
    assert complaint(lambda: SHOPE().fit(bad, Y), ValueError) == (
        "column 'age' has 2 missing values (NaN; first in row 7): "
        "drop those rows, or fill them, e.g. with SimpleImputer."
    )


def test_infinite_values_are_named_by_column_and_row():
    bad = with_value(-np.inf, (3, 2))
    assert complaint(lambda: SHOPE().fit(bad, Y), ValueError) == (
        "column 'income' has 1 infinite value (inf; first in row 3): drop those rows, or clip them."
    )


def test_several_bad_columns_are_counted():
    bad = with_value(np.nan, (3, 0), (9, 2))
    assert "column 'height' has 1 missing value (NaN; first in row 3), and 1 more column too" in (
        complaint(lambda: SHOPE().fit(bad, Y), ValueError)
    )


def test_missing_values_in_a_sparse_matrix_are_found():
    bad = sparse.csr_array(np.where(np.abs(X) < 0.5, 0, X))
    bad.data[4] = np.nan
    assert "missing value" in complaint(lambda: SHOPE().fit(bad, Y), ValueError)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [1, 40])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sizes", [{}, {"n_factors": 1, "n_units": 1}], ids=["usual", "tiny"])
def test_what_is_no_number_is_found_wherever_it_is_mapped(sizes, value, n_rows, dtype):
    model = SHOPE(**{**QUICK, **sizes}).fit(X, Y)
    bad = X[:n_rows].astype(dtype)
    bad[-1, 1] = value
    for rows, work in product((bad, sparse.csr_array(bad)), (model.transform, model.predict)):
        assert f"first in row {n_rows - 1})" in complaint(partial(work, rows), ValueError)


def test_infinities_of_both_signs_in_one_row_are_told_without_a_warning():
    model = SHOPE(**QUICK).fit(X, Y)
    row = np.array([[np.inf, -np.inf, 0]], dtype=np.float32)
    assert "infinite value" in complaint(lambda: model.transform(row), ValueError)


def test_large_values_are_looked_at_once(monkeypatch):
    from_zero = 1e30 * np.abs(X) * (np.arange(40) > 0)[:, None]
    model = SHOPE(**QUICK, scale="range").fit(from_zero.astype(np.float32), Y)
    monkeypatch.setattr(embedding, "BLOCK", 12)
    looked, original = [], validation.check_finite
    monkeypatch.setattr(validation, "check_finite", lambda *of: looked.append(original(*of)))
    model.transform(np.full((40, 3), 1e38, dtype=np.float32))
    assert len(looked) == 1


def test_large_values_that_add_up_to_infinity_are_not_missing():
    huge = np.full((40, 3), 1e38, dtype=np.float32) * np.sign(X).astype(np.float32)
    SHOPE(**QUICK).fit(huge, Y)


def test_missing_values_are_found_at_transform_too():
    model = SHOPE(**QUICK).fit(FRAME, Y)
    assert "row 5" in complaint(lambda: model.transform(with_value(np.nan, (5, 0))), ValueError)


def test_one_class_only():
    message = complaint(lambda: SHOPE().fit(X, np.full(40, "cat")), ValueError)
    assert "one class only ('cat', in all 40 rows)" in message


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_components", 0),
        ("n_components", 1.5),
        ("order", 0),
        ("order", "2"),
        ("n_factors", 0),
        ("n_units", -1),
        ("n_exemplars", 0),
        ("max_epochs", 0),
        ("batch_size", 1),
        ("batch_size", "large"),
        ("patience", 0),
        ("n_neighbors", 0),
        ("n_neighbors", True),
        ("learning_rate", 0),
        ("learning_rate", float("nan")),
        ("weight_decay", -1),
        ("dropout", 1.0),
        ("input_dropout", -0.1),
        ("validation_fraction", 1),
        ("optimizer", "sgd"),
        ("exemplars", "random"),
        ("exemplars", ["joint"]),
        ("objective", "nca"),
        ("scale", "log"),
        ("refit", "yes"),
        ("conditional", None),
        ("class_weight", "equal"),
        ("class_weight", {0: 0.0, 1: 1.0}),
        ("class_weight", {7: 2.0}),
        ("device", "abacus"),
        ("device", "meta"),
        ("device", None),
        ("order", 21),
        ("random_state", "a"),
        ("random_state", -1),
        ("random_state", 1.5),
        ("class_weight", np.array([1, 2])),
        ("max_epochs", np.array([1, 2])),
        ("verbose", -1),
    ],
)
def test_a_parameter_out_of_range_is_quoted(parameter, value):
    message = complaint(lambda: SHOPE(**{parameter: value}).fit(X, Y), ValueError)
    assert parameter in message


def test_an_unknown_optimizer_comes_with_the_known_ones():
    message = complaint(lambda: HOPE(optimizer="sgd").fit(X, Y), ValueError)
    assert message == "optimizer='sgd' is not known: choose one of 'adam', 'cg', 'lbfgs'."


def test_settings_that_contradict_each_other():
    message = complaint(lambda: SHOPE(objective="spread", exemplars=None).fit(X, Y), ValueError)
    assert "exemplars='joint'" in message


def test_more_neighbors_than_references():
    model = SHOPE(**QUICK).fit(X, Y)
    message = complaint(lambda: model.kneighbors(X, n_neighbors=5), ValueError)
    assert "n_neighbors=5, but there are 4 references" in message


def test_the_wrong_number_of_columns():
    model = SHOPE(**QUICK).fit(X, Y)
    message = complaint(lambda: model.transform(X[:, :2]), ValueError)
    assert "X has 2 features, but SHOPE is expecting 3 features" in message


def test_columns_with_other_names():
    model = SHOPE(**QUICK).fit(FRAME, Y)
    message = complaint(lambda: model.transform(FRAME.rename(columns={"age": "years"})), ValueError)
    assert "years" in message
    assert "age" in message


@pytest.mark.parametrize("action", ["fit", "transform", "predict"])
def test_no_rows(action):
    model = SHOPE(**QUICK).fit(X, Y)
    if action == "fit":
        message = complaint(lambda: SHOPE().fit(X[:0], Y[:0]), ValueError)
    else:
        message = complaint(lambda: getattr(model, action)(X[:0]), ValueError)
    assert "0 sample" in message


def test_one_row_is_fine():
    model = SHOPE(**QUICK).fit(X, Y)
    assert model.transform(X[:1]).shape == (1, 2)
    assert model.predict(X[:1]).shape == (1,)


def test_text_in_a_column_and_labels_that_are_measurements():
    text = FRAME.assign(city="Bonn")
    assert complaint(lambda: SHOPE().fit(text, Y), ValueError) == (
        "column 'city' holds 'Bonn', which is not a number: encode it, e.g. with OneHotEncoder, "
        "or drop it."
    )
    assert "Unknown label type" in complaint(lambda: SHOPE().fit(X, X[:, 0]), ValueError)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_labels_are_named_by_row(missing):
    labels = np.array(["a", "b"], dtype=object)[Y]
    labels[[4, 9]] = missing
    for given in (labels, labels.tolist()):  # NumPy makes text of NaN in a list of texts
        message = complaint(lambda given=given: SHOPE().fit(X, given), ValueError)
        assert "2 missing labels (first in row 4): drop those rows, or set missing_label" in message


def test_missing_numbers_among_labels_are_named_by_row():
    labels = np.where(np.arange(len(Y)) == 3, np.nan, Y)
    message = complaint(lambda: NCA().fit(X, labels), ValueError)
    assert message.endswith("1 missing label (first in row 3): drop those rows.")


def test_text_and_numbers_do_not_mix_as_labels():
    labels = np.array(["a", 1], dtype=object)[Y]
    assert "y mixes text" in complaint(lambda: SHOPE().fit(X, labels), ValueError)


@pytest.mark.parametrize("n_neighbors", [0, "x", None, 2.7])
def test_neighbors_set_after_the_fit_are_checked_too(n_neighbors):
    model = SHOPE(**QUICK).fit(X, Y).set_params(n_neighbors=n_neighbors)
    assert "n_neighbors" in complaint(lambda: model.predict(X), ValueError)


def test_values_too_large_name_their_column():
    huge = FRAME.assign(age=FRAME["age"] * 1e20)
    message = complaint(lambda: SHOPE(scale=None).fit(huge, Y), ValueError)
    assert "column 'age' has values too large" in message


def test_times_in_a_column():
    times = FRAME.assign(when=pd.Timestamp("2020-02-02"))
    assert "column 'when' has dates or times" in complaint(lambda: SHOPE().fit(times, Y), TypeError)


def test_labels_and_rows_of_different_number():
    assert "40" in complaint(lambda: SHOPE().fit(X, Y[:-1]), ValueError)


def test_constant_columns_are_fine():
    for scale in ("auto", "standard", "range", None):
        flat = np.column_stack([X, np.full(40, 7.0)])
        model = SHOPE(**QUICK, scale=scale).fit(flat, Y)
        assert np.isfinite(model.transform(flat)).all()
        assert np.isfinite(model.exemplars_).all()
    everything_flat = SHOPE(**QUICK).fit(np.ones((40, 3)), Y)
    assert np.isfinite(everything_flat.transform(np.ones((2, 3)))).all()


@pytest.mark.parametrize("optimizer", ["adam", "cg"])
def test_a_fit_that_diverges_says_so(optimizer):
    wild = X * 1e12
    message = complaint(
        lambda: HOPE(order=5, scale=None, optimizer=optimizer, random_state=0).fit(wild, Y),
        ArithmeticError,
    )
    assert "diverged" in message
    assert "scale" in message


@pytest.mark.filterwarnings("ignore::hopefold.errors.SmallerStepWarning")
@pytest.mark.parametrize("optimizer", ["adam", "cg", "lbfgs"])
@pytest.mark.parametrize("order", [1, 3, 6])
def test_a_fit_on_wild_numbers_fails_or_is_finite(optimizer, order):
    model = HOPE(**QUICK, order=order, scale=None, optimizer=optimizer)
    try:
        model.fit(X * 1e5, Y)
    except ArithmeticError:
        return
    assert np.isfinite(model.transform(X * 1e5)).all()
    assert np.isfinite(model.exemplars_).all()


@pytest.mark.filterwarnings("ignore::hopefold.errors.SmallerStepWarning")
@pytest.mark.parametrize("exemplars", ["joint", None])
@pytest.mark.parametrize("learning_rate", [1e3, 1e10])
def test_steps_that_are_far_too_large_are_told(exemplars, learning_rate):
    model = HOPE(**QUICK, exemplars=exemplars, learning_rate=learning_rate)
    assert "learning_rate" in complaint(lambda: model.fit(X, Y), ArithmeticError)


def test_far_rows_have_probabilities_all_the_same():
    model = HOPE(**QUICK).fit(X, Y)
    shares = model.predict_proba(X * 1e6)
    assert np.isfinite(shares).all()


def test_a_row_from_another_world_is_named():
    model = HOPE(**QUICK).fit(X, Y)
    strange = X.copy()
    strange[17, 0] = 1e30
    assert "row 17" in complaint(lambda: model.predict(strange), ValueError)


def test_an_outlier_in_training_does_not_make_nan():
    wild = X.copy()
    wild[3, 0] = 1e30
    for cls in (HOPE, SHOPE):
        model = cls(**QUICK).fit(wild, Y)
        assert np.isfinite(model.transform(wild)).all()


def test_a_fit_that_failed_is_no_fit():
    model = SHOPE(order=0)
    complaint(lambda: model.fit(X, Y))
    with pytest.raises(NotFittedError):
        model.transform(X)


def test_a_model_that_is_not_fitted_says_so(tmp_path):
    for action in (
        lambda: SHOPE().predict(X),
        lambda: SHOPE().kneighbors(X),
        lambda: SHOPE().save(tmp_path / "x.hope"),
    ):
        with pytest.raises(NotFittedError):
            action()


@pytest.mark.parametrize("labels", [["1", "2", "3"], [7, 8, 9], [True, False]])
def test_weights_go_to_labels_as_they_are(labels, three_blobs):
    """Text that looks like a number is not that number."""
    X, y = three_blobs
    names = np.array(labels)[y % len(labels)]
    model = SHOPE(max_epochs=1, class_weight={labels[0]: 5}).fit(X, names)
    heavy = model.classes_.tolist().index(labels[0])
    assert model.class_weight_[heavy] == 5
    assert model.class_weight_.sum() == 5 + len(labels) - 1
