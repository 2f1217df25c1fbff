"""Exported models are measured beside the model itself."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from hopefold import SHOPE
from hopefold.export import source
from hopefold_bench import exports
from hopefold_bench.__main__ import app
from hopefold_bench.records import read_lines


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """A small model, and one that is too large for C."""
    small = {"n_factors": 5, "n_units": 5}
    monkeypatch.setattr(source, "MOST_BYTES", 20_000)
    monkeypatch.setattr(
        exports,
        "MODELS",
        {
            "small": lambda **settings: SHOPE(**small, **settings),
            "large": lambda **settings: SHOPE(n_factors=100, n_units=100, **settings),
        },
    )
    arguments = ["export", "--data", "digits", "--rows", "100", "--epochs", "1"]
    done = CliRunner().invoke(app, [*arguments, "--results", str(tmp_path)])
    assert done.exit_code == 0, done.output
    return tmp_path


def test_bytes_differences_and_times_of_every_way_are_told(measured):
    small, large = read_lines(exports.exports_file(measured))
    ways = {"torch", "onnx", "c"}
    assert small["rows_per_second"].keys() == ways
    assert large["rows_per_second"].keys() == ways - {"c"}
    for line in (small, large):
        assert line["n_new"] == 126
        assert line["versions"].keys() > {"torch", "onnxruntime"}
        assert all(0 <= one["absolute"] < 1e-4 for one in line["differences"].values())
        assert all(seconds > 0 for seconds in line["seconds_of_one_row"].values())
    assert 1_000 < small["bytes"]["tables"] < small["bytes"]["c"]


def test_the_table_has_a_dash_where_a_model_is_too_large_for_c(measured):
    *_, small, large = exports.exports_table(measured).splitlines()
    assert small.startswith("| digits, small | ")
    assert "–" not in small
    assert large.count("–") == 4


def test_nothing_measured_is_told(tmp_path):
    assert "not run yet" in exports.exports_table(tmp_path)
