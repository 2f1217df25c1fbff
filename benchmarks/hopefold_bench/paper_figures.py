"""The paper's figures, and how near the exemplars lie to the centers of their classes.

Figure 1: the twenty joint exemplars of HOPE and of S-HOPE. Figure 2: maps of rows that were not
used for training. Saved models are loaded; the others are fitted and saved.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib import rc_context

import hopefold
from hopefold.errors import InvalidParameter
from hopefold.evaluation import exemplar_distances, knn_error
from hopefold.persistence.store import write_atomically
from hopefold.report.figures import Panel, draw_galleries, draw_maps
from hopefold_bench.measure import settings_of, versions
from hopefold_bench.models import MODELS, SHOWN, model_file
from hopefold_bench.plans import Job
from hopefold_bench.records import alike
from hopefold_bench.run import Report
from hopefold_bench.splits import Splits, load_splits

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy import ndarray

#: The paper's names, and the methods whose exemplars are shown: as images, and in the map.
NAMES = {"DeepMCML pre-trained": "dt-MCML"}
IN_GALLERY = ("HOPE", "S-HOPE")
IN_MAP = ("HOPE",)

#: Display names of the data sets whose rows are images.
TITLES = {"digits": "Digits", "usps": "USPS", "mnist": "MNIST"}

DPI = 110


@dataclass(frozen=True)
class Shown:
    """A fitted model, its points of the new rows, and its error on them."""

    name: str
    model: Any
    points: ndarray
    error: float


def check_sets(sets: Sequence[str]) -> None:
    """Check that figures can be drawn of these data sets."""
    if unknown := [data for data in sets if data not in TITLES]:
        raise InvalidParameter(f"{unknown[0]!r} has no figures: choose from {', '.join(TITLES)}.")


def make_figures(
    data: str, folder: Path, *, final: bool, models: Path = MODELS, report: Report = print
) -> None:
    """Write both figures of a data set, as PNG and SVG, and their numbers as JSON.

    ``final=True`` draws the test part; the caller must enter it in the ledger before.
    """
    splits = load_splits(data, 0, final=final)
    shown = [show(Job(method, data, 0, final), splits, models, report) for method in SHOWN]
    stem, part = figure_stem(data, final=final), "test" if final else "validation"
    title = f"{TITLES[data]}, {len(splits.y_new):,} {part} rows"
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in {
        "exemplars": draw_exemplars(shown, splits, f"{TITLES[data]}: joint exemplars"),
        "maps": draw_embeddings(shown, splits, f"{title}; 5-NN error against all training points"),
    }.items():
        for kind in ("png", "svg"):
            path = folder / f"{stem}-{name}.{kind}"
            save(figure, path)
            report(f"{path.name}: {path.stat().st_size / 1000:,.0f} kB")
    numbers = {"data": data, "part": part, **numbers_of(shown, splits), "versions": versions()}
    write_atomically(folder / f"{stem}.json", (json.dumps(numbers, indent=1) + "\n").encode())


def figure_stem(data: str, *, final: bool) -> str:
    """The beginning of the file names, which differs for validation and test part."""
    return data if final else f"{data}-validation"


def show(job: Job, splits: Splits, models: Path, report: Report) -> Shown:
    """The saved model of a method, or a new one, on the new rows."""
    model = kept_or_fitted(job, splits, models, report)
    points = model.transform(splits.X_new)
    error = knn_error(model.transform(splits.X), splits.y, points, splits.y_new)
    return Shown(NAMES.get(job.method, job.method), model, points, error)


def kept_or_fitted(job: Job, splits: Splits, models: Path, report: Report) -> Any:
    """Load the saved model if it has today's settings; otherwise fit and save it."""
    path, model = model_file(job.data, job.method, job.part, models), job.make()
    if path.exists():
        kept = hopefold.load(path)
        if alike(settings_of(kept), settings_of(model)):
            report(f"{job}: kept")
            return kept
    start = time.perf_counter()
    model.fit(splits.X, splits.y)
    report(f"{job}: fitted in {time.perf_counter() - start:.1f} s")
    path.parent.mkdir(parents=True, exist_ok=True)
    model.save(path)
    return model


def draw_exemplars(shown: Sequence[Shown], splits: Splits, title: str) -> Figure:
    """Figure 1: the exemplars as images, in the range of the data's pixels."""
    if splits.image_shape is None:
        raise InvalidParameter("the rows of this data set are not images.")
    galleries = {
        one.name: (one.model.exemplars_, one.model.exemplar_labels_)
        for one in shown
        if one.name in IN_GALLERY
    }
    limits = (float(splits.X.min()), float(splits.X.max()))
    return draw_galleries(galleries, splits.image_shape, limits=limits, title=title)


def draw_embeddings(shown: Sequence[Shown], splits: Splits, title: str) -> Figure:
    """Figure 2: the maps of the new rows, with the exemplars of HOPE."""
    panels = [
        Panel(
            one.points,
            splits.y_new,
            exemplars=one.model.exemplar_embedding_ if one.name in IN_MAP else None,
            title=f"{one.name}: {100 * one.error:.2f} %",
        )
        for one in shown
    ]
    return draw_maps(panels, title=title)


def numbers_of(shown: Sequence[Shown], splits: Splits) -> dict[str, Any]:
    """The errors, and the distance of each exemplar from its class center, in class radii."""
    distances = {
        one.name: exemplar_distances(
            one.points, splits.y_new, one.model.exemplar_embedding_, one.model.exemplar_labels_
        )
        for one in shown
        if one.name in IN_GALLERY
    }
    return {
        "rows": len(splits.y_new),
        "errors": {one.name: one.error for one in shown},
        "settings": {one.name: settings_of(one.model) for one in shown},
        "exemplar_distances": {
            name: {
                "mean": float(radii.mean()),
                "max": float(radii.max()),
                "each": [round(float(value), 4) for value in radii],
            }
            for name, radii in distances.items()
        },
    }


def save(figure: Figure, path: Path) -> None:
    """Write a figure reproducibly: the same figure gives the same file."""
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with rc_context({"svg.hashsalt": "hopefold"}):
        content = io.BytesIO()
        figure.savefig(content, format=path.suffix[1:], dpi=DPI, metadata=metadata)
    write_atomically(path, content.getvalue())
