"""Who sees which rows."""

from __future__ import annotations

import numpy as np
import pytest

from hopefold.errors import InvalidParameter
from hopefold_bench.splits import load_splits

SETS = ["digits", "usps", "mnist"]


def ids(rows):
    return set(rows.ravel().tolist())


@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize("final", [False, True])
def test_no_new_row_is_among_those_to_learn_from(numbered_sets, data, final):
    splits = load_splits(data, 3, final=final)
    assert not ids(splits.X) & ids(splits.X_new)


@pytest.mark.parametrize("data", SETS)
def test_without_final_no_row_of_the_test_part_is_seen(numbered_sets, data):
    test_part = ids(load_splits(data, 3, final=True).X_new)
    splits = load_splits(data, 3, final=False)
    assert not test_part & (ids(splits.X) | ids(splits.X_new))


@pytest.mark.parametrize("data", SETS)
def test_training_and_validation_part_make_up_what_final_runs_learn_from(numbered_sets, data):
    splits = load_splits(data, 3, final=False)
    assert ids(splits.X) | ids(splits.X_new) == ids(load_splits(data, 3, final=True).X)


def test_usps_is_cut_into_800_and_300_of_each_digit(numbered_sets):
    splits = load_splits("usps", 0, final=True)
    assert np.bincount(splits.y).tolist() == [800] * 10
    assert np.bincount(splits.y_new).tolist() == [300] * 10


def test_the_test_part_of_mnist_is_the_official_one_whatever_the_split(numbered_sets):
    one, other = (load_splits("mnist", split, final=True) for split in (0, 1))
    assert ids(one.X_new) == ids(other.X_new) == set(range(1_000_000, 1_000_500))


def test_splits_differ(numbered_sets):
    one, other = (load_splits("usps", split, final=True) for split in (0, 1))
    assert ids(one.X_new) != ids(other.X_new)


def test_labels_go_with_their_rows(numbered_sets):
    splits = load_splits("mnist", 0, final=False)
    assert (splits.X[:, 0] % 10 == splits.y).all()
    assert (splits.X_new[:, 0] % 10 == splits.y_new).all()


def test_quick_keeps_few_rows_of_each_class(numbered_sets):
    splits = load_splits("mnist", 0, final=False, quick=True)
    assert np.bincount(splits.y).tolist() == [100] * 10
    assert np.bincount(splits.y_new).tolist() == [30] * 10


def test_an_unknown_set_is_reported():
    with pytest.raises(
        InvalidParameter, match="'cats' is not a known data set: choose from digits"
    ):
        load_splits("cats", 0, final=False)
