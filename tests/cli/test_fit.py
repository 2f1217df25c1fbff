"""Fitting on the command line, and going on with the model elsewhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from cells import QUICK, with_gaps, write_cells
from hopefold import SHOPE, load


def test_a_summary_tells_what_was_learned_and_how_good_it_is(run, cells):
    options = ("--label", "type", "--id", "cell", "--encode", "-o", "cells.hope")
    shown = run("fit", cells, *options, *QUICK).stdout
    for words in (
        *("90 rows, 5 features, 3 classes", "B cell, NK, T cell", "tissue (3)", "held-out error"),
        *("majority: 66.67 %", "6 for 90 rows", "wrote cells.hope"),
    ):
        assert words in shown
    assert max(len(line) for line in shown.splitlines() if "cells.csv" not in line) <= 80


def test_the_progress_bar_shows_loss_and_held_out_error(run, cells):
    options = ("--label", "type", "--drop", "cell", "--drop", "tissue", "-o", "m.hope")
    assert "held-out error" in run("fit", cells, *options, *QUICK).stderr
    assert "loss" not in run("fit", cells, *options, *QUICK, "--verbose", 0, "--force").stderr


def test_a_model_of_the_command_line_is_the_one_that_python_fits(run, cells):
    run("fit", cells, "--label", "type", "--drop", "cell", "--drop", "tissue", "-o", "m", *QUICK)
    frame = pd.read_csv(cells)
    settings = {"max_epochs": 3, "n_factors": 8, "n_units": 8, "random_state": 0}
    mine = SHOPE(**settings).fit(frame[["size", "age"]], frame["type"])
    again = load("m")
    np.testing.assert_array_equal(
        again.transform(frame[["size", "age"]]), mine.transform(frame[["size", "age"]])
    )
    assert list(again.feature_names_in_) == ["size", "age"]
    assert again.columns_.label == "type"
    assert again.columns_.aside == ("cell", "tissue")


def test_a_model_of_python_works_on_the_command_line(run, cells):
    frame = pd.read_csv(cells)
    model = SHOPE(max_epochs=3, random_state=0).fit(frame[["age", "size"]], frame["type"])
    model.save("python.hope")
    run("transform", "python.hope", cells, "--ignore-extra", "-o", "points.csv")
    points = pd.read_csv("points.csv").to_numpy()
    np.testing.assert_allclose(points, model.transform(frame[["age", "size"]]), rtol=1e-6)


def test_python_reads_raw_frames_with_the_encoder_of_the_model(run, cells_model, tmp_path):
    frame = pd.read_csv(cells_model.with_suffix(".csv"))
    assert frame["age"].isna().any()
    model = load(cells_model)
    run("predict", cells_model, cells_model.with_suffix(".csv"), "-o", tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz") as file:
        np.testing.assert_array_equal(model.predict_proba(frame), file["probabilities"])
    np.testing.assert_array_equal(
        model.transform(frame[frame.columns[::-1]]), model.transform(frame)
    )
    np.testing.assert_array_equal(
        model.transform(cells_model.with_suffix(".csv")), model.transform(frame)
    )


def test_parameters_reach_the_estimator(run, cells):
    given = ("--n-exemplars", 1, "--no-refit", "--scale", "none", "--class-weight", "NK=3")
    dropped = ("--drop", "cell", "--drop", "tissue")
    run("fit", cells, "--label", "type", "-o", "m.hope", *QUICK, *given, *dropped)
    model = load("m.hope")
    assert len(model.exemplars_) == 3
    assert model.refit is False
    assert model.scale is None
    assert model.class_weight == {"NK": 3}
    assert model.max_epochs == 3


@pytest.mark.parametrize("method", ["hope", "lda", "nca"])
def test_other_methods_are_fitted_by_name(run, cells, method):
    options = ("--label", "type", "--drop", "cell", "--encode", "-o", "m.hope", "--method", method)
    run("fit", cells, *options, "--random-state", 0)
    assert type(load("m.hope")).__name__.lower() == method


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([7 + row % 2 for row in range(90)], [7, 8]),
        ([row % 2 == 0 for row in range(90)], [False, True]),
        ([0.5 * (row % 2 + 1) * 2 for row in range(90)], [1.0, 2.0]),
        (["<b>" if row % 2 else "ü, 1" for row in range(90)], ["<b>", "ü, 1"]),
        ([f"202{row % 2}-01-01" for row in range(90)], ["2020-01-01", "2021-01-01"]),
    ],
    ids=["whole numbers", "truth values", "numbers", "odd text", "dates"],
)
def test_labels_of_any_kind(run, here, labels, classes):
    quoted = [f'"{label}"' if isinstance(label, str) else label for label in labels]
    table = write_cells(here / "t.csv", type=quoted, cell=None, tissue=None)
    run("fit", table, "--label", "type", "-o", "m.hope", *QUICK)
    assert load("m.hope").classes_.tolist() == classes


def test_images_in_a_folder_for_each_class(run, here):
    random = np.random.RandomState(0)
    for row in range(40):
        image = np.zeros((5, 4), np.uint8)
        image[:, : 2 + row % 2] = 200 + random.randint(50, size=(5, 2 + row % 2))
        folder = here / "images" / ("wide" if row % 2 else "narrow")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{row}.png")
    run("fit", "images", "-o", "m.hope", *QUICK)
    model = load("m.hope")
    assert model.image_shape == model.columns_.image_shape == (5, 4)
    run("exemplars", "m.hope", "-o", "gallery.png")
    run("predict", "m.hope", "images", "-o", "p.csv")
    predicted = pd.read_csv("p.csv")
    assert predicted["file"][0] == "narrow/0.png"
    Image.fromarray(np.zeros((10, 8), np.uint8)).save(here / "large.png")
    (here / "new").mkdir()
    (here / "large.png").rename(here / "new" / "large.png")
    run("predict", "m.hope", "new", "-o", "q.csv")  # brought to the size of the model's


def test_missing_values_are_dropped_or_filled_as_asked(run, here):
    table = write_cells(here / "t.csv", age=with_gaps(), tissue=None, cell=None)
    options = ("--label", "type", "-o", "m.hope", "--force", *QUICK)
    shown = run("fit", table, *options, "--missing", "drop").stdout
    assert "85 rows, 2 features" in shown
    assert "5 rows with missing values left out" in shown
    assert load("m.hope").columns_.fills is None
    assert "90 rows" in run("fit", table, *options, "--missing", "mean").stdout
    ages = pd.read_csv(table)["age"]
    assert load("m.hope").columns_.fills[1] == pytest.approx(ages.mean())


def test_a_budget_of_bytes_holds_with_names_encoder_and_fills(run, here):
    table = write_cells(here / "t.csv", age=with_gaps(), cell=None)
    options = ("--label", "type", "--encode", "--missing", "mean", "-o", "m.hope")
    run("fit", table, *options, "--max-bytes", 6000, "--max-epochs", 3)
    assert (here / "m.hope").stat().st_size <= 6000
    assert load("m.hope").precision_ == "int8"
    run("transform", "m.hope", table, "-o", "points.csv")


def test_a_table_from_standard_input(run, cells):
    options = ("--label", "type", "--drop", "cell", "--encode", "-o", "m.hope")
    run("fit", "-", *options, *QUICK, input=cells.read_text())
    run("fit", cells, *options[:-1], "n.hope", *QUICK)
    first, second = load("m.hope"), load("n.hope")
    np.testing.assert_array_equal(first.reference_embedding_, second.reference_embedding_)


def test_an_existing_file_stays_unless_forced(run, cells):
    options = ("fit", cells, "--label", "type", "--drop", "cell", "--encode", "-o", "m.hope")
    cells.with_name("m.hope").write_text("mine")
    assert "--force" in run(*options, *QUICK, status=2).stderr
    assert cells.with_name("m.hope").read_text() == "mine"
    run(*options, *QUICK, "--force")
    load("m.hope")


def test_warnings_are_lines_of_their_own(run, here):
    numbers = [row * 7919 % 101 for row in range(90)]
    noise = write_cells(here / "t.csv", size=numbers, age=None, tissue=None, cell=None)
    said = run("fit", noise, "--label", "type", "-o", "m", *QUICK).stderr
    warned = [line for line in said.splitlines() if line.startswith("hopefold: warning: ")]
    assert len(warned) == 1
    assert ".py" not in said


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("nothing/*.parquet", ("--label", "y"), "does not exist"),
        (".", (), "name the label column"),
        ("*.parquet", ("--label", "y", "--drop", "a"), "leave out --drop"),
    ],
)
def test_files_that_are_read_in_parts_are_learned_from_as_they_are(
    here, run, source, options, words
):
    parquet.write_table(pa.table({"a": [0.0, 1.0], "y": [0, 1]}), "rows.parquet")
    assert words in run("fit", source, *options, "-o", "m.hope", status=2).stderr


def test_a_checkpoint_in_the_place_of_the_model_or_the_data_is_refused(run, cells):
    options = ("--label", "type", "--drop", "cell", "--encode", *QUICK)
    for place in ("m.hope", "./m.hope", cells):
        said = run("fit", cells, *options, "-o", "m.hope", "--checkpoint", place, status=2).stderr
        assert "choose another name" in said
