"""Many files in, a folder of parts out: here, without a cluster."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from cells import QUICK, with_gaps, write_cells
from hopefold import load

N_PARTS = 4


@pytest.fixture
def files(here, cells_model):
    """The cells in files of unequal length, the last without rows; and where results are to go."""
    frame = pd.read_csv(write_cells(here / "all.csv"))
    (here / "in").mkdir()
    for number, rows in enumerate([frame[:40], frame[40:41], frame[41:], frame[:0]]):
        rows.to_parquet(here / "in" / f"part-{number}.parquet")
    (here / "all.csv").unlink()
    return here / "in", here / "out", frame


def made(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}


def manifest(folder):
    return json.loads((folder / "_manifest.json").read_text())


def whole(folder):
    return parquet.read_table(folder).to_pandas()


def test_each_file_becomes_a_part_of_its_name(run, files, cells_model):
    source, out, frame = files
    shown = run("transform", cells_model, "in/*.parquet", "--id", "cell", "-o", out).stdout
    assert "90 rows in 4 parts" in shown
    assert sorted(made(out)) == sorted(path.name for path in source.iterdir())
    points = whole(out)
    assert list(points.columns) == ["cell", "shope0", "shope1"]
    assert list(points["cell"]) == list(frame["cell"])
    expected = load(cells_model).transform(frame)
    np.testing.assert_allclose(points[["shope0", "shope1"]], expected, rtol=1e-5, atol=1e-5)


def test_a_folder_of_tables_is_all_of_them(run, files, cells_model):
    source, out, frame = files
    shutil.copy(source / "part-1.parquet", source / ".hidden.parquet")
    frame[:5].to_csv(source / "more.csv", index=False)
    run("predict", cells_model, source, "-o", out)
    assert sorted(made(out)) == ["more.csv.parquet", *(f"part-{n}.parquet" for n in range(N_PARTS))]
    assert len(whole(out)) == 95
    assert list(whole(out)["predicted"][5:]) == list(load(cells_model).predict(frame))


def test_files_in_folders_stay_in_folders(run, files, cells_model):
    source, out, _ = files
    for day in ("monday", "tuesday"):
        (source / day).mkdir()
        shutil.copy(source / "part-1.parquet", source / day / "part.parquet")
    run("transform", cells_model, "in/*/*.parquet", "-o", out)
    assert sorted(path.parent.name for path in out.rglob("*.parquet")) == ["monday", "tuesday"]


def test_the_manifest_says_what_was_made_of_what(run, files, cells_model):
    source, out, _ = files
    run("transform", cells_model, "in/*.parquet", "-o", out)
    said = manifest(out)
    assert (said["verb"], said["rows"], len(said["model"])) == ("transform", 90, 64)
    assert [part["rows"] for part in said["parts"]] == [40, 1, 49, 0]
    sizes = [path.stat().st_size for path in sorted(source.iterdir())]
    assert [part["bytes"] for part in said["parts"]] == sizes


def test_run_again_it_does_nothing(run, files, cells_model):
    _, out, _ = files
    run("transform", cells_model, "in/*.parquet", "-o", out)
    before = made(out)
    again = run("transform", cells_model, "in/*.parquet", "-o", out).stdout
    assert "4 of them already existed" in again
    assert made(out) == before


def test_what_is_missing_or_cut_short_is_made_again_and_nothing_else(run, files, cells_model):
    _, out, _ = files
    run("transform", cells_model, "in/*.parquet", "-o", out)
    before, points = made(out), whole(out)
    (out / "part-0.parquet").unlink()
    (out / "_manifest.json").unlink()
    os.truncate(out / "part-2.parquet", 200)
    (out / ".0123abcd-0123456789ab.part").write_bytes(b"what a kill has left")
    run("transform", cells_model, "in/*.parquet", "-o", out)
    after = made(out)
    assert {name for name in after if after[name] == before[name]} == {
        "part-1.parquet",
        "part-3.parquet",
    }
    pd.testing.assert_frame_equal(whole(out), points)
    assert manifest(out)["rows"] == 90


def test_a_new_file_is_a_missing_part(run, files, cells_model):
    source, out, _ = files
    run("transform", cells_model, "in/*.parquet", "-o", out)
    before = made(out)
    shutil.copy(source / "part-1.parquet", source / "part-9.parquet")
    run("transform", cells_model, "in/*.parquet", "-o", out)
    assert made(out).items() > before.items()
    assert manifest(out)["rows"] == 91


def test_rows_that_are_left_out_are_counted(run, here, plain_model):
    (here / "in").mkdir()
    for name in ("a.csv", "b.csv"):
        write_cells(here / "in" / name, age=with_gaps(), tissue=None, cell=None)
    done = run("transform", plain_model, "in/*.csv", "--missing", "drop", "-o", "out")
    assert "10 rows with missing values left out" in done.stderr
    assert [part["rows_left_out"] for part in manifest(here / "out")["parts"]] == [5, 5]


def another_model(run, files, model):
    table = write_cells(files[0].parent / "cells.csv")
    options = ("--label", "type", "--id", "cell", "--encode", "--max-epochs", 1)
    run("fit", table, *options, "-o", "other.hope", *QUICK[2:])
    return ("transform", "other.hope", "in/*.parquet")


def another_verb(run, files, model):
    return ("predict", model, "in/*.parquet")


def other_options(run, files, model):
    return ("transform", model, "in/*.parquet", "--id", "cell")


def other_inputs(run, files, model):
    return ("transform", model, "in/part-[12].parquet")


def changed_input(run, files, model):
    files[2][:3].to_parquet(files[0] / "part-0.parquet")
    return ("transform", model, "in/*.parquet")


OTHER_RUNS = {
    another_model: "by another model",
    another_verb: "was made by transform",
    other_options: "with other options",
    other_inputs: "is for an input that is not given",
    changed_input: "is for an input that has changed",
}


@pytest.mark.parametrize("other", OTHER_RUNS, ids=lambda other: other.__name__)
def test_a_folder_of_another_run_is_refused_unless_forced(run, files, cells_model, other):
    _, out, _ = files
    run("transform", cells_model, "in/*.parquet", "-o", out)
    (out / "_manifest.json").unlink()
    before = made(out)
    arguments = (*other(run, files, cells_model), "-o", out)
    said = run(*arguments, status=2).stderr
    assert f"{out} has files of another run: part-0.parquet" in said
    assert OTHER_RUNS[other] in said
    assert made(out) == before
    run(*arguments, "--force")
    assert {part["output"] for part in manifest(out)["parts"]} == set(made(out))


def test_a_manifest_of_another_run_is_enough_to_refuse(run, files, cells_model):
    _, out, _ = files
    run("transform", cells_model, "in/*.parquet", "-o", out)
    for part in out.glob("*.parquet"):
        part.unlink()
    said = run("predict", cells_model, "in/*.parquet", "-o", out, status=2).stderr
    assert "_manifest.json was made by transform" in said


@pytest.mark.parametrize("name", ["notes.txt", "part-0.parquet", "_manifest.json"])
def test_a_file_of_the_user_is_never_overwritten(run, files, cells_model, name):
    source, out, _ = files
    out.mkdir()
    shutil.copy(source / "part-0.parquet", out / name)
    before = (out / name).read_bytes()
    for force in ((), ("--force",)):
        said = run("transform", cells_model, "in/*.parquet", "-o", out, *force, status=2).stderr
        assert f"{name} was not written by hopefold" in said
        assert "--force" not in said
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_bytes() == before


MISTAKES = {
    ("in/*.csv", "-o", "out"): "there is no such file",
    ("in/*.parquet",): "name a folder (-o FOLDER)",
    ("in/*.parquet", "-o", "out.csv"): "not one (out.csv): name a folder",
    ("in/*.parquet", "-o", "no/where/out"): "make the folder no/where first",
    ("in/*.parquet", "-o", "in"): "choose a folder without inputs",
    ("in/*", "-o", "out"): "in/readme.md has no known extension",
}


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_a_mistake_is_told_before_anything_is_made(run, files, cells_model, arguments):
    (files[0] / "readme.md").write_text("not a table")
    assert MISTAKES[arguments] in run("transform", cells_model, *arguments, status=2).stderr
    assert not files[1].exists()


def test_a_bad_file_is_named_and_what_is_made_stays(run, files, cells_model):
    source, out, frame = files
    frame[:5].drop(columns="age").to_parquet(source / "part-2.parquet")
    said = run("transform", cells_model, "in/*.parquet", "-o", out, status=2).stderr
    assert "part-2.parquet lacks column 'age'" in said
    assert sorted(made(out)) == ["part-0.parquet", "part-1.parquet"]
    frame[41:].to_parquet(source / "part-2.parquet")
    run("transform", cells_model, "in/*.parquet", "-o", out)
    assert len(whole(out)) == 90
