"""What a model says of the rows of a table: columns with names, and the same as arrays.

No option and no screen is known here, so that a worker of a cluster can ask for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hopefold.errors import InvalidParameter

if TYPE_CHECKING:
    from hopefold.data.tables import Table

Results = tuple[dict[str, Any], dict[str, Any]]


def points_of(model: Any, table: Table) -> Results:
    """Where the rows lie in the map."""
    points = _said(model, "transform", table)
    names = [str(name) for name in model.get_feature_names_out()]
    return dict(zip(names, points.T, strict=True)), {"points": points}


def classes_of(model: Any, table: Table) -> Results:
    """The classes of the rows, and how probable each is."""
    shares = _said(model, "predict_proba", table)
    labels = model.classes_[shares.argmax(axis=1)]
    columns = {"predicted": labels, "probability": shares.max(axis=1, initial=0)}
    columns |= {f"p_{name}": share for name, share in zip(model.classes_, shares.T, strict=True)}
    return columns, {"predicted": labels, "probabilities": shares, "classes": model.classes_}


#: By the verb that writes them.
RESULTS = {"transform": points_of, "predict": classes_of}


def with_ids(table: Table, results: Results) -> Results:
    """The ids of the rows beside what is said of them; their numbers, where some are left out."""
    kept = dict(table.kept)
    if table.places is not None and not kept:
        kept["row"] = table.places + 1
    for name in kept:
        if any(name in result for result in results):
            raise InvalidParameter(f"the id {name!r} has the name of a result: rename that column.")
    columns, arrays = results
    return kept | columns, kept | arrays


def _said(model: Any, verb: str, table: Table) -> Any:
    from hopefold.inference.dask_arrays import nothing

    return getattr(model, verb)(table) if table.X.shape[0] else nothing(model, verb)
