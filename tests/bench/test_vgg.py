from __future__ import annotations

import numpy as np
import pytest
import torch

from hopefold_bench import vgg


def quietly(_line):
    pass


def train_small(digits, **settings):
    X, _, y, _ = digits
    settings = {"epochs": 2, "progress": quietly, **settings}
    return vgg.train(X, y, image_shape=(8, 8), widths=(8, 16), **settings)


@pytest.fixture(scope="module")
def net(digits):
    return train_small(digits, epochs=12)


def test_it_learns_the_digits(net, digits):
    _, X_test, _, y_test = digits
    assert vgg.softmax_error(net, X_test, y_test) < 0.05


def test_features_are_512_non_negative_numbers_a_row(net, digits):
    features = vgg.extract(net, digits[1])
    assert features.shape == (len(digits[1]), 512)
    assert features.dtype == np.float32
    assert features.min() == 0


def test_the_softmax_sees_the_features(net, digits):
    X = digits[1]
    with torch.no_grad():
        logits = net(torch.tensor(X, dtype=torch.float32).reshape(-1, 1, 8, 8))
        expected = net.head(torch.from_numpy(vgg.extract(net, X)))
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=0)


def test_features_of_a_row_do_not_depend_on_the_others(net, digits, monkeypatch):
    X = digits[1]
    together = vgg.extract(net, X)
    monkeypatch.setattr(vgg, "BLOCK", 1)
    np.testing.assert_allclose(vgg.extract(net, X), together, atol=1e-4)


def test_using_a_net_leaves_its_training_mode_behind(net, digits):
    X = digits[1]
    expected = vgg.extract(net, X)
    net.train()
    np.testing.assert_array_equal(vgg.extract(net, X), expected)


def test_a_net_is_the_same_after_saving_and_loading(net, digits, tmp_path):
    X, y = digits[1], digits[3]
    vgg.save(net, tmp_path / "net.safetensors")
    again = vgg.load(tmp_path / "net.safetensors")
    np.testing.assert_array_equal(vgg.extract(again, X), vgg.extract(net, X))
    assert vgg.softmax_error(again, X, y) == vgg.softmax_error(net, X, y)
    torch.testing.assert_close(again.state_dict(), net.state_dict(), atol=0, rtol=0)


def test_the_same_seed_gives_the_same_net(digits):
    one, same, other = (
        train_small(digits, epochs=1, seed=seed).state_dict()["head.weight"] for seed in (0, 0, 1)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_training_leaves_the_random_numbers_of_the_caller_alone(digits):
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    train_small(digits, epochs=1)
    assert torch.rand(1) == expected


def test_pixels_may_be_bytes(digits):
    X, X_test, y, y_test = digits
    net = train_small((np.uint8(X * 255), None, y, None), epochs=12)
    assert vgg.softmax_error(net, np.uint8(X_test * 255), y_test) < 0.05


def test_progress_is_told_of_every_epoch(digits):
    lines = []
    train_small(digits, epochs=2, progress=lines.append)
    assert [line.split(":")[0] for line in lines] == ["epoch 1 of 2", "epoch 2 of 2"]


def test_a_shift_is_a_share_of_the_width_and_of_the_height(monkeypatch):
    """A lone pixel in the middle goes that far at most, and its light is not lost."""
    monkeypatch.setattr(vgg, "ROTATION", 0.0)
    monkeypatch.setattr(vgg, "SCALING", 0.0)
    monkeypatch.setattr(vgg, "SHIFT", 0.2)
    images = torch.zeros(500, 1, 15, 25)
    images[:, :, 7, 12] = 1
    varied = vgg._vary(images)[:, 0]
    torch.testing.assert_close(varied.sum(dim=(1, 2)), torch.ones(500))
    down = varied.sum(dim=2) @ torch.arange(15.0) - 7
    across = varied.sum(dim=1) @ torch.arange(25.0) - 12
    for moved, furthest in ((down, 3), (across, 5)):
        assert 0.95 * furthest < moved.max() < furthest + 1e-3
        assert 0.95 * furthest < -moved.min() < furthest + 1e-3
