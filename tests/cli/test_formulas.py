"""Text in exported tables stays text, in a spreadsheet, too; and comes back as it was."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cells import QUICK, write_cells
from hopefold.cli.outputs import write_table
from hopefold.data.sources import read_source
from hopefold.data.tables import read_table

HOSTILE = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0", "＝1+1", "'=1"]
NUMBERS = ["-5", "+5", "-1.5e-3", "007", "-.5"]


def cells_of(path):
    delimiter = "\t" if path.suffix == ".tsv" else ","
    return list(
        csv.reader(io.StringIO(path.read_bytes().decode(), newline=""), delimiter=delimiter)
    )


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_text_that_looks_like_a_formula_gets_an_apostrophe(tmp_path, ending):
    path = tmp_path / f"out{ending}"
    columns = {"plain": np.array(HOSTILE), "=head()": np.arange(9), "x": np.arange(9) - 4.5}
    write_table(path, columns, {})
    head, *rows = cells_of(path)
    assert head == ["plain", "'=head()", "x"]
    assert [row[0] for row in rows] == [f"'{text}" for text in HOSTILE]


def test_numbers_remain_numbers(tmp_path):
    columns = {"text": np.array(NUMBERS), "number": -np.arange(5.0)}
    write_table(tmp_path / "out.csv", columns, {})
    _, *rows = cells_of(tmp_path / "out.csv")
    assert [row[0] for row in rows] == NUMBERS
    assert [float(row[1]) for row in rows] == [0, -1, -2, -3, -4]


def test_missing_text_remains_missing(tmp_path):
    write_table(tmp_path / "out.csv", {"a": np.array(["=1", None], dtype=object), "b": [1, 2]}, {})
    assert cells_of(tmp_path / "out.csv") == [["a", "b"], ["'=1", "1"], ["", "2"]]


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    texts=st.lists(
        st.tuples(
            st.sampled_from(["", "'", "''", "=", "+", "-", "@", "'=", "'-", "''@", "＋"]),
            st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs"]), max_size=5),
        ).map("".join),
        min_size=2,
        max_size=5,
    )
)
def test_text_comes_back_as_it_was_and_none_begins_like_a_formula(tmp_path, texts):
    texts = [f"{text}x" for text in texts]  # a column of numbers, or of nothing, would be read so
    columns = {f"{text}{place}": np.array(texts) for place, text in enumerate(texts)}
    write_table(tmp_path / "out.csv", columns, {})
    for row in cells_of(tmp_path / "out.csv"):
        assert not any(re.match(r"[=+\-@\t\r\n＝＋－＠]", cell) for cell in row)
    back = read_source(str(tmp_path / "out.csv")).columns
    assert list(back) == [name.strip() for name in columns]
    for column in back.values():
        assert column.tolist() == texts


def test_predictions_exemplars_and_new_rows_of_hostile_names_work_together(run, here):
    """From a table to predictions, and the exemplars back as a table for the same model."""
    kinds = np.array(["=B()", "-NK", "@T"])[np.arange(90) % 3]
    table = write_cells(here / "t.csv", type=kinds, tissue=None)
    text = table.read_text().replace("cell,size,age", "cell,=size(),+age").replace("\nc", "\n=c")
    table.write_text(text)
    run("fit", table, "--label", "type", "--id", "cell", "-o", "m.hope", *QUICK)
    run("predict", "m.hope", table, "--id", "cell", "-o", "p.csv")
    head, *rows = cells_of(here / "p.csv")
    assert head[:2] == ["cell", "predicted"]
    assert {row[1] for row in rows} <= {"'=B()", "'-NK", "'@T"}
    assert rows[0][0] == "'=c0"
    run("exemplars", "m.hope", "-o", "e.csv")
    assert cells_of(here / "e.csv")[0] == ["type", "'=size()", "'+age"]
    run("predict", "m.hope", "e.csv")
    assert set(read_table(here / "e.csv", "type").y) == {"=B()", "-NK", "@T"}


def test_standard_output_is_marked_as_a_file_is(run, here):
    table = write_cells(here / "t.csv", cell=["=1+1"] * 90, tissue=None)
    run("fit", table, "--label", "type", "--id", "cell", "-o", "m.hope", *QUICK)
    assert '"\'=1+1"' in run("predict", "m.hope", table, "--id", "cell").stdout


def test_parquet_keeps_text_as_it_is(tmp_path):
    write_table(tmp_path / "out.parquet", {"text": np.array(HOSTILE)}, {})
    assert read_source(str(tmp_path / "out.parquet")).columns["text"].tolist() == HOSTILE
