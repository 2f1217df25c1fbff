from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
from scipy import sparse

from hopefold import HOPE, SHOPE
from hopefold.baselines import LDA
from hopefold.errors import InvalidInput, InvalidParameter
from hopefold.evaluation import permutation_test
from hopefold.report import row_display, scene, words
from hopefold.report.distance import far_from_all
from hopefold.report.scene import make_scene, sample_rows

NEW = np.zeros(90, bool)


@pytest.fixture(scope="module")
def blobs_model(three_blobs):
    X, y = three_blobs
    return SHOPE(max_epochs=10, n_factors=20, n_units=20, random_state=0).fit(X, y)


def test_a_scene_says_what_the_model_says(iris):
    X, y = iris
    model = SHOPE(max_epochs=20, n_factors=20, random_state=0).fit(X[::2], y[::2])
    made = make_scene(model, X, y, training=np.arange(150) % 2 == 0)
    np.testing.assert_array_equal(made.points, model.transform(X))
    np.testing.assert_array_equal(made.predicted, model.predict(X))
    np.testing.assert_allclose(made.shares, -np.sort(-model.predict_proba(X), axis=1))
    assert made.scores.error == pytest.approx(1 - model.score(X[1::2], y[1::2]))
    assert made.scores.n_new == made.confusion.sum() == 75
    assert made.confusion.trace() == 75 - made.scores.n_misclassified


def test_the_held_out_error_is_compared_with_naming_the_commonest_class(blobs_model, three_blobs):
    X, y = three_blobs
    found = make_scene(blobs_model, X, y, training=NEW).scores
    assert found.guess == pytest.approx(2 / 3)
    assert found.p_value < 1e-6
    shuffled = np.random.RandomState(0).permutation(y)
    assert make_scene(blobs_model, X, shuffled, training=NEW).scores.p_value > 0.001


def test_neighbors_in_the_map_judge_a_row_without_itself(blobs_model, three_blobs):
    X, y = three_blobs
    alone = y.copy()
    alone[:1] = 1  # only itself would call it right
    found = make_scene(blobs_model, X, alone, training=NEW).scores
    assert found.neighbors_error >= 1 / 90


def test_labels_that_the_model_does_not_know_are_mistakes(blobs_model, three_blobs):
    X, y = three_blobs
    made = make_scene(blobs_model, X, np.where(y == 2, 7, y), training=NEW)
    assert made.classes == ("0", "1", "2", "7")
    assert made.confusion[3].sum() == 30
    assert made.scores.error >= 1 / 3


def test_a_row_far_from_all_is_marked_and_no_other(blobs_model, three_blobs):
    X, y = three_blobs
    X = np.concatenate([X, [[60.0] * 5]])
    training = np.arange(91) < 90
    made = make_scene(blobs_model, X, np.append(y, 0), training=training)
    assert made.far[-1]
    assert made.far[:-1].sum() <= 2


def test_far_rows_are_found_in_the_map_where_no_exemplars_are_kept(three_blobs):
    X, y = three_blobs
    model = LDA().fit(X, y)
    assert model.exemplars_ is None
    points = np.concatenate([model.transform(X), [[500.0, 500.0]]])
    far = far_from_all(model, None, points, np.arange(91) < 0)
    assert far[-1]
    made = make_scene(model, X, y)
    assert made.exemplars is None


def test_csr_rows_give_the_scene_of_dense_ones(sparse_rows):
    X = sparse_rows(80, 30, 0.2)
    y = np.arange(80) % 2
    model = HOPE(order=2, max_epochs=3, n_factors=8, random_state=0).fit(X, y)
    thin, thick = (make_scene(model, these, y) for these in (X, X.toarray()))
    np.testing.assert_allclose(thin.points, thick.points, atol=1e-5)
    assert thin.display.names == thick.display.names
    np.testing.assert_allclose(thin.display.values, thick.display.values)
    assert sparse.issparse(X)


def test_the_most_telling_column_is_the_one_that_differs_between_classes():
    random = np.random.RandomState(0)
    y = np.arange(200) % 2
    X = random.normal(size=(200, 12))
    X[:, 5] += 3 * y
    found = row_display.find_separating_columns(X, y, np.arange(200), None, tuple("abcdefghijkl"))
    assert found.names[0] == "f"
    between = X[y == 1, 5].mean() - X[y == 0, 5].mean()
    assert found.separation[0] == pytest.approx((between / 2) ** 2 / X[:, 5].var())
    assert len(found.names) == row_display.N_COLUMNS


def test_dark_images_with_light_strokes_are_shown_as_ink_on_paper():
    X = np.zeros((4, 16))
    X[:, :3] = 1
    images = row_display.make_images(X, np.arange(4), X[:1], (4, 4))
    assert images.is_ink
    assert (images.thumbnails.reshape(4, 16)[:, :3] == 0).all()
    assert (images.thumbnails.reshape(4, 16)[:, 3:] == 255).all()
    photo = row_display.make_images(1 - X, np.arange(4), None, (4, 4))
    assert not photo.is_ink
    assert (photo.thumbnails.reshape(4, 16)[:, :3] == 0).all()


def test_large_images_become_small_thumbnails():
    X = np.random.RandomState(0).rand(3, 200 * 100)
    images = row_display.make_images(X, np.arange(3), None, (200, 100))
    assert images.thumbnails.shape == (3, 64, 32)


def test_a_sample_is_stratified_and_has_every_class():
    codes = np.repeat([0, 1, 2], [9_000, 990, 10])
    assert len(sample_rows(codes, most=10_000, size=50)) == 10_000
    chosen = sample_rows(codes, most=9_999, size=100)
    np.testing.assert_array_equal(np.bincount(codes[chosen]), [90, 10, 1])
    assert len(np.unique(chosen)) == 101


def test_very_many_rows_are_drawn_as_a_sample_over_their_density(
    blobs_model, three_blobs, monkeypatch
):
    monkeypatch.setattr(scene, "MOST_ROWS", 80)
    monkeypatch.setattr(scene, "SAMPLE", 30)
    X, y = three_blobs
    made = make_scene(blobs_model, X, y, ids=[f"r{row}" for row in range(90)])
    assert len(made.points) == len(made.ids) == 30
    assert made.ids == tuple(f"r{row}" for row in made.numbers)
    assert made.confusion.sum() == made.n_rows == 90
    inside = ((made.backdrop.low < made.points) & (made.points < made.backdrop.high)).all()
    assert inside
    assert made.backdrop.density.sum() == 90


def test_density_and_regions_lie_where_the_points_do(blobs_model, three_blobs, monkeypatch):
    monkeypatch.setattr(scene, "MOST_ROWS", 80)
    monkeypatch.setattr(scene, "SAMPLE", 60)
    X, y = three_blobs
    made = make_scene(blobs_model, X, y)
    back = made.backdrop
    n_cells = len(back.codes)
    cells = ((made.points - back.low) / (back.high - back.low) * n_cells).astype(int)
    rows, columns = n_cells - 1 - cells[:, 1], cells[:, 0]
    assert (back.density[rows, columns] >= 1).all()
    assert (back.codes[rows, columns] == made.predicted).mean() > 0.9


def test_the_permutation_test_is_told_when_it_was_run(three_blobs):
    X, y = three_blobs
    model = SHOPE(max_epochs=3, n_factors=8, n_units=8, random_state=0).fit(X, y)
    silent = words.headlines(make_scene(model, X, y))[-1]
    assert "permutation test not run" in silent.notes
    test = permutation_test(model, X, y, n_permutations=3)
    told = words.headlines(make_scene(model, X, y, permutation=test))[-1].notes[-1]
    assert told.startswith("permutation test ")
    assert f"p = {test.p_value:.2g}" in told
    assert "3 shuffles" in told


def test_rows_that_were_all_learned_from_give_the_error_of_the_fit(blobs_model, three_blobs):
    X, y = three_blobs
    made = make_scene(blobs_model, X, y, training=np.ones(90, bool))
    first, *_, last = words.headlines(made)
    assert made.scores.error is None
    assert first.value == words.percent(blobs_model.validation_error_)
    assert last.value == "Yes"  # all nine rows that were held out are judged right
    unknown = copy.copy(blobs_model)
    unknown.history_ = []
    made = make_scene(unknown, X, y, training=np.ones(90, bool))
    assert words.headlines(made)[-1].value == "Not known"


def test_a_report_on_the_rows_of_the_fit_does_not_take_them_for_new(blobs_model, three_blobs):
    X, y = three_blobs
    made = make_scene(blobs_model, X, y)
    assert made.training.all()
    assert made.scores.share_learned == 1
    assert "all rows given were learned from" in words.headlines(made)[0].notes[0]
    assert made.confusion.sum() == 90
    assert make_scene(blobs_model, X + 0.1, y).scores.n_new == 90


def test_what_cannot_be_shown_is_refused(blobs_model, three_blobs, iris):
    X, y = three_blobs
    with pytest.raises(InvalidInput, match="90 rows and labels of shape"):
        make_scene(blobs_model, X, y[:-1])
    with pytest.raises(InvalidParameter, match="ids has 2 entries for 90"):
        make_scene(blobs_model, X, y, ids=["a", "b"])
    with pytest.raises(InvalidParameter, match="True or False"):
        make_scene(blobs_model, X, y, training=np.arange(90))
    with pytest.raises(InvalidParameter, match="image_shape"):
        make_scene(blobs_model, X, y, image_shape=(2, 2))
    with pytest.raises(InvalidParameter, match="is not a hopefold estimator"):
        make_scene("model", X, y)
    deep = SHOPE(n_components=3, max_epochs=1, n_factors=4, n_units=4).fit(*iris)
    with pytest.raises(InvalidParameter, match="this one has 3"):
        make_scene(deep, *iris)


def test_a_scene_is_frozen(blobs_model, three_blobs):
    made = make_scene(blobs_model, *three_blobs)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.title = "other"


@pytest.mark.parametrize(
    ("n_bytes", "shown"),
    [(12, "12 B"), (321_792, "322 kB"), (999_949, "1.00 MB"), (4.2e13, "42,000 GB")],
)
def test_sizes_are_told_in_units(n_bytes, shown):
    assert words.size(n_bytes) == shown.replace(" ", words.NARROW)
