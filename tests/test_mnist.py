"""The bar of MNIST, in a fraction of the epochs: `benchmarks/foundation.py mnist` has the rest."""

from __future__ import annotations

import os

import foundation
import pytest

from hopefold import SHOPE

HERE = (foundation.DATA / "mnist").exists()


@pytest.mark.skipif(
    not HERE and "HOPEFOLD_REQUIRE_DATA" not in os.environ,
    reason="MNIST's files are not there: put them in $HOPEFOLD_DATA/mnist",
)
def test_twenty_exemplars_judge_mnist_better_than_the_papers_after_eight_epochs():
    X, X_test, y, y_test = foundation.mnist()
    model = SHOPE(max_epochs=8, validation_fraction=0, random_state=0).fit(X, y)
    assert len(model.exemplars_) == 20
    assert 1 - model.score(X_test, y_test) <= 0.0314
