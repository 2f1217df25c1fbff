"""Export of a fitted model to a file; it is written only if its results match the model's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from os import PathLike
from typing import Any

from hopefold.errors import UncheckedWarning, warn
from hopefold.estimators.base import SupervisedEmbedding
from hopefold.export import compiling, graph, source
from hopefold.export.formula import formula_of
from hopefold.export.parity import Parity, check_parity
from hopefold.persistence.store import write_atomically


@dataclass(frozen=True)
class Export:
    """The file, and the result of the comparison with the model; ``None`` if it was impossible."""

    path: str
    n_bytes: int
    parity: Parity | None


def to_onnx(model: SupervisedEmbedding, path: str | PathLike[str], data: Any = None) -> Export:
    """Export the scale, the map and the classifier as one ONNX graph.

    Its input ``rows`` is float32 of shape (n, features). Its outputs are ``embedding``, ``label``
    and ``probabilities``, as of `transform`, `predict` and `predict_proba`. For a model that was
    learned without labels, the only output is ``embedding``.

    Parameters
    ----------
    model : HOPE, SHOPE or a baseline
        A fitted model.
    path : path or str
        The file to write; an existing file is replaced.
    data : array-like, sparse matrix, data frame or table, optional
        Rows that the graph is checked with, at most 1,000. By default, the exemplars with
        noise.

    Returns
    -------
    Export
        The differences that were found. If they are too large, nothing is written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from hopefold import SHOPE
    >>> from hopefold.export import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SHOPE(max_epochs=5, random_state=0).fit(X, y)
    >>> export = to_onnx(model, pathlib.Path(tempfile.mkdtemp()) / "iris.onnx", X)
    >>> export.parity.n_rows, export.parity.largest_difference < 1e-4
    (150, True)

    """
    graph.need_onnx()
    formula = formula_of(model)
    content = graph.to_bytes(formula)
    parity = check_parity(model, formula, graph.Session(content), data)
    return _write(path, content, parity)


def to_c(model: SupervisedEmbedding, path: str | PathLike[str], data: Any = None) -> Export:
    """Export the scale, the map and the classifier as one self-contained C99 file.

    It defines `hopefold_transform` and `hopefold_predict`, for one row each; only the first for a
    model that was learned without labels. Compiled with ``-DHOPEFOLD_MAIN`` it is a program that
    reads CSV. It is checked if there is a C compiler (the one that ``CC`` names, cc, gcc or clang);
    otherwise, a warning is issued.

    Parameters
    ----------
    model : HOPE, SHOPE or a baseline
        A fitted model, a small one: see ``max_bytes``.
    path : path or str
        The file to write; an existing file is replaced.
    data : array-like, sparse matrix, data frame or table, optional
        Rows that the file is checked with, at most 1,000. By default, the exemplars with noise.

    Returns
    -------
    Export
        The differences that were found. If they are too large, nothing is written.

    """
    formula = formula_of(model)
    content = source.to_text(formula).encode()
    compiler = compiling.find_compiler()
    if compiler is None:
        warn(
            "no C compiler was found (cc, gcc, clang, or the one that CC names), so it was not "
            "checked that the file computes what the model does.",
            UncheckedWarning,
        )
        return _write(path, content, None)
    with compiling.compiled(content, formula, compiler) as answer:
        parity = check_parity(model, formula, answer, data)
    return _write(path, content, parity)


def _write(path: str | PathLike[str], content: bytes, parity: Parity | None) -> Export:
    write_atomically(path, content)
    return Export(os.fspath(path), len(content), parity)
