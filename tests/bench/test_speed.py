"""The cost of predicting a row: counted by hand, and timed on digits."""

from __future__ import annotations

import json
import sys
import types

import numpy as np
from typer.testing import CliRunner

from hopefold import HOPE, SHOPE
from hopefold_bench import __main__ as command
from hopefold_bench import speed
from hopefold_bench.records import append, read_lines
from hopefold_bench.splits import load_splits


def test_every_way_is_measured_once_and_operations_are_counted_by_hand(tmp_path):
    arguments = ["speed", "--data", "digits", "--rows", "50", "--repeats", "2"]
    result = CliRunner().invoke(command.app, [*arguments, "--results", str(tmp_path)])
    assert result.exit_code == 0, result.output
    lines = list(read_lines(speed.speed_file(tmp_path)))
    # all of the training part: 70 % of 1,797 rows; HOPE has 300 factors, S-HOPE 400 and 400 units
    n, hope, shope = 1_257, 300 * (64 + 2), 400 * (64 + 400 + 2)
    counted = {(line["method"], line["references"]): line["multiply_adds"] for line in lines}
    for method, embedding in {"HOPE": hope, "S-HOPE": shope}.items():
        for references in (n, 20):
            search = 2 * references
            assert counted[method, references] == {
                "search_only": search,
                "end_to_end": search + embedding,
            }
    assert counted[speed.BRUTE_FORCE, n] == {"search_only": 64 * n, "end_to_end": 64 * n}
    for line in lines:
        assert (line["n_train"], line["n_new"], line["machine"]["threads"]) == (n, 50, 1)
        for seconds in line["seconds"].values():
            assert 0 < seconds["min"] <= seconds["median"]


def test_the_predicted_rows_are_not_of_the_test_part(tmp_path, monkeypatch):
    asked = []

    def load(data, split, *, final):
        asked.append(final)
        return load_splits(data, split, final=final)

    monkeypatch.setattr(speed, "load_splits", load)
    monkeypatch.setattr(speed, "map_predictors", lambda *_: [])
    speed.measure_speed("digits", tmp_path, n_new=5, repeats=1)
    assert asked == [False]


def test_a_way_decides_as_the_model_does(three_blobs):
    X, y = three_blobs
    model = SHOPE(n_factors=8, n_units=8, max_epochs=2, random_state=0).fit(X, y)
    ways = speed._ways(model, X, model.exemplar_embedding_, model.exemplar_labels_, None)
    for way in ways:
        np.testing.assert_array_equal(way(), model.predict(X))


def test_sizes_are_told_once_where_the_papers_are_the_defaults(monkeypatch):
    sizes = speed.sizes_of(HOPE, "usps")
    assert sizes["default"] == {"order": 4, "n_factors": 1_200}
    assert sizes["paper"] == {"order": 3, "n_factors": 600}
    monkeypatch.setitem(speed.PAPER_SIZES, HOPE, {"mnist": sizes["default"]})
    assert speed.sizes_of(HOPE, "mnist").keys() == {"default and paper"}


def test_without_faiss_one_line_says_so(monkeypatch):
    monkeypatch.setattr(speed, "find_spec", lambda name: None)
    X, printed = np.zeros((8, 2), np.float32), []
    ways = list(speed.raw_predictors(X, np.arange(8) % 2, X, printed.append))
    assert [way.method for way in ways] == [speed.BRUTE_FORCE]
    assert printed == [
        "raw pixels, faiss: skipped, since its package is not installed: pip install faiss-cpu"
    ]


def test_with_faiss_its_neighbors_vote(monkeypatch):
    class Index:
        def __init__(self, n_features):
            self.rows = np.empty((0, n_features), np.float32)

        def add(self, rows):
            self.rows = rows

        def search(self, points, k):
            squared = np.square(points[:, None] - self.rows).sum(axis=2)
            return np.sort(squared)[:, :k], squared.argsort(axis=1)[:, :k]

    faiss = types.ModuleType("faiss")
    faiss.IndexFlatL2, faiss.omp_set_num_threads = Index, lambda n: None
    monkeypatch.setitem(sys.modules, "faiss", faiss)
    monkeypatch.setattr(speed, "find_spec", lambda name: name)
    X, y = np.arange(12, dtype=np.float32)[:, None], np.repeat([0, 1], 6)
    _, way = speed.raw_predictors(X, y, np.array([[1.2], [10.1]], np.float32))
    assert way.method == "raw pixels, faiss"
    assert way.end_to_end().tolist() == [0, 1]


def line(method, *, adds, seconds, measured="2020", **changes):
    ways = ("search_only", "end_to_end")
    fields = {
        "measured": measured,
        "data": "usps",
        "method": method,
        "references": 20,
        "sizes": "",
        "n_train": 8000,
        "n_features": 256,
        "n_new": 1000,
        "multiply_adds": dict(zip(ways, adds, strict=True)),
        "seconds": {way: {"min": s, "median": 9} for way, s in zip(ways, seconds, strict=True)},
    }
    return json.dumps(fields | changes)


def test_the_table_divides_the_newest_measurement_by_its_own_brute_force(tmp_path):
    path = speed.speed_file(tmp_path)
    append(path, line(speed.BRUTE_FORCE, adds=(1, 1), seconds=(1, 1), measured="2019"))
    append(path, line("old", adds=(1, 1), seconds=(1, 1), measured="2019"))
    append(path, line(speed.BRUTE_FORCE, adds=(4000, 4000), seconds=(2, 2), references=8000))
    append(path, line("HOPE", adds=(2, 1000), seconds=(0.01, 0.5), sizes="paper"))
    arguments = ["tables", "--name", "speed", "--results", str(tmp_path)]
    table = CliRunner().invoke(command.app, arguments).output
    assert "| HOPE, paper sizes | 20 | 1,000 | 2,000 × | 4.0 × | 500.0 | 200 × | 4.0 × |" in table
    assert "old" not in table


def test_the_table_without_measurements_says_so(tmp_path):
    assert "not run yet" in speed.speed_tables(tmp_path)
