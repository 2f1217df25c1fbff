"""Distorted images: a little, at random, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hopefold import SHOPE
from hopefold.core.masks import MaskSampler
from hopefold.data.distortion import distort
from hopefold.data.scaling import learn_scale
from hopefold.errors import InvalidParameter
from hopefold.fitting.losses import Batch, of_distorted_images
from hopefold.specification.choices import DISTORTIONS

SHAPE = (12, 9)


def seeded(seed: int = 0):
    """Normal numbers for each of 200 images."""
    return MaskSampler(0).masks(seed, 200).normal


@pytest.fixture
def blot() -> torch.Tensor:
    """Images of a blot on a ground of 3, which is not 0."""
    images = torch.full((200, *SHAPE), 3.0)
    images[:, 4:7, 3:6] = 7.0
    return images.reshape(200, -1)


@pytest.mark.parametrize("how", DISTORTIONS)
def test_the_same_seed_distorts_alike_and_another_otherwise(how, blot):
    first, again = (distort(blot, SHAPE, how, seeded()) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, distort(blot, SHAPE, how, seeded(1)))


@pytest.mark.parametrize("how", DISTORTIONS)
def test_images_change_each_in_its_own_way_but_stay_near(how, blot):
    moved = distort(blot, SHAPE, how, seeded())
    assert len(torch.unique(moved, dim=0)) == len(blot)
    assert moved.min() >= 3 - 1e-4
    assert moved.max() <= 7 + 1e-4
    grid = torch.stack(torch.meshgrid(*(torch.arange(n) for n in SHAPE), indexing="ij"))
    ink = (moved - 3).reshape(-1, 1, *SHAPE)
    centers = (grid * ink).sum((2, 3)) / ink.sum((2, 3))
    assert torch.allclose(centers.mean(0), torch.tensor([5.0, 4.0]), atol=0.2)
    assert 0.05 < centers.std(0).max() < 1


def test_a_plain_ground_stays_plain(blot):
    plain = torch.full_like(blot, 3.0)
    torch.testing.assert_close(distort(plain, SHAPE, "elastic", seeded()), plain)


def test_a_warp_goes_beyond_a_linear_map(blot):
    affine, elastic = (distort(blot, SHAPE, how, seeded()) for how in DISTORTIONS)
    assert not torch.allclose(affine, elastic)


def test_learning_from_distorted_images_helps_on_moved_ones(digits):
    """Images of a test part, each moved by a pixel: those who have seen such err less."""
    X, X_new, y, y_new = digits
    images = X_new.reshape(-1, 8, 8)
    moved = np.roll(images, 1, axis=2).reshape(len(X_new), -1)
    settings = {"max_epochs": 25, "random_state": 0, "image_shape": (8, 8)}
    plain = SHOPE(**settings).fit(X, y).score(moved, y_new)
    augmented = SHOPE(**settings, augment="affine").fit(X, y).score(moved, y_new)
    assert augmented > plain + 0.1


def test_what_cannot_be_distorted_is_refused(three_blobs, digits):
    X, _, y, _ = digits
    with pytest.raises(InvalidParameter, match="set image_shape"):
        SHOPE(augment="affine").fit(X, y)
    for shape in [(8, 9), (-8, -8)]:
        with pytest.raises(InvalidParameter, match="64 features"):
            SHOPE(augment="affine", image_shape=shape).fit(X, y)
    for shape in [64, "nonsense", (8.0, 8.0), (True, 64), (8, 8, 1)]:
        with pytest.raises(InvalidParameter, match="as whole numbers"):
            SHOPE(image_shape=shape).fit(X, y)
    with pytest.raises(InvalidParameter, match="scale='range'"):
        SHOPE(augment="affine", image_shape=(1, 5), scale="standard").fit(*three_blobs)
    with pytest.raises(InvalidParameter, match="augment='blur'"):
        SHOPE(augment="blur", image_shape=(8, 8)).fit(X, y)


def test_images_are_scaled_as_a_whole_by_themselves(digits):
    """Few images look like a table: some pixels near the border are hardly ever there."""
    X, _, y, _ = digits
    model = SHOPE(augment="affine", image_shape=(8, 8), max_epochs=1).fit(X[:100], y[:100])
    assert len(np.unique(model.scale_.gain)) <= 2


def test_a_constant_border_is_moved_as_the_ground_that_it_is(blot):
    """White ground, 1 in the scale of the map, whose constant pixels are 0 there."""
    images = 7 - blot[:4].reshape(4, *SHAPE).numpy()  # the ground is 4, ink 0
    images[:, 4:7, 3:6] += np.random.RandomState(0).rand(4, 3, 3)
    scale = learn_scale(images.reshape(4, -1), "range")
    rows = torch.from_numpy(scale.apply(images.reshape(4, -1)))
    assert (rows[:, scale.gain == 0] == 0).all()
    seen = []

    def watch(_map, batch, _generator):
        seen.append(batch.x)
        return batch.x.sum()

    ones = torch.ones(rows.shape[1])
    batch = Batch(np.arange(4), rows, torch.zeros(4), None, rows[:0], ones, torch.zeros(0), None)
    of_distorted_images(watch, SHAPE, "affine", scale)(None, batch, MaskSampler(0).masks(0, 4))
    assert (seen[0][:, scale.gain == 0] == 0).all()
    ink = seen[0].reshape(4, *SHAPE)[:, 4:7, 3:6]
    assert rows.max() <= 0.25
    assert ink.max() > 0.5  # some ground has come in, and it is lighter than any ink
