"""LDA is scikit-learn's, and what can be derived by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import oracles
from hopefold.baselines import LDA, LMNN, MCML, NCA, SNC
from hopefold.baselines.projection import discriminants
from hopefold.fitting.held_out import stratified_split


@pytest.mark.parametrize("scale", ["auto", "standard", "range", None])
def test_points_are_scikit_learns_but_for_sign_and_shift(digits, scale):
    X, y = digits[0][:400], digits[2][:400]
    theirs = LinearDiscriminantAnalysis(n_components=2).fit(X, y).transform(X)
    mine = LDA(scale=scale, random_state=0).fit(X, y).transform(X)
    for axis in range(2):
        assert abs(np.corrcoef(mine[:, axis], theirs[:, axis])[0, 1]) > 1 - 1e-6


def test_two_classes_are_told_apart_along_the_whitened_difference_of_their_means(three_blobs):
    X, y = (part[:60] for part in three_blobs)
    difference = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    within = sum(np.cov(X[y == k], rowvar=False) for k in (0, 1))
    by_hand = np.linalg.solve(within, difference)
    (mine, _) = LDA(scale=None, random_state=0).fit(X, y).map_.P.numpy()
    cosine = mine @ by_hand / np.linalg.norm(mine) / np.linalg.norm(by_hand)
    assert abs(cosine) == pytest.approx(1, abs=1e-6)


def test_two_classes_have_one_coordinate_and_the_other_is_zero(iris):
    X, y = iris
    points = LDA(random_state=0).fit(X, y == 1).transform(X)
    assert points[:, 0].std() > 0.5
    assert not points[:, 1].any()


@pytest.mark.parametrize("refit", [True, False])
def test_the_validation_error_is_that_of_five_neighbors_on_the_held_out_rows(digits, refit):
    X, _, y, _ = (part[:400] for part in digits)
    model = LDA(random_state=3, refit=refit).fit(X, y)
    random = np.random.RandomState(3)
    random.randint(2**31)  # the seed of the task
    training, held_out = stratified_split(y, 0.1, 1, random)
    assert len(held_out) == 40

    lda = LinearDiscriminantAnalysis(n_components=2).fit(X[training], y[training])
    references, points = lda.transform(X[training]), lda.transform(X[held_out])
    wrong = 0
    for point, label in zip(points, y[held_out], strict=True):
        distances = [oracles.squared_distance(point, reference) for reference in references]
        wrong += oracles.vote(distances, y[training].tolist(), 5) != label
    assert 0 < wrong < 40
    assert model.validation_error_ == pytest.approx(wrong / 40)


def test_without_held_out_rows_there_is_no_validation_error(iris):
    assert LDA(validation_fraction=0).fit(*iris).validation_error_ is None


# -- what has no discriminants ----------------------------------------------------------------


def test_classes_whose_rows_are_all_alike_lie_apart():
    y = np.arange(30) % 3
    corners = np.array([[0.0, 0.0, 1.0], [4.0, 0.0, 1.0], [0.0, 2.0, 1.0]])
    directions = discriminants(corners[y], y)
    points = corners @ directions.T
    assert directions.shape == (2, 3)
    assert min(np.linalg.norm(points[i] - points[j]) for i, j in [(0, 1), (0, 2), (1, 2)]) > 1


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.ones((20, 3)), np.arange(20) % 2),
        (np.eye(2)[np.arange(20) % 2], np.arange(20) % 2),
        (np.vstack(2 * [np.random.RandomState(0).rand(10, 3)]), np.repeat([0, 1], 10)),
        (np.vstack(3 * [np.random.RandomState(0).rand(10, 3)]), np.repeat([0, 1, 2], 10)),
        (np.random.RandomState(0).rand(20, 2) @ np.ones((2, 3)), np.arange(20) % 2),
        (np.random.RandomState(0).rand(20, 90), np.arange(20) % 2),
        (np.random.RandomState(0).rand(20, 1), np.arange(20) % 2),
        (np.random.RandomState(0).rand(20, 3), np.arange(20) == 7),
    ],
    ids=[
        "constant",
        "alike within",
        "same means",
        "three same means",
        "collinear",
        "wide",
        "one column",
        "a class of one row",
    ],
)
@pytest.mark.parametrize(
    "model",
    [
        LDA(),
        NCA(max_iter=3),
        NCA(max_epochs=2, solver="batches"),
        MCML(max_epochs=2),
        LMNN(max_epochs=2),
        SNC(max_epochs=2, n_exemplars=1),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'solver', 'only')}",
)
def test_a_table_without_discriminants_is_fitted_without_a_warning(model, X, y):
    assert np.isfinite(model.set_params(random_state=0).fit(X, y).transform(X)).all()
