"""Tables of every kind, and what becomes of their columns."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

from cells import with_gaps, write_cells
from hopefold import SHOPE, load
from hopefold.data.columns import Columns
from hopefold.data.tables import read_table
from hopefold.errors import HopefoldError, InvalidInput

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def cells(tmp_path):
    return write_cells(tmp_path / "cells.csv")


def same(one, other):
    np.testing.assert_array_equal(one.X, other.X)
    assert list(one.y) == list(other.y)
    assert list(one.names) == list(other.names)
    assert list(one.ids) == list(other.ids)


@pytest.mark.parametrize("kind", ["tsv", "semicolons", "decimal commas", "gz", "parquet", "folder"])
def test_a_table_is_the_same_in_every_format(cells, tmp_path, kind):
    expected = read_table(cells, "type", ids=["cell"], encode=True)
    frame, path = pd.read_csv(cells), tmp_path / "other.csv"
    if kind == "tsv":
        frame.to_csv(path := tmp_path / "other.tsv", sep="\t", index=False)
    elif kind == "semicolons":
        frame.to_csv(path, sep=";", index=False)
    elif kind == "decimal commas":
        frame.to_csv(path, sep=";", decimal=",", index=False)
    elif kind == "gz":
        (path := tmp_path / "other.csv.gz").write_bytes(gzip.compress(cells.read_bytes()))
    elif kind == "parquet":
        parquet.write_table(pa.Table.from_pandas(frame), path := tmp_path / "other.parquet")
    else:
        (path := tmp_path / "parts").mkdir()
        for part in range(2):
            some = pa.Table.from_pandas(frame[45 * part : 45 * (part + 1)], preserve_index=False)
            parquet.write_table(some, path / f"{part}.parquet")
    same(read_table(path, "type", ids=["cell"], encode=True), expected)


def test_columns_are_encoded_by_hand(tmp_path):
    (tmp_path / "t.csv").write_text("a,color,y\n1,red,0\n2,blue,1\n3,,1\n4,red,0\n")
    table = read_table(tmp_path / "t.csv", "y", encode=True, missing="mean")
    assert list(table.names) == ["a", "color=blue", "color=red"]
    expected = [[1, 0, 1], [2, 1, 0], [3, 1 / 3, 2 / 3], [4, 0, 1]]
    np.testing.assert_allclose(table.X, expected, rtol=1e-6)
    np.testing.assert_allclose(table.columns.fills, [2.5, 1 / 3, 2 / 3], rtol=1e-6)


def test_new_rows_are_filled_with_the_means_of_the_old(tmp_path):
    (tmp_path / "old.csv").write_text("a,b,y\n1,5,0\n3,,1\n")
    (tmp_path / "new.csv").write_text("b,a\n,100\n7,\n")
    columns = read_table(tmp_path / "old.csv", "y", missing="mean").columns
    new = read_table(tmp_path / "new.csv", columns=columns)
    np.testing.assert_allclose(new.X, [[100, 5], [2, 7]])
    assert new.y is None


def test_rows_with_gaps_are_dropped_with_their_labels_and_ids(tmp_path):
    table = write_cells(tmp_path / "t.csv", age=with_gaps(), tissue=None)
    read = read_table(table, "type", ids=["cell"], missing="drop")
    assert len(read.X) == len(read.y) == len(read.ids) == 85
    assert "c5" not in read.ids
    assert 5 not in read.places


def test_labels_that_are_whole_numbers_stay_so_where_some_are_missing(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,3\n2,\n3,4\n")
    assert read_table(tmp_path / "t.csv", "y", missing="drop").y.tolist() == [3, 4]


def test_the_names_of_rows_that_r_and_pandas_write_are_no_feature(cells, tmp_path):
    pd.read_csv(cells).drop(columns=["cell", "tissue"]).to_csv(tmp_path / "t.csv")
    table = read_table(tmp_path / "t.csv", "type")
    assert list(table.names) == ["size", "age"]
    assert table.ids[:3].tolist() == ["0", "1", "2"]
    again = read_table(tmp_path / "t.csv", columns=table.columns)
    np.testing.assert_array_equal(again.X, table.X)


def test_commas_at_the_ends_of_lines_are_no_column(tmp_path):
    (tmp_path / "t.csv").write_text("a,y,\n1,0,\n3,1,\n")
    assert list(read_table(tmp_path / "t.csv", "y").names) == ["a"]


def test_text_as_spreadsheets_write_it(tmp_path):
    content = '"a";"y"\r\n"1,5";"ü; 1"\r\n"2,5";"v"\r\n\r\n'
    (tmp_path / "t.csv").write_bytes(content.encode("utf-8-sig"))
    table = read_table(tmp_path / "t.csv", "y")
    assert table.X.tolist() == [[1.5], [2.5]]
    assert table.y.tolist() == ["ü; 1", "v"]


def test_a_column_called_row_is_a_feature(tmp_path):
    (tmp_path / "t.csv").write_text("row,a,y\n1,2,0\n3,4,1\n")
    assert list(read_table(tmp_path / "t.csv", "y").names) == ["row", "a"]


def test_truth_values_and_quoted_names(tmp_path):
    (tmp_path / "t.csv").write_text('"a, b",flag,y\n1,true,u\n2,false,v\n3,,v\n')
    table = read_table(tmp_path / "t.csv", "y", missing="drop")
    assert list(table.names) == ["a, b", "flag"]
    assert table.X.tolist() == [[1, 1], [2, 0]]


def test_a_number_that_turns_up_late_is_still_one(tmp_path):
    lines = ["a,y", *(f"{row},{row % 2}" for row in range(200_000)), "0.5,1"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert read_table(tmp_path / "t.csv", "y").X[-1, 0] == 0.5


def test_arrays_and_their_names(tmp_path):
    X, y = np.arange(8.0).reshape(4, 2), np.array(["a", "b", "a", "b"])
    np.savez(tmp_path / "t.npz", X=X, y=y, names=np.array(["u", "v"]), other=y[::-1])
    table = read_table(tmp_path / "t.npz")
    np.testing.assert_array_equal(table.X, X)
    assert table.y.tolist() == y.tolist()
    assert list(table.names) == ["u", "v"]
    assert read_table(tmp_path / "t.npz", "other").y.tolist() == y[::-1].tolist()
    assert list(read_table(tmp_path / "t.npz", drop=["u"]).names) == ["v"]


def test_labels_of_an_npy_file_are_in_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", np.zeros((3, 2, 2), np.uint8))
    np.save("y.npy", np.array([1, 0, 1]))
    table = read_table("X.npy", "y.npy")
    assert table.X.shape == (3, 4)
    assert table.X.dtype == np.float32
    assert table.image_shape == (2, 2)
    assert table.y.tolist() == [1, 0, 1]
    with pytest.raises(InvalidInput, match="one label per row"):
        read_table("X.npy", "X.npy")


@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_cells_and_genes_of_anndata(kind):
    table = read_table(GOLDEN / f"cells-{kind}.h5ad", "type")
    assert table.X.shape == (40, 6)
    assert sparse.issparse(table.X) == (kind == "csr")
    assert set(table.y) == {"T cell", "B cell"}
    assert table.ids[0] == "cell0"
    assert table.names[0] == "gene0"
    again = read_table(GOLDEN / f"cells-{kind}.h5ad", "smoker", ids=["donor", "age"])
    assert again.y.dtype == bool
    assert again.kept["donor"][:4].tolist() == ["d0", "d1", "d2", "d0"]


def test_sparse_and_dense_anndata_are_the_same_table():
    one, other = (read_table(GOLDEN / f"cells-{kind}.h5ad", "type") for kind in ("csr", "dense"))
    np.testing.assert_array_equal(one.X.toarray(), other.X)


def test_genes_are_found_by_name():
    table = read_table(GOLDEN / "cells-dense.h5ad", "type")
    turned = Columns(names=tuple(table.names[::-1]))
    again = read_table(GOLDEN / "cells-dense.h5ad", columns=turned)
    np.testing.assert_array_equal(again.X, table.X[:, ::-1])


@pytest.mark.parametrize(
    ("name", "shape"), [("iris", (150, 4)), ("wine", (178, 13)), ("cancer", (569, 30))]
)
def test_named_sets_have_names_and_text_labels(name, shape):
    table = read_table(name)
    assert table.X.shape == shape
    assert len(table.names) == shape[1]
    assert table.y.dtype.kind == "U"


def test_digits_are_images():
    assert read_table("digits").image_shape == (8, 8)


def test_a_file_with_the_name_of_a_set_is_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("iris").mkdir()
    with pytest.raises(HopefoldError, match="no images"):
        read_table("iris")


@pytest.mark.parametrize("encode", [False, True])
def test_how_a_table_is_read_is_kept_in_the_model(cells, tmp_path, encode):
    drop = [] if encode else ["tissue"]
    table = read_table(cells, "type", ids=["cell"], drop=drop, encode=encode, missing="mean")
    model = SHOPE(max_epochs=2, n_factors=5, n_units=5, random_state=0).fit(table)
    model.save(tmp_path / "m.hope")
    again = load(tmp_path / "m.hope")
    mine, kept = model.columns_, again.columns_
    assert (kept.names, kept.label, kept.aside) == (mine.names, mine.label, mine.aside)
    assert dict(kept.values) == dict(mine.values)
    np.testing.assert_array_equal(kept.fills, mine.fills)
    np.testing.assert_array_equal(again.transform(table), model.transform(table))
    model.fit(table.X, table.y)
    assert model.columns_ is None


def test_a_table_that_was_read_otherwise_is_refused(cells, tmp_path):
    table = read_table(cells, "type", ids=["cell"], encode=True)
    model = SHOPE(max_epochs=1, n_factors=5, n_units=5).fit(table)
    other = read_table(cells, "type", ids=["cell"], drop=["tissue"])
    with pytest.raises(InvalidInput, match="read it with read_table"):
        model.transform(other)


def test_a_file_whose_columns_do_not_fit_its_features_is_refused(cells, tmp_path):
    from hopefold.persistence import store

    table = read_table(cells, "type", ids=["cell"], encode=True)
    SHOPE(max_epochs=1, n_factors=5, n_units=5).fit(table).save(tmp_path / "m.hope")
    manifest, tensors = store.read(tmp_path / "m.hope")
    manifest["columns"]["values"] = {"tissue": ["liver"]}
    store.write(tmp_path / "m.hope", manifest, tensors)
    with pytest.raises(HopefoldError, match="columns do not fit"):
        load(tmp_path / "m.hope")


@pytest.mark.parametrize("written", [["000", "001", "002"], ["1E0", "1E1", "1E2"], ["NA", "1", ""]])
def test_ids_and_odd_labels_are_kept_letter_by_letter(tmp_path, written):
    path = tmp_path / "t.csv"
    lines = [
        f"{name},{number},{code}"
        for number, name, code in zip(range(3), written, "123", strict=True)
    ]
    path.write_text("\n".join([" id ,a,type", *lines]))
    assert read_table(path, "type", ids=["id"]).kept["id"].tolist() == written
    assert read_table(path, "type", ids=["id"]).y.tolist() == [1, 2, 3]


def test_labels_with_leading_zeros_stay_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,type\n1,007\n2,042\n")
    assert read_table(path, "type").y.tolist() == ["007", "042"]


def test_a_quote_within_a_cell_is_no_mistake(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('size,a,type\n5" pipe,1,x\n6,2,y\n')
    assert read_table(path, "type", ids=["size"]).kept["size"].tolist() == ['5" pipe', "6"]
