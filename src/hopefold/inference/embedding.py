"""Embedding of rows in bounded memory."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from hopefold.core.maps import HighOrder, SigmoidHighOrder, Stacked
from hopefold.data.rows import Rows
from hopefold.data.scaling import Scale, can_be_shared, learn_scale
from hopefold.errors import InvalidParameter

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy import ndarray

#: Number of values that are embedded at once: 4 MB of float32, which fit the cache.
BLOCK = 2**20

#: Rows are embedded in multiples of this. Rounding of matrix products depends on the number of
#: rows; in whole tiles, a row gives the same bits in any batch, except with some very small maps,
#: for which the kernel depends on the number of tiles (differences of 1e-6 of the range were
#: observed).
TILE = 4

CPU = torch.device("cpu")

#: Checks rows that may have non-finite values, and raises an error for the user.
OnNonFinite = Callable[[], None]


@torch.inference_mode()
def embed(
    map_: nn.Module, rows: Rows, device: torch.device, on_non_finite: OnNonFinite | None = None
) -> Float[ndarray, "n d"]:
    """Return the float32 points of all rows, in bounded memory; each is independent of other rows.

    ``on_non_finite`` is called if some rows do not have a finite sum. This is checked here and not
    in advance, so that each block of rows is read from memory only once.
    """
    map_ = map_ if next(map_.parameters()).device == device else copy.deepcopy(map_).to(device)
    step = TILE * max(1, BLOCK // (TILE * rows.n_features))
    points: ndarray | None = None
    for start in range(0, len(rows), step):
        x = rows.fetch(slice(start, min(start + step, len(rows))))
        if on_non_finite is not None and not math.isfinite(x.sum()):
            on_non_finite()
            on_non_finite = None  # it has checked all rows
        some = map_(_whole_tiles(x).to(device))[: len(x)].cpu().numpy()
        if points is None:  # allocate once: many small arrays fragment memory
            points = np.empty((len(rows), some.shape[1]), dtype=some.dtype)
        points[start : start + len(x)] = some
    assert points is not None
    return points


class ScaledMap:
    """A map and the scale of its rows, fused if possible.

    A scale without a shift is a factor per column of the first weights, so float32 rows need no
    extra pass. float64 rows are scaled before they are rounded, as in a fit.
    """

    def __init__(self, map_: nn.Module, scale: Scale) -> None:
        self.map, self.scale = map_, scale
        self._folded, self._rest = map_, scale
        self._direct = isinstance(map_, SigmoidHighOrder)
        if isinstance(map_, HighOrder | Stacked) and not scale.shifts:
            self._folded = folded = copy.deepcopy(map_)
            with torch.no_grad():
                folded.layers[0].C.mul_(torch.from_numpy(scale.gain))
            self._rest = learn_scale(scale.gain[None], None)

    def embed(
        self, X: Any, device: torch.device, on_non_finite: OnNonFinite | None = None
    ) -> Float[ndarray, "n d"]:
        """Return the float32 points of rows in the original units."""
        if X.dtype != np.float32:
            return embed(self.map, Rows(X, self.scale), device, on_non_finite)
        alone = isinstance(X, np.ndarray) and len(X) == 1 and can_be_shared(X)
        if alone and self._direct and device == CPU:
            if on_non_finite is not None and not math.isfinite(torch.from_numpy(X).sum()):
                on_non_finite()
            return _embed_one(self._folded, self._rest.apply(X))
        return embed(self._folded, Rows(X, self._rest), device, on_non_finite)


@torch.inference_mode()
def _embed_one(map_: Any, row: Float[ndarray, "1 features"]) -> Float[ndarray, "1 d"]:
    """Return the point of one row under S-HOPE, in half the time of a tile.

    Only the last product is computed in a tile, since its rounding determines the point: sigmoids
    hide rounding differences of the products before. Powers, as in HOPE, would not.
    """
    hidden: Tensor = map_.hidden(torch.from_numpy(row))
    return (hidden.expand(TILE, -1) @ map_.P.T)[:1].numpy()


def _whole_tiles(x: Tensor) -> Tensor:
    missing = -len(x) % TILE
    return torch.cat([x, x.new_zeros(missing, x.shape[1])]) if missing else x


def resolve_device(device: str | torch.device) -> torch.device:
    """Return the torch device; ``auto`` is a GPU if torch finds one, and otherwise the CPU."""
    if device != "auto":
        try:
            found = torch.device(device)
            torch.ones(1, device=found).cpu()  # a device type that torch knows may be unavailable
            return found
        except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
            reason = str(error).splitlines()[0]
            raise InvalidParameter(
                f"device={device!r} cannot be used here ({reason}): choose 'auto' or 'cpu'."
            ) from error
    return best_device()


@cache
def best_device() -> torch.device:
    """Return a GPU if torch finds one, else the CPU; cached, as it takes longer than a row."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
