"""Maps learned without labels, with some of them, and with neighbors kept beside classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import oracles
from hopefold import HOPE, SHOPE, load
from hopefold.core.maps import SigmoidHighOrder
from hopefold.core.objectives import class_probabilities, pseudo_labels
from hopefold.data.tables import read_table
from hopefold.errors import InvalidInput, InvalidParameter, MarkerWarning
from hopefold.evaluation import trustworthiness
from hopefold.fitting.batch import Batch, PseudoLabeling
from hopefold.fitting.losses import ExemplarLoss, HighOrderLoss, PairLoss
from hopefold.fitting.trainer import Trainer

QUICK = {"n_factors": 40, "n_units": 40, "random_state": 0}
METHODS = pytest.mark.parametrize("method", [SHOPE, HOPE], ids=["S-HOPE", "HOPE"])
EXEMPLARS = pytest.mark.parametrize("exemplars", ["joint", "kmeans", None])


def quick(method=SHOPE, **settings):
    known = method().get_params()
    return method(**{name: v for name, v in (QUICK | settings).items() if name in known})


def neighbor_error(points, y):
    """Of half of the rows by the other half, five neighbors each."""
    judge = KNeighborsClassifier(5).fit(points[::2], y[::2])
    return 1 - judge.score(points[1::2], y[1::2])


@pytest.fixture(scope="module")
def some_digits(digits):
    X, _, y, _ = digits
    return X[:600], y[:600]


@pytest.fixture(scope="module")
def unlabeled(some_digits):
    return quick(max_epochs=40).fit(some_digits[0])


@pytest.fixture(scope="module")
def few_labels(some_digits):
    """40 of 600 rows are labeled: -1 stands for the others."""
    X, y = some_digits
    partly = np.full_like(y, -1)
    chosen = np.concatenate([np.flatnonzero(y == label)[:4] for label in range(10)])
    partly[chosen] = y[chosen]
    return X, y, partly


# -- without labels ---------------------------------------------------------------------------


def test_a_map_without_labels_keeps_classes_apart_that_it_never_saw(unlabeled, some_digits):
    X, y = some_digits
    points = unlabeled.transform(X)
    assert neighbor_error(points, y) < 0.2
    assert neighbor_error(X[:, :2] + 0.0, y) > 0.6


def test_it_tells_how_far_neighbors_can_be_trusted_on_held_out_rows(unlabeled):
    assert 0.75 < unlabeled.trustworthiness_ <= 1
    assert unlabeled.validation_error_ is None
    assert unlabeled.train_error_ is None


def test_noise_keeps_few_of_its_neighbors():
    noise = np.random.RandomState(0).normal(size=(400, 40))
    assert quick(max_epochs=10).fit(noise).trustworthiness_ < 0.7


def test_it_names_no_classes_and_says_so(unlabeled, some_digits):
    assert unlabeled.exemplar_labels_ is None
    for verb in ("predict", "predict_proba"):
        with pytest.raises(InvalidInput, match=r"learned without labels.*use transform, or fit"):
            getattr(unlabeled, verb)(some_digits[0])


def test_the_score_without_labels_is_how_far_neighbors_can_be_trusted(unlabeled, some_digits):
    X, y = some_digits
    assert unlabeled.score(X) == trustworthiness(unlabeled, X, unlabeled.transform(X))
    with pytest.raises(InvalidInput, match="3 or more"):
        unlabeled.score(X[:2])
    with pytest.raises(InvalidInput, match="give y"):
        SHOPE(max_epochs=1, random_state=0).fit(X, y).score(X)


def test_rows_of_many_features_are_mapped_by_two_layers(tmp_path):
    X = np.random.RandomState(0).normal(size=(60, 100)).astype(np.float32)
    model = SHOPE(max_epochs=1, n_landmarks=20, random_state=0).fit(X)
    assert [len(layer.b) for layer in model.map_.layers] == [400, 400]
    assert model.n_units == "auto"
    model.save(tmp_path / "map.hope")
    again = load(tmp_path / "map.hope")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    for asked in ({"n_units": 30}, {"n_factors": (9,)}, {"order": (2,)}):
        one = SHOPE(max_epochs=1, n_landmarks=20, random_state=0, **asked).fit(X)
        assert len(one.map_.layers) == 1
    labeled = SHOPE(max_epochs=1, structure=0.5, random_state=0).fit(X, np.arange(60) % 2)
    assert [len(layer.b) for layer in labeled.map_.layers] == [600]


def test_a_grid_is_searched_without_labels(iris):
    X, _ = iris
    search = GridSearchCV(HOPE(max_epochs=2, random_state=0), {"order": [1, 2]}, cv=2).fit(X)
    assert 0.5 < search.best_score_ <= 1


def test_it_comes_back_from_a_file(unlabeled, some_digits, tmp_path):
    unlabeled.save(tmp_path / "map.hope")
    again = load(tmp_path / "map.hope")
    X = some_digits[0]
    np.testing.assert_array_equal(again.transform(X), unlabeled.transform(X))
    assert again.trustworthiness_ == unlabeled.trustworthiness_
    assert (len(again.classes_), again.structure_) == (0, 1.0)


@METHODS
@EXEMPLARS
def test_each_method_learns_without_labels_from_landmarks_and_from_pairs(method, exemplars, iris):
    X = iris[0]
    model = quick(method, exemplars=exemplars, max_epochs=5, perplexity=5).fit(X)
    assert np.isfinite(model.transform(X)).all()
    assert (model.exemplars_ is None) == (exemplars is None)


def test_no_labels_are_no_labels_in_a_pipeline_and_in_a_file_of_rows(iris, tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    X = iris[0]
    make_pipeline(StandardScaler(), quick(max_epochs=2)).fit(X)
    table = pa.table({f"x{place}": column for place, column in enumerate(X.T)})
    parquet.write_table(table, tmp_path / "rows.parquet")
    from_file = quick(max_epochs=2).fit(tmp_path / "rows.parquet")
    from_file = from_file.transform(tmp_path / "rows.parquet")
    np.testing.assert_allclose(from_file, quick(max_epochs=2).fit(X).transform(X), atol=1e-5)


def test_sparse_rows_are_learned_from_without_labels(sparse_rows):
    X = sparse_rows(200, 50, 0.1)
    sparse, dense = (
        quick(max_epochs=3, scale=None).fit(rows).transform(X) for rows in (X, X.toarray())
    )
    np.testing.assert_allclose(sparse, dense, atol=1e-2 * np.ptp(dense))


def test_the_same_seed_gives_the_same_bits(iris):
    first, again = (quick(max_epochs=3).fit(iris[0]).transform(iris[0]) for _ in range(2))
    np.testing.assert_array_equal(first, again)


# -- with some labels -------------------------------------------------------------------------


def test_rows_without_a_label_help_those_that_have_one(few_labels):
    X, y, partly = few_labels
    hidden = partly < 0
    settings = {"validation_fraction": 0, "max_epochs": 40}
    alone = quick(**settings).fit(X[~hidden], y[~hidden]).score(X[hidden], y[hidden])
    both = quick(missing_label=-1, structure=0.6, **settings).fit(X, partly)
    assert both.score(X[hidden], y[hidden]) > alone + 0.05
    assert both.structure_ == 0.6


def test_the_share_of_structure_is_chosen_where_labels_are_missing(few_labels):
    X, _, partly = few_labels
    with pytest.warns(UserWarning, match="held-out"):
        model = quick(missing_label=-1, max_epochs=8).fit(X, partly)
    assert model.structure_ in (0, 0.1, 0.5)
    assert model.classes_.tolist() == list(range(10))


def test_shares_of_pairs_are_tried_on_all_rows(three_blobs, monkeypatch):
    X, y = three_blobs
    seen = set()
    run = Trainer.run

    def spy(self, plan, task, training, *others, **options):
        seen.add((plan.structure, len(training)))
        return run(self, plan, task, training, *others, **options)

    monkeypatch.setattr(Trainer, "run", spy)
    settings = {"exemplars": None, "missing_label": -1, "max_epochs": 3, "refit": False}
    model = quick(**settings).fit(X, np.where(np.arange(90) % 3, y, -1))
    assert model.structure_ in (0.1, 0.5)
    assert seen == {(0.1, 81), (0.5, 81)}


@pytest.mark.parametrize(
    ("marker", "stands_for"),
    [(-1, -1), (None, None), (np.nan, np.nan), (np.nan, None), ("?", "?")],
    ids=["-1", "None", "NaN", "NaN for None", "text"],
)
def test_a_marker_of_any_kind_marks_what_is_missing(marker, stands_for, three_blobs):
    X, y = three_blobs
    labels = np.array([f"class {label}" for label in y] if marker == "?" else y, dtype=object)
    labels[::2] = stands_for
    model = quick(missing_label=marker, max_epochs=5, structure=0.5).fit(X, labels)
    assert len(model.classes_) == 3
    assert (model.predict(X) == (labels if marker == "?" else y))[1::2].mean() > 0.9


def test_a_marker_that_marks_nothing_changes_nothing(iris):
    X, y = iris
    plain, marked = (
        quick(max_epochs=3, missing_label=marker).fit(X, y).transform(X) for marker in ((), None)
    )
    np.testing.assert_array_equal(plain, marked)


def test_a_marker_that_may_be_misspelt_is_told(iris):
    X, y = iris
    labels = np.where(y == 1, "unknown", "known")
    with pytest.warns(MarkerWarning, match="'unknwon' marks no row.*Did you mean 'unknown'"):
        quick(max_epochs=1, missing_label="unknwon").fit(X, labels)


@pytest.mark.parametrize("marker", [None, np.nan, -1], ids=str)
def test_what_numpy_would_make_text_of_is_missing_all_the_same(marker, three_blobs):
    X, y = three_blobs
    labels = [marker if row % 2 else "abc"[label] for row, label in enumerate(y)]
    model = quick(max_epochs=1, missing_label=marker, structure=0.5).fit(X, labels)
    assert model.classes_.tolist() == ["a", "b", "c"]


def test_a_number_marks_text_that_says_the_same(three_blobs):
    X, y = three_blobs
    labels = np.array(["abc"[label] for label in y])
    labels = np.where(np.arange(90) % 2, labels, "-1")
    model = quick(max_epochs=1, missing_label=-1, structure=0.5).fit(X, labels)
    assert model.classes_.tolist() == ["a", "b", "c"]


def test_text_and_numbers_are_no_labels_together_whatever_is_missing(three_blobs):
    X, y = three_blobs
    labels = np.array([None if row % 2 else (label or "a") for row, label in enumerate(y)], object)
    with pytest.raises(InvalidInput, match="mixes text"):
        quick(missing_label=None).fit(X, labels)


@pytest.mark.parametrize("lacking", [None, np.nan, pd.NA])
def test_what_is_missing_besides_the_marker_is_told_by_its_row(lacking, three_blobs):
    X, y = three_blobs
    labels = [-1] * 20 + y[20:].tolist()
    labels[25] = lacking
    with pytest.raises(InvalidInput, match=r"first in row 25\): mark them with -1 as well"):
        SHOPE(missing_label=-1).fit(X, labels)


@pytest.mark.parametrize("lacking", [None, np.nan, pd.NA])
def test_rows_are_not_judged_by_labels_that_are_missing(lacking, three_blobs):
    X, y = three_blobs
    model = SHOPE(max_epochs=1, random_state=0).fit(X, y.astype(str))
    labels = [*y.astype(str)[:-1].tolist(), lacking]
    with pytest.raises(InvalidInput, match=rf"first in row {len(y) - 1}\): leave those rows out"):
        model.score(X, labels)


def test_rows_whose_label_is_missing_do_not_count_in_the_score(three_blobs):
    X, y = three_blobs
    partly = np.where(np.arange(90) % 3, y, -1)
    model = quick(missing_label=-1, structure=0.5, max_epochs=5).fit(X, partly)
    assert model.score(X, np.where(np.arange(90) % 2, model.predict(X), -1)) == 1


def test_without_structure_rows_are_held_to_what_the_map_takes_them_for(few_labels):
    X, y, partly = few_labels
    hidden = partly < 0
    settings = {"validation_fraction": 0, "max_epochs": 40}
    alone = quick(**settings).fit(X[~hidden], y[~hidden])
    both = quick(missing_label=-1, structure=0, **settings).fit(X, partly)
    assert both.score(X[hidden], y[hidden]) > alone.score(X[hidden], y[hidden]) + 0.05
    assert len(both.exemplars_) == 20


def test_rows_are_guessed_in_pairs_by_nobody(three_blobs):
    X, y = three_blobs
    partly = y.copy()
    partly[::3] = -1
    settings = {"max_epochs": 3, "validation_fraction": 0, "scale": None, "exemplars": None}
    whole = quick(missing_label=-1, structure=0, **settings).fit(X, partly)
    some = quick(**settings).fit(X[partly >= 0], partly[partly >= 0])
    np.testing.assert_array_equal(whole.transform(X), some.transform(X))


def test_references_that_are_rows_are_those_with_a_label(three_blobs):
    X, y = three_blobs
    partly = y.copy()
    partly[::3] = -1
    model = quick(exemplars=None, missing_label=-1, structure=0.5, max_epochs=3).fit(X, partly)
    assert model.reference_embedding_.shape == (60, 2)


@pytest.mark.parametrize("marker", [np.nan, None, -1, "?"])
def test_markers_are_cloned_and_kept_in_files(marker, iris, tmp_path):
    X, y = iris
    labels = y.astype(object)
    labels[0] = marker
    model = clone(quick(max_epochs=2, missing_label=marker, structure=0)).fit(X, labels)
    model.save(tmp_path / "map.hope")
    kept = load(tmp_path / "map.hope").missing_label
    assert kept == (None if marker != marker else marker)


def test_labels_that_are_missing_in_a_table_are_kept_as_none(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b,y\n1,2,0\n2,3,\n4,5,1\n")
    table = read_table(tmp_path / "rows.csv", "y", missing_labels=True)
    assert table.y.tolist() == [0, None, 1]


# -- beside all labels ------------------------------------------------------------------------


def test_structure_shows_what_is_inside_a_class(digits):
    """Two kinds of rows that share a label lie apart if neighbors are to be kept."""
    X, _, y, _ = digits
    X, y = X[y < 4][:300], y[y < 4][:300]
    merged = y // 2
    kinds = {}
    for structure in (0.0, 0.5):
        model = quick(structure=structure, max_epochs=30).fit(X, merged)
        assert model.score(X, merged) > 0.95
        kinds[structure] = neighbor_error(model.transform(X), y)
    assert kinds[0.5] < 0.6 * kinds[0.0]


# -- the loss ---------------------------------------------------------------------------------


#: Shares and weights of two classes, and guesses of them that are believed by half.
SHARES, WEIGHTS = (0.3, 0.7), (1.2, 0.8)
LABELING = PseudoLabeling(0.5, *(torch.tensor(v, dtype=torch.float64) for v in (SHARES, WEIGHTS)))


def batch_of(labels, n_landmarks):
    generator = torch.Generator().manual_seed(0)
    exemplar_labels = torch.cat([torch.arange(4) % 2, torch.full((n_landmarks,), -1)])
    draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    return Batch(
        numbers=np.arange(len(labels)),
        table=draw(len(labels) + len(exemplar_labels), 4),
        labels=torch.tensor(labels),
        weights=None,
        exemplars=draw(len(exemplar_labels), 4).requires_grad_(),
        varies=torch.ones(4, dtype=torch.float64),
        exemplar_labels=exemplar_labels,
        exemplar_weights=None,
        affinities=draw(len(labels), n_landmarks).softmax(dim=1) if n_landmarks else None,
        pseudo_labeling=LABELING,
    )


def slopes_by_differences(loss, map_, batch, step=1e-6):
    """The gradient to the first factor weights and to the exemplars, by central differences."""
    found = []
    for weights in (map_.C.data, batch.exemplars.data):
        for place in range(4):
            values = []
            for sign in (1, -1):
                weights.view(-1)[place] += sign * step
                values.append(float(loss(map_, batch, None).value))
                weights.view(-1)[place] -= sign * step
            found.append((values[0] - values[1]) / (2 * step))
    return found


@pytest.mark.parametrize("structure", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("on", ["landmarks", "pairs"])
def test_the_gradient_of_both_shares_together_is_that_of_the_loss(on, structure):
    """Guesses are made once for a batch: small steps do not change them."""
    labels = [0, 1, 1, 0, 1, 0] if (on, structure) == ("pairs", 0) else [0, -1, 1, 0, -1, 1]
    batch = batch_of(labels, 5 if on == "landmarks" and structure else 0)
    batch = replace(batch, pseudo_labeling=LABELING if on == "landmarks" else None)
    map_ = SigmoidHighOrder(4, 2, 2, 5, 6).double()
    map_.start(batch.x, torch.Generator().manual_seed(1))
    if on == "landmarks":
        loss = HighOrderLoss(ExemplarLoss(spread=False, structure=structure), radius=0)
    else:
        loss = HighOrderLoss(PairLoss(conditional=False, structure=structure, perplexity=2))
    known = loss(map_, batch, None)
    to_factors = known.gradients[map_.C].reshape(-1)[:4].tolist()
    to_exemplars = known.gradients.get(batch.exemplars, torch.zeros(4)).reshape(-1)[:4].tolist()
    np.testing.assert_allclose(
        [*to_factors, *to_exemplars], slopes_by_differences(loss, map_, batch), atol=1e-7
    )


def test_guessed_rows_count_as_far_as_they_are_believed():
    """The loss is that of rows with guesses in the place of labels, each with its weight."""
    batch = batch_of([0, -1, 1, 0, -1, -1], 0)
    map_ = SigmoidHighOrder(4, 2, 2, 5, 6).double()
    map_.start(batch.x, torch.Generator().manual_seed(1))
    found = float(HighOrderLoss(ExemplarLoss(spread=False), radius=0)(map_, batch, None).value)
    points, exemplars = (map_(x).tolist() for x in (batch.x, batch.exemplars))
    of_exemplars = exemplars, batch.exemplar_labels.tolist()
    labels, weights = batch.labels.tolist(), [1.0] * 6
    unknown = [row for row in range(6) if labels[row] < 0]
    guesses = oracles.pseudo_labels([points[row] for row in unknown], *of_exemplars, SHARES)
    for row, (guess, margin) in zip(unknown, guesses, strict=True):
        labels[row], weights[row] = guess, 0.5 * margin * WEIGHTS[guess]
    wanted = oracles.collapse_onto_exemplars(points, labels, *of_exemplars, weights)
    assert found == pytest.approx(wanted, abs=1e-12)


def test_one_class_alone_is_guessed_for_certain():
    shares = class_probabilities(torch.ones(3, 2), torch.zeros(1, 2), torch.tensor([0]))
    guesses, margins = pseudo_labels(shares, torch.tensor([0.2]))
    assert guesses.tolist() == [0, 0, 0]
    assert margins.tolist() == [1, 1, 1]


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_large_classes_do_not_swallow_small_ones(class_weight):
    X, y = make_blobs([1800, 200], n_features=10, cluster_std=6, random_state=3)
    partly = np.where(np.random.RandomState(0).rand(2000) < 0.05, y, -1)
    settings = {"structure": 0, "max_epochs": 15, "class_weight": class_weight}
    model = quick(missing_label=-1, **settings).fit(X, partly)
    hidden = partly < 0
    assert balanced_accuracy_score(y[hidden], model.predict(X[hidden])) > 0.7


# -- what can go wrong ------------------------------------------------------------------------


def test_if_every_label_is_missing_one_is_told_to_leave_y_out(iris):
    X, y = iris
    with pytest.raises(InvalidInput, match=r"missing in all 150 rows: call fit\(X\) without y"):
        SHOPE(missing_label=-1).fit(X, np.full_like(y, -1))


def test_a_share_for_labels_needs_labels(iris):
    with pytest.raises(InvalidParameter, match=r"structure=0\.3 leaves a share .* there are none"):
        SHOPE(structure=0.3).fit(iris[0])


def test_without_a_marker_a_missing_label_is_an_error(iris):
    X, y = iris
    labels = y.astype(float)
    labels[3] = np.nan
    with pytest.raises(InvalidInput, match="NaN"):
        SHOPE().fit(X, labels)


@pytest.mark.parametrize(
    ("settings", "largest"),
    [
        ({"perplexity": 60, "n_landmarks": 50}, "among 50 landmarks: the largest that fits is 49"),
        ({"perplexity": 80, "exemplars": None, "batch_size": 40}, "the largest that fits is 38"),
    ],
    ids=["landmarks", "batch"],
)
def test_a_perplexity_too_large_names_the_largest_that_fits(settings, largest, iris):
    with pytest.raises(InvalidParameter, match=largest):
        SHOPE(**settings).fit(iris[0])


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"structure": -0.1}, "structure=-0.1: give a number from 0 to 1, or 'auto'"),
        ({"structure": np.array([0.1, 0.2])}, "from 0 to 1"),
        ({"structure": True}, "from 0 to 1"),
        ({"missing_label": [-1]}, "give the one number or text"),
        ({"missing_label": True}, "give the one number or text"),
        ({"class_weight": {0: 2}}, "but there are no labels"),
        ({"structure": 1.5}, "structure"),
        ({"perplexity": 1}, "perplexity=1: give a number above 1"),
        ({"n_landmarks": 1}, "n_landmarks=1"),
        ({"n_landmarks": 151}, "n_landmarks=151, but there are 150 rows"),
        ({"max_bytes": 9_000}, "max_bytes=9000 is for maps that classes alone decide"),
    ],
)
def test_settings_that_make_no_sense_are_named(settings, word, iris):
    with pytest.raises(InvalidParameter, match=word):
        SHOPE(**settings).fit(iris[0])


def test_rows_that_are_all_alike_have_no_neighbors_to_keep():
    with pytest.raises(InvalidInput, match="no column of X varies"):
        SHOPE().fit(np.ones((50, 4)))


def test_too_few_rows_for_any_neighbors_are_told(iris):
    with pytest.raises(InvalidParameter, match="give more rows"):
        SHOPE().fit(iris[0][:2])


def test_one_class_among_those_that_are_known_is_told_as_such(iris):
    X, y = iris
    with pytest.raises(InvalidInput, match="in all 50 rows that have a label, of 150"):
        SHOPE(missing_label=-1).fit(X, np.where(y == 0, 0, -1))


def test_a_small_model_learns_from_the_rows_that_have_a_label(three_blobs):
    X, y = three_blobs
    settings = {"max_bytes": 9_000, "max_epochs": 2, "random_state": 0}
    model = SHOPE(missing_label=-1, structure=0, **settings).fit(
        X, np.where(np.arange(90) % 3, y, -1)
    )
    assert len(model.exemplars_) == 6


def test_going_on_needs_labels_from_the_first_row_on(iris):
    X, y = iris
    with pytest.raises(InvalidInput, match="requires y"):
        SHOPE().partial_fit(X, None)
    with pytest.raises(InvalidInput, match="learned without labels"):
        quick(max_epochs=1).fit(X).partial_fit(X, y)


def test_going_on_knows_no_structure_and_no_marker(iris):
    X, y = iris
    for settings in ({"structure": 0.5}, {"missing_label": -1}):
        with pytest.raises(InvalidParameter, match="needs all of them"):
            SHOPE(**settings).partial_fit(X, y)


@pytest.mark.parametrize("method", [SHOPE, HOPE])
def test_many_labels_and_some_missing_ones_are_learned_from(method):
    """With enough labels per class, the usual share of structure is 0, which has no landmarks."""
    X, y = make_classification(600, 8, n_informative=5, random_state=0)
    known = np.random.RandomState(0).rand(600) < 0.4
    model = method(missing_label=-1, max_epochs=8, random_state=0).fit(X, np.where(known, y, -1))
    assert model.score(X[~known], y[~known]) > 0.6
