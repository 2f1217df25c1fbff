"""What drives a map, told by its estimator."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

import oracles
from hopefold import HOPE, SHOPE, load
from hopefold.baselines import LDA
from hopefold.core.linearization import linearize
from hopefold.errors import InvalidInput, InvalidParameter

NAMES = ["height", "weight", "age", "constant"]


@pytest.fixture(scope="module")
def table():
    """300 rows of three columns in different units, and a constant one; classes by a product."""
    random = np.random.RandomState(0)
    X = random.normal(size=(300, 4)) * [10, 0.5, 2, 0] + [170, 3, 40, 7]
    return X, ((X[:, 0] - 170) * (X[:, 1] - 3) > 0).astype(int)


KINDS = ["HOPE", "SHOPE", "HOPE range", "SHOPE none", "HOPE pairs", "SHOPE stack"]


@pytest.fixture(scope="module", params=KINDS)
def fitted(request, table):
    kind, *how = request.param.split()
    options = {
        "range": {"scale": "range"},
        "none": {"scale": None, "learning_rate": 1e-4},
        "pairs": {"exemplars": None},
        "stack": {"n_units": (7, 6)},
    }.get("".join(how), {})
    model = {"HOPE": HOPE, "SHOPE": SHOPE}[kind](order=3, n_factors=8, max_epochs=3, **options)
    return model.set_params(random_state=0).fit(*table)


@pytest.fixture(scope="module")
def hope(table):
    return HOPE(order=2, random_state=0).fit(*table)


def sums_of_all_terms(model, X, found):
    columns = np.array([[math.prod(row[i] for i in term) for term in found.terms] for row in X])
    return columns @ found.coefficients


@pytest.mark.parametrize("units", ["data", "standard"])
def test_all_terms_and_the_constant_add_up_to_the_embedding(fitted, table, units):
    X, _ = table
    why = fitted.explain(X[0], top=1_000, units=units)
    total = why.constant + why.values.sum(axis=0) + why.remainder
    np.testing.assert_allclose(total, fitted.transform(X[:1])[0], rtol=1e-4, atol=1e-4)
    varying = 3 if fitted.scale is not None else 4
    assert len(why.terms) == math.comb(varying + 3, 3) - 1


@pytest.mark.parametrize("units", ["data", "standard"])
def test_some_terms_and_the_others_add_up_to_the_embedding(fitted, table, units):
    X, _ = table
    for slope in ("mean", "local"):
        why = fitted.explain(X[5], top=3, units=units, slope=slope)
        total = why.constant + why.values.sum(axis=0) + why.others + why.remainder
        np.testing.assert_allclose(total, fitted.transform(X[5:6])[0], rtol=1e-4, atol=1e-4)


def test_mean_slopes_leave_no_remainder(fitted, table):
    X, _ = table
    np.testing.assert_allclose(fitted.explain(X[0]).remainder, 0, atol=1e-9)


def test_slopes_at_the_row_leave_a_remainder_for_s_hope_and_it_is_told(table):
    X, y = table
    why = SHOPE(random_state=0, max_epochs=3).fit(X, y).explain(X[0], slope="local")
    assert np.abs(why.remainder).max() > 1e-3
    assert why.rows()[-1]["term"] == "(remainder)"


def test_coefficients_in_the_units_of_the_data_are_those_of_the_rows_as_they_are(table, hope):
    X, _ = table
    found = hope.interactions(top=100, units="data")
    moved = sums_of_all_terms(hope, X[:20], found)
    points = hope.transform(X[:20])
    np.testing.assert_allclose(moved - moved[0], points - points[0], rtol=1e-3, atol=1e-3)


def test_coefficients_in_standard_deviations_are_those_of_standardized_rows(table, hope):
    X, _ = table
    found = hope.interactions(top=100, X=X)
    spread = np.where(X.std(axis=0) > 1e-9, X.std(axis=0), 1)
    moved = sums_of_all_terms(hope, (X[:20] - X.mean(axis=0)) / spread, found)
    points = hope.transform(X[:20])
    np.testing.assert_allclose(moved - moved[0], points - points[0], rtol=1e-3, atol=1e-3)


def test_the_product_that_makes_the_classes_is_first(table, hope):
    assert hope.interactions(1, feature_names=NAMES).names == ("height × weight",)
    assert hope.interactions(1, *table).terms == ((0, 1),)


def test_s_hope_has_the_terms_of_its_units_weighed_by_their_mean_slopes(table):
    X, y = table
    model = SHOPE(order=2, n_factors=3, n_units=4, max_epochs=3, random_state=0).fit(X, y)
    C, c, P, W, b = (weights.double().numpy() for weights in model.map_.parameters())
    rows = (X - model.scale_.shift) * model.scale_.gain
    units = 1 / (1 + np.exp(-((rows @ C.T + c) ** 2 @ W.T + b)))
    slopes = (units * (1 - units)).mean(axis=0)
    C[:, 3] = 0  # the constant column
    expected = oracles.interactions(C, c, P * slopes @ W, 2)
    found = model.interactions(100, X, y, slope="local")
    for term, coefficient in zip(found.terms, found.coefficients, strict=True):
        np.testing.assert_allclose(coefficient, expected[term], rtol=1e-6, atol=1e-9)


def test_ranks_on_data_are_by_the_deviation_of_the_term(table, hope):
    X, y = table
    found = hope.interactions(top=100, X=X, y=y)
    z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 1e-9, X.std(axis=0), 1)
    for place, term in enumerate(found.terms):
        values = np.prod(z[:, list(term)], axis=1)[:, None] * found.coefficients[place]
        expected = np.sqrt(values.var(axis=0).sum())
        assert found.deviations[place] == pytest.approx(expected, rel=1e-6)
    assert (np.diff(found.deviations) <= 0).all()


def test_shifts_tell_how_far_a_term_moves_a_class(table, hope):
    X, y = table
    found = hope.interactions(top=3, X=X, y=y)
    z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 1e-9, X.std(axis=0), 1)
    for place, term in enumerate(found.terms):
        values = np.prod(z[:, list(term)], axis=1) * found.weights[place]
        for k, label in enumerate(found.classes):
            expected = values[y == label].mean() - values.mean()
            assert found.shifts[place, k] == pytest.approx(expected, abs=1e-9)


def test_without_labels_classes_are_those_predicted(table, hope):
    X, _ = table
    found = hope.interactions(3, X)
    np.testing.assert_allclose(found.shifts, hope.interactions(3, X, hope.predict(X)).shifts)


def test_blocks_of_rows_give_the_same_as_all_at_once(table, monkeypatch):
    X, y = table
    model = SHOPE(random_state=0, max_epochs=3).fit(X, y)
    whole = model.interactions(5, X, y)
    monkeypatch.setattr("hopefold.data.disk.CHUNK", 8 * 4 * 7)
    monkeypatch.setattr("hopefold.explain.contributions.BLOCK", 50)
    parts = model.interactions(5, X, y)
    np.testing.assert_allclose(parts.deviations, whole.deviations)
    np.testing.assert_allclose(parts.shifts, whole.shifts)


def test_order_chooses_products_of_so_many_factors(hope):
    assert {len(term) for term in hope.interactions(order=1).terms} == {1}
    assert {len(term) for term in hope.interactions(order=2).terms} == {2}


def test_importances_are_of_all_terms_that_a_feature_takes_part_in(table, hope):
    importances = hope.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances[3] == 0
    assert set(np.argsort(-importances)[:2]) == {0, 1}


def test_importances_of_a_linear_map_are_norms_of_its_weights(table):
    X, y = table
    model = HOPE(order=1, max_epochs=3, random_state=0).fit(X, y)
    norms = [np.linalg.norm(model.interactions(order=1).coefficients, axis=1)]
    terms = model.interactions(order=1).terms
    expected = np.zeros(4)
    for (column,), norm in zip(terms, *norms, strict=True):
        expected[column] = norm
    np.testing.assert_allclose(model.feature_importances_, expected / expected.sum(), rtol=1e-6)


def test_mean_slopes_are_those_of_the_line_through_both_ends(table):
    X, y = table
    model = SHOPE(random_state=0, max_epochs=3, n_units=600).fit(X, y)
    middle = torch.zeros(4, dtype=torch.float64)
    rows = torch.from_numpy(model.scale_.apply(X[:5])).double()
    slopes = linearize(model.map_).derivatives(rows, middle)
    C, c, _, W, b = (weights.double().numpy() for weights in model.map_.parameters())
    units = lambda x: W @ (C @ x + c) ** model.order + b  # noqa: E731
    start = units(middle.numpy())
    for row in range(5):
        end = units(rows[row].numpy())
        expected = (1 / (1 + np.exp(-end)) - 1 / (1 + np.exp(-start))) / (end - start)
        np.testing.assert_allclose(slopes[row], expected, rtol=1e-6)


def test_contributions_are_the_values_of_explanations(fitted, table):
    X, _ = table
    why = [fitted.explain(row, top=1_000) for row in X[:3]]
    terms = why[0].terms
    values = fitted.contributions(X[:3], terms)
    for row in range(3):
        own = dict(zip(why[row].terms, why[row].values, strict=True))
        np.testing.assert_allclose(values[row], [own[term] for term in terms], atol=1e-9)


def test_a_loaded_model_says_the_same(hope, tmp_path):
    hope.save(tmp_path / "one.hope")
    again = load(tmp_path / "one.hope").interactions()
    np.testing.assert_array_equal(again.coefficients, hope.interactions().coefficients)


def test_results_print_as_a_table_and_fit_into_json(table, hope):
    X, y = table
    found = hope.interactions(2, X, y, feature_names=NAMES)
    text = repr(found).splitlines()
    assert text[1].split()[:4] == ["term", "order", "weight", "deviation"]
    assert text[2].startswith("height × weight")
    assert json.loads(json.dumps(found.rows()))[0]["order"] == 2
    assert "(all other terms)" in repr(hope.explain(X[0]))


def test_squares_are_written_with_a_raised_number(table):
    X, y = table
    found = HOPE(order=3, max_epochs=1, random_state=0).fit(X, y).interactions(100)
    assert {"x0²", "x0³", "x0² × x1", "x0 × x1²"} <= set(found.names)


def test_names_are_those_of_the_frame(table):
    pandas = pytest.importorskip("pandas")
    X, y = table
    frame = pandas.DataFrame(X, columns=NAMES)
    model = HOPE(order=2, max_epochs=3, random_state=0).fit(frame, y)
    assert model.explain(frame.iloc[0]).names == model.explain(frame.iloc[:1]).names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that an array does not have
        found = model.interactions(top=100, X=frame)
    assert {"height", "height × weight"} <= set(found.names)
    assert list(found.to_frame()["term"]) == list(found.names)


def test_a_row_of_a_frame_whose_columns_lie_in_another_order_is_refused(table):
    pandas = pytest.importorskip("pandas")
    X, y = table
    frame = pandas.DataFrame(X, columns=NAMES)
    model = HOPE(order=2, max_epochs=1, random_state=0).fit(frame, y)
    with pytest.raises(InvalidInput, match="feature names"):
        model.explain(frame[NAMES[::-1]].iloc[0])


def test_sparse_rows_say_the_same_as_dense_ones(table, sparse_rows):
    X = sparse_rows(60, 5, 0.5)
    y = np.arange(60) % 2
    model = HOPE(order=2, max_epochs=2, random_state=0).fit(X, y)
    dense = model.interactions(5, X.toarray(), y)
    np.testing.assert_allclose(model.interactions(5, X, y).deviations, dense.deviations)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"top": 0}, "top=0: give a whole number of at least 1"),
        ({"top": 2.5}, "top=2.5"),
        ({"order": 3}, "order=3, but the map multiplies 2 features at the most"),
        ({"order": 0}, "order=0"),
        ({"units": "metres"}, "units='metres' is not known"),
        ({"slope": "steep"}, "slope='steep' is not known"),
        ({"feature_names": ["a", "b"]}, "feature_names has 2 entries for 4 features"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(hope, options, words):
    with pytest.raises(InvalidParameter, match=words):
        hope.interactions(**options)


def test_rows_with_other_columns_are_refused(hope):
    with pytest.raises(InvalidInput, match="X has 3 features, but HOPE is expecting 4"):
        hope.interactions(X=np.zeros((5, 3)))
    with pytest.raises(InvalidInput, match="X has 5 features"):
        hope.explain(np.zeros(5))


def test_labels_of_another_number_are_refused(table, hope):
    X, y = table
    for units in ("data", "standard"):
        with pytest.raises(InvalidInput, match=r"there are 300 rows and labels of shape \(2,\)"):
            hope.interactions(X=X, y=y[:2], units=units)


def test_one_row_is_explained_at_a_time(table, hope):
    with pytest.raises(InvalidInput, match="one row can be explained, but there are 300"):
        hope.explain(table[0])


def test_a_model_that_is_not_fitted_says_so():
    for ask in (
        HOPE().interactions,
        lambda: HOPE().explain([1.0]),
        lambda: HOPE().feature_importances_,
    ):
        with pytest.raises(NotFittedError):
            ask()
    assert not hasattr(HOPE(), "feature_importances_")


def test_methods_that_multiply_nothing_have_no_interactions():
    assert not hasattr(LDA, "interactions")
    assert not hasattr(LDA, "feature_importances_")


def test_rows_that_do_not_vary_are_refused(hope, table):
    X, _ = table
    with pytest.raises(InvalidInput, match="do not vary"):
        hope.interactions(3, X[:1])


def test_a_single_row_does_not_vary_whatever_the_order(iris):
    X, y = iris
    model = HOPE(order=4, n_factors=8, max_epochs=1, random_state=0).fit(X, y)
    with pytest.raises(InvalidInput, match="do not vary"):
        model.interactions(X=X[:1], y=y[:1])


def test_several_rows_in_a_list_are_not_taken_for_one(hope, table):
    X, _ = table
    with pytest.raises(InvalidInput, match="one row can be explained"):
        hope.explain([X[0].tolist(), X[1].tolist()])


def test_a_row_that_overflows_is_refused_as_by_transform(hope, table):
    X, _ = table
    with pytest.raises(InvalidInput, match="so far outside"):
        hope.explain(np.full(X.shape[1], 1e200))


def test_terms_of_one_order_and_all_others_add_up(hope, table):
    X, _ = table
    why = hope.explain(X[0], top=2, order=1)
    assert {len(term) for term in why.terms} == {1}
    parts = why.constant + why.values.sum(axis=0) + why.others + why.remainder
    np.testing.assert_allclose(parts, hope.transform(X[:1])[0], atol=1e-4)


def test_deviations_that_nothing_tells_are_not_claimed():
    X = np.random.RandomState(0).normal(size=(60, 3))
    y = X[:, 0] > 0
    settings = {"order": 1, "n_factors": 4, "max_epochs": 2, "exemplars": None}
    model = HOPE(scale="range", random_state=0, **settings).fit(X * [1, 10, 100], y)
    assert model.interactions().units == model.explain(X[0]).units == "map"
    assert "give X" in repr(model.interactions())
    assert model.interactions(3, X).units == "standard"


@pytest.mark.parametrize("names", [4, "abcd", ["a", "a", "b", "c"]])
def test_names_that_tell_nothing_apart_are_refused(hope, names):
    with pytest.raises(InvalidParameter, match="feature_names"):
        hope.interactions(feature_names=names)


def test_labels_without_rows_are_refused(hope):
    with pytest.raises(InvalidParameter, match="give X"):
        hope.interactions(y=[0, 1])


def test_labels_that_cannot_be_sorted_are_refused(hope, table):
    X, _ = table
    labels = np.array([1, "a"] * (len(X) // 2), dtype=object)
    with pytest.raises(InvalidInput, match="mixes text"):
        hope.interactions(3, X[: len(labels)], labels)
