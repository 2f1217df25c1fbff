"""What the estimators declare, read from their source without importing it.

Importing an estimator imports torch, and ``hopefold fit --help`` should not take seconds.
Parameters are dataclass fields with literal defaults, so their source says it all: a test holds
this reading against the classes themselves.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import hopefold

PACKAGE = Path(hopefold.__file__).parent
FILES = "hopefold.persistence.model_files"
PARAMETERS = "hopefold.estimators.parameters"

#: A parameter that a class's docstring tells itself: name, kind, prose.
TOLD = re.compile(r"^(\w+) : (.+?)(?:, default=.*)?\n((?: {4}.*\n)+)", flags=re.M)


@dataclass(frozen=True)
class Parameter:
    """A constructor's argument: its type as written, its default, and what it is for."""

    name: str
    annotation: str
    default: Any
    kind: str = ""
    prose: str = ""


@cache
def methods() -> dict[str, str]:
    """The class of each method, by the name that it has on the command line."""
    kinds = _value(FILES, "KINDS")
    return {kind.lower(): kind for kind in kinds}


@cache
def parameters(kind: str) -> dict[str, Parameter]:
    """The parameters of a class that `methods` names."""
    module = _value(FILES, "KINDS")[kind]
    told = _value(PARAMETERS, "PROSE") | _prose(module, kind) | _told(module, kind)
    found = _fields(module, kind)
    return {
        name: Parameter(name, annotation, default, *told.get(name, ("", "")))
        for name, (annotation, default) in found.items()
    }


@cache
def all_parameters() -> dict[str, tuple[Parameter, tuple[str, ...]]]:
    """Every parameter of any method, as the first method has it, and the methods that have it."""
    order = sorted(methods().values(), key=lambda kind: kind not in ("SHOPE", "HOPE"))
    order.sort(key=lambda kind: kind != "SHOPE")
    found: dict[str, tuple[Parameter, tuple[str, ...]]] = {}
    for kind in order:
        for name, parameter in parameters(kind).items():
            first, kinds = found.get(name, (parameter, ()))
            found[name] = first, (*kinds, kind)
    return found


@cache
def _module(module: str) -> ast.Module:
    path = PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


def _value(module: str, name: str) -> Any:
    """A constant of a module."""
    for node in _module(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise LookupError(f"{module} has no {name}")


@cache
def _home(module: str, name: str) -> str | None:
    """The module of hopefold that a name in a module comes from."""
    for node in _module(module).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return module
        if isinstance(node, ast.ImportFrom) and name in (alias.name for alias in node.names):
            return node.module if str(node.module).startswith("hopefold") else None
    return None


def _class(module: str, name: str) -> ast.ClassDef:
    return next(
        node
        for node in _module(module).body
        if isinstance(node, ast.ClassDef) and node.name == name
    )


def _bases(module: str, name: str) -> list[tuple[str, str]]:
    """The classes of hopefold that a class is made of, the last one first."""
    names = [ast.unparse(base) for base in _class(module, name).bases]
    homes = [(_home(module, base), base) for base in reversed(names)]
    return [(home, base) for home, base in homes if home is not None]


def _fields(module: str, name: str) -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = {}
    for base in _bases(module, name):
        found |= _fields(*base)
    definition = _class(module, name)
    if not any("dataclass" in ast.unparse(decorator) for decorator in definition.decorator_list):
        return found
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            annotation = ast.unparse(node.annotation)
            if not annotation.startswith("ClassVar") and node.value is not None:
                found[node.target.id] = annotation, _default(node.value)
    return found


def _default(value: ast.expr) -> Any:
    if isinstance(value, ast.Call):  # field(default=…)
        value = next(keyword.value for keyword in value.keywords if keyword.arg == "default")
    return ast.literal_eval(value)


def _prose(module: str, name: str) -> dict[str, tuple[str, str]]:
    """What a class and those before it tell of parameters in words of their own."""
    told: dict[str, tuple[str, str]] = {}
    for base in _bases(module, name):
        told |= _prose(*base)
    for node in _class(module, name).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_prose":
            told |= _words(node.value)
    return told


def _words(value: ast.expr | None) -> dict[str, tuple[str, str]]:
    """A literal; names in a union of several are those of a base, whose words are known."""
    if isinstance(value, ast.BinOp):
        return _words(value.left) | _words(value.right)
    if isinstance(value, ast.Dict):
        words: dict[str, tuple[str, str]] = ast.literal_eval(value)
        return words
    return {}


def _told(module: str, name: str) -> dict[str, tuple[str, str]]:
    text = dedent((ast.get_docstring(_class(module, name)) or "") + "\n")
    return {name: (kind, prose) for name, kind, prose in TOLD.findall(text)}
