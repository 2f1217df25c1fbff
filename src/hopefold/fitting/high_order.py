"""HOPE and S-HOPE as methods: maps of products of features, and their losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torch import nn

from hopefold.core.maps import HighOrder, Pressed, Products, SigmoidHighOrder, Stacked
from hopefold.data.validation import check_one_scale, check_pixels
from hopefold.fitting.build import START_ROWS, Method, Start
from hopefold.fitting.layer_sizes import as_parameter, sizes_of_layers
from hopefold.fitting.losses import (
    ExemplarLoss,
    HighOrderLoss,
    Loss,
    PairLoss,
    of_distorted_images,
)
from hopefold.fitting.task import Task

if TYPE_CHECKING:
    from numpy import ndarray

LEARNED = "as in the learned map"


class HighOrderMethod(Method):
    """What HOPE and S-HOPE share: the loss, and spare coordinates that are pressed flat."""

    learns_without_labels: ClassVar = True
    learns_in_parallel: ClassVar = True

    def add_spare_components(self, map_: Any, start: Start) -> nn.Module:
        """The map with spare coordinates around it, so that classes can pass each other."""
        if not self.plan.spare_components:
            return map_
        pressed = Pressed(map_, self.plan.spare_components)
        pressed.start(start.fetch(START_ROWS), start.generator)
        return pressed

    def make_loss(self, task: Task, training: ndarray) -> Loss:
        """Onto exemplars or pairs; adversarial, and of distorted images, where the plan says so."""
        plan = self.plan
        radius = plan.adversarial and plan.adversarial * task.spread(training)
        point_loss: ExemplarLoss | PairLoss
        if plan.exemplars == "joint":
            point_loss = ExemplarLoss(plan.objective == "spread", plan.structure)
        else:
            point_loss = PairLoss(plan.conditional, plan.structure, plan.perplexity)
        loss = HighOrderLoss(point_loss, radius=radius)
        if plan.augment is None:
            return loss
        assert plan.image_shape is not None
        check_one_scale(task.scale, plan.augment)
        check_pixels(plan.image_shape, task.rows.n_features)
        return of_distorted_images(loss, plan.image_shape, plan.augment, task.scale)

    @property
    def _rates(self) -> dict[str, Any]:
        return {"input_dropout": self.plan.input_dropout, "dropout": self.plan.dropout}


class HOPEMethod(HighOrderMethod):
    """``y = P (Cx)^O``, learned as products unless the plan says ``tied``."""

    def make_map(self, n_features: int) -> nn.Module:
        """Powers of weighted sums."""
        return self._make(HighOrder, n_features)

    def make_learning_map(self, n_features: int) -> nn.Module:
        """Products of different sums, which become powers in the end."""
        return self._make(HighOrder if self.plan.tied else Products, n_features)

    def finish(self, map_: Any) -> nn.Module:
        """Products as powers."""
        return map_.as_powers() if isinstance(map_, Products) else map_

    @property
    def sizes(self) -> dict[str, Any]:
        """The number of powers."""
        return {"n_factors": self.plan.n_factors}

    @classmethod
    def sizes_of(cls, weights: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
        """The number of powers."""
        return {"n_factors": (len(weights["c"]), LEARNED)}

    def _make(self, kind: type[HighOrder], n_features: int) -> nn.Module:
        plan = self.plan
        assert isinstance(plan.order, int)
        assert isinstance(plan.n_factors, int)
        return kind(n_features, plan.n_components, plan.order, plan.n_factors, **self._rates)


class SHOPEMethod(HighOrderMethod):
    """``y = P σ(W (Cx)^O + b)``, in one layer or several."""

    def make_map(self, n_features: int) -> nn.Module:
        """One layer of sigmoids, or a stack of them."""
        orders, n_factors, n_units = self.plan.layers
        n_components = self.plan.n_components
        if len(n_units) > 1:
            return Stacked(n_features, n_components, orders, n_factors, n_units, **self._rates)
        (order,), (n_factor,), (n_unit,) = orders, n_factors, n_units
        sizes = (n_features, n_components, order, n_factor, n_unit)
        return SigmoidHighOrder(*sizes, **self._rates)

    @property
    def sizes(self) -> dict[str, Any]:
        """The numbers of polynomial and of sigmoid units; of several layers, of each."""
        return {"n_factors": self.plan.n_factors, "n_units": self.plan.n_units}

    @classmethod
    def sizes_of(cls, weights: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
        """The sizes of all layers."""
        return {
            "n_units": (as_parameter(sizes_of_layers(weights, "b")), LEARNED),
            "n_factors": (as_parameter(sizes_of_layers(weights, "c")), LEARNED),
        }
