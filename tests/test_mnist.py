"""The bar of MNIST, in a fraction of the epochs, on a validation part: the bench has the rest."""

from __future__ import annotations

import os

import pytest

from hopefold import SHOPE
from hopefold_bench.splits import data_folder, load_splits


@pytest.mark.skipif(
    not (data_folder() and (data_folder() / "mnist").exists())
    and "HOPEFOLD_REQUIRE_DATA" not in os.environ,
    reason="MNIST's files are not there: put them in $HOPEFOLD_DATA/mnist",
)
def test_twenty_exemplars_judge_mnist_better_than_the_papers_after_eight_epochs():
    splits = load_splits("mnist", 0, final=False)
    model = SHOPE(max_epochs=8, validation_fraction=0, random_state=0).fit(splits.X, splits.y)
    assert len(model.exemplars_) == 20
    assert 1 - model.score(splits.X_new, splits.y_new) <= 0.0314
