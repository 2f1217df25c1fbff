"""S-HOPE with several layers: all that one layer does."""

from __future__ import annotations

from functools import partialmethod

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits

from hopefold import HOPE, SHOPE, load
from hopefold.core.maps import SigmoidHighOrder, Stacked
from hopefold.errors import BrokenFile, InvalidInput, InvalidParameter
from hopefold.evaluation import interaction_stability
from hopefold.fitting import alternatives, memory
from hopefold.fitting.trainer import Trainer
from hopefold.persistence import store

SMALL = {"n_units": (12, 8), "n_factors": (10, 6), "order": (2, 3), "random_state": 0}


@pytest.fixture(scope="module")
def fitted(three_blobs):
    return SHOPE(**SMALL, max_epochs=10).fit(*three_blobs)


@pytest.fixture(scope="module")
def images():
    X, y = load_digits(return_X_y=True)
    return X.astype(np.float32), y


def test_a_stack_has_the_sizes_that_were_asked_for(fitted):
    assert isinstance(fitted.map_, Stacked)
    shapes = {name: tuple(weights.shape) for name, weights in fitted.map_.named_parameters()}
    assert shapes == {
        "below.0.C": (10, 5),
        "below.0.c": (10,),
        "below.0.W": (12, 10),
        "below.0.b": (12,),
        "top.C": (6, 12),
        "top.c": (6,),
        "top.P": (2, 8),
        "top.W": (8, 6),
        "top.b": (8,),
    }
    assert [layer.order for layer in fitted.map_.layers] == [2, 3]


def test_one_number_is_for_all_layers(three_blobs):
    model = SHOPE(n_units=(5, 4, 3), n_factors=6, order=2, max_epochs=1).fit(*three_blobs)
    assert [layer.n_factors for layer in model.map_.layers] == [6, 6, 6]
    assert [layer.order for layer in model.map_.layers] == [2, 2, 2]


def test_a_tuple_of_one_is_one_layer(three_blobs):
    quick = {"max_epochs": 3, "random_state": 0}
    one = SHOPE(n_units=9, n_factors=7, order=2, **quick).fit(*three_blobs)
    also = SHOPE(n_units=(9,), n_factors=(7,), order=(2,), **quick).fit(*three_blobs)
    assert type(also.map_) is SigmoidHighOrder
    for ours, theirs in zip(one.map_.parameters(), also.map_.parameters(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("exemplars", ["joint", None])
def test_a_stack_learns_with_perturbations_dropout_and_spare_dimensions(images, exemplars):
    X, y = images
    settings = {"adversarial": 0.1, "dropout": 0.1, "spare_components": 2, "max_epochs": 15}
    model = SHOPE(n_units=(40, 30), n_factors=30, exemplars=exemplars, random_state=0, **settings)
    assert model.fit(X[:700], y[:700]).score(X[1_000:], y[1_000:]) > 0.8


@pytest.mark.parametrize("max_bytes", [None, 12_000])
def test_a_loaded_stack_is_the_same_model(three_blobs, tmp_path, max_bytes):
    X, y = three_blobs
    free = {"n_factors": "auto"} if max_bytes else {}
    model = SHOPE(**SMALL | free, max_epochs=3, max_bytes=max_bytes).fit(X, y)
    model.save(tmp_path / "stack.hope")
    again = load(tmp_path / "stack.hope")
    assert again.get_params() == model.get_params()
    assert again.precision_ == ("int8" if max_bytes else "float32")
    assert max_bytes is None or (tmp_path / "stack.hope").stat().st_size <= max_bytes
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_a_budget_is_filled_by_the_free_factors_of_all_layers(three_blobs):
    sizes = [
        [layer.n_factors for layer in model.map_.layers]
        for model in (
            SHOPE(n_units=(9, 8), max_bytes=n_bytes, max_epochs=1, random_state=0).fit(*three_blobs)
            for n_bytes in (8_000, 12_000)
        )
    ]
    assert all(first == second for first, second in sizes)
    assert 1 < sizes[0][0] < sizes[1][0]


@pytest.mark.parametrize(
    "change",
    [
        lambda m, t: m["settings"].update(n_units=[12, 8, 8]),
        lambda m, t: m["settings"].update(n_units=[12]),
        lambda m, t: m["settings"].update(n_units=20),
        lambda m, t: m["settings"].update(n_units=[12, 10**12]),
        lambda m, t: m["settings"].update(n_units=[2] * 10**5),
        lambda m, t: m["settings"].update(n_units=[12, -8]),
        lambda m, t: m["settings"].update(n_units=[[12], [8]]),
        lambda m, t: m["settings"].update(n_units=[]),
        lambda m, t: m["settings"].update(n_factors=[10]),
        lambda m, t: m["settings"].update(n_factors=[10, 7]),
        lambda m, t: m["settings"].update(order=[2, 99]),
        lambda m, t: m["settings"].update(order=[2, 3, 4]),
        lambda m, t: t.pop("map.below.0.C"),
        lambda m, t: t.update({"map.below.1.C": t["map.below.0.C"]}),
        lambda m, t: t.update({"map.below.0.W": t["map.below.0.W"][:-1]}),
        lambda m, t: t.update({"map.top.C": t["map.top.C"] * np.nan}),
    ],
)
def test_a_stack_that_makes_no_sense_is_refused(fitted, tmp_path, change):
    path = tmp_path / "m.hope"
    fitted.save(path)
    manifest, tensors = store.read(path)
    change(manifest, tensors)
    store.write(path, manifest, tensors)
    with pytest.raises(BrokenFile):
        load(path)


def test_a_stack_is_learned_piece_by_piece(images):
    X, y = images
    model = SHOPE(n_units=(40, 30), n_factors=30, random_state=0)
    for _ in range(6):
        for piece in range(4):
            some = slice(250 * piece, 250 * piece + 250)
            model.partial_fit(X[some], y[some])
    assert model.history_[-1]["loss"] < 0.5 * model.history_[0]["loss"]
    assert model.score(X[1_000:], y[1_000:]) > 0.8


def test_rows_of_any_precision_and_number_get_the_same_points(images):
    """A scale that shifts nothing becomes part of the first layer for float32 rows."""
    X, y = images
    model = SHOPE(**SMALL, scale="range", max_epochs=2).fit(X[:300], y[:300])
    assert not model.scale_.shifts
    points = model.transform(X[:50])
    np.testing.assert_allclose(points, model.transform(X[:50].astype(float)), atol=1e-4)
    np.testing.assert_array_equal(points[:1], model.transform(X[:1]))


def sum_of(why):
    return why.constant + why.values.sum(axis=0) + why.others + why.remainder


def test_a_stack_is_explained_as_products_of_the_first_layer(fitted, three_blobs):
    X, y = three_blobs
    for found in (fitted.interactions(), fitted.interactions(X=X, y=y)):
        assert {len(term) for term in found.terms} == {1, 2}
    with pytest.raises(InvalidParameter, match="order=3, but the map multiplies 2 features"):
        fitted.interactions(order=3)
    assert fitted.feature_importances_.sum() == pytest.approx(1)
    points = fitted.transform(X)
    for row in range(3):
        why = fitted.explain(X[row], top=5)
        np.testing.assert_allclose(sum_of(why), points[row], rtol=1e-4, atol=1e-4)
        assert np.abs(why.remainder).max() < 1e-9 * np.abs(points).max()


def test_contributions_to_a_stack_are_the_values_of_explanations(fitted, three_blobs):
    X, _ = three_blobs
    terms = fitted.interactions(1_000).terms
    assert len(terms) == 5 + 15
    moved = fitted.contributions(X, terms).sum(axis=1)
    for row in range(5):
        why = fitted.explain(X[row], top=1_000)
        np.testing.assert_allclose(moved[row], why.values.sum(axis=0), atol=1e-9)


@pytest.mark.parametrize(
    "how", [{"exemplars": None}, {"scale": "range"}, {"n_components": 3}], ids=str
)
def test_stacks_of_any_kind_are_explained(three_blobs, how):
    X, y = three_blobs
    model = SHOPE(**SMALL | how, max_epochs=2).fit(X, y)
    assert len(model.interactions(3, X, y)) == len(model.interactions(3)) == 3
    why = model.explain(X[0], slope="local")
    np.testing.assert_allclose(sum_of(why), model.transform(X[:1])[0], rtol=1e-4, atol=1e-4)


def test_sparse_rows_and_streams_of_a_stack_are_explained(sparse_rows):
    X = sparse_rows(60, 8, 0.5)
    y = np.arange(60) % 2
    model = SHOPE(**SMALL, max_epochs=2).fit(X, y)
    found = model.interactions(3, X, y)
    dense = model.interactions(3, X.toarray(), y)
    assert found.names == dense.names
    np.testing.assert_allclose(found.coefficients, dense.coefficients)


@pytest.fixture(scope="module")
def planted():
    """3,000 rows of ten columns, whose class is the sign of x1 · x2, and a stack of them."""
    X = np.random.RandomState(0).normal(size=(3_000, 10))
    y = (X[:, 1] * X[:, 2] > 0).astype(int)
    model = SHOPE(random_state=0).fit(X[:2_000], y[:2_000])
    assert len(model.map_.layers) == 2
    assert model.score(X[2_000:], y[2_000:]) > 0.95
    return model, X[2_000:], y[2_000:]


def test_a_stack_has_the_planted_product_first_on_rows(planted):
    model, X, y = planted
    found = model.interactions(5, X, y)
    assert found.names[0] == "x1 × x2"
    assert found.deviations[0] > 3 * found.deviations[1]


def test_importances_of_a_stack_are_largest_for_the_planted_columns(planted):
    model, *_ = planted
    importances = model.feature_importances_
    assert set(np.argsort(-importances)[:2]) == {1, 2}
    assert importances[[1, 2]].sum() > 0.5


def test_rows_of_a_stack_that_do_not_vary_are_refused(fitted, three_blobs):
    with pytest.raises(InvalidInput, match="do not vary"):
        fitted.interactions(3, three_blobs[0][:1])


def test_stability_of_a_stack(three_blobs):
    model = SHOPE(**SMALL, max_epochs=1)
    found = interaction_stability(model, *three_blobs, top=20)
    assert found.overlap == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_units": ()}, r"n_units=\(\) is empty"),
        ({"n_units": (4, 0)}, "n_units of a layer=0: give a whole number of at least 1"),
        ({"n_units": (4, "auto")}, "n_units of a layer='auto'"),
        ({"n_units": (4, 4), "order": (2, 21)}, "order of a layer=21.* from 1 to 20"),
        (
            {"n_units": (4, 4), "order": (2, 2, 2)},
            r"order=\(2, 2, 2\) is for 3 layers, but n_units=\(4, 4\) for 2: give order as one",
        ),
        ({"n_units": 4, "n_factors": (4, 4)}, "is for 2 layers, but n_units=4 for 1"),
        ({"n_units": (4, 4), "n_factors": (4,)}, "is for 1 layer, but"),
    ],
)
def test_sizes_that_do_not_go_together_are_told(three_blobs, settings, words):
    with pytest.raises(InvalidParameter, match=words):
        SHOPE(**settings).fit(*three_blobs)


@pytest.mark.parametrize("name", ["order", "n_factors"])
def test_hope_has_one_layer(three_blobs, name):
    with pytest.raises(InvalidParameter, match=rf"{name}=\(2, 2\): give a whole number"):
        HOPE(**{name: (2, 2)}).fit(*three_blobs)


def test_a_stack_that_cannot_fit_tells_the_sizes_of_its_layers(three_blobs, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 10**4)
    with pytest.raises(MemoryError, match=r"n_factors \(now \(10, 6\)\) or n_units \(now \(12, 8"):
        SHOPE(**SMALL).fit(*three_blobs)


# -- stacked by default --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def twelve_classes():
    y = np.arange(240) % 12
    random = np.random.RandomState(0)
    return 3 * random.normal(size=(12, 4))[y] + random.normal(size=(240, 4)), y


@pytest.mark.parametrize(
    ("settings", "n_layers"),
    [({}, 2), ({"n_units": 30}, 1), ({"order": (2,)}, 1), ({"max_bytes": 9_000}, 1)],
    ids=str,
)
def test_labeled_rows_have_two_layers_unless_the_user_says_so(twelve_classes, settings, n_layers):
    model = SHOPE(max_epochs=1, random_state=0, **settings).fit(*twelve_classes)
    assert len(model.map_.layers) == n_layers


def test_one_layer_is_taken_where_it_is_much_better():
    """Two layers do not learn the sign of a product of many noisy columns from few steps."""
    random = np.random.RandomState(0)
    X = random.normal(size=(1_500, 30))
    y = (X[:, :2].prod(axis=1) > 0).astype(int)
    model = SHOPE(random_state=0).fit(X, y)
    assert model.plan_.n_units in ((100, 100), 200)
    assert model.validation_error_ < 0.2


def test_trials_keep_to_their_budget_of_row_visits(monkeypatch, twelve_classes):
    X, y = twelve_classes
    y = np.where(np.arange(len(y)) % 2, y, -1)
    epochs, run = [], Trainer.run

    def spy(self, plan, *others, **options):
        epochs.append(plan.max_epochs)
        return run(self, plan, *others, **options)

    monkeypatch.setattr(Trainer, "run", spy)
    model = SHOPE(max_epochs=20, n_factors=10, random_state=0, refit=False, missing_label=-1)
    model.fit(X, y)
    assert epochs == [5, 5, 5, 20]
    epochs.clear()
    monkeypatch.setattr(alternatives, "TRIAL_VISITS", 3 * 216)
    model.fit(X, y)
    assert epochs == [3, 3, 3, 20]


@pytest.mark.parametrize("n_units", [600, (400, 300)])
def test_layers_that_a_fit_has_chosen_come_back_from_a_file(
    monkeypatch, twelve_classes, tmp_path, n_units
):
    chosen = {"n_units": (n_units, "chosen")}
    monkeypatch.setattr(Trainer, "plan", partialmethod(Trainer.plan, **chosen))
    X, y = twelve_classes
    model = SHOPE(max_epochs=1, n_factors=10, random_state=0).fit(X, y)
    assert model.n_units == "auto"
    assert model.plan_.n_units == n_units
    model.save(tmp_path / "map.hope")
    again = load(tmp_path / "map.hope")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    clone(again).fit(X, y)
