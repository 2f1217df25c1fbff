"""Untrusted model files: refused by a hopefold error, or a working model; nothing else."""

from __future__ import annotations

import os
import time
import tracemalloc

import numpy as np
import pytest

from faults import forged_files, untrusted_files
from faults.processes import AuditHook
from hopefold import SHOPE, load
from hopefold.baselines import DeepMCML
from hopefold.errors import BrokenFile
from hopefold.persistence import store

#: Far more than a model of these tests needs, and far less than what the files claim.
LITTLE = 30 * 2**20


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return untrusted_files.make_models()


@pytest.fixture
def refuse():
    """A file is refused at once, and without memory."""

    def check(path, match=None):
        tracemalloc.start()
        start = time.perf_counter()
        try:
            with pytest.raises(BrokenFile, match=match):
                load(path)
            assert tracemalloc.get_traced_memory()[1] < LITTLE
            assert time.perf_counter() - start < 2  # half of it is tracing
        finally:
            tracemalloc.stop()

    return check


def test_forged_files_are_refused_or_give_a_model_that_works(tmp_path):
    assert not untrusted_files.model_files(300, tmp_path).broken


def test_every_kind_of_forgery_is_among_them():
    """Of a hundred draws; a file is forged, and not as it was."""
    import random

    content = store.to_bytes({"kind": "toy", "names": ["a"]}, {"a": np.zeros((2, 3))})
    rng = random.Random(0)
    for forge in forged_files.FORGERIES.values():
        assert any(forge(content, content, rng) != content for _ in range(10))


def test_the_audit_hook_records_forbidden_events(tmp_path):
    """Otherwise the stress test would prove nothing."""
    hook = AuditHook(tmp_path / "allowed", untrusted_files.FORBIDDEN)
    with hook:
        hook("open", (str(tmp_path / "allowed"), "r", 0))
        hook("open", ("/etc/passwd", "r", 0))
        hook("os.system", (b"true",))
    hook("os.system", (b"true",))
    assert hook.seen == ["open ('/etc/passwd',)", "os.system (b'true',)"]


@pytest.mark.parametrize("beginning", ["nonsense", "zeros", "model", "length"])
def test_a_file_of_ten_gigabytes_is_not_read_to_be_refused(tmp_path, models, refuse, beginning):
    path = tmp_path / "model.hope"
    models[0].save(path)
    if beginning == "nonsense":
        path.write_bytes(b"{" * 1_000)
    elif beginning == "zeros":
        path.write_bytes(b"")
    elif beginning == "length":  # a header of ten gigabytes
        path.write_bytes((10**10 - 8).to_bytes(8, "little") + b"{")
    os.truncate(path, 10**10)
    assert path.stat().st_blocks * 512 < 10**6, "it is a sparse file"
    refuse(path)


def _wide_labels(manifest, tensors):
    manifest["classes"]["dtype"] = "<U900000000"


def _wide_scale(manifest, tensors):
    """A table of kinds and codes that would make a hundred million million numbers."""
    tensors["scale.kinds"] = np.zeros((2, 10**5))
    tensors["scale.codes"] = np.zeros(10**5, np.uint8)


def _tall_exemplars(manifest, tensors):
    """A column of exemplars, that as many features would be added to."""
    tensors["exemplars"] = np.zeros((10**5, 1), np.float16)
    tensors.pop("scale.codes", None)
    tensors["scale.shift"] = tensors["scale.gain"] = np.ones(10**5)


def _many_values(manifest, tensors):
    """A thousand columns of one name, with ten thousand values each."""
    values = {"b": [str(number) for number in range(10**4)]}
    manifest["columns"] |= {"names": ["b"] * 1_000, "values": values}


def _many_layers(manifest, tensors):
    manifest["settings"]["hidden_layer_sizes"] = [1] * 10**5


def _wide_map(manifest, tensors):
    manifest["settings"]["n_factors"] = 10**15


@pytest.mark.parametrize(
    ("which", "forge"),
    [
        (0, _wide_labels),
        (0, _many_values),
        (0, _wide_map),
        (3, _wide_scale),
        (3, _tall_exemplars),
        (4, _many_layers),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_no_number_in_a_file_asks_for_memory_or_time(tmp_path, models, refuse, which, forge):
    path = tmp_path / "model.hope"
    models[which].save(path)
    manifest, tensors = store.read(path)
    forge(manifest, tensors)
    store.write(path, manifest, tensors)
    refuse(path, match="does not contain a valid model")


def test_what_a_file_says_is_told_without_control_characters_and_not_at_length(tmp_path):
    path = tmp_path / "model.hope"
    store.write(path, {"kind": "\x1b[31m" + "x" * 10**6}, {})
    with pytest.raises(BrokenFile) as caught:
        load(path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("number", range(6))
def test_what_is_sound_is_not_refused(tmp_path, models, number):
    model = models[number]
    model.save(tmp_path / "model.hope")
    again = load(tmp_path / "model.hope")
    rows = np.random.RandomState(0).normal(size=(7, 6))
    np.testing.assert_array_equal(
        untrusted_files.use(again, rows), untrusted_files.use(model, rows)
    )
    assert again.settings_.keys() == model.settings_.keys()


def test_wide_labels_that_are_honest_come_back_as_they_were(three_blobs, tmp_path):
    X, y = three_blobs
    labels = np.array(["a", "b", "c"], dtype="<U1000")[y]
    SHOPE(max_epochs=1, random_state=0).fit(X, labels).save(tmp_path / "m.hope")
    assert load(tmp_path / "m.hope").classes_.dtype == labels.dtype


def test_a_deep_model_comes_back(three_blobs, tmp_path):
    model = DeepMCML(hidden_layer_sizes=(6, 5, 4), max_epochs=1, random_state=0).fit(*three_blobs)
    model.save(tmp_path / "m.hope")
    assert load(tmp_path / "m.hope").hidden_layer_sizes == (6, 5, 4)
