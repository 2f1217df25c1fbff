"""hopefold: see labeled data, and keep only what matters of it.

>>> from hopefold import HOPE, SHOPE, load

Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hopefold.version import __version__ as __version__

if TYPE_CHECKING:
    from hopefold.errors import HopefoldError as HopefoldError
    from hopefold.estimators.hope import HOPE as HOPE
    from hopefold.estimators.shope import SHOPE as SHOPE
    from hopefold.persistence.model_files import load as load

_HOMES = {
    "HOPE": "hopefold.estimators.hope",
    "SHOPE": "hopefold.estimators.shope",
    "load": "hopefold.persistence.model_files",
    "HopefoldError": "hopefold.errors",
}
__all__ = ["HOPE", "SHOPE", "HopefoldError", "load"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hopefold' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
