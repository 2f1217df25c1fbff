"""A planted product of features is found: the bench in small."""

from __future__ import annotations

import json

import pytest

import planted


@pytest.fixture
def few_rows(monkeypatch, tmp_path):
    monkeypatch.setattr(planted, "ROWS", 3_000)
    monkeypatch.setattr(planted, "COLUMNS", 10)
    monkeypatch.setattr(planted, "RESULTS", tmp_path / "planted.jsonl")


@pytest.mark.parametrize("case", ["x3 × x7", "x3 × x7 + x1 × x4"])
def test_planted_pairs_are_first_and_lda_sees_nothing(few_rows, case):
    record = planted.measure(case, "HOPE, small", 0)
    assert max(record["ranks"]) == len(planted.CASES[case])
    assert record["error"] < 0.1
    assert planted.measure(case, "LDA", 0)["error"] > 0.4


def test_a_product_of_three_is_first(few_rows, monkeypatch):
    monkeypatch.setitem(planted.TRIES, 3, 1)
    record = planted.measure("x1 × x4 × x9", "HOPE, small", 0)
    assert record["ranks"] == [1]


def test_a_table_is_made_of_what_was_run_and_no_run_is_made_twice(few_rows, monkeypatch, capsys):
    monkeypatch.setattr(planted, "SEEDS", range(2))
    for _ in range(2):
        planted.run("LDA", "x3 × x7")
    lines = planted.RESULTS.read_text().splitlines()
    assert [json.loads(line)["seed"] for line in lines] == [0, 1]
    planted.table()
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 3
    assert shown[2].startswith("| x3 × x7 | LDA | ")
