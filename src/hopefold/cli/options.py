"""Options that several verbs share, and options made from the specification of the parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from hopefold.errors import InvalidParameter
from hopefold.report.titles import title
from hopefold.specification import CHECKPOINT_PARAMETERS, METHODS, Parameter

TABLES_READ = (
    "CSV, TSV, Parquet, NPZ, NPY, .h5ad, a folder of images, - (CSV on standard input), "
    "or a named data set: digits, iris, wine, cancer, mnist, usps."
)
Data = Annotated[Path, typer.Argument(metavar="DATA", help=TABLES_READ)]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A file written by fit.")]
Label = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="The column with the labels.")
]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        "--id", metavar="COLUMN", help="Copied to the results, not a feature; may be repeated."
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", help="Left out; may be repeated."),
]
Encode = Annotated[bool, typer.Option("--encode", help="One-hot encode text columns.")]
Missing = Annotated[
    str | None,
    typer.Option(
        "--missing", metavar="drop|mean", help="Drop rows with missing values, or fill in means."
    ),
]
IgnoreExtra = Annotated[
    bool, typer.Option("--ignore-extra", help="Leave out columns that the model does not know.")
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite existing files.")]
ImageShape = Annotated[
    str | None,
    typer.Option("--image-shape", metavar="HEIGHT,WIDTH", help="Size of the images in the rows."),
]
Seed = Annotated[int, typer.Option("--random-state", help="Seed of all random numbers.")]

#: Parameters that are not shown as settings of a model.
NOT_SHOWN = ("verbose", *CHECKPOINT_PARAMETERS)

#: How the help shows types that are written differently on a command line.
METAVARS = {
    "(int, int) or None": "HEIGHT,WIDTH",
    "number, str, None or ()": "LABEL|none",
    "sequence of int": "INT,INT,…",
    "int or tuple of int": "INT|INT,INT,…",
    'int, tuple of int or "auto"': "INT|INT,INT,…|auto",
    'dict, "balanced" or None': "balanced|LABEL=WEIGHT,…",
    "int, RandomState or None": "INT",
    "str or torch.device": "auto|cpu|cuda|…",
}


@cache
def methods() -> dict[str, str]:
    """Return the class of each method by its name on the command line."""
    return {name.lower(): name for name in METHODS}


@cache
def all_parameters() -> dict[str, tuple[Parameter, tuple[str, ...]]]:
    """Return each parameter of any method, and the methods that have it; S-HOPE comes first."""
    found: dict[str, tuple[Parameter, tuple[str, ...]]] = {}
    for kind in sorted(METHODS, key=lambda name: name != "SHOPE"):
        for parameter in METHODS[kind].parameters:
            first, kinds = found.get(parameter.name, (parameter, ()))
            found[parameter.name] = first, (*kinds, kind)
    return found


def complete_method(incomplete: str) -> list[str]:
    """Return the names of methods that begin with the text."""
    return [name for name in methods() if name.startswith(incomplete)]


def find_method(name: str) -> str:
    """Return the class of a method."""
    known = methods()
    plain = name.lower().replace("-", "").replace("_", "")
    if plain in known:
        return known[plain]
    close = get_close_matches(plain, known, 1)
    hint = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(known)}."
    raise InvalidParameter(f"{name!r} is not a known method: {hint}")


def with_parameters(verb: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each parameter of any method to a verb that takes ``**parameters``."""
    signature = inspect.signature(verb, eval_str=True)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    made = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(name)
        )
        for name in all_parameters()
    ]

    @wraps(verb)
    def with_options(**given: Any) -> None:
        verb(**given)

    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    with_options.__signature__ = signature.replace(parameters=[*own, *made])  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in (*own, *made)}
    return with_options


def _option(name: str) -> Any:
    parameter, kinds = all_parameters()[name]
    flag, help_ = "--" + name.replace("_", "-"), _help(parameter, kinds)
    if parameter.annotation == "bool":
        return Annotated[bool | None, typer.Option(f"{flag}/--no-{flag[2:]}", help=help_)]
    return Annotated[str | None, typer.Option(flag, help=help_, metavar=_metavar(parameter))]


def _help(parameter: Parameter, kinds: tuple[str, ...]) -> str:
    prose = re.sub('[`"]', "", " ".join(parameter.prose.split())).replace("None", "none")
    if parameter.name == "image_shape":
        prose += " Images in a folder are resized to it."
    only = "" if kinds[0] == "SHOPE" else f" For {', '.join(kind.lower() for kind in kinds)}."
    return f"{prose}{only} Default: {_default(parameter, kinds)}."


def _default(parameter: Parameter, kinds: tuple[str, ...]) -> str:
    """Return the default of the first method, and hints that other methods have other defaults."""
    if parameter.name == "verbose":
        return "1"
    mine = written(parameter.default)
    theirs = {kind: written(METHODS[kind].defaults()[parameter.name]) for kind in kinds}
    others = [f"hope: {theirs['HOPE']}"] if theirs.get("HOPE", mine) != mine else []
    if any(default != mine for kind, default in theirs.items() if kind != "HOPE"):
        others.append("some baselines: their own")
    return f"{mine} ({'; '.join(others)})" if others else mine


def _metavar(parameter: Parameter) -> str:
    kind = METAVARS.get(parameter.kind)
    if kind is None:
        kind = re.sub(r'[{}"]', "", parameter.kind).replace(" or ", "|").replace(", ", "|")
        kind = re.sub(r"\b(int|float)\b", lambda word: word[0].upper(), kind)
        kind = kind.replace("None", "none")
    return kind or "VALUE"


def written(value: Any) -> str:
    """Return a value as it is typed on the command line."""
    if value is None:
        return "none"
    if isinstance(value, tuple | list) and not value:
        return "()"
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def changed(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a method that differ from its defaults."""
    defaults = METHODS[kind].defaults()
    return {
        name: value
        for name, value in settings.items()
        if name not in NOT_SHOWN and written(value) != written(defaults.get(name))
    }


def settings_of(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options as arguments of the constructor, without those not given."""
    settings = {}
    for name, value in given.items():
        if value is None:
            continue
        if METHODS[kind].parameter(name) is None:
            _, kinds = all_parameters()[name]
            raise InvalidParameter(
                f"{title(kind)} has no parameter {name}: leave out "
                f"--{name.replace('_', '-')}, or choose a method that has it "
                f"({', '.join(one.lower() for one in kinds)})."
            )
        settings[name] = value if isinstance(value, bool) else parse(value)
    return settings


def parse(text: str) -> Any:
    """Return a number, several numbers, weights of labels, ``None``, or the text itself."""
    if text.lower() == "none":
        return None
    if text == "()":
        return ()
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    if re.fullmatch(r"\d+([,x]\d+)+", text):
        return tuple(int(number) for number in re.split("[,x]", text))
    if "=" in text:
        pairs = [part.rpartition("=") for part in text.split(",")]
        return {label: parse(weight) for label, _, weight in pairs}
    return text


def image_shape(text: str | None) -> tuple[int, int] | None:
    """Return height and width."""
    shape = None if text is None else parse(text)
    if shape is None or (isinstance(shape, tuple) and len(shape) == 2):
        return shape
    raise InvalidParameter(f"--image-shape {text}: give height and width, e.g. 28,28.")
