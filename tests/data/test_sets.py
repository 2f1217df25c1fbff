"""Named data sets: found, checked, downloaded for real from a server on this machine."""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from hopefold.data import sets
from hopefold.errors import DataNotFound, InvalidParameter, WrongChecksum

DATA = Path(os.environ.get("HOPEFOLD_DATA", Path(__file__).parents[3] / "shared" / "data"))


def needs(name):
    return pytest.mark.skipif(
        not (DATA / name).exists() and "HOPEFOLD_REQUIRE_DATA" not in os.environ,
        reason=f"the files of {name} are not there: put them in $HOPEFOLD_DATA/{name}",
    )


CONTENT = b"some original bytes"


class Quiet(http.server.SimpleHTTPRequestHandler):
    requests: list[str]

    def log_message(self, *_):
        self.server.requests.append(self.path)


@pytest.fixture
def server(tmp_path):
    """A mirror on loopback that serves tmp_path/mirror and counts what is asked of it."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    (folder / "toy.bin").write_bytes(CONTENT)
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.requests, server.folder = [], folder
        server.url = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """A data set `toy` of one file, a cache of its own, and no folder of the user's."""

    def install(*mirrors):
        source = sets.Source(
            lambda paths: paths[0].read_bytes(),
            {"toy.bin": hashlib.sha256(CONTENT).hexdigest()},
            mirrors,
        )
        monkeypatch.setitem(sets.SOURCES, "toy", source)
        monkeypatch.setattr(sets, "cache_folder", lambda: tmp_path / "cache")
        monkeypatch.delenv(sets.FOLDER_VARIABLE, raising=False)
        return tmp_path / "cache" / "toy" / "toy.bin"

    return install


def test_a_file_is_downloaded_once_with_a_bar_and_then_cached(server, toy, capfd):
    cached = toy(server.url)
    assert sets.load_set("toy") == CONTENT
    assert cached.read_bytes() == CONTENT
    assert "toy.bin" in capfd.readouterr().err
    assert sets.load_set("toy") == CONTENT
    assert server.requests == ["/toy.bin"]


def test_the_next_mirror_is_tried(server, toy):
    toy(server.url + "nowhere/", server.url)
    assert sets.load_set("toy") == CONTENT


def test_a_download_with_a_wrong_checksum_is_refused_and_removed(server, toy):
    cached = toy(server.url)
    (server.folder / "toy.bin").write_bytes(b"something else")
    with pytest.raises(DataNotFound, match="hash"):
        sets.load_set("toy")
    assert not cached.exists()
    assert list(cached.parent.iterdir()) == []


def test_a_damaged_file_in_the_cache_is_replaced(server, toy):
    cached = toy(server.url)
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"half of it")
    assert sets.load_set("toy") == CONTENT
    assert cached.read_bytes() == CONTENT


def test_offline_one_line_names_the_files_the_place_and_the_checksums(toy):
    cached = toy("http://127.0.0.1:9/")  # nobody listens there
    with pytest.raises(DataNotFound) as caught:
        sets.load_set("toy")
    message = str(caught.value)
    assert "\n" not in message
    for part in ("toy.bin", hashlib.sha256(CONTENT).hexdigest(), str(cached.parent), "HOPEFOLD"):
        assert part in message
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("way", ["argument", "variable"])
def test_the_users_own_folder_comes_first(toy, tmp_path, monkeypatch, way):
    toy("http://127.0.0.1:9/")
    (tmp_path / "mine" / "toy").mkdir(parents=True)
    (tmp_path / "mine" / "toy" / "toy.bin").write_bytes(CONTENT)
    if way == "variable":
        monkeypatch.setenv(sets.FOLDER_VARIABLE, str(tmp_path / "mine"))
        assert sets.load_set("toy") == CONTENT
    else:
        assert sets.load_set("toy", tmp_path / "mine") == CONTENT


def test_a_wrong_file_of_the_users_is_refused_and_left_alone(toy, tmp_path):
    toy("http://127.0.0.1:9/")
    mine = tmp_path / "mine" / "toy" / "toy.bin"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"not it")
    with pytest.raises(WrongChecksum, match=r"mine/toy/toy\.bin is not the original"):
        sets.load_set("toy", tmp_path / "mine")
    assert mine.exists()


def test_offline_a_damaged_file_in_the_cache_is_removed_and_named(toy):
    cached = toy("http://127.0.0.1:9/")
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"half of it")
    with pytest.raises(DataNotFound) as caught:
        sets.load_set("toy")
    assert str(caught.value).startswith(f"{cached} was not the original file and has been removed;")
    assert "\n" not in str(caught.value)
    assert not cached.exists()


@pytest.mark.parametrize("way", ["argument", "variable"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_without_the_files_is_named(toy, tmp_path, monkeypatch, way, exists):
    toy("http://127.0.0.1:9/")
    mine = tmp_path / "mine"
    if exists:
        mine.mkdir()
    if way == "variable":
        monkeypatch.setenv(sets.FOLDER_VARIABLE, str(mine))
    with pytest.raises(DataNotFound) as caught:
        sets.load_set("toy", mine if way == "argument" else None)
    message = str(caught.value)
    assert message.startswith(f"toy.bin is not in {mine / 'toy'}")
    assert (f"(there is no folder {mine})" in message) is not exists
    assert "\n" not in message


def test_a_folder_without_the_files_is_no_obstacle_to_a_download(server, toy, tmp_path):
    toy(server.url)
    assert sets.load_set("toy", tmp_path / "nowhere") == CONTENT


@pytest.mark.parametrize("place", ["mine", "cache"])
def test_a_folder_in_the_place_of_a_file_is_told_and_left_alone(toy, tmp_path, place):
    toy("http://127.0.0.1:9/")
    path = tmp_path / place / "toy" / "toy.bin"
    path.mkdir(parents=True)
    with pytest.raises(DataNotFound, match=f"{path} is a folder, not a file: replace it"):
        sets.load_set("toy", tmp_path / "mine")
    assert path.is_dir()


@pytest.mark.parametrize("folder", [3, 0, b"mine", ["mine"]])
def test_what_is_no_path_is_refused(folder):
    with pytest.raises(InvalidParameter, match=r"^folder=.* is not a path: give the folder"):
        sets.load_set("usps", folder)


def test_an_unknown_name_comes_with_the_known_ones():
    with pytest.raises(InvalidParameter, match="digits, mnist, usps"):
        sets.load_set("minst")


def test_digits_come_with_scikit_learn():
    digits = sets.load_set("digits")
    assert digits.X.shape == (1797, 64)
    assert digits.X_test is None


@needs("mnist")
def test_mnist_is_read_as_it_should_be():
    mnist = sets.load_set("mnist", DATA)
    assert mnist.X.shape == (60_000, 784)
    assert mnist.X_test.shape == (10_000, 784)
    assert mnist.X.dtype == np.uint8
    assert mnist.y[:5].tolist() == [5, 0, 4, 1, 9]
    assert np.bincount(mnist.y_test).tolist() == [
        980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009,
    ]  # fmt: skip


@needs("usps")
def test_usps_is_read_as_it_should_be():
    usps = sets.load_set("usps", DATA)
    assert usps.X.shape == (11_000, 256)
    assert np.bincount(usps.y).tolist() == [1100] * 10
    from scipy.io import loadmat

    pixels = loadmat(DATA / "usps" / "usps_all.mat")["data"]
    for k, i in [(0, 0), (4, 77), (9, 1099)]:
        row = np.flatnonzero(usps.y == (k + 1) % 10)[i]
        np.testing.assert_array_equal(
            usps.X[row].reshape(16, 16), pixels[:, i, k].reshape(16, 16).T
        )


@needs("usps")
def test_usps_digits_stand_upright():
    """A one is higher than it is wide: the image has not been transposed."""
    usps = sets.load_set("usps", DATA)
    one = usps.X[usps.y == 1].mean(axis=0).reshape(16, 16)
    rows, columns = np.indices((16, 16))
    spread = [np.average((axis - 7.5) ** 2, weights=one) for axis in (rows, columns)]
    assert spread[0] > 1.2 * spread[1]
