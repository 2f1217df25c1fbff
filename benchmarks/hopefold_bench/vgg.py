"""A small VGG-style convolutional network, whose 512 features the benchmarks embed.

Three blocks of two 3×3 convolutions, each with batch normalization and a ReLU, and a pooling that
halves the image; then a layer of 512 units, and the softmax. Training uses AdamW, a one-cycle
schedule, label smoothing, and random rotations, scales and shifts of the images.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from os import PathLike
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import torch
from sklearn.utils import gen_batches
from torch import nn
from torch.nn import functional

from hopefold.persistence import store

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray
    from torch import Tensor

#: Channels of the convolutions of each block, and units of the layer below the softmax.
WIDTHS = (24, 48, 96)
N_FEATURES = 512

#: The limits of the augmentation: degrees of rotation, relative scale, and shift as a share of the
#: width and height (2 pixels of 28).
ROTATION, SCALING, SHIFT = 12.0, 0.1, 2 / 28

BATCH_SIZE, LEARNING_RATE = 128, 4e-3
WEIGHT_DECAY, LABEL_SMOOTHING = 0.05, 0.1

#: Rows per batch of inference.
BLOCK = 500


class VGG(nn.Module):
    """Images to logits; below them, features.

    The first layer standardizes the pixels. Memory is laid out with channels last, which is faster
    on a CPU.
    """

    def __init__(
        self, image_shape: tuple[int, int], n_classes: int, widths: tuple[int, ...] = WIDTHS
    ) -> None:
        super().__init__()
        self.image_shape, self.n_classes, self.widths = image_shape, n_classes, widths
        height, width = image_shape
        layers: list[nn.Module] = [nn.BatchNorm2d(1, momentum=None, affine=False)]
        for before, after in zip((1, *widths), widths, strict=False):
            layers += [*_convolution(before, after), *_convolution(after, after)]
            layers += [nn.MaxPool2d(2, ceil_mode=True)]
            height, width = math.ceil(height / 2), math.ceil(width / 2)
        below = nn.Linear(widths[-1] * height * width, N_FEATURES, bias=False)
        layers += [nn.Flatten(), below, nn.BatchNorm1d(N_FEATURES), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(N_FEATURES, n_classes)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def features(self, images: Float[Tensor, "n 1 h w"]) -> Float[Tensor, "n 512"]:
        """The features below the softmax: non-negative activations."""
        return self.body(images.contiguous(memory_format=torch.channels_last))

    def forward(self, images: Float[Tensor, "n 1 h w"]) -> Float[Tensor, "n classes"]:
        """One logit per class."""
        return self.head(self.features(images))


def _convolution(before: int, after: int) -> tuple[nn.Module, ...]:
    """A 3×3 convolution that keeps the size of the image; batch normalization has the bias."""
    convolution = nn.Conv2d(before, after, 3, padding=1, bias=False)
    return convolution, nn.BatchNorm2d(after), nn.ReLU(inplace=True)


def train(
    X: ndarray,
    y: ndarray,
    *,
    image_shape: tuple[int, int] = (28, 28),
    widths: tuple[int, ...] = WIDTHS,
    seed: int = 0,
    epochs: int = 10,
    progress: Callable[[str], None] = print,
) -> VGG:
    """Train a network on the pixels in the rows of X and the classes 0, 1, … of y.

    The same seed gives the same network on the same machine. ``progress`` is called per epoch.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = VGG(image_shape, int(y.max()) + 1, widths)
        labels = torch.from_numpy(y.astype(np.int64))
        n_batches = math.ceil(len(X) / BATCH_SIZE)
        loss_of = nn.CrossEntropyLoss(label_smoothing=LABEL_SMOOTHING)
        optimizer = torch.optim.AdamW(net.parameters(), weight_decay=WEIGHT_DECAY)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, LEARNING_RATE, total_steps=epochs * n_batches, pct_start=0.2
        )
        for epoch in range(1, epochs + 1):
            start, total = perf_counter(), torch.zeros(())
            for batch in torch.randperm(len(X)).tensor_split(n_batches):
                images = _vary(_images(X[batch.numpy()], image_shape))
                loss = loss_of(net(images), labels[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                total += loss.detach() * (len(batch) / len(X))
            seconds = perf_counter() - start
            progress(f"epoch {epoch} of {epochs}: loss {float(total):.4f}, {seconds:.0f} s")
    return net.eval()


def _images(X: ndarray, image_shape: tuple[int, int]) -> Float[Tensor, "n 1 h w"]:
    return torch.from_numpy(X.astype(np.float32)).reshape(-1, 1, *image_shape)


def _vary(images: Float[Tensor, "n 1 h w"]) -> Float[Tensor, "n 1 h w"]:
    """Rotate, scale and shift each image at random; the border is extended."""

    def uniform(largest: float, *shape: int) -> Tensor:
        return (2 * torch.rand(len(images), *shape) - 1) * largest

    angle, size = torch.deg2rad(uniform(ROTATION)), 1 + uniform(SCALING)
    cos, sin = size * angle.cos(), size * angle.sin()
    turn = torch.stack([cos, -sin, sin, cos], dim=1).reshape(-1, 2, 2)
    shift = uniform(2 * SHIFT, 2, 1)  # in a grid from -1 to 1 across the image
    where = torch.cat([turn, shift], dim=2)
    grid = functional.affine_grid(where, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)


def extract(net: VGG, X: ndarray) -> ndarray:
    """The features of the rows of X, float32 of shape (n, 512)."""
    return _in_blocks(net.features, net, X)


def predict(net: VGG, X: ndarray) -> ndarray:
    """The class of each row with the largest logit."""
    return _in_blocks(net, net, X).argmax(axis=1)


def softmax_error(net: VGG, X: ndarray, y: ndarray) -> float:
    """The share of rows whose largest logit is not that of their class."""
    return float((predict(net, X) != y).mean())


@torch.inference_mode()
def _in_blocks(of: Callable[[Tensor], Tensor], net: VGG, X: ndarray) -> ndarray:
    """Apply a function of the network in evaluation mode, block by block."""
    net.eval()
    return np.concatenate(
        [of(_images(X[rows], net.image_shape)).numpy() for rows in gen_batches(len(X), BLOCK)]
    )


def save(net: VGG, path: str | PathLike[str]) -> None:
    """Write the net to one file."""
    shape = {"image_shape": net.image_shape, "n_classes": net.n_classes, "widths": net.widths}
    store.write(path, {"vgg": shape}, {k: v.numpy() for k, v in net.state_dict().items()})


def load(path: str | PathLike[str]) -> VGG:
    """Load a network that `save` has written, in evaluation mode."""
    manifest, tensors = store.read(path)
    shape = manifest["vgg"]
    net = VGG(tuple(shape["image_shape"]), shape["n_classes"], tuple(shape["widths"]))
    empty = net.state_dict()  # has the shapes of scalars, which are stored as vectors
    net.load_state_dict({k: torch.tensor(v).reshape(empty[k].shape) for k, v in tensors.items()})
    return net.eval()
