from __future__ import annotations

import numpy as np
import pytest

import oracles
from hopefold import HOPE, SHOPE
from hopefold.baselines import LDA
from hopefold.errors import InvalidParameter, UnstableInteractionsWarning
from hopefold.evaluation import (
    calibration,
    counted_speed_up,
    exemplar_distances,
    interaction_stability,
    kept_by_model,
    kept_by_neighbors,
    knn_error,
    left_out_error,
    measured_speed_up,
    operations,
    seconds_in_turns,
)


def test_knn_error_counts_mistakes_in_any_labels():
    references, labels = np.array([[0.0], [1.0], [9.0], [10.0]]), ["cat", "cat", "dog", "dog"]
    points = np.array([[0.5], [9.5], [8.0], [2.0]])
    assert knn_error(references, labels, points, ["cat", "dog", "cat", "cat"], 2) == 0.25


@pytest.mark.parametrize("n_neighbors", [1, 3, 5])
def test_neighbors_without_the_point_itself(n_neighbors):
    random = np.random.RandomState(0)
    points, labels = random.normal(size=(40, 2)), random.randint(3, size=40)
    expected = oracles.left_out_error(points, labels, n_neighbors)
    assert left_out_error(points, labels, n_neighbors) == pytest.approx(expected)


def test_a_point_is_left_out_even_where_many_lie_in_its_place():
    labels = np.arange(10)  # each is alone in its class: all are misclassified_rows
    assert left_out_error(np.zeros((10, 2)), labels, 3) == 1


@pytest.mark.parametrize("n_bins", [1, 4, 15])
def test_calibration_is_that_of_the_loops(n_bins):
    random = np.random.RandomState(0)
    first = np.append(random.randint(0, 33, size=200) / 32, 1.0)  # also on bins' borders
    probabilities, labels = np.c_[first, 1 - first], random.choice(["a", "b"], size=201)
    found = calibration(probabilities, labels, n_bins=n_bins)
    correct = np.where(first >= 0.5, "a", "b") == labels
    expected = oracles.calibration_error(probabilities.max(axis=1), correct, n_bins)
    assert found.error == pytest.approx(expected)
    assert found.counts.sum() == 201


def test_calibration_by_hand():
    probabilities = [[0.95, 0.05], [0.05, 0.95], [0.55, 0.45], [0.55, 0.45]]
    found = calibration(probabilities, [0, 1, 0, 1], n_bins=10)
    assert found.counts.tolist() == [2, 2]
    np.testing.assert_allclose(found.confidence, [0.55, 0.95])
    np.testing.assert_allclose(found.accuracy, [0.5, 1])
    assert found.error == pytest.approx(0.05)
    assert str(found).splitlines()[0] == "expected calibration error 5.00 %"
    assert str(found).splitlines()[-1].split() == ["95.0", "%", "100.0", "%", "2"]


def test_a_label_that_is_no_class_is_predicted_wrongly():
    found = calibration([[0.8, 0.2], [0.8, 0.2]], ["a", "z"], ["a", "b"])
    np.testing.assert_allclose(found.accuracy, [0.5])


def test_probabilities_that_do_not_match_the_classes_are_refused():
    with pytest.raises(InvalidParameter, match=r"\(2, 2\) do not match 2 labels and 1 classes"):
        calibration([[0.8, 0.2], [0.8, 0.2]], ["a", "a"])
    with pytest.raises(InvalidParameter, match="n_bins"):
        calibration([[0.8, 0.2]], [0], [0, 1], n_bins=0)


def test_distances_to_centers_are_in_radii_of_the_exemplars_own_class():
    # a: center (0, 0), squared distances 1, 1, 9, 9, radius √5; b: center (10, 0), radius 2
    points = [[1, 0], [-1, 0], [0, 3], [0, -3], [12, 0], [8, 0]]
    labels = ["a", "a", "a", "a", "b", "b"]
    exemplars = [[10, 1], [0, 0], [1, 2], [10, -8]]
    distances = exemplar_distances(points, labels, exemplars, ["b", "a", "a", "b"])
    np.testing.assert_allclose(distances, [0.5, 0, 1, 4])


def test_distances_in_radii_do_not_see_where_the_map_lies_and_how_large_it_is():
    random = np.random.RandomState(0)
    points, exemplars = random.normal(size=(30, 2)), random.normal(size=(4, 2))
    labels, exemplar_labels = np.arange(30) % 2, np.arange(4) % 2
    one = exemplar_distances(points, labels, exemplars, exemplar_labels)
    other = exemplar_distances(7 * points + 3, labels, 7 * exemplars + 3, exemplar_labels)
    np.testing.assert_allclose(one, other)


def test_a_class_in_one_place_has_its_exemplars_there_or_infinitely_far():
    distances = exemplar_distances([[1, 1], [1, 1]], [0, 0], [[1, 1], [1, 2]], [0, 0])
    assert distances.tolist() == [0, np.inf]


def test_exemplars_of_a_class_without_points_are_told():
    with pytest.raises(InvalidParameter, match="no point is of the class 1"):
        exemplar_distances([[0.0, 0.0]], [0], [[0.0, 0.0]], [1])


@pytest.fixture
def model(three_blobs):
    return SHOPE(n_factors=7, n_units=11, max_epochs=2, random_state=0).fit(*three_blobs)


def test_operations_are_counted_by_hand(model):
    embedding, search = 5 * 7 + 7 * 11 + 11 * 2, 6 * 2
    speed_up = counted_speed_up(model, n_rows=90)
    assert speed_up.search_only == pytest.approx(90 * 5 / search)
    assert speed_up.end_to_end == pytest.approx(90 * 5 / (search + embedding))


def test_operations_against_other_references_are_counted_by_hand(model):
    embedding = 5 * 7 + 7 * 11 + 11 * 2
    assert operations(model) == (6 * 2, 6 * 2 + embedding)
    assert operations(model, n_references=90) == (90 * 2, 90 * 2 + embedding)


@pytest.mark.parametrize(
    ("cls", "sizes", "n_rows", "n_features", "expected"),
    [
        (SHOPE, {"n_factors": 400, "n_units": 400, "order": 2}, 60_000, 784, 99),
        (SHOPE, {"n_factors": 1200, "n_units": 400, "order": 2}, 8_000, 256, 2.6),
        (HOPE, {"n_factors": 300, "order": 3}, 60_000, 784, 199),
        (HOPE, {"n_factors": 600, "order": 3}, 8_000, 256, 13),
    ],
)
def test_the_speed_ups_of_the_papers_sizes(cls, sizes, n_rows, n_features, expected):
    X = np.random.RandomState(0).normal(size=(40, n_features))
    model = cls(**sizes, max_epochs=1, random_state=0).fit(X, np.arange(40) % 10)
    end_to_end = counted_speed_up(model, n_rows).end_to_end
    assert end_to_end == pytest.approx(expected, rel=0.03)


def test_bytes_are_counted_by_hand(model, three_blobs):
    X, _ = three_blobs
    weights = 5 * 7 + 7 + 7 * 11 + 11 + 11 * 2
    assert kept_by_model(model) == (6, 4 * (weights + 2 * 5 + 6 * 2))
    assert kept_by_neighbors(X) == (90, 4 * 90 * 5)


def test_the_clock_agrees_that_less_work_is_faster():
    random = np.random.RandomState(0)
    X, y = random.normal(size=(20_000, 60)).astype(np.float32), np.arange(20_000) % 2
    X[:, 0] += 3 * y
    model = SHOPE(n_factors=8, n_units=8, max_epochs=1, refit=False, random_state=0).fit(X, y)
    speed_up = measured_speed_up(model, X, y, X[:2000])
    assert speed_up.search_only > speed_up.end_to_end > 1


def test_works_are_timed_in_turns():
    order = []
    works = {name: lambda name=name: order.append(name) for name in "ab"}
    times = seconds_in_turns(works, repeats=3)
    assert order == ["a", "b"] * 3
    assert {name: len(seconds) for name, seconds in times.items()} == {"a": 3, "b": 3}


def test_two_fits_that_see_the_same_product_agree():
    X = np.random.RandomState(0).normal(size=(400, 3))
    model = HOPE(order=2, n_factors=8, max_epochs=20)
    found = interaction_stability(model, X, X[:, 0] * X[:, 1] > 0, top=1)
    assert found.overlap == 1
    assert found.shared == ("x0 × x1",)


def test_two_fits_that_do_not_agree_warn():
    random = np.random.RandomState(0)
    X, y = random.normal(size=(60, 30)), random.randint(2, size=60)
    with pytest.warns(UnstableInteractionsWarning, match="in two fits with the seeds 0 and 1"):
        found = interaction_stability(HOPE(order=3, n_factors=8, max_epochs=5), X, y, top=10)
    assert found.overlap < 0.5


def test_stability_is_of_methods_that_multiply_features(iris):
    with pytest.raises(InvalidParameter, match="has no feature interactions"):
        interaction_stability(LDA(), *iris)
