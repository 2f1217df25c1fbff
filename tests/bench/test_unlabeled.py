"""The bench of maps without labels: what it writes, what it does not do again, and its table."""

from __future__ import annotations

import numpy as np
import pytest

from hopefold_bench import unlabeled
from hopefold_bench.records import read_lines
from hopefold_bench.result_tables import OTHER_TABLES


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A very short run on digits, twice: the second has nothing to do."""
    folder, printed = tmp_path_factory.mktemp("results"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(unlabeled.EPOCHS, "digits", 3)
        patch.setitem(unlabeled.FEWER_EPOCHS, "digits", 2)
        patch.setattr(unlabeled, "N_LABELS", 200)
        for _ in range(2):
            unlabeled.measure(
                folder, sets=["digits"], only=["S-HOPE", "HOPE,"], final=True, report=printed.append
            )
    return folder, printed


def test_each_map_has_one_line(measured):
    folder, printed = measured
    lines = read_lines(unlabeled.unlabeled_file(folder))
    assert [line["map"] for line in lines] == [
        "S-HOPE",
        "S-HOPE, 1 layer",
        "S-HOPE, some labels",
        "S-HOPE, labeled rows alone",
    ]
    assert len(printed) == 4


def test_what_is_measured_makes_sense(measured):
    for line in read_lines(unlabeled.unlabeled_file(measured[0])):
        assert 0 < line["error"] < 0.5
        assert 0.6 < line["trustworthiness"] <= 1


def test_known_labels_are_as_many_of_each_class_and_the_others_missing(digits):
    _, _, y, _ = digits
    known, partly = unlabeled.some_labels(y)
    assert (partly[known] == y[known]).all()
    assert (np.delete(partly, known) == unlabeled.MISSING).all()


def test_a_map_that_was_not_run_is_told(tmp_path):
    assert "not run yet" in OTHER_TABLES["unlabeled"](tmp_path, "")
