"""What several processes gain: measured for real, and reckoned from it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from hopefold.bench import scale
from hopefold.bench.__main__ import app, default_folder
from hopefold.bench.records import append, read_lines
from hopefold.errors import LostProcess

LINE = {
    "cores": 2,
    "read_bytes_a_second": 1e8,
    "worlds": [
        {
            "processes": n,
            "threads": t,
            **{
                kind: {str(b): 1e-3 + b / n / t * 1e-5 * max(1, n / 2) for b in scale.BATCHES}
                for kind in scale.STEPS
            },
            "add_up_seconds": 2e-3 * (n - 1),
            "gradient_bytes": 4_000,
        }
        for n, t in scale.WORLDS
    ],
}


def test_a_straight_line_goes_through_the_steps_of_one_process():
    known = scale.constants(LINE)
    assert known.step == pytest.approx(1e-3)
    assert known.row == pytest.approx(1e-5)
    assert known.seconds_here(1, 700) == pytest.approx(1e-3 + 7e-3)
    assert known.seconds_here(2, 700) == pytest.approx(1e-3 + 3.5e-3 + 2e-3)


def test_more_machines_compute_less_and_talk_more():
    known = scale.constants(LINE)
    assert known.compute(64, 10_000) < known.compute(8, 10_000)
    assert known.all_reduce(64) > known.all_reduce(8) > known.all_reduce(1) == 0


def test_two_processes_are_held_against_two_threads():
    assert scale.share_of_two(LINE, 2_000) == pytest.approx(1.0)


def test_processes_that_end_are_not_waited_for():
    with scale.Team(1, 1, 20) as team, pytest.raises(LostProcess, match="asked for nonsense"):
        team.ask("nonsense", 1)


def test_the_bench_measures_real_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "WORLDS", ((2, 1),))
    monkeypatch.setattr(scale, "ROUNDS", 1)
    result = CliRunner().invoke(app, ["scale", "--rows", "600", "--results", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (line,) = read_lines(scale.scale_file(tmp_path))
    (two,) = line["worlds"]
    assert (two["processes"], two["threads"]) == (2, 1)
    assert two["seconds_a_step"].keys() == {str(batch) for batch in scale.BATCHES}
    assert two["add_up_seconds"] > 0
    assert line["read_bytes_a_second"] > 0


def test_the_tables_tell_what_was_measured_and_what_follows(tmp_path):
    append(scale.scale_file(tmp_path), json.dumps(LINE))
    assert "1.00 × the rows of one with two threads" in scale.scale_table(tmp_path)
    assert "10⁹ rows" in scale.reckoned_table(tmp_path)


def test_nothing_measured_is_told(tmp_path):
    assert "not run yet" in scale.scale_table(tmp_path)
    assert "not run yet" in scale.reckoned_table(tmp_path)


def test_the_reckoning_is_near_what_was_measured_alone():
    *_, line = read_lines(scale.scale_file(default_folder()))
    known = scale.constants(line)
    alone = next(one for one in line["worlds"] if (one["processes"], one["threads"]) == (1, 1))
    for batch, seconds in alone["seconds_a_step"].items():
        assert known.seconds_here(1, int(batch)) == pytest.approx(seconds, rel=0.3)
