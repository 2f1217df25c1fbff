"""The check at export: what it asks, what it refuses, and that a refusal writes nothing."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hopefold import HOPE, SHOPE
from hopefold.errors import CannotExport, InvalidInput, RoundingWarning
from hopefold.export import files, parity, to_c, to_onnx
from hopefold.export.formula import formula_of

QUICK = {"n_factors": 6, "n_units": 5, "max_epochs": 1, "random_state": 0}


def answers_of(model, **wrong):
    """What the model says, changed in one way."""

    def answer(rows):
        points, labels, shares = model.transform(rows), model.predict(rows), None
        shares = model.predict_proba(rows)
        change = {"points": points, "labels": labels, "shares": shares}
        for name, change_of in wrong.items():
            change[name] = change_of(change[name])
        return tuple(change.values())

    return answer


def swapped(labels):
    labels = labels.copy()
    labels[0] = (labels[0] + 1) % 3
    return labels


def test_the_same_answers_pass(model):
    found = parity.check_parity(model, formula_of(model), answers_of(model))
    assert (found.n_rows, found.largest_difference) == (1_000, 0)
    assert found.n_clear > 850


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"points": lambda points: points + 0.1}, "would put rows elsewhere"),
        ({"points": lambda points: np.where(points > 0, np.nan, points)}, "would put rows else"),
        ({"labels": swapped}, "would classify 1 of 1,000 rows differently"),
        (
            {"shares": lambda shares: shares * 0.99},
            "would classify 1,000 of 1,000 rows differently",
        ),
    ],
)
def test_other_answers_are_refused(shope, wrong, words):
    with pytest.raises(CannotExport, match=words):
        parity.check_parity(shope, formula_of(shope), answers_of(shope, **wrong))


def test_a_point_may_be_off_by_a_little_of_the_range(shope):
    size = np.ptp(shope.reference_embedding_, axis=0).max()
    for off, fine in ((0.5e-4, True), (2e-4, False)):
        answer = answers_of(shope, points=lambda points, off=off: points + np.float32(off * size))
        try:
            found = parity.check_parity(shope, formula_of(shope), answer)
        except CannotExport:
            assert not fine
        else:
            assert fine
            assert found.relative_difference == pytest.approx(off, rel=0.05)


def test_a_row_at_a_border_may_have_either_label(rows):
    model = SHOPE(**QUICK).fit(rows, np.arange(150) % 3)
    model.reference_embedding_ = np.array([[0, 0], [0, 0], [9, 9]], np.float32)
    model.reference_labels_ = np.array([0, 1, 2])
    for n_neighbors in ("auto", 1):
        model.n_neighbors = n_neighbors
        answer = answers_of(model, labels=lambda labels: np.where(labels == 0, 1, labels))
        found = parity.check_parity(model, formula_of(model), answer)
        assert found.n_clear < found.n_rows
        assert "at a border" in str(found)


def test_rows_to_check_with_are_the_exemplars_and_others_around_them(shope):
    rows = parity.some_rows(shope, formula_of(shope))
    n = len(shope.exemplars_)
    np.testing.assert_array_equal(rows[:n], shope.exemplars_)
    spread = shope.exemplars_.std(axis=0)
    away = rows - shope.exemplars_[np.arange(1_000) % n]
    np.testing.assert_allclose(away[n:].std(axis=0), 0.5 * spread, rtol=0.1, atol=1e-6)


def test_a_model_without_exemplars_is_checked_around_its_origin(model_of):
    model = model_of("pairs, conditional")
    rows = parity.some_rows(model, formula_of(model))
    np.testing.assert_allclose(rows.mean(axis=0), model.scale_.shift, atol=0.2)
    np.testing.assert_allclose(model.scale_.apply(rows).std(axis=0)[:4], 0.5, rtol=0.1)


def test_what_is_refused_leaves_the_file_that_was_there(shope, tmp_path, monkeypatch):
    right = formula_of(shope)
    powers, *others = right.layers
    wrong = replace(right, layers=(replace(powers, order=powers.order + 1), *others))
    monkeypatch.setattr(files, "formula_of", lambda _: wrong)
    for write, name in ((to_onnx, "m.onnx"), (to_c, "m.c")):
        (tmp_path / name).write_text("before")
        with pytest.raises(CannotExport, match="nothing is written"):
            write(shope, tmp_path / name)
        assert (tmp_path / name).read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 2


def test_another_temperature_is_refused(tempered, tmp_path, monkeypatch):
    right = formula_of(tempered)
    for temperature in (1.0, 1.2 * right.temperature):
        wrong = replace(right, temperature=temperature)
        monkeypatch.setattr(files, "formula_of", lambda _, wrong=wrong: wrong)
        for write, name in ((to_onnx, "m.onnx"), (to_c, "m.c")):
            with pytest.raises(CannotExport, match="would classify"):
                write(tempered, tmp_path / name)


def test_a_temperature_puts_no_row_at_a_border(tempered):
    found = [
        parity.check_parity(model, formula_of(model), answers_of(model)).n_clear
        for model in (tempered, _at_temperature_one(tempered))
    ]
    assert found[0] == found[1]


def _at_temperature_one(model):
    plain = copy.copy(model)
    plain.temperature_ = 1.0
    return plain


def test_rows_with_other_columns_are_refused(shope, tmp_path):
    with pytest.raises(InvalidInput, match="features"):
        to_onnx(shope, tmp_path / "m.onnx", np.zeros((5, 9)))
    model = SHOPE(**QUICK).fit(pd.DataFrame(np.eye(9)[:, :2], columns=["a", "b"]), np.arange(9) % 2)
    with pytest.raises(InvalidInput, match="b"):
        to_onnx(model, tmp_path / "m.onnx", pd.DataFrame(np.eye(3), columns=["a", "c", "d"]))


def test_columns_that_need_more_digits_than_float32_has_are_told(tmp_path):
    random = np.random.RandomState(0)
    X = pd.DataFrame({"time": 1.7e9 + random.rand(60), "b": random.rand(60)})
    model = SHOPE(**QUICK).fit(X, np.arange(60) % 2)
    with pytest.warns(RoundingWarning, match="most by column 'time'"):
        to_onnx(model, tmp_path / "m.onnx")


def test_rows_beyond_float32_are_refused(shope, rows, tmp_path):
    with pytest.raises(InvalidInput, match="inf"):
        to_onnx(shope, tmp_path / "m.onnx", np.where(rows == 7, 1e300, rows.astype(float)))


def test_rows_that_overflow_are_told_to_be_given(tmp_path):
    model = HOPE(order=20, scale=None, n_factors=4, max_epochs=1, random_state=0)
    model.fit(np.random.RandomState(0).rand(40, 3), np.arange(40) % 2)
    model.exemplars_ = 1e6 * model.exemplars_
    with pytest.raises(CannotExport, match="give rows to check the export with"):
        to_onnx(model, tmp_path / "m.onnx")


def test_points_that_are_elsewhere_are_refused_without_labels_too(unlabeled):
    with pytest.raises(CannotExport, match="would put rows elsewhere"):
        parity.check_parity(
            unlabeled, formula_of(unlabeled), lambda given: (unlabeled.transform(given) + 1,)
        )
