"""Reports of maps that were learned without labels, with some of them, or with neighbors kept."""

from __future__ import annotations

import numpy as np
import pytest

from hopefold import SHOPE
from hopefold.errors import InvalidInput, InvalidParameter
from hopefold.evaluation import knn_error, left_out_error, permutation_test, trustworthiness
from hopefold.report import words
from hopefold.report.figures import draw_map
from hopefold.report.palette import PALETTE, UNLABELED_COLOR
from hopefold.report.render import render, write_report
from hopefold.report.scene import make_scene

QUICK = {"n_factors": 20, "n_units": 20, "random_state": 0, "perplexity": 5}


@pytest.fixture(scope="session")
def rows(digits):
    """400 rows to learn from, 100 others, and the labels of both."""
    X, _, y, _ = digits
    return X[:400], X[400:500], y[:400], y[400:500]


@pytest.fixture(scope="session")
def unlabeled(rows):
    return SHOPE(max_epochs=8, **QUICK).fit(rows[0])


@pytest.fixture(scope="session")
def with_labels(unlabeled, rows):
    return make_scene(unlabeled, rows[1], rows[3], image_shape=(8, 8), title="Digits")


@pytest.fixture(scope="session")
def without_labels(unlabeled, rows):
    return make_scene(unlabeled, rows[1])


@pytest.fixture(scope="session")
def some_labels(rows):
    """A model that knows every second label, and what it knows."""
    X, _, y, _ = rows
    partly = np.where(np.arange(400) % 2, y, -1)
    return SHOPE(max_epochs=4, missing_label=-1, structure=0.6, **QUICK).fit(X, partly), partly


@pytest.fixture(scope="session")
def half_known(some_labels, rows):
    """Its report on the rows that it learned from, as if they were new."""
    model, partly = some_labels
    return make_scene(model, rows[0], partly, training=np.zeros(400, bool))


def headlines(scene):
    return {figure.name: (figure.value, *figure.notes) for figure in words.headlines(scene)}


def text_of(scene):
    page = render(scene)
    return page[page.index("<body>") : page.index('<script type="application/json"')]


# -- without labels ---------------------------------------------------------------------------


def test_labels_that_the_fit_never_saw_are_judged_by_neighbors(with_labels, unlabeled, rows):
    points = unlabeled.transform(rows[1])
    found = with_labels.neighbor_scores
    assert found.error == left_out_error(points, rows[3])
    assert found.trust == pytest.approx(trustworthiness(unlabeled, rows[1], points))
    assert found.held_out == unlabeled.trustworthiness_
    assert with_labels.scores is None


def test_new_rows_are_judged_by_those_learned_from_where_both_are_there(unlabeled, rows):
    X, X_new, y, y_new = rows
    both = np.concatenate([X, X_new]), np.concatenate([y, y_new])
    found = make_scene(unlabeled, *both, training=np.arange(500) < 400).neighbor_scores
    points = unlabeled.transform(both[0])
    assert found.error == knn_error(points[:400], y, points[400:], y_new)
    assert (found.n_scored, found.by_learned) == (100, True)


def test_the_page_says_that_labels_decided_nothing_and_claims_no_error(with_labels):
    page = text_of(with_labels)
    assert "learned without labels; the colors are 10 labels that it has not seen" in page
    assert "The fit never saw the labels" in page
    assert "What is not here" in page
    for absent in ("Held-out error", "<h2>Confusion", "misclassified</span>", "permutation"):
        assert absent not in page


def test_without_labels_there_is_one_color_and_trust_alone(without_labels):
    assert without_labels.colors == PALETTE[:1]
    assert set(headlines(without_labels)) == {"Trustworthiness", "Learned from", "Size"}
    assert "There are no labels" in text_of(without_labels)


def test_it_says_whether_the_rows_were_learned_from(without_labels, unlabeled, rows):
    assert "the rows given are new" in headlines(without_labels)["Learned from"]
    known = headlines(make_scene(unlabeled, rows[0]))["Learned from"]
    assert known == ("400 rows", "no label was used", "all rows given are among them")


def test_landmarks_are_few_and_lie_where_the_model_has_them(with_labels, unlabeled):
    shown = with_labels.exemplars
    assert len(shown.points) <= 24 < shown.n_all == len(unlabeled.exemplars_)
    known = unlabeled.exemplar_embedding_.tolist()
    assert all(point in known for point in shown.points.tolist())
    assert len(with_labels.display.exemplars) == len(shown.points)


def test_columns_that_tell_parts_of_the_map_apart_are_shown():
    random = np.random.RandomState(0)
    X = random.normal(size=(200, 12)) * 0.1
    X[:, 5] += 5 * (np.arange(200) % 3)
    scene = make_scene(SHOPE(max_epochs=20, scale=None, **QUICK).fit(X), X)
    assert scene.display.names[0] == "column 5"


def test_a_map_of_pairs_has_no_landmarks_and_a_page_all_the_same(rows):
    model = SHOPE(max_epochs=1, exemplars=None, **QUICK).fit(rows[0])
    scene = make_scene(model, rows[1], rows[3])
    assert scene.exemplars is None
    assert "<h2>Landmarks" not in text_of(scene)


def test_labels_that_are_not_there_are_no_labels(unlabeled, rows):
    labels = rows[3].astype(float)
    labels[::2] = np.nan
    scene = make_scene(unlabeled, rows[1], labels)
    assert (scene.n_classes, scene.classes[-1], scene.unlabeled) == (10, "no label", 10)
    assert scene.neighbor_scores.n_scored == 50
    assert scene.colors[-1] == UNLABELED_COLOR


def test_very_many_rows_are_drawn_as_a_sample_without_labels(unlabeled, rows, monkeypatch):
    from hopefold.report import scene as scenes

    monkeypatch.setattr(scenes, "MOST_ROWS", 80)
    monkeypatch.setattr(scenes, "SAMPLE", 30)
    scene = make_scene(unlabeled, rows[1])
    assert len(scene.points) == 30
    assert "chosen at random, over the density of all rows" in text_of(scene)


def test_a_picture_without_labels_has_one_color_and_no_names():
    axes = draw_map(np.random.RandomState(0).normal(size=(20, 2))).axes[0]
    assert not axes.texts
    assert len(np.unique(axes.collections[0].get_facecolor(), axis=0)) == 1


# -- with some labels, and beside all of them -------------------------------------------------


def test_rows_without_a_label_are_drawn_and_not_judged(some_labels, half_known, rows):
    (model, partly), scene = some_labels, half_known
    assert (scene.true == scene.unlabeled).sum() == 200
    assert scene.scores.n_new == scene.confusion.sum() == 200
    error = np.mean(model.predict(rows[0])[1::2] != partly[1::2])
    assert scene.scores.error == pytest.approx(error)
    page = text_of(scene)
    assert "Rows without a label are gray" in page
    assert "64 columns and 10 classes; 200 of the rows have no label" in page


def test_the_share_of_the_loss_and_the_trust_stand_beside_the_error(some_labels, rows):
    scene = make_scene(some_labels[0], rows[1], rows[3])
    value, share, *_ = headlines(scene)["Trustworthiness"]
    assert share.startswith("60\u202f% of the loss preserves neighbors")
    points = some_labels[0].transform(rows[1])
    assert value == f"{trustworthiness(some_labels[0], rows[1], points):.3f}"
    assert "Held-out error" in headlines(scene)


def test_trust_in_a_handful_of_held_out_rows_is_not_told(iris):
    model = SHOPE(max_epochs=1, **QUICK).fit(iris[0])  # 15 rows were held out
    assert model.trustworthiness_ is None
    assert make_scene(model, iris[0]).neighbor_scores.held_out is None


def test_a_map_by_classes_alone_says_nothing_of_neighbors(three_blobs):
    X, y = three_blobs
    scene = make_scene(SHOPE(max_epochs=1, **QUICK).fit(X, y), X, y)
    assert scene.neighbor_scores is None
    assert "Trustworthiness" not in headlines(scene)


# -- what can go wrong ------------------------------------------------------------------------


def test_what_cannot_be_shown_is_said(unlabeled, some_labels, rows, three_blobs):
    test = permutation_test(SHOPE(max_epochs=1, **QUICK), *three_blobs, n_permutations=1)
    with pytest.raises(InvalidParameter, match="was learned without any: leave permutation out"):
        make_scene(unlabeled, rows[1], rows[3], permutation=test)
    with pytest.raises(InvalidInput, match="a report compares them with labels: give y"):
        make_scene(some_labels[0], rows[1])
    with pytest.raises(InvalidInput, match="missing in all 100 rows: give rows with labels"):
        make_scene(some_labels[0], rows[1], np.full(100, -1))
    nobody = make_scene(unlabeled, rows[1], np.full(100, None))
    assert "learned without labels" in text_of(nobody)


# -- in a browser -----------------------------------------------------------------------------


@pytest.fixture(scope="session")
def visits(visit, with_labels, without_labels, half_known, tmp_path_factory):
    """The pages with labels, without, and with some."""
    folder = tmp_path_factory.mktemp("unlabeled")
    scenes = {"labels": with_labels, "none": without_labels, "some": half_known}
    for name, scene in scenes.items():
        write_report(scene, folder / f"{name}.html")
    return {name: visit(folder / f"{name}.html") for name in scenes}


def csv_heading(page):
    """Of the rows that are lit."""
    with page.expect_download() as download:
        page.click("#download")
    return download.value.path().read_text().splitlines()[0]


def test_a_card_tells_the_label_and_no_prediction(visits):
    seen = visits["labels"]
    seen.hover(0, 0)
    card = seen.card()
    assert "Label" in card
    assert "Nearest landmark shown" in card
    assert "Predicted" not in card
    assert not seen.wrong


def test_a_landmark_lights_the_rows_around_it(visits):
    seen = visits["labels"]
    seen.page.click("[data-exemplar='0']")
    assert "nearest to landmark 1" in seen.chosen()
    assert csv_heading(seen.page) == "id,true,x,y,learned_from,far"
    assert not seen.wrong


def test_a_page_without_labels_names_none(visits):
    seen = visits["none"]
    assert seen.page.locator("#legend button").count() == 0
    assert seen.page.locator(".place").count() == 0
    seen.hover(0, 0)
    assert "no label" not in seen.card()
    seen.page.fill("#wanted", "7")
    assert seen.page.locator("#found li").first.inner_text() == "7"
    seen.page.click("[data-exemplar='0']")
    assert csv_heading(seen.page) == "id,x,y,learned_from,far"
    assert not seen.wrong


def test_rows_without_a_label_are_not_crossed(visits, half_known):
    seen = visits["some"]
    script = "() => document.getElementById('map')._fullData.map(trace => trace.x.length)"
    *points, crosses, _ = seen.page.evaluate(script)
    assert (points[0], crosses) == (200, half_known.scores.n_misclassified)
    seen.page.click("#legend button:last-child")
    assert seen.chosen() == "200 rows without a label"
    assert not seen.wrong
