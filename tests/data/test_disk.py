"""Tables on disk: what is read is right, mixed, and let go again."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hopefold.data import disk
from hopefold.data.rows import Rows
from hopefold.data.scaling import learn_scale


@pytest.fixture
def small_buffer(monkeypatch):
    """A buffer of 4 KB, blocks of 256 bytes: small tables are large."""
    monkeypatch.setattr(disk, "BUFFER", 4_096)
    monkeypatch.setattr(disk, "BLOCK", 256)
    monkeypatch.setattr(disk, "CHUNK", 2_048)
    monkeypatch.setattr(disk, "MAPPED", 2_048)


@pytest.fixture
def on_disk(tmp_path):
    """Writes a table, and gives it back from disk."""

    def make(X):
        path = tmp_path / "rows"
        np.ascontiguousarray(X).tofile(path)
        return np.memmap(path, X.dtype, mode="r", shape=X.shape)

    return make


def as_they_are(rows, out):
    out[:] = rows


@pytest.fixture
def order_of(small_buffer):
    """The order of the rows of an epoch: 16 bytes each, 16 in a block, 16 blocks in the buffer."""

    def order(which, seed=0):
        places = disk.shuffle_blocks(np.asarray(which), 4, torch.Generator().manual_seed(seed))
        assert places.sort().values.tolist() == list(range(len(which)))
        return np.asarray(which)[places.numpy()]

    return order


@pytest.mark.parametrize("n_rows", [1, 7, 1_000, 1_003])
def test_every_row_comes_once(order_of, n_rows):
    assert sorted(order_of(range(n_rows))) == list(range(n_rows))


def test_some_rows_are_shuffled_as_well_as_all(order_of):
    some = range(0, 5_000, 3)
    assert sorted(order_of(some)) == list(some)


def test_a_round_of_rows_comes_from_no_more_blocks_than_fit_the_buffer(order_of):
    for turn in np.split(order_of(range(10_240)) // 16, 40):
        assert len(np.unique(turn)) == 16


def test_sorted_labels_are_mixed_beyond_recognition(order_of):
    """Each tenth of an epoch has each tenth of the table, as often as blocks drawn at random."""
    labels = (order_of(range(40_000)) * 10) // 40_000
    for part in np.split(labels, 10):
        assert np.bincount(part, minlength=10).min() > 150
    assert (labels[1:] == labels[:-1]).mean() < 0.2


def test_epochs_differ(order_of):
    rows = range(1_000)
    assert not np.array_equal(order_of(rows, seed=0), order_of(rows, seed=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint8])
@pytest.mark.parametrize("how", ["auto", "standard", "range", None])
def test_rows_from_disk_are_those_from_memory(small_buffer, on_disk, dtype, how):
    X = (np.random.RandomState(0).rand(500, 12) * 200).astype(dtype)
    table = on_disk(X)
    assert disk.is_on_disk(table)
    inside, outside = learn_scale(X, how), learn_scale(table, how)
    np.testing.assert_allclose(outside.gain, inside.gain, rtol=1e-12)
    np.testing.assert_allclose(outside.shift, inside.shift, rtol=1e-12)
    rows, stored = Rows.prepare(X, inside), Rows.prepare(table, inside)
    which = np.array([3, 400, 3, 0, 499])
    assert torch.equal(stored.fetch(which), rows.fetch(which))
    assert torch.equal(stored.fetch(slice(5, 90)), rows.fetch(slice(5, 90)))
    subset = np.arange(0, 500, 7)
    assert torch.equal(
        stored.subset(subset).fetch(slice(2, 9)), rows.subset(subset).fetch(slice(2, 9))
    )


@pytest.mark.parametrize("turned", [False, True])
def test_rows_that_torch_cannot_share_are_fetched_all_the_same(turned):
    X = np.random.RandomState(0).rand(20, 3).astype(np.float32)
    rows = X[::-1] if turned else X.copy()
    rows.flags.writeable = False
    which = np.array([3, 19, 0])
    fetched = Rows.prepare(rows, learn_scale(rows, None)).fetch(which)
    np.testing.assert_array_equal(fetched, rows[which])


def test_pages_are_let_go_in_time(small_buffer, on_disk, monkeypatch):
    released = []
    monkeypatch.setattr(disk, "release", released.append)
    buffer = disk.Buffer(on_disk(np.zeros((5_000, 8), np.float32)), as_they_are)
    for start in range(0, 5_000, 50):
        buffer.take(slice(start, start + 50))
    assert 50 <= len(released) <= 80  # 160 kB, 2 kB at a time


@pytest.mark.parametrize("n_taken", [1, 40, 3_000])
def test_rows_are_taken_in_any_order_and_number(small_buffer, on_disk, n_taken):
    X = np.random.RandomState(0).rand(3_003, 5).astype(np.float32)
    buffer = disk.Buffer(on_disk(X), as_they_are)
    random = np.random.RandomState(1)
    for _ in range(20):
        which = random.randint(len(X), size=n_taken)
        np.testing.assert_array_equal(buffer.take(which), X[which])


def test_a_round_of_rows_is_read_once(small_buffer, on_disk, monkeypatch):
    X = np.arange(8_000.0, dtype=np.float32).reshape(2_000, 4)
    buffer, n_read = disk.Buffer(on_disk(X), as_they_are), []
    read = disk.Buffer._read
    monkeypatch.setattr(disk.Buffer, "_read", lambda *args: n_read.append(1) or read(*args))
    order = disk.shuffle_blocks(np.arange(2_000), 4, torch.Generator().manual_seed(0)).numpy()
    for batch in np.array_split(order, 250):
        np.testing.assert_array_equal(buffer.take(batch), X[batch])
    assert 125 <= len(n_read) <= 135  # 16 rows each; few are read twice, where a batch straddles


def test_a_released_table_is_read_again(on_disk):
    X = np.arange(12.0).reshape(4, 3)
    table = on_disk(X)
    disk.release(table)
    assert np.array_equal(table, X)
    disk.release(X)  # what is in memory has nothing to release
