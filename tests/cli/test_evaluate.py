"""Evaluating, comparing, and the report."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from cells import QUICK, write_cells
from hopefold import SHOPE, evaluation, load


def test_errors_confusion_calibration_and_speed_ups(run, here, cells_model):
    table = cells_model.with_suffix(".csv")
    shown = run("evaluate", cells_model, table, "-o", "found.json", env={"COLUMNS": "80"}).stdout
    words_shown = (
        "6 exemplars",
        "5-NN in the map",
        "Confusion matrix",
        "Calibration",
        "search only",
    )
    for words in words_shown:
        assert words in shown
    assert max(map(len, shown.splitlines()[1:])) <= 80
    found = json.loads((here / "found.json").read_text())
    model, frame = load(cells_model), pd.read_csv(table)
    wrong = model.predict(frame) != frame["type"]
    assert found["errors"]["references"] == pytest.approx(wrong.mean())
    confusion = np.array(found["confusion"])
    assert confusion.sum() == 90
    assert confusion.sum() - np.trace(confusion) == wrong.sum()
    shares = model.predict_proba(frame)
    expected = evaluation.calibration(shares, frame["type"], model.classes_)
    assert found["calibration"]["error"] == pytest.approx(expected.error)
    assert f"expected calibration error {100 * expected.error:.2f} %" in shown
    assert found["calibration"]["accuracy"] == pytest.approx(expected.accuracy.tolist())
    points = model.transform(frame)
    assert found["errors"]["map_5nn"] == evaluation.left_out_error(points, frame["type"])
    counted = found["speed_ups"]["by multiply-adds"]
    assert counted["end_to_end"] == pytest.approx(evaluation.counted_speed_up(model, 90).end_to_end)
    assert set(found["speed_ups"]) == {"by multiply-adds", "by the clock, here"}


def test_no_row_is_its_own_neighbor(run, here, plain_model):
    table = plain_model.with_suffix(".csv")
    error = run("evaluate", plain_model, table, "--training", table, status=2).stderr
    assert "each would be its own neighbor: leave it out" in error


def test_neighbors_are_those_of_the_training_rows_where_given(run, here, plain_model):
    train = write_cells(here / "train.csv", cell=None, tissue=None)
    new = write_cells(here / "new.csv", n_rows=30, cell=None, tissue=None)
    run("evaluate", plain_model, new, "--training", train, "-o", "found.json")
    model, frames = load(plain_model), [pd.read_csv(path) for path in (train, new)]
    points = [model.transform(frame[["size", "age"]]) for frame in frames]
    expected = evaluation.knn_error(points[0], frames[0]["type"], points[1], frames[1]["type"])
    assert json.loads((here / "found.json").read_text())["errors"]["map_5nn"] == expected


def test_rows_of_unknown_classes_are_told_and_are_errors(run, here, plain_model):
    labels = ["new" if row < 9 else ["B cell", "NK", "T cell"][row % 3] for row in range(90)]
    table = write_cells(here / "t.csv", type=labels, cell=None, tissue=None)
    shown = run("evaluate", plain_model, table, "-o", "found.json").stdout
    assert "9 rows are of classes unknown to the model (new)" in shown
    assert json.loads((here / "found.json").read_text())["errors"]["references"] >= 0.1


def test_many_classes_are_a_list_of_confusions(run, here):
    labels = [f"kind number {row % 15}" for row in range(150)]
    table = write_cells(here / "t.csv", n_rows=150, type=labels, cell=None, tissue=None)
    run("fit", table, "--label", "type", "-o", "m", *QUICK)
    shown = run("evaluate", "m", table, env={"COLUMNS": "80"}).stdout
    assert "Most frequent confusions" in shown
    assert max(map(len, shown.splitlines()[1:])) <= 80


def test_numbers_in_a_table_and_text_in_a_model_are_the_same_labels(run, here):
    table = write_cells(here / "t.csv", type=[row % 3 for row in range(90)], cell=None, tissue=None)
    frame = pd.read_csv(table)
    model = SHOPE(max_epochs=20, random_state=0)
    model.fit(frame[["size", "age"]], frame["type"].astype(str)).save("m.hope")
    run("evaluate", "m.hope", table, "--label", "type", "-o", "found.json")
    assert json.loads((here / "found.json").read_text())["errors"]["references"] < 0.1


def test_methods_are_compared_on_the_same_split(run, here, cells):
    options = ("--label", "type", "--drop", "cell", "--encode", "--max-epochs", 3)
    methods = ("--method", "shope", "--method", "hope", "--method", "lda", "--method", "nca")
    done = run("compare", cells, *options, *methods, "-o", "maps.png", env={"COLUMNS": "80"})
    assert "63 training rows, 27 test rows" in done.stdout
    for name in ("all columns", "S-HOPE", "HOPE", "LDA", "NCA"):
        assert re.search(rf"^{name}.*\d\.\d\d %", done.stdout, flags=re.M), name
    height, width = imread("maps.png").shape[:2]
    assert width > height > 500
    assert max(map(len, done.stdout.splitlines()[1:])) <= 80
    again = run("compare", cells, *options, *methods, "-o", "maps.png", status=2)
    assert "--force" in again.stderr


def test_a_report_is_one_html_file(run, here, cells_model):
    table = cells_model.with_suffix(".csv")
    run("report", cells_model, table, "--id", "cell", "-o", "report.html", "--title", "<Cells>")
    page = (here / "report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "&lt;Cells&gt;" in page
    assert '"c89"' in page or "c89" in page
    assert "--force" in run("report", cells_model, table, "-o", "report.html", status=2).stderr


def test_a_report_of_images_has_their_pixels(run, here):
    run("fit", "digits", "-o", "m.hope", "--max-epochs", 2, "--n-factors", 8, "--n-units", 8)
    run("report", "m.hope", "digits", "-o", "report.html")
    assert "data:image/png;base64" in (here / "report.html").read_text()


def test_a_report_on_rows_that_were_learned_from_does_not_take_them_for_new(run, here, cells_model):
    table = cells_model.with_suffix(".csv")
    told = run("report", cells_model, table, "-o", "old.html", "--permutations", "2").output
    assert "100% of these rows are training rows" in told
    page = (here / "old.html").read_text()
    assert "all rows given were learned from" in page
    assert "--label type --drop cell --encode --missing mean" in page
    assert "--n-factors 8" in page
    assert "permutation test not run" not in page
    assert "100% of these rows are training rows" in run("evaluate", cells_model, table).output
