"""Adam with a learning rate schedule, and SciPy's conjugate gradient and L-BFGS on mini-batches.

All share one interface for a step: a closure that computes the loss of a batch, the groups of
parameters to update, and the progress of the run.
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
    """A loss and its gradients, by parameter."""

    value: Tensor
    gradients: Mapping[Tensor, Tensor]


class Moments(NamedTuple):
    """The state of Adam for a group: the number of steps, and moving averages of gradients."""

    step: Tensor
    #: For each parameter, the averages of its gradients and of their squares.
    means: list[Tensor]
    squares: list[Tensor]


#: Computes the loss of a batch; if it returns no gradients, autograd computes them.
Closure = Callable[[], Tensor | LossWithGradients]

#: Lower bound of `slow_down`, as a share of the initial learning rate.
SLOWEST = 1 / 64

#: The coefficients β₁ and β₂ of Adam.
BETAS = (0.9, 0.99)

#: Options that are the same in every step of Adam.
ADAM: Any = {
    "beta1": BETAS[0],
    "beta2": BETAS[1],
    "eps": 1e-8,
    "weight_decay": 0.0,  # see `Adam.step`
    "amsgrad": False,
    "maximize": False,
}

#: Share of the run in which the learning rate increases from zero (warm-up).
WARM_UP = 0.1

SCIPY_METHODS = {"cg": "CG", "lbfgs": "L-BFGS-B"}


class Optimizer(Protocol):
    """One step on one batch, and the state that the next step depends on."""

    #: The learning rate of the last step, if there is one.
    rate: float | None

    def step(self, closure: Closure, turn: Sequence[str], progress: float) -> Tensor:
        """Update the groups in ``turn``; return the value of the closure before the step."""

    def memory(self) -> dict[str, Tensor]:
        """Return the state that the next step depends on, in addition to the parameters."""

    def remember(self, memory: Mapping[str, Tensor]) -> None:
        """Restore a state returned by `memory`."""

    def slow_down(self) -> bool:
        """Reduce the step size, if possible; return whether it was."""


def make_optimizer(groups: Groups, settings: Training) -> Optimizer:
    """Return the optimizer that the settings specify."""
    if settings.optimizer == "adam":
        return Adam(groups, settings.learning_rate, settings.weight_decay)
    return SciPy(groups, SCIPY_METHODS[settings.optimizer], settings.batch_iterations)


class Adam:
    """Adam with warm-up and cosine annealing of the learning rate.

    Weight decay is decoupled (AdamW) and applies to the matrices of the map: not to its biases, as
    products of features are near 1 + v at the start, and not to exemplars, which are data.
    """

    def __init__(self, groups: Groups, learning_rate: float, weight_decay: float) -> None:
        self._groups = groups
        self._learning_rate = learning_rate
        self._weight_decay = weight_decay
        self._matrices: list[Tensor] = [one for one in groups["map"] if one.ndim > 1]
        self._fused = next(iter(groups["map"])).device.type in ("cpu", "cuda")
        self._slowness = 1.0
        self._moments = {name: self._no_moments(group) for name, group in groups.items()}
        self.rate: float | None = None

    def step(self, closure: Closure, turn: Sequence[str], progress: float) -> Tensor:
        """Perform one step of Adam on the groups in ``turn``."""
        self.rate = self._learning_rate * self._slowness * one_cycle(progress)
        loss, gradients = value_and_gradients(closure(), _in_turn(self._groups, turn))
        if self._weight_decay and "map" in turn:
            with torch.no_grad():
                torch._foreach_mul_(self._matrices, 1 - self.rate * self._weight_decay)
        self._move(turn, gradients, self.rate)
        return loss

    @torch.no_grad()
    def _move(self, names: Sequence[str], gradients: Sequence[Tensor], rate: float) -> None:
        """Perform one step of Adam on the groups with these names."""
        parameters, moments = _in_turn(self._groups, names), [self._moments[n] for n in names]
        laid_out = [*map(_laid_out_like, parameters, gradients)]
        means = [mean for one in moments for mean in one.means]
        squares = [square for one in moments for square in one.squares]
        steps = [one.step for one in moments for _ in one.means]
        step = fused_adamw if self._fused else plain_adamw
        for one in moments:
            one.step.add_(1)
        step(parameters, laid_out, means, squares, steps, rate)

    def _no_moments(self, parameters: Sequence[Tensor]) -> Moments:
        step = torch.zeros((), device=parameters[0].device if self._fused else "cpu")
        means, squares = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
        return Moments(step, means, squares)

    def memory(self) -> dict[str, Tensor]:
        """Return the averages of gradients and of their squares, by the index of the parameter."""
        memory = {"slowness": torch.tensor(self._slowness, dtype=torch.float64)}
        return memory | {name: value.clone() for name, value in self._by_number()}

    def remember(self, memory: Mapping[str, Tensor]) -> None:
        """Restore the result of `memory`, in the memory layout of the parameters."""
        self._slowness = float(memory["slowness"])
        for name, value in self._by_number():
            if name not in memory:  # a parameter that was never updated
                value.zero_()
            else:
                value.copy_(memory[name] if value.ndim else memory[name].squeeze())  # as in a file

    def _by_number(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the tensors of the state, with their names in a checkpoint."""
        numbers = count()
        for step, means, squares in self._moments.values():
            for mean, square, number in zip(means, squares, numbers, strict=False):
                yield f"{number}.step", step
                yield f"{number}.exp_avg", mean
                yield f"{number}.exp_avg_sq", square

    def slow_down(self) -> bool:
        """Divide the learning rate by 4, down to a lower bound."""
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
) -> None:
    """Perform one step of AdamW in one kernel, on CPUs and CUDA; ``steps`` includes this step.

    This is a private function of torch, whose version pyproject.toml bounds. The public one,
    ``adamw(fused=True)``, does the same, but its overhead exceeds the step of a small map:
    ``python benchmarks/fused_adamw.py``.
    """
    torch._fused_adamw_(parameters, gradients, means, squares, [], steps, lr=rate, **ADAM)


def plain_adamw(
    parameters: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    steps: list[Tensor],
    rate: float,
) -> None:
    """Perform the same step on other devices; torch increments the step count itself."""
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
        **ADAM,
    )


class SciPy:
    """A few iterations of a SciPy minimizer on each batch, as the paper does with CG."""

    def __init__(self, groups: Groups, method: str, iterations: int) -> None:
        self._groups = groups
        self._method = method
        self._iterations = iterations
        self.rate: float | None = None

    def step(self, closure: Closure, turn: Sequence[str], progress: float) -> Tensor:
        """Perform a few iterations on this batch, independent of the progress."""
        parameters = _in_turn(self._groups, turn)
        first: list[Tensor] = []

        def value_and_gradient(vector: np.ndarray) -> tuple[float, np.ndarray]:
            _write(vector, parameters)
            loss, gradients = value_and_gradients(closure(), parameters)
            first.append(loss) if not first else None
            return float(loss), _flatten(gradients)

        with np.errstate(over="ignore", invalid="ignore"):  # the loop checks the loss
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
        """Return nothing: there is no state between batches."""
        return {}

    def remember(self, memory: Mapping[str, Tensor]) -> None:
        """Nothing."""

    def slow_down(self) -> bool:
        """Return False: a line search determines its own steps."""
        return False


def value_and_gradients(
    loss: Tensor | LossWithGradients, parameters: Sequence[Tensor]
) -> tuple[Tensor, Sequence[Tensor]]:
    """Return a loss as a float, and its gradients with respect to the parameters."""
    if isinstance(loss, LossWithGradients):
        return loss.value, [loss.gradients[parameter] for parameter in parameters]
    return loss.detach(), torch.autograd.grad(loss, parameters)


def one_cycle(progress: float) -> float:
    """Return the share of the full learning rate: linear warm-up, then cosine annealing to zero."""
    if progress < WARM_UP:
        return progress / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (progress - WARM_UP) / (1 - WARM_UP)))


def _in_turn(groups: Groups, turn: Sequence[str]) -> list[Tensor]:
    return [parameter for name in turn for parameter in groups[name]]


def _laid_out_like(parameter: Tensor, gradient: Tensor) -> Tensor:
    """Return the gradient with the strides of the parameter, as fused Adam assumes."""
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
