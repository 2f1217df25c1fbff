"""The bar of MNIST, in a fraction of the epochs, on a validation part: the bench has the rest."""

from __future__ import annotations

import os

import pytest

from hopefold import SHOPE
from hopefold.bench.parts import data_folder, load_parts


@pytest.mark.skipif(
    not (data_folder() and (data_folder() / "mnist").exists())
    and "HOPEFOLD_REQUIRE_DATA" not in os.environ,
    reason="MNIST's files are not there: put them in $HOPEFOLD_DATA/mnist",
)
def test_twenty_exemplars_judge_mnist_better_than_the_papers_after_eight_epochs():
    parts = load_parts("mnist", 0, final=False)
    model = SHOPE(max_epochs=8, validation_fraction=0, random_state=0).fit(parts.X, parts.y)
    assert len(model.exemplars_) == 20
    assert 1 - model.score(parts.X_new, parts.y_new) <= 0.0314
