"""Learning from, embedding and judging what does not fit into memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from hopefold import HOPE, SHOPE
from hopefold.baselines import LDA
from hopefold.data import disk
from hopefold.errors import BrokenFile, DataNotFound, InvalidInput

SETTINGS = {"max_epochs": 25, "random_state": 0, "n_factors": 40, "n_units": 40}


@pytest.fixture(scope="module")
def table():
    """2,400 rows of 3 classes, sorted by class: float32, so that all ways agree to the bit."""
    random = np.random.RandomState(0)
    y = np.repeat(np.array(["ape", "bee", "cat"]), 800)
    centers = np.repeat(3 * random.normal(size=(3, 6)), 800, axis=0)
    return (centers + 1.5 * random.normal(size=(2_400, 6))).astype(np.float32), y


def columns_of(X, y):
    return {**{f"x{place}": column for place, column in enumerate(X.T)}, "kind": y}


@pytest.fixture
def file(table, tmp_path):
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(columns_of(*table)), path)
    return path


@pytest.fixture
def folder(table, tmp_path):
    X, y = table
    path = tmp_path / "parts"
    path.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(X)), 5)):
        parquet.write_table(pa.table(columns_of(X[part], y[part])), path / f"part-{number}.parquet")
    return path


@pytest.fixture
def small_buffer(monkeypatch):
    monkeypatch.setattr(disk, "BUFFER", 8_192)
    monkeypatch.setattr(disk, "BLOCK", 512)
    monkeypatch.setattr(disk, "CHUNK", 4_096)


class Batches:
    """Rows a few at a time, as often as one likes."""

    def __init__(self, X, y=None, size=500):
        self._X, self._y, self._size = X, y, size

    def __iter__(self):
        for start in range(0, len(self._X), self._size):
            part = slice(start, start + self._size)
            yield self._X[part] if self._y is None else (self._X[part], self._y[part])


def assert_same(one, other):
    np.testing.assert_array_equal(one.exemplars_, other.exemplars_)
    np.testing.assert_array_equal(one.exemplar_embedding_, other.exemplar_embedding_)
    assert one.validation_error_ == other.validation_error_
    assert one.train_error_ == other.train_error_


@pytest.fixture(scope="module")
def in_memory(table):
    return SHOPE(**SETTINGS).fit(*table)


def test_what_fits_the_buffer_is_learned_as_in_memory(table, in_memory, file, folder):
    X, y = table
    assert_same(SHOPE(**SETTINGS).fit(file, "kind"), in_memory)
    assert_same(SHOPE(**SETTINGS).fit(str(folder), "kind"), in_memory)
    assert_same(SHOPE(**SETTINGS).fit(dataset.dataset(folder, format="parquet"), "kind"), in_memory)
    assert_same(SHOPE(**SETTINGS).fit(Batches(X, y)), in_memory)
    assert_same(SHOPE(**SETTINGS).fit(list(Batches(X, y))), in_memory)


def test_rows_with_a_label_are_visited_often_where_they_lie(
    table, tmp_path, small_buffer, monkeypatch
):
    """Few labels: their rows come several times a pass, and blocks into the buffer once."""
    X, y = table
    y = np.where(np.arange(len(y)) % 100 < 1, y, "?")
    X.tofile(tmp_path / "X")
    on_disk = np.memmap(tmp_path / "X", np.float32, "r", shape=X.shape)
    n_read, read = [], disk.Buffer._read
    monkeypatch.setattr(disk.Buffer, "_read", lambda *args: n_read.append(1) or read(*args))
    settings = {"max_epochs": 10, "missing_label": "?", "structure": 0, "validation_fraction": 0}
    SHOPE(n_factors=4, n_units=4, random_state=0, **settings).fit(on_disk, y)
    shift, _ = disk.sizes_of_buffer(X.shape[1])
    n_blocks = -(-len(X) >> shift)
    assert len(n_read) < 2 * 10 * n_blocks


@pytest.mark.parametrize("way", ["memmap", "folder", "batches"])
def test_what_does_not_fit_is_learned_as_well(
    way, table, in_memory, folder, tmp_path, small_buffer
):
    """Sorted labels on disk do not spoil the fit."""
    X, y = table
    X.tofile(tmp_path / "X")
    sources = {
        "memmap": (np.memmap(tmp_path / "X", np.float32, "r", shape=X.shape), y),
        "folder": (folder, "kind"),
        "batches": (Batches(X, y), None),
    }
    model = SHOPE(**SETTINGS).fit(*sources[way])
    correct = (model.predict(sources[way][0]) == y).mean()
    assert correct >= in_memory.score(X, y) - 0.003
    assert model.validation_error_ == pytest.approx(in_memory.validation_error_, abs=0.02)


@pytest.mark.parametrize("model", [HOPE(max_epochs=3), SHOPE(max_epochs=3, exemplars=None), LDA()])
def test_every_method_learns_from_a_stream(model, folder):
    assert model.fit(folder, "kind").transform(folder).shape == (2_400, 2)


@pytest.mark.parametrize("buffer", ["whole", "small"])
def test_a_stream_is_embedded_and_judged_like_a_table(
    buffer, table, in_memory, folder, tmp_path, request
):
    X, y = table
    from_file = SHOPE(**SETTINGS).fit(folder, "kind")
    if buffer == "small":
        request.getfixturevalue("small_buffer")
    X.tofile(tmp_path / "X")
    on_disk = np.memmap(tmp_path / "X", np.float32, "r", shape=X.shape)
    points, decisions = in_memory.transform(X), in_memory.predict(X)
    for model, source in [
        (from_file, folder),
        (in_memory, on_disk),
        (in_memory, Batches(X)),
        (in_memory, Batches(X, y)),
    ]:
        np.testing.assert_allclose(model.transform(source), points, atol=1e-5)
        np.testing.assert_array_equal(model.predict(source), decisions)
        np.testing.assert_allclose(model.predict_proba(source), in_memory.predict_proba(X), 1e-4)


def test_a_file_gives_the_columns_their_names(folder, table, tmp_path):
    model = SHOPE(**SETTINGS).fit(folder, "kind")
    assert model.feature_names_in_.tolist() == [f"x{place}" for place in range(6)]
    X, y = table
    columns = columns_of(X, y)
    turned = {name: columns[name] for name in reversed(columns)}
    parquet.write_table(pa.table(turned), tmp_path / "turned.parquet")
    np.testing.assert_array_equal(
        model.transform(tmp_path / "turned.parquet"), model.transform(folder)
    )


def test_labels_may_be_numbers_or_categories(table, tmp_path):
    X, y = table
    numbers = np.unique(y, return_inverse=True)[1]
    for labels, classes in [
        (pa.array(y).dictionary_encode(), ["ape", "bee", "cat"]),
        (pa.array(numbers), [0, 1, 2]),
    ]:
        parquet.write_table(pa.table(columns_of(X, labels)), tmp_path / "x.parquet")
        model = SHOPE(max_epochs=2).fit(tmp_path / "x.parquet", "kind")
        assert model.classes_.tolist() == classes


# -- bad input --------------------------------------------------------------------------------


def test_files_with_other_columns_are_named(folder, table):
    X, y = table
    columns = columns_of(X[:9], y[:9])
    other = folder / "part-3.parquet"
    parquet.write_table(pa.table({k: v for k, v in columns.items() if k != "x2"}), other)
    with pytest.raises(InvalidInput, match=r"part-3\.parquet has no column 'x2'.*part-0\.parquet"):
        SHOPE().fit(folder, "kind")
    parquet.write_table(pa.table({**columns, "x2": X[:9, 2].astype(np.float64)}), other)
    with pytest.raises(InvalidInput, match=r"'x2' is of type double in .*part-3.* float in"):
        SHOPE().fit(folder, "kind")


@pytest.mark.parametrize("label", ["species", 3])
def test_a_label_column_that_is_not_there_is_named(folder, label):
    with pytest.raises(InvalidInput, match=rf"has no column {label!r}.*one of x0, x1"):
        SHOPE().fit(folder, label)


def test_a_file_needs_the_name_of_its_label_column(folder):
    with pytest.raises(InvalidInput, match="name of the label column"):
        LDA().fit(folder)


def test_a_file_without_the_name_of_its_labels_may_not_have_text_among_its_features(folder):
    with pytest.raises(InvalidInput, match=r"'kind'.* is not a number.*give y its name"):
        SHOPE().fit(folder)


@pytest.mark.parametrize("length", [0, 3, 700, -10])
def test_a_file_that_is_cut_short_is_named_and_the_model_stays(folder, length, in_memory):
    model = SHOPE(**SETTINGS).fit(folder, "kind")
    before = model.exemplars_
    path = folder / "part-2.parquet"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(BrokenFile, match=r"part-2\.parquet is not a complete Parquet file"):
        model.fit(folder, "kind")
    assert model.exemplars_ is before
    with pytest.raises(BrokenFile, match=r"part-2\.parquet"):
        model.transform(folder)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataNotFound, match=r"none\.parquet does not exist"):
        SHOPE().fit(tmp_path / "none.parquet", "y")


def test_an_empty_folder_has_no_rows(tmp_path):
    with pytest.raises(InvalidInput, match="no Parquet file"):
        SHOPE().fit(tmp_path, "y")


def test_text_in_a_feature_column_is_refused(tmp_path, table):
    X, y = table
    parquet.write_table(pa.table({**columns_of(X, y), "note": y}), tmp_path / "x.parquet")
    with pytest.raises(InvalidInput, match=r"column 'note' of .* has type string"):
        SHOPE().fit(tmp_path / "x.parquet", "kind")


def test_a_missing_value_is_named_by_its_column(tmp_path, table, small_buffer):
    X, y = table
    columns = columns_of(X, y)
    columns["x4"] = pa.array([None, *X[1:, 4].tolist()], pa.float32())
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    with pytest.raises(InvalidInput, match="column 'x4' has 1 missing value"):
        SHOPE().fit(tmp_path / "x.parquet", "kind")


def test_a_column_that_the_model_needs_is_named(folder, tmp_path):
    model = SHOPE(max_epochs=2).fit(folder, "kind")
    parquet.write_table(pa.table({"x0": [1.0]}), tmp_path / "x.parquet")
    with pytest.raises(InvalidInput, match=r"no column 'x1', which the model was fitted with"):
        model.transform(tmp_path / "x.parquet")


def test_a_generator_can_be_read_only_once(table, in_memory):
    X, y = table
    with pytest.raises(InvalidInput, match="generator can be read only once"):
        SHOPE().fit(batch for batch in Batches(X, y))
    with pytest.raises(InvalidInput, match="generator can be read only once"):
        in_memory.transform(batch for batch in Batches(X))


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (lambda X, y: [(X, y), (X[:, :3], y)], "batch 1 of the stream has 3 columns"),
        (lambda X, y: [(X, y[:5])], "batch 0 of the stream has 2400 rows and labels of shape"),
        (lambda X, y: [(X[0], y)], "batch 0 of the stream has the shape"),
        (lambda X, y: [(X.astype(str), y)], "give rows and columns of numbers"),
        (lambda X, y: [(X[:0], y[:0])], "no rows"),
    ],
)
def test_a_batch_that_does_not_fit_is_named(batches, message, table):
    with pytest.raises(InvalidInput, match=message):
        SHOPE().fit(batches(*table))


def test_a_stream_of_rows_alone_cannot_be_learned_from(table):
    with pytest.raises(InvalidInput, match="batch 0 of the stream is not a pair"):
        SHOPE().fit(Batches(table[0]))
    with pytest.raises(InvalidInput, match="leave y out"):
        SHOPE().fit(Batches(*table), table[1])
