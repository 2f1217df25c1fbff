"""Every verb on a model that was learned without labels, or with some."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from cells import QUICK, write_cells
from hopefold import evaluation, load


@pytest.fixture
def some_labels(run, here):
    """Cells of which every second has no type, and a model of them."""
    types = ["" if row % 2 else ["B cell", "NK", "T cell"][row % 3] for row in range(90)]
    table = write_cells(here / "some.csv", cell=None, tissue=None, type=types)
    options = ("--missing-label", "none", "--structure", "0.5", "--perplexity", "5")
    run("fit", table, "--label", "type", *options, "-o", "some.hope", *QUICK)
    return table


def test_labels_that_the_fit_never_saw_are_judged_by_neighbors(run, here, unlabeled_model):
    table = unlabeled_model.with_suffix(".csv")
    wide = {"COLUMNS": "80"}
    shown = run("evaluate", unlabeled_model, table, "-o", "found.json", env=wide).stdout
    assert "These labels were not used in the fit." in shown
    assert "Errors; 5-NN among the 90 rows, each left out in turn" in shown
    assert max(map(len, shown.splitlines()[1:])) <= 80
    for words in ("Calibration", "exemplars", "Speed-up"):
        assert words not in shown
    found = json.loads((here / "found.json").read_text())
    frame, model = pd.read_csv(table), load(unlabeled_model)
    rows = frame[["size", "age"]]
    points = model.transform(rows)
    assert found["errors"]["map_5nn"] == evaluation.left_out_error(points, frame["type"])
    expected = evaluation.trustworthiness(model, rows.to_numpy(), points)
    assert found["trustworthiness"] == pytest.approx(expected)


def test_training_rows_judge_others_where_given(run, here, unlabeled_model):
    train = unlabeled_model.with_suffix(".csv")
    new = write_cells(here / "new.csv", n_rows=30, cell=None, tissue=None)
    run("evaluate", unlabeled_model, new, "--training", train, "-o", "found.json")
    model, frames = load(unlabeled_model), [pd.read_csv(path) for path in (train, new)]
    points = [model.transform(frame[["size", "age"]]) for frame in frames]
    expected = evaluation.knn_error(points[0], frames[0]["type"], points[1], frames[1]["type"])
    assert json.loads((here / "found.json").read_text())["errors"]["map_5nn"] == expected


def test_without_labels_neighbors_are_trusted_and_one_is_told_how_to_say_more(
    run, here, unlabeled_model
):
    table = write_cells(here / "bare.csv", cell=None, tissue=None, type=None)
    shown = run("evaluate", unlabeled_model, table).stdout
    assert "trustworthiness 0." in shown
    assert "bare.csv has no known labels: name a column with --label COLUMN" in shown
    assert "5-NN" not in shown


def test_a_report_is_colored_by_labels_that_the_fit_never_saw(run, here, unlabeled_model):
    table = unlabeled_model.with_suffix(".csv")
    shown = run("report", unlabeled_model, table, "-o", "r.html").stdout
    assert "The colors are labels that were not used in the fit." in shown
    assert "About 100% of these rows are training rows.\n" in shown
    page = (here / "r.html").read_text()
    assert "the colors are 3 labels that it has not seen" in page
    assert f"-o {unlabeled_model} --unlabeled --label type" in page


def test_a_report_without_labels_says_how_to_get_colors(run, here, unlabeled_model):
    bare = write_cells(here / "bare.csv", cell=None, tissue=None, type=None)
    shown = run("report", unlabeled_model, bare, "-o", "r.html").stdout
    assert "No labels are known: --label COLUMN" in shown
    asked = ("--permutations", "2", "-o", "again.html")
    error = run("report", unlabeled_model, bare, *asked, status=2).stderr
    assert "--permutations shuffles labels" in error
    assert not (here / "again.html").exists()


def test_predict_says_what_to_use_instead(run, here, unlabeled_model):
    table = unlabeled_model.with_suffix(".csv")
    error = run("predict", unlabeled_model, table, "-o", "p.csv", status=2).stderr
    assert "learned without labels, so it names no classes: use transform" in error
    assert not (here / "p.csv").exists()
    run("transform", unlabeled_model, table, "-o", "t.csv")
    assert len(pd.read_csv(here / "t.csv")) == 90


def test_landmarks_are_a_table_of_the_columns_alone(run, here, unlabeled_model):
    shown = run("exemplars", unlabeled_model, "-o", "landmarks.csv").stdout
    model, table = load(unlabeled_model), pd.read_csv(here / "landmarks.csv")
    assert f"{len(model.exemplars_)} landmarks" in shown
    assert list(table) == ["size", "age"]
    np.testing.assert_allclose(table, model.exemplars_, rtol=1e-5)
    run("exemplars", unlabeled_model, "-o", "landmarks.npz")
    assert set(np.load(here / "landmarks.npz", allow_pickle=True)) == {"X", "names"}
    run("exemplars", unlabeled_model, "-o", "landmarks.png", "--image-shape", "1,2")


def test_a_model_of_pairs_has_no_landmarks_and_says_so(run, here, unlabeled_model):
    table = unlabeled_model.with_suffix(".csv")
    settings = ("--unlabeled", "--label", "type", "--exemplars", "none", "--perplexity", "5")
    run("fit", table, *settings, "-o", "pairs.hope", *QUICK)
    error = run("exemplars", "pairs.hope", status=2).stderr
    assert "has no exemplars, it keeps all 90 training rows: fit with --exemplars" in error


def test_without_labels_none_is_missing(run, here, unlabeled_model):
    options = ("--unlabeled", "--label", "type", "--missing-label", "none")
    table = unlabeled_model.with_suffix(".csv")
    assert "choose one of them" in run("fit", table, *options, "-o", "m.hope", status=2).stderr


def test_products_are_ranked_on_rows_with_labels_and_without(run, here, unlabeled_model):
    bare = write_cells(here / "bare.csv", cell=None, tissue=None, type=None)
    assert "deviation" in run("interactions", unlabeled_model, bare).stdout
    shown = run("interactions", unlabeled_model, unlabeled_model.with_suffix(".csv")).stdout
    assert "moves most" in shown
    assert "moves most" not in run("interactions", unlabeled_model, bare).stdout


def test_an_export_has_points_and_says_that_there_are_no_labels(run, here, unlabeled_model):
    assert "there were none in the fit" in run("export", unlabeled_model, "-o", "m.c").stdout


def test_rows_without_a_label_are_not_judged(run, here, some_labels):
    shown = run("evaluate", "some.hope", some_labels, "-o", "found.json").stdout
    assert "45 of them have no label, and are left out of the errors" in shown
    assert "trustworthiness 0." in shown
    found = json.loads((here / "found.json").read_text())
    assert found["n_rows"] == np.sum(found["confusion"]) == 45
    assert "NK" in run("interactions", "some.hope", some_labels).stdout
    run("report", "some.hope", some_labels, "-o", "r.html")
    assert "Rows without a label are gray" in (here / "r.html").read_text()


def test_a_summary_guesses_among_the_labels_that_are_there(run, here):
    types = [-1 if row % 2 else row % 3 for row in range(90)]
    table = write_cells(here / "some.csv", cell=None, tissue=None, type=types)
    options = ("--label", "type", "--missing-label", "-1", "--structure", "0.5", *QUICK)
    shown = run("fit", table, *options, "--perplexity", "5", "-o", "some.hope").stdout
    assert " rows (majority: 66.67 %)" in shown


def test_a_misspelt_marker_is_told(run, here):
    table = write_cells(here / "some.csv", cell=None, tissue=None)
    options = ("--label", "type", "--missing-label", "unknwon", *QUICK)
    told = run("fit", table, *options, "-o", "some.hope").stderr
    assert "hopefold: warning: missing_label='unknwon' marks no row" in told


def test_two_layers_by_default_are_shown(run, here):
    columns = {f"x{place}": column for place, column in enumerate(np.eye(60, 100).T)}
    pd.DataFrame(columns).to_csv("wide.csv", index=False)
    shown = run("fit", "wide.csv", "--unlabeled", "--max-epochs", 1, "-o", "wide.hope").stdout
    assert re.search(r"layers +2$", shown, flags=re.M)
