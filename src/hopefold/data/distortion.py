"""Random affine and elastic distortions of images (data augmentation)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import affine_grid, grid_sample, interpolate

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

#: Standard deviations, in halves of the image size: of the linear part's entries, of the shift, and
#: of the displacement of an elastic distortion at its knots.
LINEAR, SHIFT, WARP = 0.07, 0.05, 0.03

#: Knots per side of an elastic distortion.
KNOTS = 6


def distort(
    rows: Float[Tensor, "n pixels"],
    image_shape: tuple[int, int],
    how: str,
    normal: Callable[..., Tensor],
) -> Float[Tensor, "n pixels"]:
    """Distort each image at random; with ``"elastic"``, also by a smooth displacement field.

    ``normal`` returns standard normal numbers of a shape for each image. Pixels from outside the
    image take the value at the border.
    """

    def draw(deviation: float, *shape: int) -> Tensor:
        return deviation * normal(*shape)

    images = rows.reshape(-1, 1, *image_shape)
    linear = torch.eye(2, device=rows.device) + draw(LINEAR, 2, 2)
    where = affine_grid(
        torch.cat([linear, draw(SHIFT, 2, 1)], dim=2), list(images.shape), align_corners=False
    )
    if how == "elastic":
        pull = draw(WARP, 2, KNOTS, KNOTS)
        warp = interpolate(pull, image_shape, mode="bicubic", align_corners=True)
        where = where + warp.permute(0, 2, 3, 1)
    moved = grid_sample(images, where.to(rows.dtype), padding_mode="border", align_corners=False)
    return moved.reshape(rows.shape)
