"""The memory of fits is measured in processes of their own."""

from __future__ import annotations

from typer.testing import CliRunner

from hopefold_bench import footprint
from hopefold_bench.__main__ import app
from hopefold_bench.records import read_lines


def test_every_fit_is_measured_and_shown(tmp_path):
    arguments = ["footprint", "--rows", "2000", "--results", str(tmp_path)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    lines = {line["name"]: line for line in read_lines(footprint.footprint_file(tmp_path))}
    assert lines.keys() == footprint.BOUNDS.keys()
    assert lines["parquet"]["dense_bytes"] == 2_000 * 100 * 4
    assert all(100 < line["peak_mib"] < 10_000 for line in lines.values())
    table = footprint.footprint_table(tmp_path)
    for name, bound in footprint.BOUNDS.items():
        assert bound.what in table
        assert f"{lines[name]['peak_mib']:,} MiB |" in table


def test_nothing_measured_is_told(tmp_path):
    assert "not run yet" in footprint.footprint_table(tmp_path)
