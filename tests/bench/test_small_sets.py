"""Small data of many kinds: what they are, and that the bench can run them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from hopefold_bench.__main__ import app
from hopefold_bench.methods import METHODS
from hopefold_bench.small_sets import SMALL_SETS, load_table, make_text
from hopefold_bench.splits import load_splits


@pytest.mark.parametrize("name", SMALL_SETS)
def test_a_set_is_the_same_each_time_and_is_cut_by_the_split(name):
    one, again = load_splits(name, 0, final=True), load_splits(name, 0, final=True)
    np.testing.assert_array_equal(one.y_new, again.y_new)
    other = load_splits(name, 1, final=True)
    assert one.X.shape == other.X.shape
    assert len(np.unique(one.y)) == len(np.unique(one.y_new))
    assert (one.y != other.y).any()


def test_a_table_is_read_from_the_files_of_the_package(tmp_path, monkeypatch):
    folder = tmp_path / "a_package"
    (folder / "data" / "balanced" / "raw").mkdir(parents=True)
    (folder / "__init__.py").touch()
    rows = "@relation x\n@data\n1, 2.5, b\n3, 4, a\n5, 6, b\n"
    (folder / "data" / "balanced" / "raw" / "x.dat").write_text(rows)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("hopefold_bench.small_sets.KEEL", "a_package")
    X, y = load_table("x")
    assert X.tolist() == [[1, 2.5], [3, 4], [5, 6]]
    assert y.tolist() == [1, 0, 1]


def test_text_is_sparse_and_each_topic_has_words_of_its_own():
    X, topics = make_text(400, 3)
    assert sparse.issparse(X)
    assert X.nnz < 0.05 * np.prod(X.shape)
    own = X[:, 3_000:3_150].sum(axis=1)
    assert own[topics == 0].mean() > 2 * own[topics != 0].mean()


def test_raw_columns_of_a_small_set_are_scaled_before_they_are_compared():
    wine = load_splits("wine", 0, final=False)
    scaled = METHODS["raw"].make("wine", 0).fit(wine.X, wine.y).transform(wine.X)
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-4)
    assert METHODS["raw"].make("mnist", 0).scale is None


def test_the_bench_runs_sparse_text_and_tells_it(tmp_path):
    folder = ["--results", str(tmp_path)]
    run = ["run", "--data", "text", "--data", "iris", "--only", "raw", "--final", "--workers", "1"]
    result = CliRunner().invoke(app, [*run, *folder])
    assert result.exit_code == 0, result.output
    table = CliRunner().invoke(app, ["tables", "--name", "defaults", *folder]).output
    assert "| text | 2,100 | " in table
    assert "| wine |  | not run yet |" in table
