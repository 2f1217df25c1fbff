"""The ruler measures what it says, on small data."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from hopefold.bench import __main__ as command
from hopefold.bench import extras, ruler
from hopefold.bench.parts import load_parts
from hopefold.bench.records import append, read_lines
from hopefold.data import disk
from hopefold.errors import InvalidParameter


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(ruler, "SIZE", 8)
    monkeypatch.setattr(ruler, "N_NEW", 50)
    monkeypatch.setattr(ruler, "FEW", 500)
    monkeypatch.setattr(disk, "BUFFER", 2**16)
    monkeypatch.setattr(disk, "BLOCK", 2**12)


@pytest.fixture
def without_umap(monkeypatch):
    """As where it is not installed: it takes minutes."""
    found = ruler.find_spec
    monkeypatch.setattr(ruler, "find_spec", lambda name: None if name == "umap" else found(name))


def test_every_row_is_measured_or_told_to_be_missing(small, without_umap, tmp_path):
    arguments = ["ruler", "--data", "digits", "--rows", "2000", "--repeats", "1"]
    result = CliRunner().invoke(command.app, [*arguments, "--results", str(tmp_path)])
    assert result.exit_code == 0, result.output
    lines = {line["name"]: line for line in read_lines(ruler.ruler_file(tmp_path))}
    for name in ruler.BARS.keys() - lines.keys():
        assert name in ("predict, faiss", "umap", "umap, usps")
        skipped = "5-NN by faiss" if "faiss" in name else "supervised UMAP"
        assert skipped in result.output
        assert "skipped, since" in result.output
    for line in lines.values():
        assert line["ratio"] > 0
        assert line["machine"]["threads"] >= 1
    table = ruler.ruler_table(tmp_path)
    for bar in ruler.BARS.values():
        assert bar.what in table


def test_some_rows_can_be_measured_alone(small, tmp_path):
    ruler.measure(tmp_path, data="digits", repeats=1, only=["epoch", "search"], tell=list)
    names = [line["name"] for line in read_lines(ruler.ruler_file(tmp_path))]
    assert sorted(names) == ["epoch", "search"]


def test_small_ratios_are_measured_from_the_beginning_to_the_end_of_a_run():
    assert ruler.itinerary(["epoch", "umap", "one row", "rows"]) == [
        *("epoch", "one row"),
        *("umap", "epoch", "one row"),
        *("rows", "epoch", "one row"),
    ]


def test_the_shortest_times_of_all_visits_count(monkeypatch, tmp_path):
    seconds = iter([(3.0, 2.0), (2.5, 1.0), (2.0, 4.0)])
    monkeypatch.setattr(ruler.Bench, "seconds", lambda bench, name: next(seconds))
    ruler.measure(tmp_path, data="digits", only=["epoch"], tell=list)
    (line,) = read_lines(ruler.ruler_file(tmp_path))
    assert (line["seconds"], line["seconds_against"], line["ratio"]) == (2.0, 1.0, 2.0)


def test_a_row_that_there_is_not_is_told_before_anything_is_measured(tmp_path):
    with pytest.raises(InvalidParameter, match=r"'epic' is no row: choose of epoch, dropout"):
        ruler.measure(tmp_path, only=["epic"])


class FirstColumns:
    """A map that is easily beaten."""

    def __init__(self, random_state):
        pass

    def fit(self, X, y):
        return self

    def transform(self, X):
        return X[:, :2]


def test_passes_are_made_until_the_other_map_is_beaten(monkeypatch):
    monkeypatch.setattr(extras, "SupervisedUMAP", FirstColumns)
    told = []
    mine, theirs = ruler.against_umap(load_parts("digits", 0, final=False), told.append)
    assert theirs < mine < float("inf")
    assert told[0].startswith("after 2 passes")


def test_a_bar_holds_from_one_side_only():
    slower, faster = ruler.Bar("a", "b", 1.25), ruler.Bar("a", "b", 80, faster=True)
    assert slower.holds(1.2)
    assert not slower.holds(1.3)
    assert faster.holds(90)
    assert not faster.holds(70)


def test_what_was_measured_while_the_processors_shared_no_cache_is_marked(tmp_path):
    for ratio, far in ((1.1, 1.2), (1.4, 2.5), (1.3, None)):
        line = {"name": "epoch", "ratio": ratio, "data": "mnist", "machine": {"threads": 2}}
        line |= {} if far is None else {"far_reading": far}
        append(ruler.ruler_file(tmp_path), json.dumps(line))
    assert "| 1.10 ×, 1.40 ×°, 1.30 × | 1 of 3 |" in ruler.ruler_table(tmp_path)


def test_one_thread_has_nobody_to_read_from():
    assert ruler.far_reading() == 1


def test_the_small_table_is_passed_over_as_often_as_the_large_one_has_its_rows(small, monkeypatch):
    visited = []
    passing = ruler.one_pass

    def noted(model, X, y, **options):
        work = passing(model, X, y, **options)
        return lambda: (visited.append(len(X)), work())

    monkeypatch.setattr(ruler, "one_pass", noted)
    ruler.rows_of_large_and_small(2_000)
    assert visited == [500, *[2_000, *[500] * 4] * 2]


def test_a_pass_learns_from_every_row(small):
    X, y = np.random.RandomState(0).rand(60, 5).astype(np.float32), np.arange(60) % 3
    model = ruler._model(adversarial=0)
    work = ruler.one_pass(model, X, y)
    first, last = (work().history[-1]["loss"] for _ in range(2))
    assert last < first


def test_the_products_are_counted_by_hand(small):
    X = np.zeros((600, 5), np.float32)
    sizes = {}
    for name, options in {"both": {}, "forth": {"back": False}, "twice": {"nudged": True}}.items():
        with torch.profiler.profile(with_flops=True) as profile:
            ruler.products(X, 500, **options)()
        sizes[name] = sum(event.flops for event in profile.key_averages())
    n, features, size = 2 * 500, 5, 8
    forth = 2 * n * (features * size + size * size + size * 2)
    back = 2 * n * (size * size + 2 * size) + forth
    assert sizes == {
        "forth": forth,
        "both": forth + back,
        "twice": 2 * (forth + back) + 2 * n * features * size,
    }
