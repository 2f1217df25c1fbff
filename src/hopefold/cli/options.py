"""Options that several verbs have, and those made of what the estimators declare."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from hopefold.cli import declared
from hopefold.errors import InvalidParameter
from hopefold.report.titles import title

TABLES_READ = (
    "CSV, TSV, Parquet, NPZ, NPY, .h5ad, a folder of images, - (CSV on standard input), "
    "or a named set: digits, iris, wine, cancer, mnist, usps."
)
Data = Annotated[Path, typer.Argument(metavar="DATA", help=TABLES_READ)]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that fit has written.")]
Label = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="The column of the labels.")
]
Ids = Annotated[
    list[str] | None,
    typer.Option("--id", metavar="COLUMN", help="Kept beside the results; may be repeated."),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", help="Left out; may be repeated."),
]
Encode = Annotated[
    bool, typer.Option("--encode", help="Make a feature of each value of a text column.")
]
Missing = Annotated[
    str | None,
    typer.Option("--missing", metavar="drop|mean", help="What to do with missing values."),
]
IgnoreExtra = Annotated[
    bool, typer.Option("--ignore-extra", help="Leave out columns that the model does not know.")
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite what is there.")]
ImageShape = Annotated[
    str | None,
    typer.Option("--image-shape", metavar="HEIGHT,WIDTH", help="Where rows are images."),
]
Seed = Annotated[int, typer.Option("--random-state", help="Every random choice comes from it.")]

#: Settings that do not tell how a model was made.
UNTOLD = ("verbose", "checkpoint", "checkpoint_minutes")

#: What the help says of kinds that are written otherwise on a command line.
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


def complete_method(incomplete: str) -> list[str]:
    """Names of methods that begin so."""
    return [name for name in declared.methods() if name.startswith(incomplete)]


def find_method(name: str) -> str:
    """The class of a method."""
    known = declared.methods()
    plain = name.lower().replace("-", "").replace("_", "")
    if plain in known:
        return known[plain]
    close = get_close_matches(plain, known, 1)
    hint = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(known)}."
    raise InvalidParameter(f"{name!r} is no method: {hint}")


def with_parameters(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb that takes ``**parameters`` an option for each parameter of any method."""
    signature = inspect.signature(verb, eval_str=True)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    made = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(name)
        )
        for name in declared.all_parameters()
    ]

    @wraps(verb)
    def with_options(**given: Any) -> None:
        verb(**given)

    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    with_options.__signature__ = signature.replace(parameters=[*own, *made])  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in (*own, *made)}
    return with_options


def _option(name: str) -> Any:
    parameter, kinds = declared.all_parameters()[name]
    flag, help_ = "--" + name.replace("_", "-"), _help(parameter, kinds)
    if parameter.annotation == "bool":
        return Annotated[bool | None, typer.Option(f"{flag}/--no-{flag[2:]}", help=help_)]
    return Annotated[str | None, typer.Option(flag, help=help_, metavar=_metavar(parameter))]


def _help(parameter: declared.Parameter, kinds: tuple[str, ...]) -> str:
    prose = re.sub('[`"]', "", " ".join(parameter.prose.split())).replace("None", "none")
    if parameter.name == "image_shape":
        prose += " Images in a folder are brought to it."
    only = "" if kinds[0] == "SHOPE" else f" For {', '.join(kind.lower() for kind in kinds)}."
    return f"{prose}{only} Default: {_default(parameter, kinds)}."


def _default(parameter: declared.Parameter, kinds: tuple[str, ...]) -> str:
    """That of the first method; others are told as far as there is room."""
    if parameter.name == "verbose":
        return "1"
    mine = written(parameter.default)
    theirs = {kind: written(declared.parameters(kind)[parameter.name].default) for kind in kinds}
    others = [f"hope: {theirs['HOPE']}"] if theirs.get("HOPE", mine) != mine else []
    if any(default != mine for kind, default in theirs.items() if kind != "HOPE"):
        others.append("some baselines: their own")
    return f"{mine} ({'; '.join(others)})" if others else mine


def _metavar(parameter: declared.Parameter) -> str:
    kind = METAVARS.get(parameter.kind)
    if kind is None:
        kind = re.sub(r'[{}"]', "", parameter.kind).replace(" or ", "|").replace(", ", "|")
        kind = re.sub(r"\b(int|float)\b", lambda word: word[0].upper(), kind)
        kind = kind.replace("None", "none")
    return kind or "VALUE"


def written(value: Any) -> str:
    """A setting as one types it."""
    if value is None:
        return "none"
    if isinstance(value, tuple | list) and not value:
        return "()"
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def changed(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a method that are not its defaults; how much it says does not count."""
    defaults = {name: one.default for name, one in declared.parameters(kind).items()}
    return {
        name: value
        for name, value in settings.items()
        if name not in UNTOLD and written(value) != written(defaults.get(name))
    }


def settings_of(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed, as the constructor takes it; what was not is left to its defaults."""
    known = declared.parameters(kind)
    settings = {}
    for name, value in given.items():
        if value is None:
            continue
        if name not in known:
            _, kinds = declared.all_parameters()[name]
            raise InvalidParameter(
                f"{title(kind)} has no parameter {name}: leave out "
                f"--{name.replace('_', '-')}, or choose a method that has it "
                f"({', '.join(one.lower() for one in kinds)})."
            )
        settings[name] = value if isinstance(value, bool) else parse(value)
    return settings


def parse(text: str) -> Any:
    """A number, several of them, weights of labels, nothing, or the text itself."""
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
    """Height and width."""
    shape = None if text is None else parse(text)
    if shape is None or (isinstance(shape, tuple) and len(shape) == 2):
        return shape
    raise InvalidParameter(f"--image-shape {text}: give height and width, e.g. 28,28.")
