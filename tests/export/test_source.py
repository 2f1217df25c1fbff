"""C: compiled strictly by a real compiler, and the same answers from it."""

from __future__ import annotations

import csv
import ctypes
import io
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cells import with_gaps, write_cells
from hopefold import SHOPE
from hopefold.data.tables import read_table
from hopefold.errors import CannotExport, UncheckedWarning
from hopefold.export import compiling, source, to_c
from hopefold.export.formula import formula_of

STRICT = ("gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-O1")

PROGRAM = (*STRICT, "-DHOPEFOLD_MAIN")

#: Text that ends strings, comments and lines, or is read as something else.
NASTY = [
    '"',
    "\\",
    "*/ int x;",
    "??/",
    "??=",
    "a\nb",
    "%s%n",
    "ä∂🙂",
    "\x7f",
    "",
    "\\0",
    "0\t9",
    "’",
]


def library_of(text, folder):
    command = (*STRICT, "-shared", "-fPIC")
    return ctypes.CDLL(str(compiling.compile_to(folder / "model.so", text.encode(), command)))


def run_program(path, given, folder):
    program = compiling.compile_to(folder / "program", path.read_bytes(), PROGRAM)
    return subprocess.run([program], input=given, capture_output=True, text=True, check=False)


def as_csv(rows):
    return "\n".join(",".join(map(repr, row)) for row in rows.astype(float).tolist()) + "\n"


def test_every_kind_of_model_answers_the_same(model, rows, tmp_path):
    formula = formula_of(model)
    library = library_of(source.to_text(formula), tmp_path)
    points, labels, shares = compiling._answers(library, formula)(rows)
    np.testing.assert_allclose(points, model.transform(rows), atol=1e-4)
    np.testing.assert_allclose(shares, model.predict_proba(rows), atol=1e-4)
    assert labels.tolist() == model.predict(rows).tolist()


def test_the_file_has_the_temperature(tempered, rows, tmp_path):
    formula = formula_of(tempered)
    library = library_of(source.to_text(formula), tmp_path)
    _, labels, shares = compiling._answers(library, formula)(rows)
    np.testing.assert_allclose(shares, tempered.predict_proba(rows), atol=1e-4)
    assert labels.tolist() == tempered.predict(rows).tolist()
    plain = source.to_text(replace(formula, temperature=1.0))
    assert "powf" not in plain
    assert "HOPEFOLD_TEMPERATURE " not in plain


def test_the_file_is_checked_where_it_is_written(shope, tmp_path):
    export = to_c(shope, tmp_path / "m.c")
    assert export.n_bytes == (tmp_path / "m.c").stat().st_size
    assert export.parity.n_rows == 1_000
    assert export.parity.largest_difference <= 1e-4


def test_it_needs_nothing_but_expf_and_powf(shope, tmp_path):
    to_c(shope, tmp_path / "m.c")
    compiled = compiling.compile_to(
        tmp_path / "m.o", (tmp_path / "m.c").read_bytes(), (*STRICT, "-c", "-fno-builtin")
    )
    listed = subprocess.run(["nm", "-u", compiled], capture_output=True, text=True, check=True)
    assert {line.split()[-1] for line in listed.stdout.splitlines()} <= {
        "expf",
        "powf",  # probabilities at a temperature
        "__stack_chk_fail",
        "_GLOBAL_OFFSET_TABLE_",
    }


@pytest.fixture(scope="module")
def formula(shope):
    return formula_of(shope)


@settings(max_examples=3, deadline=None)
@given(
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=60
    )
)
def test_a_name_of_any_letters_is_the_same_in_c(formula, tmp_path_factory, names):
    names = (*NASTY, *names)
    text = source.to_text(replace(formula, feature_names=names, classes=np.array(names[:3], "O")))
    library = library_of(text, tmp_path_factory.mktemp("names"))
    found = (ctypes.c_char_p * len(names)).in_dll(library, "hopefold_features")
    assert [name.decode() for name in found] == list(names)
    assert (ctypes.c_char_p * 3).in_dll(library, "hopefold_classes")[0] == b'"'


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_number_is_read_as_it_was(number):
    text = source._literal(float(np.float32(number)))
    assert text.endswith("f")
    assert np.float32(text[:-1]) == np.float32(number)
    assert "." in text or "e" in text


@pytest.mark.parametrize("name", ["a\0b", "x" * 4_096])
def test_a_name_that_no_string_of_c_holds_is_refused(formula, name):
    with pytest.raises(CannotExport, match=r"export the model as \.onnx"):
        source.to_text(replace(formula, classes=np.array([name, "b", "c"], "O")))


def test_the_program_reads_csv_and_writes_it(rows, tmp_path):
    labels = np.array(['a "b", c', "ä\nö", "??/"])
    model = SHOPE(n_factors=4, n_units=4, max_epochs=2, random_state=0)
    model.fit(rows, labels[np.arange(150) % 3])
    to_c(model, tmp_path / "m.c")
    for table in (as_csv(rows), "a,b,c,d,e\r\n" + as_csv(rows).replace("\n", "\r\n")):
        done = run_program(tmp_path / "m.c", table, tmp_path)
        assert done.returncode == 0, done.stderr
        found = list(csv.DictReader(io.StringIO(done.stdout, newline="")))
        assert [line["label"] for line in found] == model.predict(rows).tolist()
        points = [[float(line[f"embedding_{axis}"]) for axis in range(2)] for line in found]
        np.testing.assert_allclose(points, model.transform(rows), atol=1e-4)
        shares = [float(line["probability"]) for line in found]
        np.testing.assert_allclose(shares, model.predict_proba(rows).max(axis=1), atol=1e-4)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("1,2,3,4", "line 2 is not 5 numbers"),
        ("1,2,3,4,5,6", "line 2 is not 5 numbers"),
        ("1,2,x,4,5", "line 2 is not 5 numbers"),
        ("1,2,,4,5", "line 2 has a missing value, or lies too far outside"),
        ("1e5,1e5,1e6,1,7", "line 2 has a missing value, or lies too far outside"),
        ("1e30,1e30,1e38,1,7", "line 2 has a missing value, or lies too far outside"),
        ("1," + "9" * 99 + ",3,4,5", "line 2 is not 5 numbers"),
    ],
)
def test_the_program_says_which_line_is_wrong(program, line, complaint):
    done = subprocess.run(
        [program], input=f"1,2,3,4,7\n{line}\n", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (1, complaint)


@pytest.fixture(scope="module")
def program(model_of, tmp_path_factory):
    """Of HOPE, whose points have no bounds."""
    folder = tmp_path_factory.mktemp("program")
    text = source.to_text(formula_of(model_of("HOPE")))
    return compiling.compile_to(folder / "program", text.encode(), PROGRAM)


def test_the_program_fills_gaps_as_the_model_does(tmp_path):
    path = write_cells(tmp_path / "cells.csv", cell=None, tissue=None, age=with_gaps())
    table = read_table(path, "type", missing="mean")
    model = SHOPE(n_factors=4, n_units=4, max_epochs=2, random_state=0).fit(table)
    to_c(model, tmp_path / "m.c")
    lines = [line.rpartition(",")[0] for line in path.read_text().splitlines()]
    assert any(line.endswith(",") for line in lines)
    done = run_program(tmp_path / "m.c", "\n".join(lines), tmp_path)
    found = [line["label"] for line in csv.DictReader(io.StringIO(done.stdout))]
    assert found == model.predict(table).tolist()


def test_a_large_model_is_refused_with_two_ways_out(tmp_path):
    X = np.random.RandomState(0).rand(40, 2_000)
    model = SHOPE(max_epochs=1, random_state=0, n_units=600).fit(X, np.arange(40) % 2)
    with pytest.raises(CannotExport, match=r"bytes of numbers.*2,000,000.*max_bytes.*\.onnx"):
        to_c(model, tmp_path / "m.c")
    assert not (tmp_path / "m.c").exists()


def test_without_a_compiler_it_is_written_and_said_not_to_be_checked(shope, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.warns(UncheckedWarning, match="no C compiler was found"):
        export = to_c(shope, tmp_path / "m.c")
    assert export.parity is None
    assert (tmp_path / "m.c").exists()


def test_a_compiler_that_fails_leaves_no_file(shope, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "gcc -DHOPEFOLD_FEATURES=wrong -Werror")
    with pytest.raises(CannotExport, match=r"the C compiler gcc cannot compile the file \(.*redef"):
        to_c(shope, tmp_path / "m.c")
    assert not (tmp_path / "m.c").exists()


def test_a_compiler_for_another_machine_leaves_no_file(shope, tmp_path, monkeypatch):
    other = tmp_path / "other-cc"
    other.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho other > "$2"\n')
    other.chmod(0o755)
    monkeypatch.setenv("CC", str(other))
    with pytest.raises(CannotExport, match=r"cannot be run here.*for this machine in the variable"):
        to_c(shope, tmp_path / "m.c")
    assert not (tmp_path / "m.c").exists()


def test_without_labels_there_is_a_function_for_points_and_no_other(unlabeled, rows, tmp_path):
    to_c(unlabeled, tmp_path / "m.c")
    text = (tmp_path / "m.c").read_text()
    assert "#define HOPEFOLD_CLASSES 0\n" in text
    library = library_of(text, tmp_path)
    assert not hasattr(library, "hopefold_predict")
    (points,) = compiling._answers(library, formula_of(unlabeled))(rows)
    np.testing.assert_allclose(points, unlabeled.transform(rows), atol=1e-4)


def test_its_program_writes_points_alone(unlabeled, rows, tmp_path):
    to_c(unlabeled, tmp_path / "m.c")
    done = run_program(tmp_path / "m.c", as_csv(rows), tmp_path)
    heading, *lines = done.stdout.splitlines()
    assert (heading, done.stderr) == ("embedding_0,embedding_1", "")
    points = np.array([line.split(",") for line in lines], float)
    np.testing.assert_allclose(points, unlabeled.transform(rows), atol=1e-4)
    gone = run_program(tmp_path / "m.c", ",1,1,1,1\n", tmp_path)
    assert gone.stderr.startswith("line 1 has a missing value")
