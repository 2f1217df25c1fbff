"""Points, predictions and exemplars, in files of every kind."""

from __future__ import annotations

import io
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread
from pyarrow import parquet

from cells import with_gaps, write_cells
from hopefold import load


@pytest.fixture
def table(cells_model):
    return cells_model.with_suffix(".csv")


def read(path):
    if path.suffix == ".parquet":
        return parquet.read_table(path).to_pandas()
    return pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",")


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_points_keep_the_order_and_the_ids_of_the_rows(run, here, cells_model, table, ending):
    output = here / f"points.{ending}"
    run("transform", cells_model, table, "--id", "cell", "-o", output)
    points, frame = read(output), pd.read_csv(table)
    assert list(points.columns) == ["cell", "shope0", "shope1"]
    assert list(points["cell"]) == list(frame["cell"])
    expected = load(cells_model).transform(frame)
    np.testing.assert_allclose(points[["shope0", "shope1"]], expected, rtol=1e-6)


def test_points_in_an_npz_file(run, here, cells_model, table):
    run("transform", cells_model, table, "--id", "cell", "-o", "points.npz")
    with np.load("points.npz") as file:
        assert file["points"].shape == (90, 2)
        assert file["cell"][0] == "c0"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predictions_come_with_probabilities(run, here, cells_model, table, ending):
    output = here / f"p.{ending}"
    run("predict", cells_model, table, "--id", "cell", "-o", output)
    frame, model = read(output), load(cells_model)
    names = ["p_B cell", "p_NK", "p_T cell"]
    assert list(frame.columns) == ["cell", "predicted", "probability", *names]
    raw = pd.read_csv(table)
    assert list(frame["predicted"]) == list(model.predict(raw))
    np.testing.assert_allclose(frame[names], model.predict_proba(raw), rtol=1e-6)
    np.testing.assert_allclose(frame[names].sum(axis=1), 1)
    np.testing.assert_allclose(frame["probability"], frame[names].max(axis=1))


def test_without_a_file_results_go_to_standard_output(run, cells_model, table):
    shown = run("predict", cells_model, table, "--id", "cell").stdout
    frame = pd.read_csv(io.StringIO(shown))
    assert len(frame) == 90


def test_the_order_of_columns_does_not_matter(run, here, cells_model, table):
    frame = pd.read_csv(table)
    frame[frame.columns[::-1]].to_csv("turned.csv", index=False)
    run("transform", cells_model, table, "-o", "a.csv")
    run("transform", cells_model, "turned.csv", "-o", "b.csv")
    assert (here / "a.csv").read_text() == (here / "b.csv").read_text()


def test_dropped_rows_leave_the_numbers_of_the_others(run, here, plain_model):
    table = write_cells(here / "t.csv", age=with_gaps(), tissue=None, cell=None)
    said = run("transform", plain_model, table, "--missing", "drop", "-o", "points.csv").stderr
    assert "5 rows with missing values left out" in said
    rows = read(here / "points.csv")["row"].tolist()
    assert rows == [row + 1 for row in range(90) if row % 17 != 5]


def test_exemplars_are_in_the_units_of_the_table(run, here, plain_model):
    run("exemplars", plain_model, "-o", "exemplars.csv")
    frame, model = read(here / "exemplars.csv"), load(plain_model)
    assert list(frame.columns) == ["type", "size", "age"]
    np.testing.assert_allclose(frame[["size", "age"]], model.exemplars_, rtol=1e-6)
    assert frame["age"].between(5, 60).all()


def test_exemplars_in_an_npz_file_are_a_table_again(run, here, plain_model):
    run("exemplars", plain_model, "-o", "exemplars.npz")
    run("predict", plain_model, "exemplars.npz", "-o", "p.csv")
    assert len(read(here / "p.csv")) == 6


def test_exemplars_of_images_make_a_gallery(run, here):
    quick = ("--max-epochs", 2, "--n-factors", 8, "--n-units", 8)
    run("fit", "digits", "-o", "digits.hope", *quick)
    run("exemplars", "digits.hope", "-o", "gallery.png")
    assert imread("gallery.png").shape[1] > imread("gallery.png").shape[0] > 100
    run("exemplars", "digits.hope", "-o", "gallery.svg")
    assert "<svg" in (here / "gallery.svg").read_text()


def test_info_tells_what_is_in_the_file(run, cells_model):
    shown = run("info", cells_model).stdout
    for words in (
        *("S-HOPE", "checksum ok", "B cell, NK, T cell", "tissue=liver", "filled with the mean"),
        *("max_epochs=3", "not features", "6, which new rows"),
        *("plan of the fit", "batch_size", "rows to learn from"),
    ):
        assert words in shown
    model = load(cells_model)
    values = f"{model.temperature_:.3g}", f"{100 * model.calibration_error_:.2f} %"
    for name, value in zip(("temperature", "calibration error"), values, strict=True):
        assert re.search(rf"^  {name} +{re.escape(value)}, ", shown, flags=re.M)


def test_info_loads_no_torch(cells_model):
    import subprocess
    import sys

    code = (
        f"import sys; sys.argv = ['hopefold', 'info', {str(cells_model)!r}]\n"
        "from hopefold.cli import main\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert done.code == 0\n"
        "assert not {'torch', 'sklearn'} & {*sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
