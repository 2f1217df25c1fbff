"""Rendering of a scene as one self-contained HTML file."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from os import PathLike
from typing import Any

import numpy as np

from hopefold.errors import MissingPackage
from hopefold.persistence.store import write_atomically
from hopefold.report import words
from hopefold.report.curves import HEIGHT, WIDTH, training_curves
from hopefold.report.payload import image_uri, thumbnail_sheets, to_json
from hopefold.report.row_display import Columns, Images
from hopefold.report.scene import Scene

PAGE = files("hopefold.report") / "page"

#: In this order: each file depends on those before it.
SCRIPTS = ("scene", "pictures", "marks", "map", "card", "chosen", "controls", "start")

#: With more classes, the cells of the confusion matrix are too small for numbers.
MOST_NUMBERED = 24

#: Maximum number of products in the panel, and of exemplars or landmarks with lines.
N_INTERACTIONS = 12
MOST_PICTURES, N_LANDMARKS = 12, 6

#: Number of confusions that are listed next to the matrix.
N_CONFUSIONS = 10


def write_report(scene: Scene, path: str | PathLike[str]) -> None:
    """Write a scene as one self-contained HTML file, atomically.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import SHOPE
    >>> from hopefold.report.render import write_report
    >>> from hopefold.report.scene import make_scene
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SHOPE(random_state=0).fit(X[::2], y[::2])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "irises.html"
    >>> write_report(make_scene(model, X[1::2], y[1::2]), path)

    """
    write_atomically(path, render(scene).encode())


def render(scene: Scene) -> str:
    """Return the page."""
    try:
        from jinja2 import Environment, StrictUndefined
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingPackage(
            f"a report needs {error.name}, which is not installed: pip install 'hopefold[cli]'."
        ) from error
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_read("page.html"))
    scripts = [get_plotlyjs(), _scripts()]
    return template.render(
        scene=scene,
        words=words,
        policy=_policy(scripts),
        style=_read("style.css"),
        scripts=scripts,
        data=to_json(scene),
        sheets=thumbnail_sheets(scene.display) if isinstance(scene.display, Images) else [],
        colors=scene.colors,
        named=scene.scores is not None,
        gallery=list(_gallery(scene)),
        interactions=_interactions(scene),
        pixels=list(_pixel_pictures(scene)),
        confusions=_confusions(scene),
        numbered=scene.n_classes <= MOST_NUMBERED,
        turned=max(map(len, scene.classes)) > (3 if scene.n_classes <= MOST_NUMBERED else 1),
        curves=training_curves(scene.history, scene.epochs_kept),
        curve_size=(WIDTH, HEIGHT),
    )


def _read(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def _scripts() -> str:
    body = "\n".join(_read(f"{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{body}\n}})();'


def _policy(scripts: list[str]) -> str:
    """Return the content security policy: only these scripts run, and no network is used.

    The targets of forms and the base of addresses have no defaults, so they are set. plotly's WebGL
    layer compiles functions at run time, hence ``unsafe-eval``.
    """
    hashes = [b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed} 'unsafe-eval'; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


@dataclass(frozen=True)
class Portrait:
    """An exemplar in the gallery."""

    number: int
    code: int | None
    image: str
    values: tuple[str, ...]


def _gallery(scene: Scene) -> Iterator[Portrait]:
    if scene.exemplars is None:
        return
    display: Any = scene.display
    codes = scene.exemplars.codes
    order = range(len(scene.exemplars.points))
    for number in order if codes is None else codes.argsort(kind="stable").tolist():
        image, values = "", tuple[str, ...]()
        if isinstance(display, Columns) and display.exemplar_values is not None:
            values = tuple(words.plain(value) for value in display.exemplar_values[number])
        elif isinstance(display, Images) and display.exemplars is not None:
            image = image_uri(display.exemplars[number])
        yield Portrait(number, None if codes is None else int(codes[number]), image, values)


@dataclass(frozen=True)
class InteractionRow:
    """A product of features in the panel, and the two classes that it moves farthest apart."""

    name: str
    length: str
    share: float
    low: int
    high: int


def _interactions(scene: Scene) -> list[InteractionRow]:
    found = scene.interactions
    if found is None or not len(found.names) or not found.deviations[0] > 0:
        return []
    shares = found.deviations / found.deviations[0]
    shifts = found.shifts
    if (
        scene.n_classes and shifts.shape[1] > scene.n_classes
    ):  # rows without a label are not a class
        shifts = shifts[:, : scene.n_classes]
    return [
        InteractionRow(
            found.names[place],
            f"{found.deviations[place]:.2g}",
            float(shares[place]),
            int(np.nanargmin(shifts[place])),
            int(np.nanargmax(shifts[place])),
        )
        for place in range(min(N_INTERACTIONS, len(shares)))
    ]


@dataclass(frozen=True)
class PixelPicture:
    """The weights of pixels, or an exemplar, with lines between multiplied pixels."""

    name: str
    image: str
    width: int
    height: int
    stroke: float
    lines: tuple[tuple[float, float, float, float, float], ...]


def _pixel_pictures(scene: Scene) -> Iterator[PixelPicture]:
    """Yield the weights of pixels, then the first exemplar of each class, or some landmarks."""
    display, found = scene.display, scene.interactions
    if found is None or found.importances is None or not isinstance(display, Images):
        return
    height, width = display.shape
    stroke = max(height, width) / 60
    weights = found.importances.reshape(display.shape) / found.importances.max()
    blue = np.rint(255 - np.multiply.outer(weights, [219, 151, 87])).astype(np.uint8)
    yield PixelPicture("weight of pixels", image_uri(blue), width, height, stroke, ())
    if display.exemplars is None or scene.exemplars is None:
        return
    lines = tuple(
        (one % width + 0.5, one // width + 0.5, other % width + 0.5, other // width + 0.5, share**2)
        for one, other, share in found.lines
    )
    codes = scene.exemplars.codes
    if codes is None:
        some = range(min(N_LANDMARKS, len(display.exemplars)))
        names = {f"landmark {number + 1}": number for number in some}
    else:
        first = {code: np.flatnonzero(codes == code)[0] for code in np.unique(codes).tolist()}
        names = {scene.classes[code]: int(number) for code, number in first.items()}
    for name, number in list(names.items())[:MOST_PICTURES]:
        image = image_uri(display.exemplars[number])
        yield PixelPicture(name, image, width, height, stroke, lines)


def _confusions(scene: Scene) -> list[tuple[int, int, int]]:
    """Return the most common confusions: number of rows, true class, predicted class."""
    if scene.confusion is None:
        return []
    mistakes = [
        (int(scene.confusion[true, predicted]), int(true), int(predicted))
        for true, predicted in zip(*scene.confusion.nonzero(), strict=True)
        if true != predicted
    ]
    return sorted(mistakes, key=lambda mistake: (-mistake[0], mistake[1:]))[:N_CONFUSIONS]
