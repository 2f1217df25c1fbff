"""The demo as a person runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.image import imread

from hopefold import load


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    environment = {**os.environ, "COLUMNS": "80", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [Path(sys.executable).with_name("hopefold"), "demo"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return folder / "demo", done.stdout


def test_the_table_shows_errors_rows_bytes_and_both_speed_ups(demo):
    _, shown = demo
    errors = [float(error) for error in re.findall(r" (\d+\.\d\d) %", shown)]
    assert len(errors) == 3
    assert errors[0] == 1.85
    assert errors[1] <= 2.6
    assert errors[2] <= 3.0
    for word in ("rows", "bytes", "search only", "end to end"):
        assert word in shown
    assert max(map(len, shown.splitlines()[:-2])) <= 80


def test_the_pictures_and_the_model_are_there(demo):
    folder, _ = demo
    assert imread(folder / "map.png").shape[:2] == (910, 910)
    assert imread(folder / "exemplars.png").size > 0
    assert load(folder / "digits.hope").exemplars_.shape == (20, 64)


def test_the_report_shows_the_digits_that_the_model_has_not_seen(demo):
    page = (demo[0] / "report.html").read_text()
    assert "540 test digits" in page
    assert "data:image/png;base64" in page


def test_files_that_are_there_stay_unless_forced(run, demo):
    before = (demo[0] / "digits.hope").read_bytes()
    assert "--force" in run("demo", "-o", demo[0], status=2).stderr
    assert (demo[0] / "digits.hope").read_bytes() == before
