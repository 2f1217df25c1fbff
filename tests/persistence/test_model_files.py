"""A model file gives the same model back, and nothing else gets in."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from hopefold import HOPE, SHOPE, load
from hopefold.errors import BrokenFile, InvalidType
from hopefold.persistence import soundness, store

QUICK = {"n_factors": 20, "max_epochs": 10, "random_state": 0}


@pytest.fixture
def fitted(three_blobs):
    return SHOPE(**QUICK, n_units=600).fit(*three_blobs)


@pytest.mark.parametrize("cls", [HOPE, SHOPE])
@pytest.mark.parametrize("exemplars", ["joint", "kmeans", None])
def test_a_loaded_model_is_the_same_model(cls, exemplars, three_blobs, tmp_path):
    X, y = three_blobs
    names = np.array(["ash", "birch", "cedar"])
    model = cls(**QUICK, exemplars=exemplars).fit(X, names[y])
    model.save(tmp_path / "model.hope")
    again = load(tmp_path / "model.hope")
    assert type(again) is cls
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.kneighbors(X, 2), model.kneighbors(X, 2))
    assert again.history_ == model.history_
    assert again.n_iter_ == model.n_iter_
    assert again.validation_error_ == model.validation_error_
    if exemplars is None:
        assert again.exemplars_ is None
    else:
        np.testing.assert_array_equal(again.exemplars_, model.exemplars_)
        np.testing.assert_array_equal(again.exemplar_labels_, model.exemplar_labels_)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "ü", "</script>"]),
        np.array(["a", "b", "c"], dtype=object),
        np.array([-1, 5, 2**60]),
        np.array([0.0, 1.0, 2.0]),
        np.array([1, 2, 3], dtype=np.uint8),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_every_kind_survive(labels, three_blobs, tmp_path):
    X, y = three_blobs
    SHOPE(**QUICK).fit(X, labels[y]).save(tmp_path / "m.hope")
    predicted = load(tmp_path / "m.hope").predict(X)
    assert predicted.dtype == labels.dtype
    assert set(predicted) <= set(labels)


def test_booleans_survive(three_blobs, tmp_path):
    X, y = three_blobs
    SHOPE(**QUICK).fit(X, y == 1).save(tmp_path / "m.hope")
    assert load(tmp_path / "m.hope").classes_.tolist() == [False, True]


def test_settings_of_every_kind_survive(three_blobs, tmp_path):
    X, y = three_blobs
    model = SHOPE(
        n_factors=np.int64(8),
        max_epochs=3,
        class_weight={0: 1, 1: 2.5, 2: 1},
        random_state=np.random.RandomState(3),
        learning_rate=np.float32(0.01),
        scale=None,
    ).fit(X, y)
    model.save(tmp_path / "m.hope")
    again = load(tmp_path / "m.hope")
    assert again.class_weight == {0: 1, 1: 2.5, 2: 1}
    assert again.random_state is None
    assert again.n_factors == 8
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    again.fit(X, y)  # and can be fitted again


def test_feature_names_survive(three_blobs, tmp_path):
    X, y = three_blobs
    frame = pd.DataFrame(X, columns=["a", "b", "c", "größe", "=cmd()"])
    SHOPE(**QUICK).fit(frame, y).save(tmp_path / "m.hope")
    again = load(tmp_path / "m.hope")
    assert list(again.feature_names_in_) == list(frame.columns)
    again.transform(frame)
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize(
    "change", [{"order": 3}, {"n_factors": 50}, {"exemplars": None}, {"n_components": 3}]
)
def test_settings_changed_after_the_fit_do_not_change_the_file(
    fitted, three_blobs, tmp_path, change
):
    X, _ = three_blobs
    before = fitted.predict_proba(X)
    fitted.set_params(**change, n_neighbors=1).save(tmp_path / "m.hope")
    again = load(tmp_path / "m.hope")
    assert again.n_neighbors == 1
    np.testing.assert_array_equal(again.set_params(n_neighbors="auto").predict_proba(X), before)


def test_the_same_fit_writes_the_same_bytes(three_blobs, tmp_path):
    for name in ("one", "two"):
        SHOPE(**QUICK).fit(*three_blobs).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_file_loads_in_a_fresh_process(fitted, three_blobs, tmp_path):
    X, _ = three_blobs
    fitted.save(tmp_path / "m.hope")
    np.save(tmp_path / "X.npy", X)
    code = (
        "import hopefold, numpy, torch; torch.set_num_threads(1);"  # as here: two round otherwise
        "m = hopefold.load('m.hope');"
        "numpy.save('out.npy', m.transform(numpy.load('X.npy')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), fitted.transform(X))


def test_a_joblib_file_is_refused(fitted, tmp_path):
    joblib.dump(fitted, tmp_path / "m.joblib")
    with pytest.raises(BrokenFile):
        load(tmp_path / "m.joblib")


def _resealed(path, change):
    """A file whose checksum is right but whose content was made by somebody else."""
    manifest, tensors = store.read(path)
    change(manifest, tensors)
    store.write(path, manifest, tensors)


@pytest.mark.parametrize(
    "change",
    [
        lambda m, t: m.update(kind="os.system"),
        lambda m, t: m["settings"].update(order="2; import os"),
        lambda m, t: m["settings"].update(n_factors=10**12),
        lambda m, t: m["settings"].update(n_factors=21),
        lambda m, t: m["settings"].update(hidden=1),
        lambda m, t: m.pop("classes"),
        lambda m, t: m["classes"].update(dtype="O8,f4"),
        lambda m, t: m["classes"].update(values=[1, 2, 3, 4]),
        lambda m, t: m["classes"].update(values=[3, 2, 1]),
        lambda m, t: m.update(n_features=6),
        lambda m, t: m.update(n_features=-1),
        lambda m, t: m.update(feature_names=["a"]),
        lambda m, t: t.pop("map.C"),
        lambda m, t: t.update({"map.C": t["map.C"][:, :4]}),
        lambda m, t: t.update({"map.C": t["map.C"] * np.nan}),
        lambda m, t: t.update({"map.evil": t["map.C"]}),
        lambda m, t: t.update({"references.labels": t["references.labels"] + 9}),
        lambda m, t: t.update({"references.labels": t["references.labels"] - 9}),
        lambda m, t: t.update({"references.labels": t["references.labels"][:-1]}),
        lambda m, t: t.update({"references.embedding": t["references.embedding"][:, :1]}),
        lambda m, t: t.update({"exemplars": t["exemplars"][:1]}),
        lambda m, t: t.update({"scale.gain": t["scale.gain"][:2]}),
        lambda m, t: t.update({"class_weight": t["class_weight"][:1]}),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(fitted, tmp_path, change):
    path = tmp_path / "m.hope"
    fitted.save(path)
    _resealed(path, change)
    with pytest.raises(BrokenFile):
        load(path)


def test_labels_that_no_file_can_hold_are_refused_before_writing(three_blobs, tmp_path):
    X, y = three_blobs
    model = SHOPE(**QUICK).fit(X, y)
    model.classes_ = np.array([(1,), (2,), (3,), None], dtype=object)[:3]
    model.reference_labels_ = model.classes_[[0, 1, 2]]
    with pytest.raises(InvalidType, match="tuple"):
        model.save(tmp_path / "m.hope")
    assert not (tmp_path / "m.hope").exists()


def test_the_header_is_plain_json(fitted, tmp_path):
    """Anyone can read what is in a file without hopefold."""
    path = tmp_path / "m.hope"
    fitted.save(path)
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    manifest = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["hopefold"])
    assert manifest["kind"] == "SHOPE"
    assert manifest["format"] == 1
    assert manifest["settings"]["n_factors"] == 20


@pytest.mark.parametrize(
    "change",
    [
        lambda m, t: m.update(precision="float32"),
        lambda m, t: t.pop("map.C.factor"),
        lambda m, t: t.update({"map.C.factor": t["map.C.factor"][:-1]}),
        lambda m, t: t.update({"map.W.factor": t["map.W.factor"] * np.inf}),
        lambda m, t: t.update({"scale.codes": t["scale.codes"] + 9}),
        lambda m, t: t.update({"scale.codes": t["scale.codes"][:-1]}),
        lambda m, t: t.update({"scale.kinds": t["scale.kinds"][:, :1]}),
        lambda m, t: t.update({"exemplars": t["exemplars"][:, :-1]}),
    ],
)
def test_a_small_file_that_makes_no_sense_is_refused(tmp_path, digits, change):
    X, _, y, _ = digits
    path = tmp_path / "m.hope"
    SHOPE(max_bytes=10_000, max_epochs=1, random_state=0).fit(X[:200], y[:200]).save(path)
    _resealed(path, change)
    with pytest.raises(BrokenFile):
        load(path)


GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.hope"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_format_that_was_ever_written_is_read(path):
    """Files of tests/golden/ stay for ever: a model is the same model in every later version."""
    model = load(path)
    X = load_iris(as_frame=True).data
    X = X if hasattr(model, "feature_names_in_") else X.to_numpy()
    expected = np.load(path.with_suffix(".npz"))
    np.testing.assert_allclose(model.transform(X), expected["points"], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(model.predict(X).astype(str), expected["labels"])
    assert (model.temperature_, model.calibration_error_) == (1, None)


@pytest.mark.parametrize("max_bytes", [None, 10_000])
def test_a_file_keeps_the_temperature(tmp_path, digits, max_bytes):
    X, _, y, _ = digits
    y = np.where(np.arange(len(y)) % 5, y, y[::-1])
    model = SHOPE(max_bytes=max_bytes, max_epochs=1, random_state=0).fit(X[:300], y[:300])
    assert model.temperature_ != 1
    assert model.calibration_error_ is not None
    model.save(tmp_path / "m.hope")
    again = load(tmp_path / "m.hope")
    assert again.temperature_ == model.temperature_
    assert again.calibration_error_ == model.calibration_error_
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def _of_an_earlier_version(manifest, tensors):
    del manifest["temperature"], manifest["calibration_error"]


def test_a_file_without_a_temperature_has_one_of_1(fitted, tmp_path):
    fitted.save(tmp_path / "old.hope")
    _resealed(tmp_path / "old.hope", _of_an_earlier_version)
    model = load(tmp_path / "old.hope")
    assert (model.temperature_, model.calibration_error_) == (1, None)


@pytest.mark.parametrize("bad", [0, -1, 1e-320, 1e308, 10**400, None, True, "1", [1], {}])
def test_a_bad_temperature_is_refused(fitted, tmp_path, bad):
    fitted.save(tmp_path / "bad.hope")
    _resealed(tmp_path / "bad.hope", lambda manifest, _: manifest.update(temperature=bad))
    with pytest.raises(BrokenFile, match="temperature"):
        load(tmp_path / "bad.hope")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["temperature", "calibration_error"])
def test_a_temperature_that_is_not_finite_is_refused(fitted, tmp_path, name, bad):
    """The container refuses it before, since it is no JSON."""
    fitted.save(tmp_path / "m.hope")
    manifest, tensors = store.read(tmp_path / "m.hope")
    soundness.check_manifest(manifest, len(tensors))
    with pytest.raises(ValueError, match=r"temperature|errors"):
        soundness.check_manifest(manifest | {name: bad}, len(tensors))


def _rename_back(manifest, tensors):
    """As earlier versions named the parameter."""
    manifest["settings"]["nudge"] = manifest["settings"].pop("adversarial")


def test_a_file_with_the_old_name_of_a_parameter_is_read(three_blobs, tmp_path):
    path = tmp_path / "old.hope"
    SHOPE(**QUICK, adversarial=0.05).fit(*three_blobs).save(path)
    before = load(path).transform(three_blobs[0])
    _resealed(path, _rename_back)
    model = load(path)
    assert model.adversarial == 0.05
    assert "nudge" not in model.settings_
    np.testing.assert_array_equal(model.transform(three_blobs[0]), before)


def test_a_file_with_the_old_name_and_the_new_one_is_refused(fitted, tmp_path):
    fitted.save(tmp_path / "both.hope")
    _resealed(tmp_path / "both.hope", lambda m, t: m["settings"].update(nudge=0.1))
    with pytest.raises(BrokenFile):
        load(tmp_path / "both.hope")


def test_the_golden_files_are_there():
    names = {"format-1-shope", "format-1-hope-pairs", "format-1-int8"}
    assert {path.stem for path in GOLDEN} >= names
