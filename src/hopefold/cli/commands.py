"""The command that fits a model like a given one."""

from __future__ import annotations

from shlex import quote
from typing import Any

from hopefold.cli import options


def fit_command(model: Any, output: str) -> str:
    """Return the command for a fit with the same settings; a model does not know its table."""
    kind = type(model).__name__
    words = ["hopefold", "fit", "TABLE", "-o", output]
    if kind != "SHOPE":
        words += ["--method", kind.lower()]
    if not len(model.classes_):
        words += ["--unlabeled"]
    columns = model.columns_
    if columns is not None:
        words += ["--label", columns.label] if columns.label else []
        words += [word for name in columns.aside for word in ("--drop", name)]
        words += ["--encode"] if columns.values else []
        words += ["--missing", "mean"] if columns.fills is not None else []
    for name, value in options.changed(kind, model.settings_).items():
        words += _typed(name, value)
    return " ".join(quote(str(word)) for word in words)


def _typed(name: str, value: Any) -> list[str]:
    option = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{option}" if value else f"--no-{option}"]
    if isinstance(value, dict):
        return [f"--{option}", ",".join(f"{label}={weight}" for label, weight in value.items())]
    return [f"--{option}", options.written(value)]
