"""Fingerprints tell rows that were seen from new ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from hopefold import SHOPE, load
from hopefold.data.fingerprints import KEPT, fingerprints, share_seen, sketch
from hopefold.evaluation import share_learned


@pytest.fixture
def rows():
    return np.random.RandomState(0).rand(5_000, 7)


@pytest.mark.parametrize("n_seen", [20, KEPT, 1_000, 4_000])
def test_rows_that_were_seen_are_known_and_new_ones_are_not(rows, n_seen):
    kept = sketch(rows[:n_seen])
    assert len(kept) == min(n_seen, KEPT)
    assert share_seen(rows[:n_seen], kept) == 1
    assert share_seen(rows[n_seen:], kept) == 0


def test_the_share_is_about_right(rows):
    kept = sketch(rows[:2_500])
    assert share_seen(rows, kept) == pytest.approx(0.5, abs=0.15)
    few = np.concatenate([rows[:2_500:10], rows[2_500:]])
    assert 0 < share_seen(few, kept) < 0.3


def test_the_type_and_the_kind_of_a_table_do_not_matter(rows):
    rows[rows < 0.5] = 0
    marks = fingerprints(rows)
    assert len(np.unique(marks)) == len(np.unique(rows, axis=0))
    for same in (rows.astype(np.float32), np.asfortranarray(rows), np.where(rows, rows, -0.0)):
        np.testing.assert_array_equal(fingerprints(same), marks)
    np.testing.assert_array_equal(fingerprints(sparse.csr_array(rows)), marks)


def test_the_order_of_columns_matters(rows):
    assert share_seen(rows[:, ::-1], sketch(rows)) == 0


def test_parts_of_a_table_make_the_sketch_of_all(rows):
    together = sketch(rows[3_000:], sketch(rows[:3_000]))
    np.testing.assert_array_equal(together, sketch(rows))


def test_a_model_knows_its_rows_also_from_a_file_and_after_more(three_blobs, tmp_path):
    X, y = three_blobs
    old, new = slice(None, None, 2), slice(1, None, 2)
    model = SHOPE(max_epochs=2, random_state=0).fit(X[old], y[old])
    assert (share_learned(model, X[old]), share_learned(model, X[new])) == (1, 0)
    model.save(tmp_path / "model.hope")
    assert share_learned(load(tmp_path / "model.hope"), X[old]) == 1
    model.partial_fit(X[new], y[new])
    assert share_learned(model, X) == 1
    assert share_learned(model, X + 1) == 0


def test_a_file_of_before_does_not_know(three_blobs):
    model = SHOPE(max_epochs=2, random_state=0).fit(*three_blobs)
    model.seen_ = None
    assert share_learned(model, three_blobs[0]) is None
