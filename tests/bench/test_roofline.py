"""The roofline benchmark, on small data."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from hopefold.data import disk
from hopefold.errors import InvalidParameter
from hopefold_bench import __main__ as command
from hopefold_bench import external_methods, large_table, one_pass, roofline, timing
from hopefold_bench.records import append, read_lines
from hopefold_bench.splits import load_splits


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(one_pass, "SIZE", 8)
    monkeypatch.setattr(roofline, "N_NEW", 50)
    monkeypatch.setattr(large_table, "SMALL_ROWS", 500)
    monkeypatch.setattr(disk, "BUFFER", 2**16)
    monkeypatch.setattr(disk, "BLOCK", 2**12)


@pytest.fixture
def without_umap(monkeypatch):
    """As if it were not installed: it takes minutes."""
    found = roofline.find_spec
    monkeypatch.setattr(roofline, "find_spec", lambda name: None if name == "umap" else found(name))


def test_every_row_is_measured_or_reported_as_skipped(small, without_umap, tmp_path):
    arguments = ["roofline", "--data", "digits", "--rows", "2000", "--repeats", "1"]
    result = CliRunner().invoke(command.app, [*arguments, "--results", str(tmp_path)])
    assert result.exit_code == 0, result.output
    lines = {line["name"]: line for line in read_lines(roofline.roofline_file(tmp_path))}
    for name in roofline.TARGETS.keys() - lines.keys():
        assert name in ("predict, faiss", "umap", "umap, usps")
        skipped = "5-NN by faiss" if "faiss" in name else "supervised UMAP"
        assert skipped in result.output
        assert "skipped, since" in result.output
    for line in lines.values():
        assert line["ratio"] > 0
        assert line["machine"]["threads"] >= 1
    table = roofline.roofline_table(tmp_path)
    for target in roofline.TARGETS.values():
        assert target.operation in table


def test_some_rows_can_be_measured_alone(small, tmp_path):
    roofline.measure(tmp_path, data="digits", repeats=1, only=["epoch", "search"], report=list)
    names = [line["name"] for line in read_lines(roofline.roofline_file(tmp_path))]
    assert sorted(names) == ["epoch", "search"]


def test_strict_targets_are_measured_from_the_beginning_to_the_end_of_a_run():
    assert roofline.schedule(["epoch", "umap", "one row", "rows"]) == [
        *("epoch", "one row"),
        *("umap", "epoch", "one row"),
        *("rows", "epoch", "one row"),
    ]


def test_the_shortest_times_of_all_visits_count(monkeypatch, tmp_path):
    seconds = iter([(3.0, 2.0), (2.5, 1.0), (2.0, 4.0)])
    monkeypatch.setattr(roofline.Roofline, "seconds", lambda roofline, name: next(seconds))
    roofline.measure(tmp_path, data="digits", only=["epoch"], report=list)
    (line,) = read_lines(roofline.roofline_file(tmp_path))
    assert (line["seconds"], line["seconds_against"], line["ratio"]) == (2.0, 1.0, 2.0)


def test_an_unknown_row_is_reported_before_anything_is_measured(tmp_path):
    with pytest.raises(
        InvalidParameter, match=r"'epic' is not a known row: choose from epoch, dropout"
    ):
        roofline.measure(tmp_path, only=["epic"])


class FirstColumns:
    """A map with a large error."""

    def __init__(self, random_state):
        pass

    def fit(self, X, y):
        return self

    def transform(self, X):
        return X[:, :2]


def test_epochs_are_added_until_the_other_map_is_beaten(monkeypatch):
    monkeypatch.setattr(external_methods, "SupervisedUMAP", FirstColumns)
    printed = []
    seconds, umap_seconds = roofline.seconds_to_beat_umap(
        load_splits("digits", 0, final=False), printed.append
    )
    assert umap_seconds < seconds < float("inf")
    assert printed[0].startswith("after 2 epochs")


def test_a_target_holds_from_one_side_only():
    slower, faster = roofline.Target("a", "b", 1.25), roofline.Target("a", "b", 80, faster=True)
    assert slower.is_met(1.2)
    assert not slower.is_met(1.3)
    assert faster.is_met(90)
    assert not faster.is_met(70)


def test_what_was_measured_while_the_processors_shared_no_cache_is_marked(tmp_path):
    for ratio, far in ((1.1, 1.2), (1.4, 2.5), (1.3, None)):
        line = {"name": "epoch", "ratio": ratio, "data": "mnist", "machine": {"threads": 2}}
        line |= {} if far is None else {"far_reading": far}
        append(roofline.roofline_file(tmp_path), json.dumps(line))
    assert "| 1.10 ×, 1.40 ×°, 1.30 × | 1 of 3 |" in roofline.roofline_table(tmp_path)


def test_one_thread_reads_only_its_own_writes():
    assert timing.remote_read_ratio() == 1


def test_the_small_table_has_as_many_epochs_as_the_large_one_has_its_rows(small, monkeypatch):
    visited = []
    original = large_table.one_pass

    def noted(model, X, y, **options):
        epoch = original(model, X, y, **options)
        return lambda: (visited.append(len(X)), epoch())

    monkeypatch.setattr(large_table, "one_pass", noted)
    large_table.seconds_per_row(2_000)
    assert visited == [500, *[2_000, *[500] * 4] * 2]


def test_an_epoch_learns_from_every_row(small):
    X, y = np.random.RandomState(0).rand(60, 5).astype(np.float32), np.arange(60) % 3
    model = one_pass.timed_model(adversarial=0)
    epoch = one_pass.one_pass(model, X, y)
    first, last = (epoch().history[-1]["loss"] for _ in range(2))
    assert last < first


def test_the_products_are_counted_by_hand(small):
    X = np.zeros((600, 5), np.float32)
    sizes = {}
    for name, options in {
        "both": {},
        "forward": {"backward": False},
        "twice": {"adversarial": True},
    }.items():
        with torch.profiler.profile(with_flops=True) as profile:
            one_pass.matrix_products(X, 500, **options)()
        sizes[name] = sum(event.flops for event in profile.key_averages())
    n, features, size = 2 * 500, 5, 8
    forward = 2 * n * (features * size + size * size + size * 2)
    backward = 2 * n * (size * size + 2 * size) + forward
    assert sizes == {
        "forward": forward,
        "both": forward + backward,
        "twice": 2 * (forward + backward) + 2 * n * features * size,
    }
