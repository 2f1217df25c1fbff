"""The demo as a person runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from matplotlib.image import imread

from hopefold import load


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    environment = {**os.environ, "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "hopefold.cli.demo"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return folder / "demo", done.stdout


def test_the_table_shows_errors_rows_bytes_and_both_speed_ups(demo):
    _, shown = demo
    errors = [float(error) for error in re.findall(r"│ +(\d+\.\d\d)% │", shown)]
    assert len(errors) == 3
    assert errors[0] == 1.85
    assert errors[1] <= 2.6
    assert errors[2] <= 3.0
    for word in ("rows", "bytes", "search only", "end to end"):
        assert word in shown


def test_the_pictures_and_the_model_are_there(demo):
    folder, _ = demo
    assert imread(folder / "map.png").shape[:2] == (910, 910)
    assert imread(folder / "exemplars.png").size > 0
    assert load(folder / "digits.hope").exemplars_.shape == (20, 64)
