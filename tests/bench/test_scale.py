"""Scaling with several processes: real measurements, and the estimate from them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from hopefold.errors import LostProcess
from hopefold_bench import scale, scale_estimate
from hopefold_bench.__main__ import app
from hopefold_bench.folders import BENCHMARKS
from hopefold_bench.records import append, read_lines

LINE = {
    "cores": 2,
    "read_bytes_per_second": 1e8,
    "process_groups": [
        {
            "processes": n,
            "threads": t,
            **{
                kind: {str(b): 1e-3 + b / n / t * 1e-5 * max(1, n / 2) for b in scale.BATCHES}
                for kind in scale.STEPS
            },
            "all_reduce_seconds": 2e-3 * (n - 1),
            "gradient_bytes": 4_000,
        }
        for n, t in scale.GROUPS
    ],
}


def test_a_straight_line_goes_through_the_steps_of_one_process():
    known = scale_estimate.constants(LINE)
    assert known.step == pytest.approx(1e-3)
    assert known.row == pytest.approx(1e-5)
    assert known.seconds_here(1, 700) == pytest.approx(1e-3 + 7e-3)
    assert known.seconds_here(2, 700) == pytest.approx(1e-3 + 3.5e-3 + 2e-3)


def test_more_machines_compute_less_and_communicate_more():
    known = scale_estimate.constants(LINE)
    assert known.compute(64, 10_000) < known.compute(8, 10_000)
    assert known.all_reduce(64) > known.all_reduce(8) > known.all_reduce(1) == 0


def test_two_processes_are_compared_with_two_threads():
    assert scale.relative_rate(LINE, 2_000) == pytest.approx(1.0)


def test_processes_that_end_are_not_waited_for():
    with (
        scale.ProcessGroup(1, 1, 20) as group,
        pytest.raises(LostProcess, match="request 'nonsense'"),
    ):
        group.run("nonsense", 1)


def test_the_benchmark_measures_real_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "GROUPS", ((2, 1),))
    monkeypatch.setattr(scale, "ROUNDS", 1)
    result = CliRunner().invoke(app, ["scale", "--rows", "600", "--results", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (line,) = read_lines(scale.scale_file(tmp_path))
    (two,) = line["process_groups"]
    assert (two["processes"], two["threads"]) == (2, 1)
    assert two["seconds_per_step"].keys() == {str(batch) for batch in scale.BATCHES}
    assert two["all_reduce_seconds"] > 0
    assert line["read_bytes_per_second"] > 0


def test_the_tables_show_the_measurements_and_the_estimate(tmp_path):
    append(scale.scale_file(tmp_path), json.dumps(LINE))
    assert "1.00 × the rows per second of one process with two threads" in scale.scale_table(
        tmp_path
    )
    assert "10⁹ rows" in scale_estimate.estimate_table(tmp_path)


def test_without_measurements_the_tables_say_so(tmp_path):
    assert "not run yet" in scale.scale_table(tmp_path)
    assert "not run yet" in scale_estimate.estimate_table(tmp_path)


def test_the_estimate_is_near_the_measurements_of_one_process():
    *_, line = read_lines(scale.scale_file(BENCHMARKS))
    known = scale_estimate.constants(line)
    alone = next(
        one for one in line["process_groups"] if (one["processes"], one["threads"]) == (1, 1)
    )
    for batch, seconds in alone["seconds_per_step"].items():
        assert known.seconds_here(1, int(batch)) == pytest.approx(seconds, rel=0.3)
