"""The table of all methods, and checks of their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hopefold.errors import InvalidParameter
from hopefold.specification import baseline_parameters as baseline
from hopefold.specification import high_order_parameters as high_order
from hopefold.specification.parameter import Method, Parameter
from hopefold.specification.shared_parameters import ATTRIBUTES, CHECKPOINT_PARAMETERS

__all__ = [
    "CHECKPOINT_PARAMETERS",
    "METHODS",
    "RENAMED",
    "check_parameters",
    "method_of",
    "with_current_names",
]

#: Names of parameters in old model files, and what they are called now.
RENAMED = {"nudge": "adversarial"}


def _baseline(
    name: str, module: str, parameters: tuple[Parameter, ...], *references: str
) -> Method:
    return Method(
        name,
        f"hopefold.baselines.{module}",
        parameters,
        attributes=ATTRIBUTES,
        references=references,
    )


_DEEP_REFERENCE = """M. R. Min, L. van der Maaten, Z. Yuan, A. Bonner and Z. Zhang. Deep Supervised
    t-Distributed Embedding. ICML, 2010."""

_METHODS = (
    Method(
        "HOPE",
        "hopefold.estimators.hope",
        high_order.HOPE,
        high_order.HOPE_RULES,
        high_order.HIGH_ORDER_ATTRIBUTES,
        high_order.HIGH_ORDER_REFERENCES,
    ),
    Method(
        "SHOPE",
        "hopefold.estimators.shope",
        high_order.SHOPE,
        high_order.SHOPE_RULES,
        high_order.HIGH_ORDER_ATTRIBUTES,
        high_order.HIGH_ORDER_REFERENCES,
    ),
    _baseline(
        "Autoencoder",
        "autoencoder",
        baseline.AUTOENCODER,
        """G. E. Hinton and R. R. Salakhutdinov. Reducing the Dimensionality of Data with Neural
        Networks. Science 313, 2006.""",
    ),
    _baseline("DeepMCML", "deep_mcml", baseline.DEEP, _DEEP_REFERENCE),
    _baseline("DeepNCA", "deep_nca", baseline.DEEP, _DEEP_REFERENCE),
    _baseline(
        "LDA",
        "lda",
        baseline.LDA,
        """R. A. Fisher. The Use of Multiple Measurements in Taxonomic Problems. Annals of Eugenics
        7, 1936.""",
    ),
    _baseline(
        "LMNN",
        "lmnn",
        baseline.LMNN,
        """K. Q. Weinberger and L. K. Saul. Distance Metric Learning for Large Margin Nearest
        Neighbor Classification. Journal of Machine Learning Research 10, 2009.""",
    ),
    _baseline(
        "LPP",
        "lpp",
        baseline.LPP,
        "X. He and P. Niyogi. Locality Preserving Projections. NIPS, 2003.",
    ),
    _baseline(
        "MCML",
        "mcml",
        baseline.MCML,
        "A. Globerson and S. Roweis. Metric Learning by Collapsing Classes. NIPS, 2005.",
    ),
    _baseline(
        "NCA",
        "nca",
        baseline.NCA,
        """J. Goldberger, S. Roweis, G. Hinton and R. Salakhutdinov. Neighborhood Components
        Analysis. NIPS, 2004.""",
    ),
    _baseline(
        "ParametricTSNE",
        "parametric_tsne",
        baseline.PARAMETRIC_TSNE,
        """L. van der Maaten. Learning a Parametric Embedding by Preserving Local Structure.
        AISTATS, 2009.""",
    ),
    _baseline(
        "SNC",
        "snc",
        baseline.SNC,
        """M. J. Kusner, S. Tyree, K. Q. Weinberger and K. Agrawal. Stochastic Neighbor Compression.
        ICML, 2014.""",
    ),
)

#: Every method by the name of its class. A model file can name only these, and no other code.
METHODS: dict[str, Method] = {method.name: method for method in _METHODS}


def method_of(cls: type) -> Method:
    """Return the method of a class, or of the first of its bases that is a method."""
    return next(METHODS[base.__name__] for base in cls.__mro__ if base.__name__ in METHODS)


def check_parameters(method: str, values: Mapping[str, Any]) -> None:
    """Raise `InvalidParameter` unless the method can use the values; others have their defaults.

    Examples
    --------
    >>> from hopefold.specification import check_parameters
    >>> check_parameters("SHOPE", {"order": 3})
    >>> check_parameters("SHOPE", {"order": 0})
    Traceback (most recent call last):
    hopefold.errors.InvalidParameter: order=0: give a whole number from 1 to 20.

    """
    specification = METHODS[method]
    complete = specification.defaults() | dict(values)
    for name in complete:
        if specification.parameter(name) is None:
            raise InvalidParameter(f"{method} has no parameter {name}.")
    for parameter in specification.parameters:
        parameter.check(parameter.name, complete[parameter.name])
    for rule in specification.rules:
        rule(complete)


def with_current_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a model file under the names that parameters have now.

    Examples
    --------
    >>> from hopefold.specification import RENAMED, with_current_names
    >>> with_current_names({"order": 2, **dict.fromkeys(RENAMED, 0.1)})
    {'order': 2, 'adversarial': 0.1}

    """
    current = {RENAMED.get(name, name): value for name, value in settings.items()}
    if len(current) < len(settings):
        raise InvalidParameter("a parameter has a value under its old name and its new one.")
    return current
