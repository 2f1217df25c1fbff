"""Deep maps, and their layer-wise pre-training."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from hopefold.core.maps import Deep
from hopefold.core.masks import MaskSampler, drop
from hopefold.fitting.build import START_ROWS, Method, Start
from hopefold.fitting.task import Task
from hopefold.training.loop import minimize
from hopefold.training.progress import Progress
from hopefold.training.settings import Training

if TYPE_CHECKING:
    from numpy import ndarray

#: Share of a layer's inputs that its denoising autoencoder does without.
NOISE = 0.25

PRETRAINING = Training(
    max_epochs=1,
    batch_size=100,
    learning_rate=3e-4,
    optimizer="adam",
    batch_iterations=1,
    weight_decay=0.0,
    patience=1,
    taking_turns=0.0,
)


class DeepMethod(Method):
    """A deep map of sigmoids, whose layers may learn to denoise their inputs first."""

    map_kind: ClassVar[type[nn.Module]] = Deep

    def make_map(self, n_features: int) -> nn.Module:
        """Layers of the given widths."""
        plan = self.plan
        return self.map_kind(
            n_features,
            plan.options["hidden_layer_sizes"],
            plan.n_components,
            input_dropout=plan.input_dropout,
            dropout=plan.dropout,
        )

    def start_map(self, map_: Any, start: Start) -> None:
        """Random weights, then layer-wise pre-training where it is asked for."""
        super().start_map(map_, start)
        if self.plan.options["pretraining_epochs"]:
            self.pretrain(map_, start, start.fetch(START_ROWS))

    def pretrain(self, map_: Any, start: Start, sample: Tensor) -> None:
        """Layer after layer, each started anew for what the ones below have become."""
        plan, task, training, generator = self.plan, start.task, start.training, start.generator
        settings = replace(PRETRAINING, max_epochs=plan.options["pretraining_epochs"])
        for depth in range(len(map_.W)):
            map_.cpu().start_layer(depth, sample, generator)
            title = f"{plan.method}, layer {depth + 1}"
            with Progress(title, settings.max_epochs, verbose=start.verbose) as progress:
                restore = Restoration(map_.to(plan.device), depth, task, training, sample)
                minimize(
                    restore,
                    restore.groups,
                    len(training),
                    settings,
                    generator,
                    progress,
                    checkpoint=task.checkpoint,
                )
        map_.cpu().start_projection(sample, generator)


class Restoration:
    """How badly a layer restores inputs that it saw with holes: a denoising autoencoder.

    x̂ = D (5/√m) h + c from the m units h of the layer, in squared error. c starts at the mean of
    the inputs and D at 0, so that the units need not serve for what is the same in all rows; the
    factor makes steps of Adam as large as a wide layer bears.
    """

    def __init__(
        self, map_: Deep, depth: int, task: Task, training: ndarray, sample: Tensor
    ) -> None:
        self._map = map_
        self._depth = depth
        self._task = task
        self._training = training
        W, b = map_.W[depth], map_.b[depth]
        self._D = nn.Parameter(torch.zeros_like(W.T, memory_format=torch.contiguous_format))
        with torch.no_grad():
            self._c = nn.Parameter(map_.hidden(sample.to(W.device), depth=depth).mean(dim=0))
        self._sampler = MaskSampler(task.seed, W.device)
        self.groups = {"map": [W, b, self._D, self._c]}

    def __call__(self, batch: Tensor, seed: int, _done: float) -> Tensor:
        """The error of a batch, with holes that the seed decides."""
        x = self._task.rows.fetch(self._training[batch.numpy()]).to(self._c.device)
        with torch.no_grad():
            inputs = self._map.hidden(x, depth=self._depth)
            damaged = drop(inputs, NOISE, self._sampler.masks(seed, len(x))) * (1 - NOISE)
        W, b = self._map.W[self._depth], self._map.b[self._depth]
        units = torch.tanh(torch.addmm(b, damaged, W.T)) * (5 / math.sqrt(len(W)))
        return (torch.addmm(self._c, units, self._D.T) - inputs).square().sum(dim=1).mean()
