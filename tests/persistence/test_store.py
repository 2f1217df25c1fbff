"""One file, whole or refused; no code, no pickle."""

from __future__ import annotations

import json
import os
import pickle
import struct

import numpy as np
import pytest
from safetensors.numpy import save as serialize

from hopefold.errors import BrokenFile, HopefoldError, InvalidParameter, NoSuchFolder
from hopefold.persistence import store

MANIFEST = {"kind": "toy", "names": ["ä", "</script>", "\u0000"]}
TENSORS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([1, 2])}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "toy.hope"
    store.write(path, MANIFEST, TENSORS)
    return path


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidParameter, match="device or a pipe"):
        store.write_atomically(tmp_path / "pipe", b"content")
    assert (tmp_path / "pipe").is_fifo()


def test_what_is_written_is_read(path):
    manifest, tensors = store.read(path)
    assert manifest == {**MANIFEST, "format": store.FORMAT}
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        np.testing.assert_array_equal(tensors[name], tensor)
        assert tensors[name].dtype == tensor.dtype


def test_the_same_content_gives_the_same_bytes(path, tmp_path):
    store.write(tmp_path / "again.hope", MANIFEST, TENSORS)
    assert path.read_bytes() == (tmp_path / "again.hope").read_bytes()


def test_a_change_of_any_byte_is_noticed(path):
    content = path.read_bytes()
    for place in range(len(content)):
        altered = bytearray(content)
        altered[place] ^= 0x01
        path.write_bytes(altered)
        with pytest.raises(BrokenFile):
            store.read(path)


def test_a_file_cut_anywhere_is_refused(path):
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(BrokenFile):
            store.read(path)


def test_a_file_cut_short_says_so(path):
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(BrokenFile, match=r"truncated \(\d+ of \d+ bytes\)"):
        store.read(path)


def test_bytes_behind_the_end_are_noticed(path):
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(BrokenFile, match="modified"):
        store.read(path)


def test_a_newer_format_says_to_upgrade(path, monkeypatch):
    monkeypatch.setattr(store, "FORMAT", 7)
    store.write(path, MANIFEST, TENSORS)
    monkeypatch.undo()
    with pytest.raises(BrokenFile, match=r"format 7.*reads up to 1.*upgrade"):
        store.read(path)


def test_every_length_of_the_header_is_read(tmp_path):
    """The first bytes of a file are that length, and may look like those of a pickle."""
    path = tmp_path / "m.hope"
    for length in [*range(300), 19_000, *range(19_080, 19_200)]:
        store.write(path, {"text": "x" * length}, TENSORS)
        assert store.read(path)[0]["text"] == "x" * length


@pytest.mark.parametrize(
    "text", ["0" * 64, '{"sha256":"' + "0" * 64, '{\\"sha256\\":\\"' + "0" * 64]
)
def test_no_text_can_pass_for_the_checksum(tmp_path, text):
    path = tmp_path / "m.hope"
    store.write(path, {"text": text, text: 1}, {text[:20]: TENSORS["a"]})
    assert store.read(path)[0]["text"] == text


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NoSuchFolder, match=r"cannot write .*x\.hope: make the folder .*missing f"):
        store.write(tmp_path / "missing" / "x.hope", MANIFEST, TENSORS)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(HopefoldError, match="which is a folder"):
        store.write(tmp_path, MANIFEST, TENSORS)


def test_links_are_followed_and_permissions_kept(path, tmp_path):
    path.chmod(0o600)
    link = tmp_path / "link.hope"
    link.symlink_to(path)
    store.write(link, {"new": 1}, {})
    assert link.is_symlink()
    assert store.read(path)[0]["new"] == 1
    assert path.stat().st_mode & 0o777 == 0o600


class Bomb:
    def __reduce__(self):
        return os.abort, ()


def test_a_pickle_is_never_opened(tmp_path):
    path = tmp_path / "bomb.hope"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(BrokenFile, match="never opens"):
        store.read(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"not a model at all, just some words",
        struct.pack("<Q", 2**63) + b"{",
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 4) + b"[[[[",
        struct.pack("<Q", 100_000) + b"[" * 100_000,
        serialize(TENSORS),
        serialize(TENSORS, metadata={"hopefold": "[]"}),
        serialize(TENSORS, metadata={"hopefold": json.dumps({"format": 1})}),
        serialize(TENSORS, metadata={"hopefold": json.dumps({"format": 1, "sha256": "0" * 64})}),
    ],
)
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other.hope"
    path.write_bytes(content)
    with pytest.raises(HopefoldError):
        store.read(path)


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        store.read(tmp_path / "none.hope")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        store.write(path, MANIFEST, {})
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
