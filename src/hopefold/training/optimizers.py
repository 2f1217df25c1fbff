"""Adam with a schedule, and SciPy's conjugate gradient and L-BFGS on mini-batches.

All take the same step: a closure that computes the loss of a batch, the groups of parameters whose
turn it is, and how far the run has come.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor, nn
from torch.optim.adamw import adamw

from hopefold.training.settings import Training

Groups = Mapping[str, Sequence[nn.Parameter]]


class LossWithGradients(NamedTuple):
    """A loss whose gradients are known already, by what they are taken to."""

    value: Tensor
    gradients: Mapping[Tensor, Tensor]


class Moments(NamedTuple):
    """What Adam knows of a group: how many steps it has taken, and means of gradients."""

    step: Tensor
    #: For each parameter, of its gradients and of their squares.
    means: list[Tensor]
    squares: list[Tensor]


#: The loss of a batch; where the gradients do not come with it, autograd finds them.
Closure = Callable[[], Tensor | LossWithGradients]

#: Steps are not made smaller than this share of what they were: then they are not what is wrong.
SLOWEST = 1 / 64

#: How long Adam's means of gradients and of their squares last.
BETAS = (0.9, 0.99)

#: What every step of Adam has in common.
ADAM: Any = {
    "beta1": BETAS[0],
    "beta2": BETAS[1],
    "eps": 1e-8,
    "amsgrad": False,
    "maximize": False,
}

#: Share of the run in which the learning rate rises from zero.
WARM_UP = 0.1

SCIPY_METHODS = {"cg": "CG", "lbfgs": "L-BFGS-B"}


class Optimizer(Protocol):
    """One step on one batch, and what the next step remembers of it."""

    #: The learning rate of the last step, where there is one.
    rate: float | None

    def step(self, closure: Closure, turn: Sequence[str], progress: float) -> Tensor:
        """Lower the closure's value over the groups in ``turn``; return the value before."""

    def memory(self) -> dict[str, Tensor]:
        """What the next step depends on, besides the parameters."""

    def remember(self, memory: Mapping[str, Tensor]) -> None:
        """Go on from there."""

    def slow_down(self) -> bool:
        """Take smaller steps from now on, where that is possible."""


def make_optimizer(groups: Groups, settings: Training) -> Optimizer:
    """The optimizer that the settings name."""
    if settings.optimizer == "adam":
        return Adam(groups, settings.learning_rate, settings.weight_decay)
    return SciPy(groups, SCIPY_METHODS[settings.optimizer], settings.batch_iterations)


class Adam:
    """Adam whose learning rate warms up and then falls along a cosine.

    Weight decay is decoupled and holds for the map alone: exemplars are data, not weights.
    """

    def __init__(self, groups: Groups, learning_rate: float, weight_decay: float) -> None:
        self._groups = groups
        self._learning_rate = learning_rate
        self._decays = {name: weight_decay if name == "map" else 0.0 for name in groups}
        self._fused = next(iter(groups["map"])).device.type in ("cpu", "cuda")
        self._slowness = 1.0
        self._moments = {name: self._no_moments(group) for name, group in groups.items()}
        self.rate: float | None = None

    def step(self, closure: Closure, turn: Sequence[str], progress: float) -> Tensor:
        """One step of Adam; groups that wait stay as they are."""
        self.rate = self._learning_rate * self._slowness * one_cycle(progress)
        loss, gradients = value_and_gradients(closure(), _in_turn(self._groups, turn))
        decays = {self._decays[name] for name in turn}
        for names in [turn] if len(decays) == 1 else [[name] for name in turn]:  # fewer are quicker
            n_parameters = sum(len(self._groups[name]) for name in names)
            self._move(names, gradients[:n_parameters], self.rate)
            gradients = gradients[n_parameters:]
        return loss

    @torch.no_grad()
    def _move(self, names: Sequence[str], gradients: Sequence[Tensor], rate: float) -> None:
        """One step of AdamW on the groups with these names, which share a weight decay."""
        parameters, moments = _in_turn(self._groups, names), [self._moments[n] for n in names]
        laid_out = [*map(_laid_out_like, parameters, gradients)]
        means = [mean for one in moments for mean in one.means]
        squares = [square for one in moments for square in one.squares]
        steps = [one.step for one in moments for _ in one.means]
        step = fused_adamw if self._fused else plain_adamw
        decay = self._decays[names[0]]
        for one in moments:
            one.step.add_(1)
        step(parameters, laid_out, means, squares, steps, rate, decay)

    def _no_moments(self, parameters: Sequence[Tensor]) -> Moments:
        step = torch.zeros((), device=parameters[0].device if self._fused else "cpu")
        means, squares = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
        return Moments(step, means, squares)

    def memory(self) -> dict[str, Tensor]:
        """The means of gradients and of their squares, by the parameters' numbers."""
        memory = {"slowness": torch.tensor(self._slowness, dtype=torch.float64)}
        return memory | {name: value.clone() for name, value in self._by_number()}

    def remember(self, memory: Mapping[str, Tensor]) -> None:
        """Take up what `memory` has told, in the parameters' own layout."""
        self._slowness = float(memory["slowness"])
        for name, value in self._by_number():
            if name not in memory:  # of a parameter that had not taken a step
                value.zero_()
            else:
                value.copy_(memory[name] if value.ndim else memory[name].squeeze())  # as in a file

    def _by_number(self) -> Iterator[tuple[str, Tensor]]:
        """All that is remembered, under the names that it has in a checkpoint."""
        numbers = count()
        for step, means, squares in self._moments.values():
            for mean, square, number in zip(means, squares, numbers, strict=False):
                yield f"{number}.step", step
                yield f"{number}.exp_avg", mean
                yield f"{number}.exp_avg_sq", square

    def slow_down(self) -> bool:
        """A quarter of the step from now on, a few times."""
        if self._slowness <= SLOWEST:
            return False
        self._slowness /= 4
        return True


def fused_adamw(
    parameters: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    steps: list[Tensor],
    rate: float,
    decay: float,
) -> None:
    """A step of AdamW in one kernel, ``steps`` counting it already; on CPUs and CUDA.

    A private function of torch, which pyproject.toml bounds the version of. The public one,
    ``adamw(fused=True)``, does the same and takes longer around it than the step of a small map:
    ``python benchmarks/fused_adamw.py``.
    """
    torch._fused_adamw_(
        parameters, gradients, means, squares, [], steps, lr=rate, weight_decay=decay, **ADAM
    )


def plain_adamw(
    parameters: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    steps: list[Tensor],
    rate: float,
    decay: float,
) -> None:
    """The same on other devices; torch counts steps itself, from before this one."""
    counts = [step - 1 for step in steps]
    adamw(
        parameters,
        gradients,
        means,
        squares,
        [],
        counts,
        foreach=False,
        lr=rate,
        weight_decay=decay,
        **ADAM,
    )


class SciPy:
    """A few iterations of a SciPy minimiser on each batch, as the paper does with CG."""

    def __init__(self, groups: Groups, method: str, iterations: int) -> None:
        self._groups = groups
        self._method = method
        self._iterations = iterations
        self.rate: float | None = None

    def step(self, closure: Closure, turn: Sequence[str], progress: float) -> Tensor:
        """A few iterations on this batch, whatever the progress."""
        parameters = _in_turn(self._groups, turn)
        first: list[Tensor] = []

        def value_and_gradient(vector: np.ndarray) -> tuple[float, np.ndarray]:
            _write(vector, parameters)
            loss, gradients = value_and_gradients(closure(), parameters)
            first.append(loss) if not first else None
            return float(loss), _flatten(gradients)

        with np.errstate(over="ignore", invalid="ignore"):  # the loop looks at the loss itself
            result = minimize(
                value_and_gradient,
                _flatten(parameters),
                jac=True,
                method=self._method,
                options={"maxiter": self._iterations},
            )
        _write(result.x, parameters)
        return first[0]

    def memory(self) -> dict[str, Tensor]:
        """Nothing: each batch starts anew."""
        return {}

    def remember(self, memory: Mapping[str, Tensor]) -> None:
        """Nothing."""

    def slow_down(self) -> bool:
        """A line search finds its own steps."""
        return False


def value_and_gradients(
    loss: Tensor | LossWithGradients, parameters: Sequence[Tensor]
) -> tuple[Tensor, Sequence[Tensor]]:
    """A loss as a number, and its gradients to these parameters."""
    if isinstance(loss, LossWithGradients):
        return loss.value, [loss.gradients[parameter] for parameter in parameters]
    return loss.detach(), torch.autograd.grad(loss, parameters)


def one_cycle(progress: float) -> float:
    """Share of the full learning rate: up from zero in the first tenth, then a cosine to zero."""
    if progress < WARM_UP:
        return progress / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (progress - WARM_UP) / (1 - WARM_UP)))


def _in_turn(groups: Groups, turn: Sequence[str]) -> list[Tensor]:
    return [parameter for name in turn for parameter in groups[name]]


def _laid_out_like(parameter: Tensor, gradient: Tensor) -> Tensor:
    """The gradient with the parameter's strides: fused Adam reads the memory as it lies."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


def _flatten(tensors: Sequence[Tensor]) -> np.ndarray:
    parts = [tensor.detach().cpu().numpy().astype(np.float64).ravel() for tensor in tensors]
    return np.concatenate(parts)


def _write(vector: np.ndarray, parameters: Sequence[Tensor]) -> None:
    flat = torch.from_numpy(np.ascontiguousarray(vector))
    with torch.no_grad():
        parts = torch.split(flat, [parameter.numel() for parameter in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.copy_(part.to(parameter.dtype).view_as(parameter))
