"""Results of a model for the rows of a table: as named columns, and as arrays.

Nothing here depends on options or on the terminal, so that workers of a cluster can use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hopefold.errors import InvalidParameter

if TYPE_CHECKING:
    from hopefold.data.tables import Table

Results = tuple[dict[str, Any], dict[str, Any]]


def points_of(model: Any, table: Table) -> Results:
    """Return the coordinates of the rows in the map."""
    points = _call(model, "transform", table)
    names = [str(name) for name in model.get_feature_names_out()]
    return dict(zip(names, points.T, strict=True)), {"points": points}


def classes_of(model: Any, table: Table) -> Results:
    """Return the predicted classes of the rows, and the probabilities."""
    shares = _call(model, "predict_proba", table)
    labels = model.classes_[shares.argmax(axis=1)]
    columns = {"predicted": labels, "probability": shares.max(axis=1, initial=0)}
    columns |= {f"p_{name}": share for name, share in zip(model.classes_, shares.T, strict=True)}
    return columns, {"predicted": labels, "probabilities": shares, "classes": model.classes_}


#: The results by verb.
RESULTS = {"transform": points_of, "predict": classes_of}


def with_ids(table: Table, results: Results) -> Results:
    """Add the ids of the rows, or their numbers if rows are left out."""
    kept = dict(table.kept)
    if table.places is not None and not kept:
        kept["row"] = table.places + 1
    for name in kept:
        if any(name in result for result in results):
            raise InvalidParameter(f"the id {name!r} has the name of a result: rename that column.")
    columns, arrays = results
    return kept | columns, kept | arrays


def _call(model: Any, verb: str, table: Table) -> Any:
    from hopefold.inference.dask_arrays import nothing

    return getattr(model, verb)(table) if table.X.shape[0] else nothing(model, verb)
