"""The profile of an epoch accounts for all of its time."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from hopefold_bench import one_pass, profile
from hopefold_bench.__main__ import app
from hopefold_bench.records import read_lines


def test_the_shares_of_an_epoch_add_up_and_products_have_theirs(monkeypatch, tmp_path):
    monkeypatch.setattr(one_pass, "SIZE", 200)
    for name in ("before", "after"):
        arguments = ["profile", name, "--data", "digits", "--results", str(tmp_path)]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
    lines = list(read_lines(profile.profile_file(tmp_path)))
    assert [line["name"] for line in lines] == ["before", "after"]
    for line in lines:
        assert sum(line["shares"].values()) == pytest.approx(1)
        assert line["shares"]["matrix products"] > 0.1
        assert all(0 <= share < 1 for share in line["shares"].values())
    table = profile.profile_table(tmp_path)
    assert "| before | after |" in table
    assert f"| matrix products | {lines[0]['shares']['matrix products']:.1%} |" in table


def test_nothing_measured_is_told(tmp_path):
    assert "not run yet" in profile.profile_table(tmp_path)
