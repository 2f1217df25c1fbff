"""The report on all of MNIST: small enough to be sent, quick enough to be looked at."""

from __future__ import annotations

import os

import numpy as np
import pytest

from hopefold import SHOPE
from hopefold.data.sets import load_set
from hopefold.report.render import write_report
from hopefold.report.scene import make_scene
from hopefold_bench.splits import data_folder

MOST_BYTES = 25_000_000

#: CPU seconds of the page until a card is shown.
MOST_SECONDS = 5.0


@pytest.mark.skipif(
    not (data_folder() and (data_folder() / "mnist").exists())
    and "HOPEFOLD_REQUIRE_DATA" not in os.environ,
    reason="MNIST's files are not there: put them in $HOPEFOLD_DATA/mnist",
)
def test_seventy_thousand_images_make_a_small_page_that_is_soon_there(visit, tmp_path):
    mnist = load_set("mnist", data_folder())
    X, y = np.concatenate([mnist.X, mnist.X_test]), np.concatenate([mnist.y, mnist.y_test])
    model = SHOPE(max_epochs=3, n_factors=40, n_units=40, random_state=0).fit(X[:2000], y[:2000])
    path = tmp_path / "mnist.html"
    scene = make_scene(
        model, X, y, image_shape=mnist.image_shape, training=np.arange(70_000) < 2000
    )
    write_report(scene, path)
    assert len(scene.points) == 70_000
    assert scene.display.thumbnails.shape == (70_000, 28, 28)
    assert path.stat().st_size < MOST_BYTES

    page = visit(path)
    page.hover(trace=4, point=1_000)
    seconds = page.cpu_seconds()
    assert not page.wrong
    assert 0 < seconds < MOST_SECONDS
    print(f"{path.stat().st_size / 1e6:.1f} MB; a card after {seconds:.1f} s")
