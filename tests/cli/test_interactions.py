"""What drives a map, on the screen and in files."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from matplotlib.image import imread

from cells import QUICK
from hopefold import load


def test_a_table_on_the_screen_names_columns(run, plain_model):
    shown = run("interactions", plain_model).stdout
    assert "Products that drive the map of S-HOPE, by their weight" in shown
    assert "size × age" in shown or "age × size" in shown


def test_a_csv_file_holds_what_the_model_says(run, here, plain_model):
    run("interactions", plain_model, "-o", "out.csv", "--units", "data", "--top", 3)
    with open(here / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    found = load(plain_model).interactions(3, units="data")
    assert [row["term"] for row in rows] == list(found.names)
    np.testing.assert_allclose([float(row["y1"]) for row in rows], found.coefficients[:, 0])


def test_with_rows_it_tells_classes(run, here, plain_model, cells):
    given = (plain_model, cells, "--label", "type", "--ignore-extra", "--top", 2)
    assert "moves most" in run("interactions", *given).stdout
    run("interactions", *given, "-o", "out.json")
    told = json.loads((here / "out.json").read_text())
    assert told["units"] == "standard"
    assert {"term", "deviation", "class NK"} <= set(told["interactions"][0])


def test_csv_goes_to_standard_output(run, plain_model):
    shown = run("interactions", plain_model, "-o", "-").stdout
    assert shown.splitlines()[0] == '"term","order","weight","y1","y2"'


@pytest.mark.parametrize("images", [False, True])
def test_a_picture_of_columns_or_of_pixels(run, here, plain_model, images):
    model = plain_model
    if images:
        run("fit", "digits", "-o", "digits.hope", *QUICK)
        model = here / "digits.hope"
    run("interactions", model, "-o", "out.png")
    assert imread(here / "out.png").std() > 0


def test_a_method_that_multiplies_nothing_is_refused(run, here, plain_model):
    run("fit", "wine", "--method", "lda", "-o", "lda.hope")
    assert "multiplies no features" in run("interactions", "lda.hope", status=2).stderr


def test_a_map_of_several_layers_is_explained_and_shown_by_info(run, here, cells):
    sizes = ("--n-units", "6,5", "--order", "2,3", "--n-factors", 4, "--max-epochs", 1)
    run("fit", cells, "--label", "type", "--id", "cell", "--encode", "-o", "deep.hope", *sizes)
    shown = run("interactions", "deep.hope", "--top", 3).stdout
    assert "with all above the products of the first layer linearized" in " ".join(shown.split())
    told = run("interactions", "deep.hope", "--order", 3, status=2).stderr
    assert "multiplies 2 features at the most" in told
    run("interactions", "deep.hope", cells, "--label", "type", "--ignore-extra", "-o", "deep.csv")
    run("interactions", "deep.hope", "-o", "deep.svg")
    told = run("info", "deep.hope").stdout
    assert "order=2,3" in told
    assert "n_units=6,5" in told
    assert re.search(r"layers +2", told)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--top", 0), "top=0"),
        (("--order", 7), "order=7, but the map multiplies 2 features at the most"),
        (("--units", "inches"), "units='inches' is not known"),
        (("-o", "out.docx"), "cannot write out.docx"),
    ],
)
def test_what_cannot_be_asked_for_is_one_line(run, here, plain_model, given, words):
    assert words in run("interactions", plain_model, *given, status=2).stderr


def test_rows_that_do_not_vary_are_one_line(run, here, plain_model, cells):
    lines = cells.read_text().splitlines()
    (here / "one.csv").write_text("\n".join(lines[:2]) + "\n")
    given = (plain_model, "one.csv", "--label", "type", "--ignore-extra", "-o", "out.csv")
    assert "do not vary" in run("interactions", *given, status=2).stderr
    assert not (here / "out.csv").exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--image-shape", "3,3"), "image_shape=(3, 3), but a row has 64 features"),
        (("--order", 1), "a picture of pixels shows pairs"),
    ],
)
def test_a_picture_of_pixels_that_cannot_be_drawn_is_one_line(run, here, given, words):
    run("fit", "digits", "-o", "digits.hope", *QUICK)
    told = run("interactions", "digits.hope", *given, "-o", "out.png", status=2)
    assert words in told.stderr
