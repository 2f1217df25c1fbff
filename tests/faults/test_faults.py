"""The runner of the stress tests counts broken promises, and its table shows them."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from faults import stress_tests, unusual_tables, writes
from faults.__main__ import app
from hopefold.errors import InvalidParameter
from hopefold_bench.records import read_lines


@pytest.mark.parametrize("name", stress_tests.STRESS_TESTS)
def test_every_entry_names_a_function(name):
    assert callable(stress_tests.find_function(name))


def test_a_run_appends_a_line_and_the_table_shows_the_newest(tmp_path):
    for times in ("2", "3"):
        arguments = ["run", "--only", "formulas", "--times", times, "--results", str(tmp_path)]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
    lines = list(read_lines(stress_tests.faults_file(tmp_path)))
    assert [(line["tried"], line["survived"]) for line in lines] == [(2, 2), (3, 3)]
    table = stress_tests.faults_table(tmp_path)
    assert "| the text is escaped, and is read back unchanged | 3 | 3 |" in table
    assert table.count("not run yet") == len(stress_tests.STRESS_TESTS) - 1


def test_a_broken_promise_is_counted_and_named_and_fails_the_command(tmp_path, monkeypatch):
    """Without escaping, text that begins like a formula is detected."""
    monkeypatch.setattr(unusual_tables, "with_marks", lambda table: table)
    arguments = ["run", "--only", "formulas", "--times", "50", "--results", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    (line,) = read_lines(stress_tests.faults_file(tmp_path))
    assert line["survived"] < line["tried"] == 50
    assert "begins like a formula" in line["broken"][0]


def test_a_truncated_file_is_detected(tmp_path):
    """Otherwise the stress tests of writes would prove nothing."""
    path = tmp_path / "numbers.hope"
    with writes._writer(path, 0):
        pass
    assert writes.find_problem(path) is None
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert "truncated" in writes.find_problem(path)


def test_an_unknown_stress_test_is_reported(tmp_path):
    with pytest.raises(
        InvalidParameter,
        match=r"'fire' is not a known stress test: choose from killed fit, numbers",
    ):
        stress_tests.run_stress_tests(tmp_path, only=["fire"], report=list)


def test_unusual_tables_are_survived(tmp_path):
    assert not unusual_tables.any_table(40, tmp_path).broken
