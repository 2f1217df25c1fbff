"""scikit-learn's own checks on every baseline, and what all of them promise alike."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import hopefold
from hopefold import baselines
from hopefold.baselines import (
    LDA,
    LMNN,
    LPP,
    MCML,
    NCA,
    SNC,
    Autoencoder,
    DeepMCML,
    DeepNCA,
    ParametricTSNE,
)
from hopefold.errors import InvalidParameter
from hopefold.specification import METHODS

DEEP = {"hidden_layer_sizes": (8,), "pretraining_epochs": 1, "max_epochs": 3}
SHORT = {"max_epochs": 5}

ALL = [
    LDA(),
    LPP(),
    LPP(graph="neighbors"),
    NCA(max_iter=5),
    NCA(solver="batches", **SHORT),
    MCML(**SHORT),
    LMNN(**SHORT),
    SNC(**SHORT),
    Autoencoder(**DEEP),
    ParametricTSNE(**DEEP),
    DeepNCA(**DEEP),
    DeepMCML(**DEEP),
]
NAMES = np.array(["ash", "birch", "cedar"])


def _name(model):
    variant = getattr(model, "solver", getattr(model, "graph", ""))
    return f"{type(model).__name__}-{variant}".rstrip("-")


@pytest.fixture(params=ALL, ids=_name)
def model(request):
    """Each baseline, not yet fitted, with a seed."""
    return clone(request.param).set_params(random_state=0)


def test_every_baseline_is_tried_here():
    assert {type(model).__name__ for model in ALL} == set(baselines.__all__)


@pytest.mark.filterwarnings("ignore")  # the checks make and expect warnings of their own
@parametrize_with_checks(ALL)
def test_scikit_learn_finds_nothing_to_complain_of(estimator, check):
    check(estimator)


# -- what is fitted ---------------------------------------------------------------------------


def test_classes_that_lie_apart_are_told_apart(model, three_blobs):
    assert model.fit(*three_blobs).score(*three_blobs) > 0.9


def test_a_row_gives_the_same_point_alone_or_in_any_batch(model, digits):
    X, _, y, _ = (part[:200] for part in digits)
    whole = model.fit(X, y).transform(X)
    assert whole.dtype == np.float32
    for size in (1, 7, 100):
        parts = [model.transform(X[i : i + size]) for i in range(0, 100, size)]
        np.testing.assert_array_equal(np.concatenate(parts)[:100], whole[:100])


def test_the_same_seed_gives_the_same_bits(model, three_blobs):
    X, y = three_blobs
    first, second = (clone(model).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.transform(X), second.transform(X))
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))


def test_a_csr_matrix_gives_the_points_of_its_dense_twin(model, three_blobs):
    X, y = three_blobs
    X = np.where(np.abs(X) > 2, X, 0)
    model.set_params(scale=None, n_exemplars=1)
    dense, csr = model.fit(X, y).transform(X), clone(model).fit(sparse.csr_array(X), y).transform(X)
    np.testing.assert_allclose(csr, dense, atol=1e-3 * np.abs(dense).max())


def test_labels_may_be_text(model, three_blobs):
    X, y = three_blobs
    text, numbers = clone(model).fit(X, NAMES[y]), model.fit(X, y)
    np.testing.assert_array_equal(text.predict(X), NAMES[numbers.predict(X)])


def test_two_classes_are_enough(model, three_blobs):
    X, y = (part[:60] for part in three_blobs)
    assert model.fit(X, y).transform(X).shape == (60, model.n_components)
    assert model.score(X, y) > 0.9


def test_the_validation_error_is_known(model, three_blobs):
    assert 0 <= model.fit(*three_blobs).validation_error_ <= 1


def test_rows_are_compared_with_k_means_centers_if_asked(model, three_blobs):
    X, y = three_blobs
    if isinstance(model, SNC):
        pytest.skip("prototypes are learned: see test_snc.py")
    model.set_params(exemplars="kmeans", n_neighbors=1).fit(X, y)
    assert model.exemplars_.shape == (6, 5)
    assert model.exemplar_labels_.tolist() == [0, 0, 1, 1, 2, 2]
    np.testing.assert_allclose(
        model.transform(model.exemplars_), model.exemplar_embedding_, atol=1e-4
    )
    assert model.score(X, y) > 0.85


def test_batches_of_two_rows_and_one_are_learned_from(model, three_blobs):
    X, y = (part[:89:2] for part in three_blobs)
    if not hasattr(model, "batch_size"):
        pytest.skip("there are no batches")
    model.set_params(batch_size=2, max_epochs=1, validation_fraction=0).fit(X, y)
    assert np.isfinite(model.transform(X)).all()


# -- files ------------------------------------------------------------------------------------


def test_every_baseline_can_be_saved():
    assert set(baselines.__all__) < set(METHODS)


def test_a_loaded_model_is_the_same_model(model, three_blobs, tmp_path):
    X, y = three_blobs
    model.fit(X, NAMES[y]).save(tmp_path / "model.hope")
    again = hopefold.load(tmp_path / "model.hope")
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.validation_error_ == model.validation_error_
    assert again.get_params() == model.get_params()


def test_sizes_of_layers_may_be_numbers_of_numpy(three_blobs, tmp_path):
    sizes = (np.int64(8), np.int64(4))
    model = baselines.DeepMCML(hidden_layer_sizes=sizes, pretraining_epochs=0, max_epochs=2)
    model.fit(*three_blobs).save(tmp_path / "model.hope")
    assert hopefold.load(tmp_path / "model.hope").hidden_layer_sizes == (8, 4)


def test_a_loaded_model_can_be_fitted_again(model, three_blobs, tmp_path):
    X, y = three_blobs
    model.fit(X, y).save(tmp_path / "model.hope")
    again = hopefold.load(tmp_path / "model.hope").fit(X, y)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_pickle_keeps_a_fitted_model(model, three_blobs):
    X, y = three_blobs
    again = pickle.loads(pickle.dumps(model.fit(X, y)))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


# -- parameters -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", baselines.__all__)
def test_the_docstring_lists_every_parameter(name):
    cls = getattr(baselines, name)
    assert "{parameters}" not in cls.__doc__
    for parameter in cls().get_params():
        assert cls.__doc__.count(f"\n    {parameter} : ") == 1, parameter


@pytest.mark.parametrize("name", baselines.__all__)
def test_the_docstring_tells_the_defaults(name):
    cls = getattr(baselines, name)
    for parameter, default in cls().get_params().items():
        line = cls.__doc__.split(f"\n    {parameter} : ")[1].splitlines()[0]
        told = line.rpartition("default=")[2].strip('"')
        assert told in (str(default), f"{default:g}" if isinstance(default, float) else None)


COMMON = [("n_components", 0), ("scale", "loud"), ("exemplars", "some"), ("n_neighbors", 0)]
TRAINED = [("learning_rate", 0.0), ("optimizer", "sgd"), ("max_epochs", 0), ("batch_size", 1)]
LAYERED = [
    ("hidden_layer_sizes", ()),
    ("hidden_layer_sizes", 100),
    ("hidden_layer_sizes", (8, 0)),
    ("hidden_layer_sizes", (8, 2.5)),
    ("hidden_layer_sizes", "8"),
    ("pretraining_epochs", -1),
    ("pretraining_epochs", 1.5),
    ("input_dropout", 1.0),
    ("dropout", -0.1),
]
OWN = {
    LDA: [],
    LPP: [("graph", "complete"), ("n_graph_neighbors", 0)],
    NCA: [("solver", "fast"), ("max_iter", 0), *TRAINED],
    MCML: TRAINED,
    LMNN: [("n_targets", 0), ("pull", 1.0), ("pull", -0.5), *TRAINED],
    SNC: [("exemplars", "kmeans"), *TRAINED],
    Autoencoder: [*LAYERED, *TRAINED],
    ParametricTSNE: [("perplexity", 1), ("perplexity", "30"), *LAYERED, *TRAINED],
    DeepNCA: [*LAYERED, *TRAINED],
    DeepMCML: [*LAYERED, *TRAINED],
}


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [(cls, *bad) for cls, own in OWN.items() for bad in [*COMMON, *own]],
    ids=str,
)
def test_a_bad_parameter_is_refused_by_its_name(cls, name, value, three_blobs):
    with pytest.raises(InvalidParameter, match=f"^{name}="):
        cls(**{name: value}).fit(*three_blobs)
