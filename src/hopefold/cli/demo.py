"""The demo: fit S-HOPE on the digits that come with scikit-learn, print tables, draw the map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hopefold import SHOPE
from hopefold.evaluation import (
    counted_speed_up,
    kept_by_model,
    kept_by_neighbors,
    knn_error,
    measured_speed_up,
)
from hopefold.report.figures import draw_gallery, draw_map

if TYPE_CHECKING:
    from numpy import ndarray

FOLDER = Path("demo")


def main() -> None:
    """Fit, print, draw, save."""
    console = Console()
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.3, stratify=y, random_state=0)
    console.print(f"S-HOPE on scikit-learn's digits: {len(y):,} rows to learn, {len(y_test)} new")
    model = SHOPE(random_state=0, verbose=1).fit(X, y)
    console.print(errors_and_bytes(model, X, y, X_test, y_test), speed_ups(model, X, y, X_test))

    FOLDER.mkdir(exist_ok=True)
    mistaken = model.predict(X_test) != y_test
    draw_map(
        model.transform(X_test),
        y_test,
        model.exemplar_embedding_,
        mistaken,
        title=f"{len(y_test)} digits that the map has not seen: {mistaken.mean():.1%} mistaken",
    ).savefig(FOLDER / "map.png", dpi=130)
    draw_gallery(
        model.exemplars_,
        model.exemplar_labels_,
        (8, 8),
        limits=(0, 1),
        title=f"{len(model.exemplar_labels_)} exemplars stand in for {len(y):,} rows",
    ).savefig(FOLDER / "exemplars.png", dpi=130)
    model.save(FOLDER / "digits.hope")
    console.print(f"wrote {', '.join(str(path) for path in sorted(FOLDER.iterdir()))}")


def errors_and_bytes(
    model: SHOPE, X: ndarray, y: ndarray, X_test: ndarray, y_test: ndarray
) -> Table:
    """Test errors, and what has to be kept for them."""
    table = Table(title="\nTest error, and what has to be kept for it", title_justify="left")
    table.add_column("")
    for heading in ("test error", "rows", "bytes"):
        table.add_column(heading, justify="right")
    raw, small = kept_by_neighbors(X), kept_by_model(model)
    points, points_test = model.transform(X), model.transform(X_test)
    all_points = small.bytes + 4 * points.size
    table.add_row(
        f"5-NN, {X.shape[1]}-D, all rows",
        f"{knn_error(X, y, X_test, y_test):.2%}",
        f"{raw.rows:,}",
        f"{raw.bytes:,}",
    )
    table.add_row(
        "5-NN in the 2-D map, all points",
        f"{knn_error(points, y, points_test, y_test):.2%}",
        f"{raw.rows:,}",
        f"{all_points:,}",
    )
    table.add_row(
        f"the 2-D map, {small.rows} exemplars",
        f"{1 - model.score(X_test, y_test):.2%}",
        f"{small.rows:,}",
        f"{small.bytes:,}",
    )
    table.add_row("  of which the exemplars' points", "", f"{small.rows:,}", f"{8 * small.rows:,}")
    return table


def speed_ups(model: SHOPE, X: ndarray, y: ndarray, X_test: ndarray) -> Table:
    """Against brute-force 5-NN: counted and measured, the search alone and end to end."""
    table = Table(
        title=f"\nSpeed-up over brute-force 5-NN among {len(X):,} rows", title_justify="left"
    )
    table.add_column("")
    table.add_column("search only", justify="right")
    table.add_column("end to end", justify="right")
    for name, speed_up in {
        "by multiply-adds": counted_speed_up(model, len(X)),
        "by the clock, here": measured_speed_up(model, X, y, X_test),
        "by multiply-adds, were there 1,000,000 rows": counted_speed_up(model, 1_000_000),
    }.items():
        table.add_row(name, f"{speed_up.search_only:,.0f} ×", f"{speed_up.end_to_end:,.1f} ×")
    return table


if __name__ == "__main__":
    main()
