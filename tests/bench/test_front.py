"""The front: which sets choose, what is measured, and the table."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hopefold_bench import front
from hopefold_bench.front_sets import FRONT_SETS, FrontSet, make_flipped
from hopefold_bench.front_tables import front_table
from hopefold_bench.records import append, read_lines


def test_there_are_many_sets_and_some_never_choose():
    assert len(FRONT_SETS) >= 30
    kept = [name for name, one in FRONT_SETS.items() if not one.chooses]
    assert len(kept) >= 10
    with pytest.raises(ValueError, match="test part alone"):
        FRONT_SETS["circles"].split("circles", 0, final=False)


def test_new_rows_are_no_training_rows():
    for final in (False, True):
        splits = FRONT_SETS["moons"].split("moons", 0, final=final)
        together = np.concatenate([splits.X, splits.X_new])
        assert len(np.unique(together, axis=0)) == len(together)


def test_validation_rows_are_a_part_of_the_training_rows():
    whole = FRONT_SETS["moons"].split("moons", 0, final=True)
    part = FRONT_SETS["moons"].split("moons", 0, final=False)
    known = {tuple(row) for row in whole.X}
    assert all(tuple(row) in known for row in np.concatenate([part.X, part.X_new]))


@pytest.fixture
def tiny(monkeypatch):
    """A set of a few rows, in place of a large one."""

    def few(_seed):
        X, y = make_flipped(0.0, 0)
        return X[:200, :3], y[:200]

    monkeypatch.setitem(FRONT_SETS, "moons", FrontSet(few, True))
    return FRONT_SETS["moons"].split("moons", 0, final=True)


@pytest.mark.parametrize("method", ['SHOPE {"max_epochs": 3}', "HOPE", "LDA", "5-NN"])
def test_a_measurement_has_error_and_time(tiny, method):
    line = front.measure("moons", 0, method, final=True, splits=tiny)
    assert 0 <= line["error"] <= 1
    assert line["n_new"] == 60
    assert line["cpu_seconds"] >= 0
    assert json.loads(json.dumps(line)) == line


def test_what_is_measured_is_not_measured_again(tmp_path):
    method, printed = 'SHOPE {"max_epochs": 1}', []
    for _ in range(2):
        front.run(["moons"], [0], [method], folder=tmp_path, report=printed.append)
    (line,) = read_lines(front.front_file(tmp_path))
    assert line["method"] == method
    assert len(printed) == 1


def test_the_table_compares_the_defaults_with_the_others(tmp_path):
    common = {"split": 0, "part": "test", "n_new": 100, "n_train": 300, "n_columns": 2}
    for data, ours, umap, seconds in (("moons", 0.02, 0.05, 0.5), ("blobs", 0.04, 0.03, 9.0)):
        lines = {"SHOPE": (ours, seconds), "UMAP": (umap, 2.0)}
        for method, (error, time) in lines.items():
            line = {"data": data, "method": method, "error": error, "cpu_seconds": time}
            append(front.front_file(tmp_path), json.dumps(common | line))
    table = front_table(tmp_path, "test")
    assert "| moons | 300 | 2 | 2.00, 0.5 | 5.00, 2.0 |" in table
    assert "UMAP: lower or equal error on 1 of 2 sets" in table
    assert "blobs (9.0 s, not 2.0 s)" in table
    assert front_table(tmp_path, "validation") == "not run yet"


def test_the_table_says_whether_reported_errors_and_probabilities_come_true(tmp_path):
    common = {"split": 0, "part": "test", "n_train": 300, "n_columns": 2, "method": "SHOPE"}
    for data, reported, true, off in (("moons", 0.1, 0.1, 0.01), ("blobs", 0.1, 0.3, 0.03)):
        line = {"data": data, "error": true, "validation_error": reported, "n_held_out": 100}
        line |= {"n_new": 1_000, "calibration_error": off, "cpu_seconds": 1.0}
        append(front.front_file(tmp_path), json.dumps(common | line))
    table = front_table(tmp_path, "test")
    assert "2 fits of S-HOPE and HOPE on 2 sets: within two standard errors in 50.0%" in table
    assert "the mean difference is -10.00 ± 10.00 points" in table
    assert "0.020 on average, at most 0.030 (blobs)" in table


def test_errors_that_are_significantly_higher_are_named(tmp_path):
    common = {"split": 0, "part": "test", "n_new": 500, "n_train": 9, "n_columns": 2}
    for data, ours, theirs in (("moons", 0.20, 0.10), ("blobs", 0.12, 0.10)):
        for method, error in (("SHOPE", ours), ("LDA", theirs)):
            line = {"data": data, "method": method, "error": error, "cpu_seconds": 0.1}
            append(front.front_file(tmp_path), json.dumps(common | line))
    assert "significantly higher on 1: moons." in front_table(tmp_path, "test")
