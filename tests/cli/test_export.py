"""``hopefold export``: files that answer as the model does, and a line for what cannot be done."""

from __future__ import annotations

import sys

import numpy as np
import onnxruntime
import pandas as pd
import pytest

from cells import write_cells
from hopefold import load


@pytest.fixture
def golden(request):
    return request.config.rootpath / "tests" / "golden"


def test_a_graph_is_written_and_checked(run, here, plain_model):
    shown = run("export", plain_model, "-o", "m.onnx").stdout
    assert "wrote m.onnx (" in shown
    assert "checked on 1,000 rows: points differ by " in shown
    session = onnxruntime.InferenceSession("m.onnx")
    rows = np.array([[10, 20], [15, 30], [20, 40]], np.float32)
    frame = pd.DataFrame(rows, columns=["size", "age"])
    (labels,) = session.run(["label"], {"rows": rows})
    assert labels.tolist() == load(plain_model).predict(frame).tolist()


@pytest.mark.parametrize("flag", [(), ("--c",)])
def test_c_is_written_by_its_ending_or_by_name(run, here, plain_model, flag):
    assert "labels are equal on all" in run("export", plain_model, *flag, "-o", "m.c").stdout
    assert "int hopefold_predict(const float *row" in (here / "m.c").read_text()


def test_a_table_checks_it_as_the_model_reads_tables(run, cells, cells_model):
    shown = run("export", cells_model, "-o", "m.onnx", "--data", cells).stdout
    assert "checked on 90 rows" in shown


def test_models_of_every_format_can_be_exported(run, here, golden):
    for model in sorted(golden.glob("*.hope")):
        run("export", model, "-o", f"{model.stem}.onnx")
        run("export", model, "-o", f"{model.stem}.c")


def refuse(run, here, *arguments):
    before = {path: path.read_bytes() for path in here.iterdir()}
    line = run("export", *arguments, status=2).stderr
    assert {path: path.read_bytes() for path in here.iterdir()} == before
    return line.removeprefix("hopefold: ")


def test_an_ending_that_is_not_known(run, here, plain_model):
    line = refuse(run, here, plain_model, "-o", "m.pb")
    assert line == "cannot write m.pb: give it a name that ends in .onnx, .c.\n"
    assert "ends in .c." in refuse(run, here, plain_model, "--c", "-o", "m.onnx")


def test_what_is_there_stays(run, here, plain_model):
    (here / "m.onnx").write_text("mine")
    assert "overwrite it with --force" in refuse(run, here, plain_model, "-o", "m.onnx")
    run("export", plain_model, "-o", "m.onnx", "--force")
    assert (here / "m.onnx").read_bytes() != b"mine"


def test_a_file_that_is_no_model(run, here):
    (here / "broken.hope").write_text("nonsense of some length")
    line = refuse(run, here, "broken.hope", "-o", "m.onnx")
    assert line == "broken.hope is not a hopefold model file.\n"
    assert "no model file gone.hope" in refuse(run, here, "gone.hope", "-o", "m.onnx")


def test_a_table_with_other_columns(run, here, plain_model):
    write_cells(here / "other.csv", cell=None, tissue=None, size=None)
    line = refuse(run, here, plain_model, "-o", "m.onnx", "--data", "other.csv")
    assert "other.csv lacks column 'size'" in line


def test_a_package_that_is_not_there(run, here, plain_model, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    line = refuse(run, here, plain_model, "-o", "m.onnx")
    assert line.endswith("which is not installed: pip install 'hopefold[onnx]'.\n")


def test_no_compiler_is_said_and_the_file_is_there(run, here, plain_model, monkeypatch):
    monkeypatch.setenv("PATH", str(here))
    monkeypatch.delenv("CC", raising=False)
    done = run("export", plain_model, "-o", "m.c")
    assert done.stderr.startswith("hopefold: warning: no C compiler was found")
    assert "checked" not in done.stdout
    assert (here / "m.c").exists()
