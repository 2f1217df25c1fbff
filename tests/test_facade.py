"""The façade is light, complete and honest."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest

import hopefold


def test_importing_hopefold_loads_nothing_heavy():
    code = (
        "import sys, hopefold;"
        "heavy = {'torch', 'sklearn', 'numpy', 'scipy', 'rich', 'matplotlib', 'dask'};"
        "heavy &= set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_library_needs_no_matplotlib():
    code = (
        "import sys; sys.modules['matplotlib'] = None;"
        "from hopefold import HOPE, SHOPE, load;"
        "SHOPE(max_epochs=1, n_factors=3).fit([[0], [1]] * 10, [0, 1] * 10).predict([[0]])"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_name_of_the_facade_is_there():
    for name in hopefold.__all__:
        assert getattr(hopefold, name).__name__ == name
    assert set(hopefold.__all__) <= set(dir(hopefold))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'UMAP'"):
        _ = hopefold.UMAP


def test_the_version_is_the_installed_one():
    assert hopefold.__version__ == importlib.metadata.version("hopefold")
