"""Rows to points, in bounded memory."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from hopefold.data.rows import Rows
from hopefold.errors import InvalidParameter

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray

#: Numbers of a table that are embedded at once: 4 MB of float32, near the processor.
BLOCK = 2**20

#: Rows are embedded in multiples of this. Matrix products round differently for one row, a few and
#: many; in whole tiles a row gets the same bits whatever is beside it.
TILE = 4


@torch.inference_mode()
def embed(map_: nn.Module, rows: Rows, device: torch.device) -> Float[ndarray, "n d"]:
    """The float32 points of all rows, in bounded memory; a row's point does not see the others."""
    map_ = map_ if next(map_.parameters()).device == device else copy.deepcopy(map_).to(device)
    step = TILE * max(1, BLOCK // (TILE * rows.n_features))
    points = []
    for start in range(0, len(rows), step):
        x = rows.fetch(slice(start, min(start + step, len(rows))))
        points.append(map_(_whole_tiles(x).to(device))[: len(x)].cpu().numpy())
    return np.concatenate(points)


def _whole_tiles(x: Tensor) -> Tensor:
    missing = -len(x) % TILE
    return torch.cat([x, x.new_zeros(missing, x.shape[1])]) if missing else x


def resolve_device(device: str | torch.device) -> torch.device:
    """``auto`` is a GPU where torch finds one, and the CPU elsewhere."""
    if device != "auto":
        try:
            found = torch.device(device)
            torch.ones(1, device=found).cpu()  # a device that torch knows may not be there
            return found
        except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
            reason = str(error).splitlines()[0]
            raise InvalidParameter(
                f"device={device!r} cannot be used here ({reason}): choose 'auto' or 'cpu'."
            ) from error
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
