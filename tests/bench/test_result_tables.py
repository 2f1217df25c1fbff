"""Tables whose numbers are derived by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hopefold_bench.comparison import Runs, compare, paired_t, paired_test
from hopefold_bench.paper import TABLES
from hopefold_bench.records import append, results_file
from hopefold_bench.result_tables import RESULT_TABLES, Results, read_results


def line(table, name):
    """The cells of the row with this name."""
    rows = [row for row in table.splitlines() if row.startswith(f"| {name} |")]
    assert len(rows) == 1
    return [cell.strip() for cell in rows[0].strip("|").split("|")]


def test_ours_is_mean_and_deviation_in_percent(record):
    runs = [record(split=0, wrong=[0]), record(split=1, wrong=[0, 1, 2])]
    # 10 % and 30 %: mean 20, deviation √(2 · 10²) = 14.14
    cells = line(RESULT_TABLES["usps"](Results(runs)), "S-HOPE")
    assert cells[2:] == ["20.00 ± 14.14", "not run yet", "2 / 0"]


def test_one_run_has_no_deviation(record):
    assert line(RESULT_TABLES["usps"](Results([record(wrong=[0])])), "S-HOPE")[2] == "10.00"


def test_the_faithful_column_is_another_method(record):
    runs = [record(wrong=[0]), record(method="S-HOPE faithful", wrong=[0, 1])]
    cells = line(RESULT_TABLES["usps"](Results(runs)), "S-HOPE")
    assert cells[2:] == ["10.00", "20.00", "1 / 1"]


def test_exemplar_tables_show_the_errors_against_exemplars(record):
    errors = {"all": 0.5, "kmeans": 0.4, "joint": 0.3}
    runs = [record(errors=errors), record(method="S-HOPE pairs", errors=errors)]
    table = RESULT_TABLES["usps-exemplars"](Results(runs))
    assert line(table, "S-HOPE, 20 joint exemplars")[2] == "30.00"
    assert line(table, "k-means + S-HOPE")[2] == "40.00"


@pytest.mark.parametrize("name", TABLES)
def test_without_runs_every_row_of_the_paper_says_so(name):
    table = RESULT_TABLES[name](Results([]))
    for row in TABLES[name].rows:
        if not row.optional:
            assert line(table, row.name)[2] == "not run yet"


def test_rows_of_packages_that_nobody_needs_are_shown_if_they_were_run(record):
    assert "PaCMAP" not in RESULT_TABLES["usps"](Results([]))
    assert "PaCMAP" in RESULT_TABLES["usps"](Results([record(method="PaCMAP")]))


def test_only_full_runs_on_the_test_part_are_shown(record):
    runs = [record(quick=True), record(part="validation")]
    assert line(RESULT_TABLES["usps"](Results(runs)), "S-HOPE")[2] == "not run yet"
    assert line(RESULT_TABLES["usps"](Results(runs, "validation")), "S-HOPE")[2] == "0.00"


def test_the_newest_run_of_a_split_counts(record):
    runs = [record(wrong=[0, 1]), record(wrong=[0])]
    assert line(RESULT_TABLES["usps"](Results(runs)), "S-HOPE")[2] == "10.00"


def test_runs_with_older_settings_are_not_mixed_with_newer_ones(record):
    today = record().settings
    older = [record(split=s, wrong=[0, 1], settings=today | {"order": 1}) for s in range(3)]
    newer = record(split=0, wrong=[0])
    assert line(RESULT_TABLES["usps"](Results([*older, newer])), "S-HOPE")[2] == "10.00"


def test_a_row_that_was_run_with_earlier_settings_alone_is_marked(record):
    earlier = record(wrong=[0], settings=record().settings | {"n_units": 5})
    for name in ("usps", "short"):
        assert "the settings of an earlier version" in RESULT_TABLES[name](Results([earlier]))
        assert "the settings of an earlier version" not in RESULT_TABLES[name](Results([record()]))


def test_the_short_table_has_raw_map_and_exemplars(record, tmp_path):
    for run in (record(method="raw", wrong=[0, 1]), record(errors={"all": 0.03, "joint": 0.04})):
        append(results_file(tmp_path, "usps", quick=False), run.to_line())
    cells = line(RESULT_TABLES["short"](read_results(tmp_path)), "usps")
    assert cells == ["usps", "20.00", "3.00", "4.00", "3.03 / 3.60", "1"]


def test_resources_are_means_over_the_runs(record):
    runs = [record(split=s, seconds_fit=2.0 + s, peak_memory_mb=300.0 + 20 * s) for s in (0, 1)]
    table = RESULT_TABLES["resources"](Results(runs))
    assert line(table, "S-HOPE") == ["S-HOPE", "2.5", "310", "2", "–", "–", "0"]


def test_splits_are_compared_with_the_correction_for_overlap():
    # Mean 0.02, variance 0.0001, 1/3 + 3/8: t² = 0.0004 / 0.0000708333 = 5.647059. With two
    # degrees of freedom p is 1 - t/√(2 + t²).
    p = paired_t(np.array([0.01, 0.02, 0.03]), overlap=3 / 8)
    assert p == pytest.approx(1 - np.sqrt(5.647059 / 7.647059), rel=1e-6)


def test_without_overlap_it_is_the_paired_t_test_of_scipy():
    one, other = np.random.RandomState(0).rand(2, 12)
    assert paired_t(one - other) == pytest.approx(stats.ttest_rel(one, other).pvalue)


def test_mnist_is_compared_row_by_row_averaged_over_seeds(record):
    random = np.random.RandomState(0)
    wrong = [np.flatnonzero(random.rand(10) < share) for share in (0.2, 0.3, 0.9)]
    one = Runs("one", [record(data="mnist", split=s, wrong=wrong[s]) for s in (0, 1)], "all")
    other = Runs("other", [record(data="mnist", wrong=wrong[2])], "all")
    rows = [np.isin(np.arange(10), rows) for rows in wrong]
    expected = stats.ttest_rel((rows[0] * 1.0 + rows[1]) / 2, rows[2] * 1.0).pvalue
    p, test = paired_test(one, other)
    assert p == pytest.approx(expected)
    assert test == "paired over 10 rows, 2 and 1 seeds"


def test_usps_is_compared_over_the_splits_that_both_have(record):
    one = Runs("one", [record(split=s, wrong=[0]) for s in range(4)], "all")
    other = Runs("other", [record(split=s, wrong=range(s + 1)) for s in range(3)], "all")
    p, test = paired_test(one, other)
    assert p == pytest.approx(paired_t(np.array([0.0, 0.1, 0.2]), overlap=0.1))
    assert test == "paired over 3 splits, corrected for overlap"


def test_one_split_is_said_to_be_one(record):
    one, other = Runs("one", [record(wrong=[0])], "all"), Runs("other", [record()], "all")
    assert "one split only" in compare(one, other)


def test_runs_without_a_common_split_are_not_compared(record):
    one = Runs("one", [record(split=0)], "all")
    other = Runs("other", [record(split=1, wrong=[0])], "all")
    assert compare(one, other) == "one and other: no test (no split in common)."


def test_a_clear_difference_is_told_as_less(record):
    one = Runs("one", [record(data="mnist", wrong=range(9))], "all")
    other = Runs("other", [record(data="mnist")], "all")
    assert compare(one, other).startswith("other < one (p = 0.0001 or less;")


def test_equal_mistakes_are_no_difference(record):
    one, other = (Runs(name, [record(data="mnist", wrong=[1])], "all") for name in ("a", "b"))
    assert compare(one, other).startswith("a and b: no significant difference (p = 1;")


def test_the_best_is_compared_with_the_next_and_with_the_best_baseline(record):
    runs = [
        record(method="raw"),
        record(wrong=[0]),
        record(method="HOPE", wrong=[0, 1]),
        record(method="LDA", wrong=[0, 1, 2, 3]),
        record(method="NCA", wrong=[0, 1, 2]),
    ]
    below = [text for text in RESULT_TABLES["usps"](Results(runs)).split("\n\n") if "p = " in text]
    assert [text.split(":")[0] for text in below] == ["S-HOPE and HOPE", "S-HOPE and NCA"]


def test_the_goals_have_both_errors_and_the_size(record, tmp_path):
    small = record("S-HOPE 64 kB", "mnist", wrong=[1, 2], model_bytes=65_000)
    append(results_file(tmp_path, "mnist", quick=False), small.to_line())
    table = RESULT_TABLES["goals"](read_results(tmp_path))
    cells = line(table, "MNIST, S-HOPE in 64 kB")
    assert cells[1:4] == ["3.05", "20.00", "20.00"]
    assert cells[-2:] == ["65,000", "1"]
    assert line(table, "USPS, HOPE")[2:4] == ["not run yet"] * 2
