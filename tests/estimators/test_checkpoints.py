"""Fits with a checkpoint: the same model, whatever happens on the way."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from hopefold import HOPE, SHOPE, load
from hopefold.baselines import NCA, DeepMCML
from hopefold.core.masks import PLACES, MaskSampler
from hopefold.errors import BrokenFile, Diverged, InvalidParameter, NoSuchFolder
from hopefold.training.loop import Descent


class PowerCut(Exception):
    """What happens in the middle of a fit."""


@pytest.fixture
def power_cut(monkeypatch):
    """Makes fits fail when the n-th epoch from now is over, and its state saved or not."""
    whole = Descent._epoch

    def after(n_epochs):
        left = iter(range(n_epochs))

        def epoch(self, checkpoint):
            if next(left, None) is None:
                raise PowerCut
            return whole(self, checkpoint)

        monkeypatch.setattr(Descent, "_epoch", epoch)

    yield after
    monkeypatch.undo()


def bytes_of(model, folder):
    model.save(folder / "model.hope")
    return (folder / "model.hope").read_bytes()


METHODS = {
    "shope": SHOPE(max_epochs=4, random_state=0),
    "hope": HOPE(max_epochs=4, random_state=0, class_weight="balanced"),
    "pairs": SHOPE(max_epochs=6, random_state=0, exemplars="kmeans", refit=False),
    "cg": SHOPE(max_epochs=4, random_state=0, optimizer="cg"),
    "budget": SHOPE(max_epochs=4, random_state=0, max_bytes=9_000),
    "layers": SHOPE(max_epochs=4, random_state=0, n_units=(8, 6), n_factors=7),
    "trials": SHOPE(max_epochs=8, random_state=0, missing_label=2),
    "nca": NCA(max_epochs=4, random_state=0, solver="batches"),
    "deep": DeepMCML(max_epochs=2, pretraining_epochs=2, hidden_layer_sizes=(8, 8), random_state=0),
    "images": SHOPE(
        max_epochs=4, random_state=0, augment="elastic", image_shape=(1, 5), scale="range"
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_fit_that_is_broken_off_ends_with_the_same_file(three_blobs, tmp_path, power_cut, name):
    X, y = three_blobs
    wanted = bytes_of(METHODS[name].fit(X, y), tmp_path)
    model = METHODS[name].set_params(checkpoint=tmp_path / "fit.ckpt", checkpoint_minutes=0)
    try:
        for epochs in (1, 2, 1):
            power_cut(epochs)
            with pytest.raises(PowerCut):
                model.fit(X, y)
        power_cut(1_000)
        assert bytes_of(model.fit(X, y), tmp_path) == wanted
    finally:
        model.set_params(checkpoint=None)


def test_a_fit_without_a_seed_goes_on_with_the_one_it_had(three_blobs, tmp_path, power_cut):
    model = SHOPE(max_epochs=5, checkpoint=tmp_path / "fit.ckpt")
    power_cut(4)
    with pytest.raises(PowerCut):
        model.fit(*three_blobs)
    kept = Path(shutil.copy(tmp_path / "fit.ckpt", tmp_path / "copy.ckpt"))
    power_cut(1_000)
    model.fit(*three_blobs)
    again = SHOPE(max_epochs=5, checkpoint=kept).fit(*three_blobs)
    np.testing.assert_array_equal(model.exemplars_, again.exemplars_)
    assert model.history_ == again.history_


def test_a_fit_without_a_seed_that_is_over_is_done_anew(three_blobs, tmp_path):
    model = SHOPE(max_epochs=2, checkpoint=tmp_path / "fit.ckpt")
    first, second = (model.fit(*three_blobs).exemplars_ for _ in range(2))
    assert (first != second).any()


def test_two_fits_without_a_seed_differ_where_there_is_no_checkpoint_yet(three_blobs, tmp_path):
    models = [SHOPE(max_epochs=2, checkpoint=tmp_path / name).fit(*three_blobs) for name in "ab"]
    assert (models[0].exemplars_ != models[1].exemplars_).any()


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (X + 1e-3 * (np.arange(len(X)) == 0)[:, None], y),
        lambda X, y: (X, np.roll(y, 1)),
        lambda X, y: (X[:-1], y[:-1]),
    ],
    ids=["a value", "labels", "a row less"],
)
def test_other_data_are_not_taken_for_the_same(three_blobs, tmp_path, power_cut, change):
    model = SHOPE(max_epochs=3, random_state=0, checkpoint=tmp_path / "fit.ckpt")
    power_cut(1)
    with pytest.raises(PowerCut):
        model.fit(*three_blobs)
    with pytest.raises(InvalidParameter, match="with other data or settings"):
        model.fit(*change(*three_blobs))


def test_other_settings_are_not_taken_for_the_same(three_blobs, tmp_path, power_cut):
    power_cut(1)
    with pytest.raises(PowerCut):
        SHOPE(random_state=0, checkpoint=tmp_path / "fit.ckpt").fit(*three_blobs)
    with pytest.raises(InvalidParameter, match="with other data or settings"):
        SHOPE(random_state=1, checkpoint=tmp_path / "fit.ckpt").fit(*three_blobs)


def test_the_model_file_does_not_tell_where_the_checkpoint_was(three_blobs, tmp_path):
    model = SHOPE(max_epochs=1, random_state=0, checkpoint=tmp_path / "fit.ckpt")
    assert b"ckpt" not in bytes_of(model.fit(*three_blobs), tmp_path)


def test_a_checkpoint_is_no_model(three_blobs, tmp_path):
    SHOPE(max_epochs=1, checkpoint=tmp_path / "fit.ckpt").fit(*three_blobs)
    with pytest.raises(BrokenFile, match="not a model but the checkpoint"):
        load(tmp_path / "fit.ckpt")


def test_a_model_is_no_checkpoint(three_blobs, tmp_path):
    SHOPE(max_epochs=1).fit(*three_blobs).save(tmp_path / "model.hope")
    with pytest.raises(InvalidParameter, match="is a model, not a checkpoint"):
        SHOPE(checkpoint=tmp_path / "model.hope").fit(*three_blobs)


@pytest.mark.parametrize(
    ("checkpoint", "error", "words"),
    [
        ("nowhere/fit.ckpt", NoSuchFolder, "make the folder"),
        (".", InvalidParameter, "is a folder"),
        (7, InvalidParameter, "give the path of a file"),
        ("", InvalidParameter, "give the path of a file"),
    ],
)
def test_a_checkpoint_that_cannot_be_is_told_before_the_fit(three_blobs, checkpoint, error, words):
    with pytest.raises(error, match=words):
        SHOPE(checkpoint=checkpoint).fit(*three_blobs)


def test_a_longer_strip_of_chances_begins_like_a_shorter_one():
    short, long = (MaskSampler(3)._draw(PLACES + n, 0.3) for n in (1_000, 77_000))
    assert (long[: len(short)] == short).all()


def test_rows_that_make_a_map_diverge_are_not_learned_from(three_blobs):
    X, y = three_blobs
    model = HOPE(order=5, random_state=0).partial_fit(X, y)
    before = model.transform(X)
    with pytest.raises(Diverged, match="not learned from"):
        model.partial_fit(np.where(np.arange(90)[:, None] == 3, 1e9, X), y)
    np.testing.assert_array_equal(model.transform(X), before)
    model.partial_fit(X, y)
    assert np.isfinite(model.transform(X)).all()


def test_a_model_file_cannot_say_where_the_next_fit_writes(three_blobs, tmp_path):
    model = SHOPE(max_epochs=1, random_state=0).fit(*three_blobs)
    model.settings_ = model.settings_ | {"checkpoint": str(tmp_path / "elsewhere")}
    model.save(tmp_path / "model.hope")
    assert b"elsewhere" in (tmp_path / "model.hope").read_bytes()
    assert load(tmp_path / "model.hope").checkpoint is None
