"""Trials: settings on validation parts, recorded and listed."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from hopefold.errors import InvalidParameter
from hopefold_bench.__main__ import app
from hopefold_bench.records import read_records
from hopefold_bench.trials import make_trials, trials_folder, trials_table


def test_a_trial_is_run_once_and_told_by_what_is_changed(tmp_path):
    command = ["try", "LDA", "--data", "digits", "--set", "n_components=3", "--workers", "1"]
    for _ in range(2):
        result = CliRunner().invoke(app, [*command, "--results", str(tmp_path)])
        assert result.exit_code == 0, result.output
    records = read_records(trials_folder(tmp_path), "digits")
    assert len(records) == 1
    assert records[0].part == "validation"
    assert "| LDA, n_components=3 |" in trials_table(tmp_path)


@pytest.mark.parametrize(
    ("method", "settings", "data", "message"),
    [
        ("T-HOPE", [], ["usps"], "'T-HOPE' is not a known method"),
        ("HOPE", ["color=3"], ["usps"], "HOPE has no setting 'color'"),
        ("HOPE", ["random_state=5"], ["usps"], "ask for more --splits"),
        ("HOPE", ["order"], ["usps"], "^--set order: give name=value, e.g. order=3.$"),
        ("HOPE", ["order="], ["usps"], "^--set order=: give name=value"),
        ("HOPE", ["=3"], ["usps"], "^--set =3: give name=value"),
        ("HOPE", [], ["letters"], "'letters' is not a known data set"),
    ],
)
def test_what_cannot_be_tried_is_said(method, settings, data, message):
    with pytest.raises(InvalidParameter, match=message):
        make_trials(method, settings, data, 1)


def test_values_are_read_as_json_and_else_as_text():
    (job,) = make_trials("S-HOPE", ["dropout=0.3", "exemplars=kmeans"], ["usps"], 1)
    assert job.changes == {"dropout": 0.3, "exemplars": "kmeans"}


def test_without_trials_the_table_says_so(tmp_path):
    assert "not run yet" in trials_table(tmp_path)
