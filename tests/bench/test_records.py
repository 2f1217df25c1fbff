"""JSON lines that survive a kill."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hopefold.errors import BrokenFile
from hopefold_bench.records import (
    alike,
    append,
    pack,
    read_lines,
    read_records,
    results_file,
    unpack,
)


def test_a_record_comes_back_as_it_was_written(tmp_path, record):
    written = record(wrong=[1, 3])
    append(results_file(tmp_path, "usps", quick=False), written.to_line())
    assert read_records(tmp_path, "usps") == [written]


def test_quick_runs_are_kept_apart(tmp_path, record):
    append(results_file(tmp_path, "usps", quick=True), record(quick=True).to_line())
    assert read_records(tmp_path, "usps") == []


def test_an_unfinished_last_line_is_not_read(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"a": 1}\n{"a": 2')
    assert list(read_lines(path)) == [{"a": 1}]


@pytest.mark.parametrize("before", ['{"a": 1}\n', '{"a": 1}\n{"a": 9', '{"a": 1}'])
def test_a_line_is_added_after_the_whole_ones(tmp_path, before):
    path = tmp_path / "lines.jsonl"
    path.write_text(before)
    append(path, '{"a": 2}')
    assert path.read_text() == '{"a": 1}\n{"a": 2}\n'


def test_an_unfinished_line_that_is_alone_is_replaced(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"a"')
    append(path, '{"a": 2}')
    assert path.read_text() == '{"a": 2}\n'


def test_a_broken_line_in_the_middle_is_told(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"a": 1}\n{"a"\n{"a": 3}\n')
    with pytest.raises(BrokenFile, match=r"line 2 of .* is not JSON"):
        list(read_lines(path))


@pytest.mark.parametrize("line", ['["x"]', "3", "null", '{"a": 1}'])
def test_a_line_that_is_no_record_is_told_with_its_number(tmp_path, record, line):
    path = results_file(tmp_path, "usps", quick=False)
    append(path, record().to_line())
    append(path, line)
    with pytest.raises(
        BrokenFile, match=f"^line 2 of {path} is not a record.*: remove it"
    ) as caught:
        read_records(tmp_path, "usps")
    assert "argument" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [(lambda line: line.pop("part"), "lacks 'part'"), (lambda line: line.update(a=1), "has 'a'")],
)
def test_what_is_wrong_with_a_record_is_told(tmp_path, record, change, message):
    line = json.loads(record().to_line())
    change(line)
    append(results_file(tmp_path, "usps", quick=False), json.dumps(line))
    with pytest.raises(BrokenFile, match=message):
        read_records(tmp_path, "usps")


def test_mistakes_are_unpacked_as_they_were_packed():
    mask = np.random.RandomState(0).rand(1_003) < 0.03
    assert (unpack(pack(mask), 1_003) == mask).all()


def test_settings_that_differ_in_the_seed_alone_are_alike():
    assert alike({"order": 2, "random_state": 0}, {"order": 2, "random_state": 1})
    assert not alike({"order": 2}, {"order": 3})


def test_a_setting_that_came_later_makes_no_difference():
    assert alike({"order": 2}, {"order": 2, "momentum": 0.9})
