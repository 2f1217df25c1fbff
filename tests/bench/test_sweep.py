"""The sweep: which runs there are, that it goes on where it was, and its tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from hopefold.errors import InvalidParameter
from hopefold_bench import __main__ as command
from hopefold_bench import run as running
from hopefold_bench import sweep
from hopefold_bench.measure import measure, settings_of
from hopefold_bench.plans import Job
from hopefold_bench.records import append, read_records, results_file
from methods import plan_for


@pytest.fixture
def small(monkeypatch):
    """A sweep over few sizes of digits."""
    grid = {"order": (1, 2), "n_factors": (100, 400), "n_units": (50,)}
    monkeypatch.setattr(sweep, "GRIDS", {"digits": grid})
    monkeypatch.setattr(sweep, "N_SPLITS", {"digits": 2})


@pytest.fixture
def of_job(record):
    """Makes the record of a job; ``wrong`` are the misclassified rows of ten."""

    def make(job, wrong=(), **changes):
        return record(
            method=job.method,
            data=job.data,
            split=job.split,
            part=job.part,
            wrong=wrong,
            settings=settings_of(job.make()),
            **{"model_bytes": 4_000, **changes},
        )

    return make


def keep(folder, record):
    append(results_file(sweep.sweep_folder(folder), record.data, quick=False), record.to_line())


def cells(text, heading, row):
    """The cells of a row in the table with this heading."""
    lines = text[text.index(heading) :].splitlines()
    return next(
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith(f"| {row} |")
    )


def test_each_size_is_varied_by_itself_and_no_run_is_there_twice(small):
    first = [job for job in sweep.make_sweep("digits") if job.split == 0]
    assert all(sweep.FAST.items() <= job.changes.items() for job in first)
    usual = [*sweep.FAST.items(), ("n_units", 600)]
    sizes = [
        (job.method, {n: v for n, v in job.changes.items() if (n, v) not in usual}) for job in first
    ]
    assert sizes == [
        ("S-HOPE", {}),
        ("S-HOPE", {"order": 1}),
        ("S-HOPE", {"n_factors": 100}),
        ("S-HOPE", {"n_units": 50}),
        ("S-HOPE untied", {}),
        ("S-HOPE untied", {"n_factors": 200}),
        ("HOPE", {}),
        ("HOPE", {"order": 1}),
        ("HOPE", {"order": 2}),
        ("HOPE", {"n_factors": 100}),
        ("HOPE", {"n_factors": 400}),
        ("HOPE", {"tied": True}),
        ("HOPE", {"tied": True, "n_factors": 600}),
    ]
    assert not any(job.final for job in first)


def test_usps_is_swept_on_two_splits_and_mnist_on_fewer_points():
    usps, mnist = sweep.make_sweep("usps"), sweep.make_sweep("mnist")
    assert {job.split for job in usps} == {0, 1}
    assert {job.split for job in mnist} == {0}
    assert (len(usps), len(mnist)) == (48, 17)


def test_a_set_outside_the_sweep_is_reported():
    with pytest.raises(
        InvalidParameter, match="'vgg' is not part of the sweep: choose from usps, mnist"
    ):
        sweep.make_sweep("vgg")


@pytest.mark.parametrize(
    ("method", "units", "weights"),
    [("HOPE", [1_200, 600, 150], [1_200, 600, 600]), ("S-HOPE", [400, 400, 200], [400, 800, 400])],
)
def test_untied_factors_are_as_many_or_have_as_many_weights(small, method, units, weights):
    ways = sweep.tied_and_untied(method, "digits").values()
    models = [sweep.sweep_job(m, "digits", c).make() for m, c in ways]
    maps = [model.method(plan_for(model, 64)).make_learning_map(64) for model in models]
    assert [map_.interactions(torch.zeros(1, 64)).shape[1] for map_ in maps] == units
    assert [len(map_.C) for map_ in maps] == weights


def test_the_sweep_goes_on_where_it_was_in_a_folder_of_its_own(
    small, tmp_path, monkeypatch, of_job
):
    ran = []

    def run_alone(job, models):
        if len(ran) == 10:
            raise running.RunFailed("enough")
        ran.append(job)
        return of_job(job)

    monkeypatch.setattr(running, "run_alone", run_alone)
    arguments = ["sweep", "--data", "digits", "--workers", "1", "--results", str(tmp_path)]
    first = CliRunner().invoke(command.app, arguments)
    assert first.exit_code == 1
    assert first.output.startswith("26 of 26 runs to do, 1 at a time\n")
    failed = "weight_decay=0.0, n_factors=400 on digits, validation, split 0: failed: enough"
    assert failed in first.output
    ran.clear()
    second = CliRunner().invoke(command.app, arguments)
    assert "16 of 26 runs to do, 1 at a time; about 1 minutes" in second.output
    assert read_records(tmp_path, "digits") == []
    assert len(read_records(sweep.sweep_folder(tmp_path), "digits")) == 20


def test_a_run_of_the_sweep_is_real(small):
    job = Job("S-HOPE untied", "digits", 0, quick=True, changes={"n_factors": 10})
    record = measure(job)
    assert record.settings["estimator"] == "UntiedSHOPE"
    assert record.settings["n_factors"] == 10
    assert record.errors.keys() == {"all", "kmeans", "joint", "predict"}


def test_tables_have_mean_and_deviation_by_size(small, tmp_path, of_job):
    for split, wrong in enumerate([[0], [0, 1, 2]]):
        keep(tmp_path, of_job(sweep.sweep_job("S-HOPE", "digits", {}, split), wrong))
    keep(tmp_path, of_job(sweep.sweep_job("HOPE", "digits", {"order": 2}), [0, 1]))
    tables = sweep.sweep_tables(tmp_path)
    # 10 % and 30 %: mean 20, deviation √(2 · 10²) = 14.14; the default is bold
    both = ["**20.00 ± 14.14**"] * 2
    assert cells(tables, "by O, order", "2") == ["2", *both, "20.00", "20.00", "2 / 1"]
    assert cells(tables, "by m, sigmoid units", "600") == ["600", *both, "2"]
    assert cells(tables, "by O, order", "1")[1:3] == ["not run yet"] * 2


def test_a_value_that_is_not_planned_for_a_method_is_a_dash(small, tmp_path, of_job):
    keep(tmp_path, of_job(sweep.sweep_job("HOPE", "digits", {}), [0]))
    row = cells(sweep.sweep_tables(tmp_path), "by F, factors", "1,200")
    assert row == ["1,200", "–", "–", "**10.00**", "**10.00**", "0 / 1"]


def test_tied_and_untied_are_compared_by_a_paired_test(small, tmp_path, of_job):
    for split in range(2):
        keep(tmp_path, of_job(sweep.sweep_job("HOPE", "digits", {"tied": True}, split), [0, 1]))
        keep(tmp_path, of_job(sweep.sweep_job("HOPE", "digits", {}, split), [0]))
    tables = sweep.sweep_tables(tmp_path)
    row = cells(tables, "tied factors", "HOPE, 150 products")
    assert row == ["HOPE, 150 products", "10.00 ± 0.00", "10.00 ± 0.00", "4", "2"]
    sentence = tables.splitlines()[-1]
    assert sentence.startswith("HOPE, 150 products < HOPE, tied, F = 1,200 (p = ")
    assert "paired over 2 splits" in sentence


def test_runs_with_older_settings_and_on_other_parts_are_not_shown(small, tmp_path, of_job):
    job = sweep.sweep_job("S-HOPE", "digits", {})
    keep(tmp_path, of_job(replace(job, final=True), [0]))
    today = of_job(job, [0])
    keep(tmp_path, replace(today, settings=today.settings | {"learning_rate": 7}))
    assert cells(sweep.sweep_tables(tmp_path), "by O, order", "2")[1] == "**not run yet**"


def test_the_tables_are_told_by_name_and_without_runs_they_say_so(tmp_path):
    arguments = ["tables", "--name", "sweep", "--results", str(tmp_path)]
    assert "not run yet" in CliRunner().invoke(command.app, arguments).output
