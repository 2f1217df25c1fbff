"""A deep autoencoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from hopefold.baselines.deep import DeepEmbedding
from hopefold.baselines.projection import WEIGHTS_JUDGE_ONLY
from hopefold.core.maps import EncoderDecoder
from hopefold.core.masks import Masks
from hopefold.fitting.learning import Start, Task
from hopefold.fitting.losses import Batch, Loss

if TYPE_CHECKING:
    from numpy import ndarray


@dataclass(kw_only=True, eq=False, repr=False)
class Autoencoder(DeepEmbedding):
    """A deep map to a few numbers from which another one restores the row.

    Labels do not shape the map: they choose the epoch on the held-out rows, and name the
    references in `predict`.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, default=(1000, 500, 250)
        Units of each layer of sigmoids; the way back has them in reverse.
    {parameters}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hopefold.baselines import Autoencoder
    >>> X, y = load_iris(return_X_y=True)
    >>> Autoencoder(hidden_layer_sizes=(30, 30), random_state=0).fit(X, y).score(X, y) > 0.8
    True

    """

    hidden_layer_sizes: Sequence[int] = (1000, 500, 250)

    _map_kind: ClassVar = EncoderDecoder
    _prose: ClassVar = DeepEmbedding._prose | WEIGHTS_JUDGE_ONLY

    def _pretrain(self, map_: Any, start: Start, sample: Tensor) -> None:
        super()._pretrain(map_.encoder, start, sample)
        map_.start_decoder(sample, start.generator)

    def _make_loss(self, task: Task, training: ndarray) -> Loss:
        def loss(map_: Any, batch: Batch, masks: Masks | None) -> Tensor:
            restored: Tensor = map_.reconstruct(batch.x, masks)
            return (restored - batch.x).square().sum(dim=1).mean()

        return loss
