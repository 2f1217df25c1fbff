"""The parameters of all methods, as plain data: names, defaults, types, prose and checks.

Constructors, docstrings and command-line options are made from these tables. Nothing here imports
torch, scikit-learn or NumPy, so that ``hopefold --help`` is fast.
"""

from hopefold.specification.parameter import Attribute, Method, Parameter
from hopefold.specification.registry import (
    CHECKPOINT_PARAMETERS,
    METHODS,
    RENAMED,
    check_parameters,
    method_of,
    with_current_names,
)

__all__ = [
    "CHECKPOINT_PARAMETERS",
    "METHODS",
    "RENAMED",
    "Attribute",
    "Method",
    "Parameter",
    "check_parameters",
    "method_of",
    "with_current_names",
]
