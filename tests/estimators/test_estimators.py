"""What the estimators promise beyond scikit-learn's contract."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine

from hopefold import HOPE, SHOPE
from hopefold.core.maps import Pressed
from hopefold.errors import NoValidationWarning, RareClassWarning
from hopefold.evaluation import knn_error
from hopefold.fitting.held_out import stratified_split
from hopefold.inference import embedding
from methods import plan_for

QUICK = {"n_factors": 20, "max_epochs": 15, "random_state": 0}
REFERENCES = pytest.mark.parametrize("exemplars", ["joint", "kmeans", None])


# -- the bars of the digits -----------------------------------------------------------------


def test_digits_in_two_dimensions_are_told_apart_by_their_neighbors(digits, digits_model):
    X, X_test, y, y_test = digits
    points, points_test = digits_model.transform(X), digits_model.transform(X_test)
    assert knn_error(points, y, points_test, y_test) <= 0.026


def test_twenty_exemplars_stand_in_for_all_digits(digits, digits_model):
    _, X_test, _, y_test = digits
    assert len(digits_model.exemplars_) == 20
    assert 1 - digits_model.score(X_test, y_test) <= 0.03


def test_exemplars_of_pixels_look_like_pixels(digits, digits_model):
    X, _, y, _ = digits
    for exemplar, label in zip(digits_model.exemplars_, digits_model.exemplar_labels_, strict=True):
        means = np.array([X[y == k].mean(axis=0) for k in range(10)])
        similarity = [np.corrcoef(exemplar, mean)[0, 1] for mean in means]
        assert similarity[label] > 0.5
    assert -0.5 < digits_model.exemplars_.min() < digits_model.exemplars_.max() < 1.5


def test_raw_neighbors_with_our_tie_rule(digits):
    assert knn_error(digits[0], digits[2], digits[1], digits[3]) == pytest.approx(0.0185, abs=2e-4)


# -- points ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_row_gives_the_same_point_alone_or_in_any_batch(digits, digits_model, n_threads):
    X = np.concatenate([digits[0], digits[1]])
    torch.set_num_threads(n_threads)
    try:
        whole = digits_model.transform(X)
        assert whole.dtype == np.float32
        for size in (1, 2, 7, 100, 700):
            parts = [digits_model.transform(X[i : i + size]) for i in range(0, 700, size)]
            np.testing.assert_allclose(np.concatenate(parts), whole[:700], rtol=0, atol=1e-5)
        shuffled = np.random.RandomState(0).permutation(len(X))
        np.testing.assert_allclose(
            digits_model.transform(X[shuffled]), whole[shuffled], rtol=0, atol=1e-5
        )
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("scale", ["range", "standard"])
@pytest.mark.parametrize("cls", [HOPE, SHOPE])
def test_a_row_of_float32_gives_the_same_point_alone(cls, scale, digits):
    X, y = digits[0].astype(np.float32), digits[2]
    model = cls(max_epochs=5, validation_fraction=0, scale=scale, random_state=0).fit(X, y)
    alone = [model.transform(X[[row]]) for row in range(300)]
    np.testing.assert_allclose(np.concatenate(alone), model.transform(X)[:300], rtol=0, atol=1e-5)


@pytest.mark.parametrize("scale", ["range", "standard", None])
def test_float32_and_float64_rows_give_the_same_points(scale, digits):
    """The one are scaled by the first weights, where nothing is shifted, the others before."""
    X, y = digits[0].astype(np.float32), digits[2]
    model = SHOPE(max_epochs=5, validation_fraction=0, scale=scale, random_state=0).fit(X, y)
    expected = model.transform(X.astype(np.float64))
    np.testing.assert_allclose(model.transform(X), expected, rtol=1e-5, atol=2e-5)


def test_a_map_that_is_put_in_the_place_of_another_is_used(digits):
    X, y = digits[0].astype(np.float32), digits[2]
    model, other = (SHOPE(max_epochs=1, random_state=seed).fit(X, y) for seed in (0, 1))
    model.transform(X)
    model.map_, model.scale_ = other.map_, other.scale_
    np.testing.assert_array_equal(model.transform(X), other.transform(X))


def test_the_same_seed_gives_the_same_bits(three_blobs):
    X, y = three_blobs
    first, second, other = (
        SHOPE(**{**QUICK, "random_state": seed}, dropout=0.1).fit(X, y).transform(X)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("n_components", [1, 2, 16])
def test_the_map_may_have_any_number_of_dimensions(three_blobs, n_components):
    X, y = three_blobs
    model = SHOPE(n_components, **QUICK).fit(X, y)
    assert model.transform(X).shape == (90, n_components)
    assert model.score(X, y) > 0.9


# -- references and decisions ---------------------------------------------------------------


@REFERENCES
@pytest.mark.parametrize("n_neighbors", ["auto", 1, 5, 1000])
def test_predict_is_the_argmax_of_predict_proba(three_blobs, exemplars, n_neighbors):
    X, y = three_blobs
    names = np.array(["ash", "birch", "cedar"])
    model = HOPE(exemplars=exemplars, n_neighbors=n_neighbors, **QUICK).fit(X, names[y])
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[shares.argmax(axis=1)])
    assert (shares.max(axis=1) > np.sort(shares, axis=1)[:, -2]).all()


@REFERENCES
@pytest.mark.parametrize("cls", [HOPE, SHOPE])
def test_every_kind_of_reference_tells_classes_apart(three_blobs, exemplars, cls):
    X, y = three_blobs
    assert cls(exemplars=exemplars, **QUICK).fit(X, y).score(X, y) > 0.95


@pytest.mark.parametrize(
    "options", [{"objective": "spread"}, {"exemplars": None, "conditional": True}]
)
def test_the_switches_of_the_objective_learn_too(three_blobs, options):
    X, y = three_blobs
    assert SHOPE(**QUICK, **options).fit(X, y).score(X, y) > 0.95


@pytest.mark.parametrize("optimizer", ["cg", "lbfgs"])
@REFERENCES
def test_scipys_optimizers_learn_too(three_blobs, optimizer, exemplars):
    X, y = three_blobs
    model = SHOPE(**QUICK, optimizer=optimizer, exemplars=exemplars).fit(X, y)
    assert model.score(X, y) > 0.95


def test_exemplars_are_mapped_where_the_model_says(three_blobs):
    model = SHOPE(**QUICK).fit(*three_blobs)
    np.testing.assert_allclose(
        model.transform(model.exemplars_), model.exemplar_embedding_, atol=1e-5
    )
    np.testing.assert_array_equal(model.predict(model.exemplars_), model.exemplar_labels_)


def test_without_exemplars_the_training_rows_are_the_references(three_blobs):
    X, y = three_blobs
    model = SHOPE(**QUICK, exemplars=None).fit(X, y)
    assert model.exemplars_ is model.exemplar_labels_ is model.exemplar_embedding_ is None
    np.testing.assert_array_equal(model.reference_labels_, y)
    distances, indices = model.kneighbors(X, n_neighbors=1)
    np.testing.assert_array_equal(y[indices[:, 0]], y)
    np.testing.assert_allclose(distances, 0, atol=1e-5)


def test_kmeans_exemplars_are_the_centers_of_the_classes_in_input_space(three_blobs):
    X, y = three_blobs
    model = SHOPE(**QUICK, exemplars="kmeans", n_exemplars=1).fit(X, y)
    means = [X[y == k].mean(axis=0) for k in range(3)]
    np.testing.assert_allclose(model.exemplars_, means, rtol=1e-4, atol=1e-4)


def test_exemplars_come_back_in_the_users_own_units():
    X, y = load_wine(return_X_y=True)
    model = SHOPE(random_state=0).fit(X, y)
    for column in range(X.shape[1]):
        low, high = X[:, column].min(), X[:, column].max()
        margin = 0.5 * (high - low)
        assert (model.exemplars_[:, column] > low - margin).all()
        assert (model.exemplars_[:, column] < high + margin).all()


def test_a_rare_class_gets_as_many_exemplars_as_it_has_rows(three_blobs):
    X, y = three_blobs
    keep = np.r_[0:61]  # class 2 has one row
    with pytest.warns(RareClassWarning, match=r"n_exemplars=3 in class 2 \(1\)") as caught:
        model = SHOPE(**QUICK, n_exemplars=3).fit(X[keep], y[keep])
    rare = [warning for warning in caught if warning.category is RareClassWarning]
    assert [warning.filename for warning in rare] == [__file__]
    assert model.exemplar_labels_.tolist() == [0, 0, 0, 1, 1, 1, 2]


@pytest.mark.parametrize("model", [HOPE(), SHOPE(n_units=600)])
@pytest.mark.parametrize(("n_features", "dropped"), [(4, 0.004), (64, 0.064), (784, 0.25)])
def test_features_are_dropped_where_others_can_stand_in_for_them(model, n_features, dropped):
    assert plan_for(model, n_features).input_dropout == pytest.approx(dropped)
    model = clone(model).set_params(input_dropout=0.1)
    assert plan_for(model, n_features).input_dropout == 0.1


def test_units_are_dropped_where_features_are_few_and_less_where_units_are():
    assert plan_for(SHOPE(n_units=600), 30).dropout == 0.3
    assert plan_for(SHOPE(), 30).dropout == 0.1
    assert plan_for(SHOPE(), 784).dropout == plan_for(SHOPE(n_units=600), 784).dropout == 0
    assert plan_for(SHOPE(n_units=600, n_factors=100), 30).dropout == pytest.approx(0.15)
    assert plan_for(SHOPE(dropout=0.1), 30).dropout == 0.1
    assert plan_for(HOPE(), 30).dropout == 0


@pytest.mark.parametrize(
    ("n_rows", "radius", "epochs"),
    [
        (500, 0, 100),
        (8_000, 0, 70),
        (60_000, 0, 70),
        (100_000, 0, 50),
        (10**7, 0, 10),
        (500, 0.1, 100),
        (60_000, 0.1, 50),
    ],
)
def test_the_more_rows_there_are_the_fewer_passes_are_made(n_rows, radius, epochs):
    model = SHOPE(n_units=600, adversarial=radius)
    assert plan_for(model, n_rows=n_rows).max_epochs == epochs


@pytest.mark.parametrize(("n_classes", "epochs"), [(2, 70), (10, 70), (26, 182), (200, 210)])
def test_the_more_classes_there_are_the_more_passes_are_made(n_classes, epochs):
    model = SHOPE(n_units=600, adversarial=0)
    assert plan_for(model, n_rows=14_000, n_classes=n_classes).max_epochs == epochs


@pytest.mark.parametrize("cls", [HOPE, SHOPE])
def test_spare_dimensions_are_gone_when_the_map_is_learned(cls, three_blobs, monkeypatch):
    heights = []
    projection = Pressed.projection

    def watched(self):
        heights.append(self.height)
        return projection(self)

    monkeypatch.setattr(Pressed, "projection", watched)
    model = cls(**QUICK, spare_components=3, validation_fraction=0).fit(*three_blobs)
    assert model.map_.P.shape[0] == 2
    assert heights == sorted(heights, reverse=True)
    assert heights[0] > 0.9
    assert heights[-1] == 0


def test_many_neighbors_are_asked_as_far_as_there_are_any(three_blobs):
    X, y = three_blobs
    model = SHOPE(**QUICK, n_neighbors=50, n_exemplars=1).fit(X, y)
    assert model.score(X, y) > 0.9  # one vote a class: the nearest decides


def test_class_weights_move_the_decision():
    random = np.random.RandomState(0)
    X, y = random.normal(size=(400, 2)), np.repeat([0, 1], [360, 40])
    X[y == 1] += 1
    plain, balanced = (
        SHOPE(**{**QUICK, "max_epochs": 60}, class_weight=weight).fit(X, y).predict(X)
        for weight in (None, "balanced")
    )
    assert (balanced[y == 1] == 1).mean() > (plain[y == 1] == 1).mean() + 0.2


# -- labels ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "bb", "ccc"]),
        np.array(["a", "bb", "ccc"], dtype=object),
        np.array([-7, 3, 1000]),
        np.array([0.0, 1.0, 5.0]),
        np.array([3, 4, 5], dtype=np.uint8),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_come_back_in_their_own_dtype(three_blobs, labels):
    X, y = three_blobs
    model = SHOPE(**QUICK).fit(X, labels[y])
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    assert (predicted == labels[y]).mean() > 0.9
    assert set(model.exemplar_labels_) == set(labels)


def test_booleans_lists_and_categoricals_are_labels_too(three_blobs):
    X, y = three_blobs
    assert SHOPE(**QUICK).fit(X, y == 0).predict(X).dtype == bool
    words = np.array(["a", "b", "c"])[y]
    for labels in (words.tolist(), pd.Series(words), pd.Series(words, dtype="category")):
        assert set(SHOPE(**QUICK).fit(X, labels).predict(X)) == {"a", "b", "c"}


# -- training -------------------------------------------------------------------------------


def test_history_tells_every_epoch_and_the_held_out_error(three_blobs):
    model = SHOPE(**QUICK).fit(*three_blobs)
    assert [record["epoch"] for record in model.history_] == list(range(1, 1 + len(model.history_)))
    assert 1 <= model.n_iter_ <= len(model.history_) <= 15
    kept = model.history_[model.n_iter_ - 1]
    assert model.validation_error_ == kept["validation_error"]
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]


def test_validation_can_be_turned_off(three_blobs):
    model = SHOPE(**QUICK, validation_fraction=0).fit(*three_blobs)
    assert model.validation_error_ is None
    assert model.n_iter_ == 15


def test_refit_uses_the_rows_that_were_held_out(three_blobs):
    X, y = three_blobs
    kept, refitted = (
        SHOPE(**QUICK, exemplars=None, refit=refit).fit(X, y) for refit in (False, True)
    )
    assert kept.validation_error_ == refitted.validation_error_
    assert not np.array_equal(kept.transform(X), refitted.transform(X))


def test_noise_is_not_learned_behind_the_users_back():
    """Random labels on noise: whatever the map shows, the held-out error is that of guessing."""
    random = np.random.RandomState(0)
    model = SHOPE(random_state=0).fit(random.normal(size=(600, 10)), random.randint(3, size=600))
    assert model.validation_error_ > 0.5


def test_a_fit_that_fails_leaves_the_model_as_it_was(three_blobs):
    X, y = three_blobs
    model = HOPE(**QUICK, scale=None).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ArithmeticError):
        model.set_params(order=5).fit(X * 1e12, np.array(["p", "q", "r"])[y])
    model.set_params(order=3)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X[:, :2], np.zeros(90))
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_a_fit_works_in_any_mode_of_torch(three_blobs, context):
    X, y = three_blobs
    with context():
        model = SHOPE(**QUICK).fit(X, y)
    np.testing.assert_array_equal(model.transform(X), SHOPE(**QUICK).fit(X, y).transform(X))


def test_a_fit_works_with_another_default_dtype(three_blobs):
    X, y = three_blobs
    torch.set_default_dtype(torch.float64)
    try:
        model = SHOPE(**QUICK).fit(X, y)
        assert model.transform(X).dtype == np.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_switches_may_be_numpy_booleans(three_blobs):
    SHOPE(**QUICK, refit=np.bool_(False), verbose=False).fit(*three_blobs)


@pytest.mark.parametrize("dtype", [np.int64, object, np.float64])
def test_large_whole_numbers_keep_their_last_digits(dtype):
    y = np.repeat([0, 1], 200)
    X = (20_000_000 + y)[:, None].astype(dtype)
    assert SHOPE(random_state=0).fit(X, y).score(X, y) == 1


def test_small_classes_are_held_out_from_too():
    random = np.random.RandomState(0)
    y = np.repeat(np.arange(75), 4)
    X = random.normal(size=(75, 5))[y] * 9 + random.normal(size=(300, 5))
    model = SHOPE(**QUICK).fit(X, y)
    assert model.validation_error_ is not None
    no_exemplars = SHOPE(**QUICK, exemplars=None, n_exemplars=50).fit(X, y)
    assert no_exemplars.validation_error_ is not None


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5])
def test_the_held_out_part_is_stratified_and_of_the_size_asked_for(fraction):
    labels = np.repeat([0, 1, 2, 3], [100, 33, 7, 2])
    training, held_out = stratified_split(labels, fraction, 2, np.random.RandomState(0))
    assert sorted([*training, *held_out]) == list(range(142))
    sizes = np.bincount(labels[held_out], minlength=4)
    assert np.abs(sizes - fraction * np.bincount(labels))[:3].max() <= 1
    assert sizes[3] == 0  # two rows are kept
    assert len(held_out) == round(fraction * 142)


def test_too_few_rows_to_hold_any_out_are_told():
    with pytest.warns(NoValidationWarning, match="no validation error") as caught:
        model = SHOPE(**QUICK, validation_fraction=0.1).fit([[0.0], [1], [2], [3]], [0, 0, 1, 1])
    assert caught[0].filename == __file__
    assert model.validation_error_ is None


# -- sparse ---------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["adam", "cg", "lbfgs"])
def test_a_sparse_table_is_never_made_dense_as_a_whole(monkeypatch, sparse_rows, optimizer):
    X = sparse_rows(600, 300, 0.03)
    y = np.random.RandomState(0).randint(2, size=600)
    X = sparse.csr_array(sparse.hstack([X, sparse.csr_array(y[:, None] * 1.0)]))
    largest = []
    original = sparse.csr_array.toarray

    def toarray(self, *args, **kwargs):
        largest.append(self.shape[0])
        return original(self, *args, **kwargs)

    monkeypatch.setattr(sparse.csr_array, "toarray", toarray)
    monkeypatch.setattr(embedding, "BLOCK", 2**16)  # a table of 600 rows is more than a block
    short = {**QUICK, "max_epochs": 2}
    model = SHOPE(**short, optimizer=optimizer, scale="standard").fit(X, y)
    model.transform(X[:100])
    assert largest
    assert max(largest) < 600


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", ["auto", "standard", "range", None])
def test_sparse_and_dense_rows_give_the_same_points(three_blobs, scale, dtype):
    X, y = three_blobs
    X = np.where(np.abs(X) < 1, 0, X).astype(dtype)
    model = SHOPE(**QUICK, scale=scale).fit(sparse.csr_matrix(X), y)
    for some in (X, X[:1]):
        points = model.transform(sparse.csr_array(some))
        np.testing.assert_allclose(model.transform(some), points, atol=1e-5)
    assert model.score(X, y) > 0.9
