"""What the specification consists of: parameters, attributes and methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

#: Raises `InvalidParameter` for a bad value of the parameter with this name.
Check = Callable[[str, Any], None]

#: Raises `InvalidParameter` for values that contradict each other.
Rule = Callable[[Mapping[str, Any]], None]


def accept(_name: str, _value: Any) -> None:
    """Accept any value: the fit checks it against the data or the hardware."""


@dataclass(frozen=True)
class Parameter:
    """An argument of a constructor.

    Attributes
    ----------
    name : str
        The name of the argument.
    annotation : str
        The Python type as the class spells it, such as ``float | str``.
    default : object
        The default value.
    kind : str
        The type as the docstring spells it, such as ``float or "auto"``.
    prose : str
        The description.
    check : callable
        Raises `InvalidParameter` if a value cannot be used.

    """

    name: str
    annotation: str
    default: Any
    kind: str
    prose: str
    check: Check = accept

    def but(self, **changes: Any) -> Parameter:
        """Return the parameter with some of its fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Attribute:
    """What a fitted estimator has; ``names`` may list several, separated by commas."""

    names: str
    kind: str
    prose: str


@dataclass(frozen=True)
class Method:
    """A class with its parameters, and where it is defined."""

    name: str
    module: str
    parameters: tuple[Parameter, ...]
    rules: tuple[Rule, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    references: tuple[str, ...] = ()

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of this name, or ``None``."""
        return next((one for one in self.parameters if one.name == name), None)

    def defaults(self) -> dict[str, Any]:
        """Return the default of each parameter."""
        return {one.name: one.default for one in self.parameters}

    def load_class(self) -> Any:
        """Import the module, and return the class."""
        return getattr(import_module(self.module), self.name)


def override(parameters: tuple[Parameter, ...], *changed: Parameter) -> tuple[Parameter, ...]:
    """Return the parameters with those of the same name replaced, and new ones after the first."""
    by_name = {one.name: one for one in changed}
    first, *rest = (by_name.pop(one.name, one) for one in parameters)
    return (first, *by_name.values(), *rest)
