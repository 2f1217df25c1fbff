"""Bad input: one line on standard error, exit status 2, and nothing half-written."""

from __future__ import annotations

import gzip
import os
import resource
import signal
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from cells import QUICK, with_gaps, write_cells
from hopefold import SHOPE
from hopefold.persistence import store

FIT = ("fit", "cells.csv", "--label", "type", "-o", "m.hope")


@pytest.fixture
def refuse(run, here):
    """The line on standard error; the folder is as it was before."""

    def call(*arguments, **more):
        before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
        line = run(*arguments, status=2, **more).stderr
        after = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
        assert after == before
        return line.removeprefix("hopefold: ").rstrip("\n")

    return call


def test_no_such_file(refuse, cells):
    assert refuse("fit", "cels.csv", "--label", "type", "-o", "m") == (
        "the file cels.csv does not exist: did you mean cells.csv?"
    )
    assert "digits" in refuse("fit", "digit", "-o", "m")
    assert "no folder nowhere" in refuse("fit", "nowhere/x.csv", "-o", "m")


def test_no_such_column_with_the_nearest_name(refuse, cells):
    assert refuse(*FIT[:3], "tyep", *FIT[4:]) == (
        "cells.csv has no column 'tyep': did you mean 'type'?"
    )
    assert "did you mean 'cell'?" in refuse(*FIT, "--id", "Cel")
    assert "it has columns 'cell', 'size'" in refuse(*FIT, "--drop", "zzz")


def test_what_is_read_is_never_overwritten(refuse, cells, cells_model):
    assert "is an input" in refuse(*FIT[:-1], "cells.csv", "--force")
    line = refuse(
        "predict", cells_model, "cells.csv", "-o", "../" + cells.parent.name + "/cells.csv"
    )
    assert "is an input" in line


def test_a_pipe_is_not_replaced_by_a_file(refuse, here):
    write_cells(here / "cells.csv", cell=None, tissue=None)
    os.mkfifo("pipe")
    assert "device or a pipe" in refuse(*FIT[:-1], "pipe", "--force")
    assert (here / "pipe").is_fifo()


def test_a_split_that_leaves_too_few_rows(refuse, here):
    write_cells(here / "cells.csv", cell=None, tissue=None)
    for share in ("0.01", "0.99", "1.5"):
        line = refuse("compare", "cells.csv", *FIT[2:4], "--test-fraction", share, "-o", "m.png")
        assert f"--test-fraction {share}" in line


def test_no_label_lists_the_columns(refuse, cells):
    line = refuse("fit", "cells.csv", "-o", "m.hope")
    assert "--label" in line
    assert "'size', 'age', 'tissue', 'type'" in line


def test_a_table_without_a_line_of_names(refuse, here):
    (here / "t.csv").write_text("5.1,3.5,a\n4.9,3.0,b\n" * 10)
    assert "put a header line above it" in refuse("fit", "t.csv", "--label", "kind", "-o", "m")


def test_a_label_with_one_class(refuse, here):
    write_cells(here / "cells.csv", type=["NK"] * 90, cell=None, tissue=None)
    assert refuse(*FIT).startswith("y has one class only ('NK', in all 90 rows)")


def test_missing_values_how_many_and_where(refuse, here):
    write_cells(here / "cells.csv", age=with_gaps(), cell=None, tissue=None)
    assert refuse(*FIT) == (
        "column 'age' has 5 missing values (first in data row 6): leave such rows out "
        "(--missing drop), or fill them (--missing mean)."
    )
    assert "choose one of drop, mean" in refuse(*FIT, "--missing", "median")


def test_missing_labels(refuse, run, here):
    labels = ["" if row == 3 else "ab"[row % 2] for row in range(90)]
    write_cells(here / "cells.csv", type=labels, cell=None, tissue=None)
    assert "missing in 1 row (first in data row 4)" in refuse(*FIT, "--missing", "mean")
    assert "89 rows" in run(*FIT, *QUICK, "--missing", "drop").stdout


def test_every_row_has_something_missing(refuse, here):
    write_cells(here / "cells.csv", age=[""] * 90, cell=None, tissue=None)
    assert "none is left" in refuse(*FIT, "--missing", "drop")
    assert "no mean" in refuse(*FIT, "--missing", "mean")


def test_missing_values_at_transform(refuse, here, plain_model):
    write_cells(here / "t.csv", age=with_gaps(), cell=None, tissue=None)
    line = refuse("transform", plain_model, "t.csv", "-o", "out.csv")
    assert "column 'age' has 5 missing values (first in data row 6)" in line
    assert "--missing drop" in line


def test_a_text_column_with_the_remedy(refuse, cells):
    assert refuse(*FIT) == (
        "column 'cell' holds 'c0' in data row 1, which is not a number: encode text columns "
        "(--encode), keep this one as an identifier (--id cell), or leave it out (--drop cell)."
    )


def test_a_name_of_each_row_is_not_encoded(refuse, cells):
    line = refuse(*FIT, "--encode")
    assert "'cell' has 90 different values in 90 rows" in line
    assert "--id cell" in line


def test_a_single_word_among_numbers_is_found(refuse, here):
    ages = ["n.d." if row == 41 else 20 + row % 3 for row in range(90)]
    write_cells(here / "cells.csv", age=ages, cell=None, tissue=None)
    assert "column 'age' holds 'n.d.' in data row 42" in refuse(*FIT)


def test_columns_that_are_missing_and_extra_at_transform(refuse, cells, cells_model):
    pd.read_csv(cells).rename(columns={"size": "mass"}).to_csv("t.csv", index=False)
    assert refuse("transform", cells_model, "t.csv", "-o", "out.csv") == (
        "t.csv lacks column 'size' and has column 'mass', which the model does not know: give the "
        "columns that the model was fitted on."
    )


def test_columns_that_are_extra_alone_at_transform(refuse, run, cells, cells_model):
    pd.read_csv(cells).assign(note=1, batch=2).to_csv("t.csv", index=False)
    line = refuse("transform", cells_model, "t.csv", "-o", "out.csv")
    assert "has columns 'note', 'batch', which the model does not know" in line
    assert "--ignore-extra" in line
    run("transform", cells_model, "t.csv", "-o", "a.csv", "--drop", "note", "--id", "batch")
    run("transform", cells_model, "t.csv", "-o", "b.csv", "--ignore-extra")


def test_a_value_that_the_encoder_does_not_know(refuse, run, cells, cells_model):
    frame = pd.read_csv(cells)
    frame.loc[7, "tissue"] = "spleen"
    frame.to_csv("t.csv", index=False)
    line = refuse("transform", cells_model, "t.csv", "-o", "out.csv")
    assert "column 'tissue' holds 'spleen' in data row 8" in line
    assert "(it knows 'liver', 'lung', 'skin')" in line
    run("transform", cells_model, "t.csv", "-o", "out.csv", "--missing", "drop")
    assert len(pd.read_csv("out.csv")) == 89


def test_text_where_the_model_has_numbers(refuse, cells, plain_model):
    frame = pd.read_csv(cells)[["size", "age"]].astype(object)
    frame.loc[3, "age"] = "old"
    frame.to_csv("t.csv", index=False)
    line = refuse("predict", plain_model, "t.csv", "-o", "out.csv")
    assert "column 'age' holds 'old' in data row 4" in line


def test_a_matrix_of_another_width(refuse, here, plain_model):
    np.save(here / "t.npy", np.zeros((3, 5)))
    line = refuse("transform", plain_model, "t.npy", "-o", "out.csv")
    assert "t.npy has 5 columns of numbers, but the model was fitted on 2" in line


@pytest.mark.parametrize("content", ["", "\n\n", "size,age,type\n"])
def test_an_empty_file(refuse, here, content):
    (here / "cells.csv").write_text(content)
    assert "empty" in refuse(*FIT) or "no rows" in refuse(*FIT)


@pytest.mark.parametrize("name", ["e.parquet", "e.npz", "e.npy", "e.h5ad"])
def test_an_empty_file_of_another_kind(refuse, here, name):
    (here / name).write_bytes(b"")
    assert f"{name} is empty" in refuse("fit", name, "-o", "m")


@pytest.mark.parametrize("name", ["e.parquet", "e.npz", "e.npy", "e.h5ad"])
def test_a_damaged_file(refuse, here, name):
    (here / name).write_bytes(b"PAR1 and no more of it" * 3)
    assert name in refuse("fit", name, "--label", "y", "-o", "m")


def test_ragged_lines_by_number(refuse, here):
    (here / "t.csv").write_text('a,b,type\n1,2,x\n\n"3\n3",4,y\n5,6\n7,8,x\n')
    assert refuse("fit", "t.csv", "--label", "type", "-o", "m") == (
        "line 6 of t.csv has 2 cells, but the line of names has 3: correct that line."
    )
    (here / "t.csv").write_text("a,b,type\n1,2,x\n3,4,5,y\n")
    assert "line 3 of t.csv has 4 cells" in refuse("fit", "t.csv", "--label", "type", "-o", "m")


def test_a_quote_that_is_never_closed(refuse, here):
    (here / "t.csv").write_text('a,b,type\n1,2,x\n3,"4,y\n5,6,x\n7,8,y\n')
    line = refuse("fit", "t.csv", "--label", "type", "-o", "m")
    assert line.startswith("line 3 of t.csv opens a quote that is not closed")


def test_ragged_lines_on_standard_input(refuse, here):
    line = refuse("fit", "-", "--label", "b", "-o", "m", input="a,b\n1\n")
    assert line.startswith("line 2 of standard input has 1 cell,")


def test_text_that_is_not_utf8(refuse, here):
    (here / "t.csv").write_bytes("größe,type\n1,ä\n".encode("latin-1"))
    assert "UTF-8" in refuse("fit", "t.csv", "--label", "type", "-o", "m")


def test_two_columns_of_one_name(refuse, here):
    (here / "t.csv").write_text("a,a,type\n1,2,x\n")
    assert "2 columns 'a'" in refuse("fit", "t.csv", "--label", "type", "-o", "m")


def test_an_ending_that_says_nothing(refuse, here):
    (here / "t.xlsx").write_bytes(b"x")
    assert ".csv" in refuse("fit", "t.xlsx", "-o", "m")


def test_a_damaged_archive(refuse, here):
    (here / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n" * 100)[:-30])
    assert "t.csv.gz" in refuse("fit", "t.csv.gz", "--label", "b", "-o", "m")


def test_a_file_that_is_no_model(refuse, cells):
    assert refuse("transform", "cells.csv", "cells.csv", "-o", "out.csv") == (
        "cells.csv is not a hopefold model file."
    )
    assert "no model file gone.hope" in refuse("info", "gone.hope")


@pytest.mark.parametrize("verb", ["info", "transform"])
def test_a_model_of_another_kind(refuse, here, plain_model, verb):
    manifest, tensors = store.read(plain_model)
    store.write(here / "other.hope", manifest | {"kind": "UMAP"}, tensors)
    more = () if verb == "info" else ("iris",)
    line = refuse(verb, "other.hope", *more)
    assert line.startswith("other.hope contains a model of another kind ('UMAP')")


def test_a_model_that_is_cut_short(refuse, here, plain_model):
    (here / "m.hope").write_bytes(plain_model.read_bytes()[:-50])
    for verb in (("info",), ("predict", "iris")):
        assert "truncated" in refuse(verb[0], "m.hope", *verb[1:])


def test_a_model_without_exemplars(refuse, run, here):
    run("fit", "iris", "--method", "lda", "-o", "lda.hope")
    assert "--exemplars kmeans" in refuse("exemplars", "lda.hope", "-o", "out.csv")


def test_a_gallery_of_a_table(refuse, here, plain_model):
    assert "--image-shape" in refuse("exemplars", plain_model, "-o", "out.png")
    assert "--image-shape" in refuse("exemplars", plain_model, "-o", "o.png", "--image-shape", "9")


@contextmanager
def full_disk():
    """No file may grow beyond 1,000 bytes, as on a disk that has no room."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize(
    ("target", "arguments"),
    [
        ("m.hope", (*FIT[:-2], "--drop", "cell", "--encode", *QUICK)),
        ("points.csv", ("transform", "MODEL", "cells.csv", "--id", "cell")),
        ("p.parquet", ("predict", "MODEL", "cells.csv")),
        ("report.html", ("report", "MODEL", "cells.csv")),
        (
            "maps.png",
            ("compare", "cells.csv", *FIT[2:4], "--id", "cell", "--encode", "--method=lda"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_full_disk_leaves_the_old_file_and_no_other(run, cells, cells_model, target, arguments):
    cells.with_name(target).write_text("mine")
    arguments = [cells_model if one == "MODEL" else one for one in arguments]
    before = {path.name for path in cells.parent.iterdir()}
    with full_disk():
        done = run(*arguments, "-o", target, "--force", status=None)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith(f"hopefold: cannot write {target} (")
    assert cells.with_name(target).read_text() == "mine"
    assert {path.name for path in cells.parent.iterdir()} == before


def test_infinite_values(refuse, here):
    sizes = ["inf" if row == 4 else row for row in range(90)]
    write_cells(here / "cells.csv", size=sizes, cell=None, tissue=None)
    assert "column 'size' has 1 infinite value" in refuse(*FIT)


def test_a_measurement_as_label(refuse, cells):
    line = refuse(*FIT[:3], "size", *FIT[4:], "--drop", "cell", "--encode")
    assert "measurements (11.764, " in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--max-epochs", "0"), "max_epochs=0: give a whole number of at least 1"),
        (("--max-epochs", "many"), "max_epochs='many'"),
        (("--scale", "big"), "scale='big' is not known"),
        (("--method", "umap"), "'umap' is not a known method"),
        (("--method", "shpe"), "did you mean shope?"),
        (("--method", "lda", "--max-epochs", "3"), "LDA has no parameter max_epochs"),
        (("--class-weight", "Q=2"), "'Q', which is not a label"),
        (("--image-shape", "3,3"), "3, 3"),
        (("--lable", "x"), "No such option"),
        (("--n-exemplars",), "requires an argument"),
    ],
)
def test_a_wrong_setting(refuse, here, arguments, words):
    write_cells(here / "cells.csv", cell=None, tissue=None)
    assert words in refuse(*FIT, *arguments)


@pytest.mark.parametrize("verb", ["fit", "transform", "report"])
def test_nothing_given(refuse, verb):
    assert "Missing argument" in refuse(verb)


def test_no_such_verb(refuse):
    assert "No such command 'fot'" in refuse("fot")


@pytest.mark.parametrize("target", ["nowhere/m.hope", "."])
def test_a_target_that_cannot_be(refuse, here, target):
    write_cells(here / "cells.csv", cell=None, tissue=None)
    assert "cannot write" in refuse(*FIT[:-1], target)


def test_a_result_of_no_known_ending(refuse, cells, cells_model):
    assert ".parquet" in refuse("transform", cells_model, "cells.csv", "-o", "out.xlsx")
    assert ".html" in refuse("report", cells_model, "cells.csv", "-o", "out.pdf")


@pytest.mark.parametrize("verb", ["transform", "predict"])
def test_results_are_not_overwritten(refuse, run, cells, cells_model, verb):
    cells.with_name("out.csv").write_text("mine")
    assert "--force" in refuse(verb, cells_model, "cells.csv", "-o", "out.csv")
    run(verb, cells_model, "cells.csv", "-o", "out.csv", "--force")
    assert cells.with_name("out.csv").read_text() != "mine"


def test_an_id_with_the_name_of_a_result(refuse, cells, cells_model):
    pd.read_csv(cells).assign(predicted=1).to_csv("t.csv", index=False)
    line = refuse("predict", cells_model, "t.csv", "--id", "predicted", "-o", "out.csv")
    assert "'predicted' has the name of a result" in line


def test_labels_that_are_not_there(refuse, cells, cells_model):
    pd.read_csv(cells).drop(columns="type").to_csv("t.csv", index=False)
    assert "--label" in refuse("evaluate", cells_model, "t.csv")
    assert "--label" in refuse("report", cells_model, "t.csv", "-o", "r.html")


def test_images_of_different_sizes(refuse, run, here):
    from PIL import Image

    for number, size in enumerate([(4, 5), (4, 5), (6, 6), (4, 5)]):
        folder = here / "images" / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("L", size, 60 * number).save(folder / f"{number}.png")
    assert "5 × 4 (height × width)" in refuse("fit", "images", "-o", "m")
    (here / "images" / "a" / "0.png").write_bytes(b"no image")
    assert "0.png cannot be read as an image" in refuse("fit", "images", "-o", "m")


def test_a_folder_without_images(refuse, here):
    (here / "empty").mkdir()
    assert "has no images" in refuse("fit", "empty", "-o", "m")


def test_pickled_labels_are_never_opened(refuse, here):
    np.savez("t.npz", X=np.zeros((4, 2)), y=np.array(["a", "b", "a", None], dtype=object))
    assert "Python objects" in refuse("fit", "t.npz", "-o", "m")


def test_a_model_of_python_without_names_on_a_table(refuse, cells):
    SHOPE(max_epochs=1, n_factors=3).fit(np.eye(8), np.arange(8) % 2).save("m.hope")
    assert "holds 'c0'" in refuse("transform", "m.hope", "cells.csv", "-o", "out.csv")
