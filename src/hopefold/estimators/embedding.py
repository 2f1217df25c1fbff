"""Rows to points, in bounded memory."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
import torch
from sklearn.utils import gen_batches
from torch import nn

from hopefold.data.rows import Rows
from hopefold.errors import Diverged, InvalidParameter

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray

#: Numbers of a table that are embedded at once: 16 MB of float32.
BLOCK = 2**22

#: So few rows are embedded in float64: a row alone and in a small batch give the same digits.
FEW_ROWS = 512


@torch.inference_mode()
def embed(map_: nn.Module, rows: Rows, device: torch.device) -> Float[ndarray, "n d"]:
    """The points of all rows: float64 for few rows, float32 for many.

    Matrix products round differently for one row and for many. In float64 the difference is below
    what a float32 result can show, and for few rows that costs next to nothing.
    """
    if len(rows) <= FEW_ROWS:
        precise = copy.deepcopy(map_).cpu().double()
        return _finite(precise(rows.fetch(slice(None)).double()).numpy())
    blocks = gen_batches(len(rows), max(1, BLOCK // rows.n_features))
    map_ = map_ if next(map_.parameters()).device == device else copy.deepcopy(map_).to(device)
    return _finite(np.concatenate([map_(rows.fetch(b).to(device)).cpu().numpy() for b in blocks]))


def resolve_device(device: str | torch.device) -> torch.device:
    """``auto`` is a GPU where torch finds one, and the CPU elsewhere."""
    if device != "auto":
        try:
            return torch.empty(0, device=device).device
        except (RuntimeError, AssertionError, TypeError) as error:
            reason = str(error).splitlines()[0]
            raise InvalidParameter(
                f"device={device!r} cannot be used here ({reason}): choose 'auto' or 'cpu'."
            ) from error
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _finite(points: ndarray) -> ndarray:
    with np.errstate(over="ignore"):
        finite = np.isfinite(points.astype(np.float32, copy=False)).all(axis=1)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise Diverged(
            f"row {row} lies so far outside the training data that its embedding overflows: "
            "clip or drop it, or check its units."
        )
    return points
