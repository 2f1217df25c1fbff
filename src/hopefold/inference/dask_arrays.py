"""Prediction on Dask arrays and dataframes: results are lazy Dask arrays.

Each block of rows is processed separately, as in `dask_ml.wrappers.ParallelPostFit`. The model is
one node of the graph: a worker receives it once, however many blocks it processes.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from hopefold.data import validation
from hopefold.data.tables import as_table
from hopefold.errors import HopefoldError, InvalidInput, InvalidParameter, InvalidType

if TYPE_CHECKING:
    from numpy import ndarray


def is_lazy(X: Any) -> bool:
    """Return whether X is a Dask collection, by the module of its type, without importing Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def answer(model: Any, verb: str, X: Any) -> Any:
    """Apply the method ``verb`` of a model to a dask array or dataframe, lazily.

    Errors that can be detected without the rows are raised at once.
    """
    check_is_fitted(model)
    if verb == "transform":
        _check_output(model)
    if type(X).__module__.startswith("dask.array"):
        return _answer_array(model, verb, X)
    if type(X).__name__ == "DataFrame":
        return _answer_frame(model, verb, X)
    raise InvalidType(
        f"X is a dask {type(X).__name__}: give rows and columns, a dask array or a dask dataframe."
    )


def _answer_array(model: Any, verb: str, X: Any) -> Any:
    """Rechunk to blocks of whole rows."""
    if X.ndim == 2 and math.isnan(X.shape[1]):
        raise InvalidInput("X does not know how many columns it has: X.compute_chunk_sizes() does.")
    validation.check_rows(model, np.zeros((1, *X.shape[1:]), X.dtype), fitting=False)
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    like = nothing(model, verb)
    shorter = {"drop_axis": 1} if like.ndim == 1 else {}
    chunks = (X.chunks[0], *((n_columns,) for n_columns in like.shape[1:]))
    return X.map_blocks(
        _answer_block, verb=verb, model=_node(model), chunks=chunks, meta=like, **shorter
    )


def _answer_frame(model: Any, verb: str, X: Any) -> Any:
    """Map over partitions; their numbers of rows are unknown before they are computed."""
    _check_frame(model, X)
    return X.map_partitions(
        _answer_partition, verb=verb, model=_node(model), meta=nothing(model, verb)
    )


def _node(model: Any) -> Any:
    """Return the current model as one node of a graph; a later fit does not change it."""
    from dask import delayed

    return delayed(copy.copy(model), traverse=False)


def nothing(model: Any, verb: str) -> ndarray:
    """Return the result of the method for no rows."""
    if verb == "predict":
        return np.empty(0, model.classes_.dtype)
    if verb == "predict_proba":
        return np.empty((0, len(model.classes_)))
    return np.empty((0, model.reference_embedding_.shape[1]), np.float32)


def _answer_block(rows: Any, *, verb: str, model: Any, block_id: Any = None) -> ndarray:
    where = "" if block_id is None else f"block {block_id[0]} of X: "
    return _answer(rows, verb, model, where)


def _answer_partition(rows: Any, *, verb: str, model: Any, partition_info: Any = None) -> ndarray:
    where = "" if partition_info is None else f"partition {partition_info['number']} of X: "
    return _answer(rows, verb, model, where)


def _answer(rows: Any, verb: str, model: Any, where: str) -> ndarray:
    """Add the block to errors, since their row numbers count within the block."""
    if not rows.shape[0]:
        return nothing(model, verb)
    try:
        said: ndarray = getattr(model, verb)(rows)
    except HopefoldError as error:
        raise type(error)(f"{where}{error}") from error
    return said


def _check_frame(model: Any, X: Any) -> None:
    """Check its columns like those of a frame in memory."""
    if as_table(X._meta, model.columns_) is not None:
        return
    for name, dtype in X.dtypes.items():
        if dtype.kind in "mM" or type(dtype).__name__ == "StringDtype":
            what = "times" if dtype.kind in "mM" else "text"
            raise InvalidInput(
                f"column {str(name)!r} holds {what}, which is not a number: convert it, or drop it."
            )
    row = type(X._meta)(0.0, index=[0], columns=X.columns)
    validation.check_rows(model, row, fitting=False)


def _check_output(model: Any) -> None:
    """Reject `set_output`: scikit-learn would compute all points to create a frame."""
    wished = getattr(model, "_sklearn_output_config", {}).get("transform")
    wished = get_config()["transform_output"] if wished is None else wished
    if wished != "default":
        raise InvalidParameter(
            f"set_output(transform={wished!r}) makes a frame in memory, and X is Dask's: leave it "
            "at 'default', and make a lazy frame with dask.dataframe.from_dask_array("
            "model.transform(X), columns=model.get_feature_names_out(), index=X.index)."
        )
