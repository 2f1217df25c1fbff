"""The bench of faults counts what it should, and its table says so."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from hopefold.bench import __main__ as command
from hopefold.bench import faults
from hopefold.bench.records import read_lines
from hopefold.bench.soaks import tables, writes
from hopefold.errors import InvalidParameter


@pytest.mark.parametrize("name", faults.FAULTS)
def test_every_fault_has_a_soak(name):
    assert callable(faults.find_soak(name))


def test_a_soak_appends_a_line_and_the_table_shows_the_newest(tmp_path):
    for times in ("2", "3"):
        arguments = ["faults", "--only", "formulas", "--times", times, "--results", str(tmp_path)]
        result = CliRunner().invoke(command.app, arguments)
        assert result.exit_code == 0, result.output
    lines = list(read_lines(faults.faults_file(tmp_path)))
    assert [(line["tried"], line["survived"]) for line in lines] == [(2, 2), (3, 3)]
    table = faults.faults_table(tmp_path)
    assert "| text, which comes back as it was | 3 | 3 |" in table
    assert table.count("not run yet") == len(faults.FAULTS) - 1


def test_a_broken_promise_is_counted_and_named_and_fails_the_command(tmp_path, monkeypatch):
    """Without marks, text that begins like a formula is found out."""
    monkeypatch.setattr(tables, "with_marks", lambda table: table)
    arguments = ["faults", "--only", "formulas", "--times", "50", "--results", str(tmp_path)]
    result = CliRunner().invoke(command.app, arguments)
    assert result.exit_code == 1
    (line,) = read_lines(faults.faults_file(tmp_path))
    assert line["survived"] < line["tried"] == 50
    assert "begins like a formula" in line["broken"][0]


def test_a_file_that_is_half_another_is_found_out(tmp_path):
    """Or the soaks of writes would prove nothing."""
    path = tmp_path / "numbers.hope"
    with writes._writer(path, 0):
        pass
    assert writes.whats_wrong_with(path) is None
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert "cut short" in writes.whats_wrong_with(path)


def test_a_fault_that_there_is_not_is_told(tmp_path):
    with pytest.raises(
        InvalidParameter, match=r"'fire' is no fault: choose of killed fit, numbers"
    ):
        faults.run_soaks(tmp_path, only=["fire"], tell=list)


def test_tables_of_any_kind_are_survived(tmp_path):
    assert not tables.of_any_kind(40, tmp_path).broken
