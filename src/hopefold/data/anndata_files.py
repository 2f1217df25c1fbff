"""AnnData files (.h5ad): a cells × genes matrix and annotation columns, in HDF5.

Read with h5py, following the format specification: https://anndata.readthedocs.io.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from hopefold.data.sources import Matrix
from hopefold.errors import BrokenFile, MissingPackage

if TYPE_CHECKING:
    from numpy import ndarray


def read_h5ad(path: Path) -> Matrix:
    """Read X, the gene names, and the annotations of the cells; ids are the cell names."""
    try:
        import h5py
    except ImportError as error:
        raise MissingPackage(
            "AnnData is read with h5py, which is not installed: pip install 'hopefold[h5ad]'."
        ) from error
    try:
        with h5py.File(path) as file:
            X, genes = _matrix(file["X"]), _index(file["var"])
            cells = {"cell": _index(file["obs"])} | _columns(file["obs"])
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise BrokenFile(
            f"{path} cannot be read as AnnData ({error}): write it again with a recent anndata."
        ) from error
    return Matrix(str(path), X, genes, cells, ids="cell")


def _matrix(node: Any) -> Any:
    """Read the cells × genes matrix: dense, CSR or CSC."""
    kind = node.attrs.get("encoding-type", "array")
    if kind not in ("csr_matrix", "csc_matrix"):
        return np.asarray(node)
    make = sparse.csr_array if kind == "csr_matrix" else sparse.csc_array
    parts = (node["data"][:], node["indices"][:], node["indptr"][:])
    return make(parts, shape=tuple(node.attrs["shape"])).tocsr()


def _index(frame: Any) -> ndarray:
    return _text(frame[frame.attrs["_index"]])


def _columns(frame: Any) -> dict[str, ndarray]:
    columns = {str(name): _column(frame[name]) for name in frame.attrs["column-order"]}
    return {name: column for name, column in columns.items() if column is not None}


def _column(node: Any) -> Any:
    """Read categories, text or numbers; return ``None`` for other types."""
    kind = node.attrs.get("encoding-type", "array")
    if kind == "categorical":
        categories, codes = _column(node["categories"]), node["codes"][:]
        values = np.append(categories.astype(object), [None])
        return values[codes]  # missing values have code -1
    if kind.startswith("nullable"):
        values = node["values"][:].astype(object)
        values[node["mask"][:]] = None
        return values
    if kind == "string-array":
        return _text(node)
    return node[:] if kind == "array" and node[:].ndim == 1 else None


def _text(node: Any) -> ndarray:
    return np.array([str(value) for value in node.asstr()[:]], dtype=object)
