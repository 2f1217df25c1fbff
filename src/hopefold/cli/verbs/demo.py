"""``hopefold demo``: S-HOPE on the digits that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopefold.cli import options, outputs, shown

if TYPE_CHECKING:
    from numpy import ndarray

FILES = ("digits.hope", "map.png", "exemplars.png", "report.html")


def demo(
    folder: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the files.")
    ] = Path("demo"),
    force: options.Force = False,
) -> None:
    """Fit S-HOPE to digits; print errors and speed-ups, write a report."""
    paths = {name: folder / name for name in FILES}
    with outputs.writing(folder):
        folder.mkdir(exist_ok=True)
    for path in paths.values():
        outputs.check_target(path, force=force)
    X, X_test, y, y_test = _digits()
    shown.print_line(
        f"S-HOPE on scikit-learn's digits: {len(y):,} training rows, {len(y_test)} test rows"
    )
    from hopefold import SHOPE

    model = SHOPE(random_state=0, image_shape=(8, 8), verbose=1).fit(X, y)
    _show(model, X, y, X_test, y_test)
    with outputs.writing(folder):
        model.save(paths["digits.hope"])
    _draw(model, len(y), X_test, y_test, paths)
    _report(model, X_test, y_test, paths["report.html"])
    shown.print_line(f"\nwrote {', '.join(str(path) for path in paths.values())}")
    shown.print_line(f"open {paths['report.html']} in a browser")


def _digits() -> tuple[ndarray, ndarray, ndarray, ndarray]:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X / 16, y, test_size=0.3, stratify=y, random_state=0)
    X, X_test, y, y_test = parts
    return X, X_test, y, y_test


def _show(model: Any, X: ndarray, y: ndarray, X_test: ndarray, y_test: ndarray) -> None:
    """Print test errors, the memory they need, and both speed-ups."""
    from hopefold import evaluation

    raw, small = evaluation.kept_by_neighbors(X), evaluation.kept_by_model(model)
    points, points_test = model.transform(X), model.transform(X_test)
    all_points = small.bytes + 4 * points.size
    in_map = evaluation.knn_error(points, y, points_test, y_test)
    in_all = evaluation.knn_error(X, y, X_test, y_test)
    error = 1 - model.score(X_test, y_test)
    shown.print_table(
        "Test error, and the memory it needs",
        ("", "error", "rows", "bytes"),
        [
            (f"5-NN, {X.shape[1]}-D, all rows", in_all, raw.rows, raw.bytes),
            ("5-NN in the 2-D map, all points", in_map, raw.rows, all_points),
            (f"the 2-D map, {small.rows} exemplars", error, small.rows, small.bytes),
            ("  of these, the exemplars' points", None, small.rows, 8 * small.rows),
        ],
    )
    found = {
        "by multiply-adds": evaluation.counted_speed_up(model, len(X)),
        "by the clock, here": evaluation.measured_speed_up(model, X, y, X_test),
        "by multiply-adds, of 1,000,000 rows": evaluation.counted_speed_up(model, 1_000_000),
    }
    shown.print_speed_ups(found, len(X))


def _draw(
    model: Any, n_rows: int, X_test: ndarray, y_test: ndarray, paths: dict[str, Path]
) -> None:
    from hopefold.report.figures import draw_gallery, draw_map

    misclassified = model.predict(X_test) != y_test
    title = f"{len(y_test)} test digits: {misclassified.mean():.1%} misclassified"
    points = model.transform(X_test)
    figure = draw_map(points, y_test, model.exemplar_embedding_, misclassified, title=title)
    outputs.write_figure(paths["map.png"], figure)
    title = f"{len(model.exemplar_labels_)} exemplars represent {n_rows:,} rows"
    exemplars, labels = model.exemplars_, model.exemplar_labels_
    figure = draw_gallery(exemplars, labels, (8, 8), limits=(0, 1), title=title)
    outputs.write_figure(paths["exemplars.png"], figure)


def _report(model: Any, X_test: ndarray, y_test: ndarray, path: Path) -> None:
    from hopefold.report.render import write_report
    from hopefold.report.scene import make_scene

    title = f"{len(y_test)} test digits"
    scene = make_scene(model, X_test, y_test, image_shape=(8, 8), title=title)
    with outputs.writing(path):
        write_report(scene, path)
