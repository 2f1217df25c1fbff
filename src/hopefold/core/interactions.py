"""Feature interactions of a map: the terms of its polynomial, and the largest coefficients.

A coordinate of HOPE is a polynomial in the features, y_s = Σ_f P_sf (A_f·x + a_f)^O. After
expansion, the product of the features i₁ ≤ … ≤ i_d, with d ≤ O, has one coefficient per coordinate:
the entry of the symmetric tensor of eq. 3, summed over all permutations of the indices,

    O! / ((O−d)! Π_i k_i!) · Σ_f P_sf a_f^(O−d) A_f,i₁ … A_f,i_d,

where k_i is the multiplicity of feature i. A term is represented as the tuple of its features.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from hopefold.core.threads import one_thread

if TYPE_CHECKING:
    from jaxtyping import Float, Int

#: A product of features: column indices in ascending order, repeated for powers.
Term = tuple[int, ...]

#: Upper bound on the multiplications of a search among the terms of one degree: about 20 seconds.
#: All terms of 60 features at degree 6 with 1,200 powers fit in it, and of 784 at degree 3.
WORK = 2e11

#: Number of values that are held in memory at once: 32 MB of float64.
BLOCK = 2**22


@dataclass(frozen=True)
class Polynomial:
    """y_s = Σ_f P_sf (A_f·x + a_f)^O in float64; ``a`` is the weight of the paper's constant 1."""

    P: Float[Tensor, "d factors"]
    A: Float[Tensor, "factors features"]
    a: Float[Tensor, " factors"]
    order: int

    def in_units(
        self, factor: Float[Tensor, " features"], offset: Float[Tensor, " features"]
    ) -> Polynomial:
        """Return the same function of z, where x = z · factor + offset."""
        return replace(self, A=self.A * factor, a=self.a + self.A @ offset)

    def at(self, x: Float[Tensor, "n features"]) -> Float[Tensor, "n d"]:
        """Evaluate the polynomial at each row."""
        return (x @ self.A.T + self.a) ** self.order @ self.P.T

    @property
    def constant(self) -> Float[Tensor, " d"]:
        """Return the value at x = 0: the constant term."""
        return self.P @ self.a**self.order


class Largest(NamedTuple):
    """The terms with the largest coefficients, sorted by their norm over the coordinates.

    ``searched`` is, for each degree, the number of features among which the result is exact: all of
    them, unless the search was too expensive and other features could not be ruled out.
    """

    terms: tuple[Term, ...]
    coefficients: Float[Tensor, "terms d"]
    searched: dict[int, int]


def coefficients(polynomial: Polynomial, terms: Sequence[Term]) -> Float[Tensor, "terms d"]:
    """Return the coefficients of terms in each coordinate."""
    return powers_of_terms(polynomial, terms) @ polynomial.P.T


def powers_of_terms(
    polynomial: Polynomial, terms: Sequence[Term]
) -> Float[Tensor, "terms factors"]:
    """Return the part of each power (A_f·x + a_f)^O in the coefficients of the terms."""
    A, a, order = polynomial.A, polynomial.a, polynomial.order
    parts = A.new_empty(len(terms), len(a))
    for degree, places in _by_degree(terms).items():
        features = torch.tensor([terms[place] for place in places]).reshape(len(places), degree)
        orders = [_orders(order, terms[place]) for place in places]
        parts[places] = _multiplied(A.T, features) * a ** (order - degree)
        parts[places] *= torch.tensor(orders, dtype=A.dtype)[:, None]
    return parts


def monomials(x: Float[Tensor, "n features"], terms: Sequence[Term]) -> Float[Tensor, "n terms"]:
    """Evaluate products of features at each row."""
    values = x.new_empty(len(terms), len(x))
    for degree, places in _by_degree(terms).items():
        features = torch.tensor([terms[place] for place in places]).reshape(len(places), degree)
        values[places] = _multiplied(x.T, features)
    return values.T


def squared_slices(polynomial: Polynomial) -> Float[Tensor, " features"]:
    r"""For each feature, sum the squares of all tensor entries that contain it.

    :math:`\sum_s \sum_{fg} P_{sf} P_{sg} A_{fi} A_{gi} (A_f \cdot A_g + a_f a_g)^{O-1}`: the sum
    over the other O−1 indices is in closed form, with the constant as one more feature.
    """
    P, A, a = polynomial.P, polynomial.A, polynomial.a
    others = (A @ A.T + torch.outer(a, a)) ** (polynomial.order - 1)
    return ((P.T @ P * others) @ A * A).sum(dim=0).clamp(min=0)


def largest_terms(
    polynomial: Polynomial, top: int, degrees: Sequence[int], *, work: float = WORK
) -> Largest:
    """Return the ``top`` terms of the given degrees with the largest coefficients.

    Terms are enumerated in blocks, and only the largest ones are kept. Features with large tensor
    slices come first. If a degree has more terms than ``work`` allows, only terms of the first
    features are enumerated. Then ``searched`` is the number of these features, unless the slices of
    the other features are too small to contain a larger term.
    """
    slices = squared_slices(polynomial)
    ranked = slices.argsort(descending=True, stable=True)
    ranked = ranked[(polynomial.A != 0).any(dim=0)[ranked]]
    sorted_ = replace(polynomial, A=polynomial.A[:, ranked])
    best = _Best(top)
    sizes = {}
    with one_thread():
        for degree in degrees:
            size = sizes[degree] = _affordable(len(ranked), degree, polynomial.P.numel(), work)
            for features, norms in _blocks_of_terms(sorted_, size, degree, best):
                best.add(features, norms)
    found = [tuple(sorted(ranked[list(term)].tolist())) for term in best.terms]
    values = coefficients(polynomial, found)
    order = sorted(range(len(found)), key=lambda k: (-float(values[k].norm()), found[k]))
    # a term is at most O! tensor entries, of which a feature's slice has at least a share 1/O
    most = math.sqrt(polynomial.order * math.factorial(polynomial.order))
    least = float(values[order[-1]].norm()) if len(found) == top else 0.0
    searched = {
        degree: polynomial.A.shape[1]
        if size == len(ranked) or most * float(slices[ranked[size]].sqrt()) < least
        else size
        for degree, size in sizes.items()
    }
    return Largest(tuple(found[k] for k in order), values[order], searched)


class _Best:
    """The largest terms found so far."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._kept: list[tuple[float, Term]] = []
        self.threshold = 0.0

    def add(self, features: Int[Tensor, "n degree"], norms: Float[Tensor, " n"]) -> None:
        if not len(norms):
            return
        if len(norms) > self._top:
            norms, which = norms.topk(self._top)
            features = features[which]
        self._kept += zip(norms.tolist(), map(tuple, features.tolist()), strict=True)
        if len(self._kept) > self._top:
            self._kept.sort(key=lambda kept: -kept[0])
            del self._kept[self._top :]
        if len(self._kept) == self._top:
            self.threshold = min(norm for norm, _ in self._kept)

    @property
    def terms(self) -> list[Term]:
        return [term for _, term in self._kept]


def _blocks_of_terms(
    polynomial: Polynomial, size: int, degree: int, best: _Best
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield terms of the first features that are larger than the smallest of the best, by blocks.

    A term consists of a head, then its last feature but one, then its last feature. One matrix
    product covers all terms with the same last feature but one.
    """
    A, order = polynomial.A[:, :size], polynomial.order
    weights = polynomial.P * polynomial.a ** (order - degree) * math.perm(order, degree)
    if degree == 1:
        yield _larger((weights @ A).T[None], torch.ones(1, size), best, torch.zeros(1, 0), 0)
        return
    heads, repeats = _multisets(size, degree - 2)
    step = max(1, BLOCK // max(len(polynomial.a), size))
    for middle in range(size):
        n_heads = math.comb(middle + degree - 2, degree - 2)
        for start in range(0, n_heads, step):
            head = heads[start : min(start + step, n_heads)]
            units = _multiplied(A.T, head) * A[:, middle]
            values = torch.stack([(units * w) @ A[:, middle:] for w in weights], dim=2)
            times = (head == middle).sum(dim=1)
            repeated = (repeats[start : start + len(head)] * (times + 1))[:, None]
            repeated = repeated.repeat(1, size - middle)
            repeated[:, 0] *= times + 2
            head = torch.cat([head, head.new_full((len(head), 1), middle)], dim=1)
            yield _larger(values, 1 / repeated, best, head, middle)


def _larger(
    values: Float[Tensor, "heads features d"],
    factor: Float[Tensor, "heads features"],
    best: _Best,
    heads: Int[Tensor, "heads degree-1"],
    first: int,
) -> tuple[Tensor, Tensor]:
    norms = values.norm(dim=2) * factor
    head, last = (norms > best.threshold).nonzero(as_tuple=True)
    features = torch.cat([heads[head].long(), (last + first)[:, None]], dim=1)
    return features, norms[head, last]


def _multisets(size: int, length: int) -> tuple[Int[Tensor, "n length"], Float[Tensor, " n"]]:
    """Return all ascending tuples of ``length`` numbers below ``size``, sorted by the last number.

    The second result is the product of the factorials of the multiplicities in each tuple.
    """
    tuples, repeats = torch.zeros(1, 0, dtype=torch.long), torch.ones(1, dtype=torch.float64)
    for done in range(length):
        heads = torch.cat([torch.arange(math.comb(last + done, done)) for last in range(size)])
        counts = torch.tensor([math.comb(last + done, done) for last in range(size)])
        lasts = torch.arange(size).repeat_interleave(counts)
        repeats = repeats[heads] * ((tuples[heads] == lasts[:, None]).sum(dim=1) + 1)
        tuples = torch.cat([tuples[heads], lasts[:, None]], dim=1)
    return tuples, repeats


def _multiplied(
    columns: Float[Tensor, "features n"], features: Int[Tensor, "terms degree"]
) -> Float[Tensor, "terms n"]:
    """Multiply the columns of the features of each term."""
    product = columns.new_ones(len(features), columns.shape[1])
    for place in range(features.shape[1]):
        product *= columns[features[:, place]]
    return product


def _affordable(n_features: int, degree: int, n_weights: int, work: float) -> int:
    """Return the largest number of features of which all terms of the degree can be enumerated."""
    size = n_features
    while size > 1 and math.comb(size + degree - 1, degree) * n_weights > work:
        size -= 1
    return size


def _orders(order: int, term: Term) -> int:
    """Return the number of tensor entries that belong to a term."""
    repeated = math.prod(map(math.factorial, Counter(term).values()))
    return math.perm(order, len(term)) // repeated


def _by_degree(terms: Sequence[Term]) -> dict[int, list[int]]:
    """Group the indices of terms by their degree."""
    places: dict[int, list[int]] = {}
    for place, term in enumerate(terms):
        places.setdefault(len(term), []).append(place)
    return places
