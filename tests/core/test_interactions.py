"""The terms of a polynomial: against all of them, multiplied out."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import torch

import oracles
from hopefold.core.interactions import (
    Polynomial,
    coefficients,
    largest_terms,
    monomials,
    squared_slices,
)

SIZES = [(order, n) for order in range(1, 6) for n in (1, 2, 3, 4)]


def draw(order, n_features, seed=0, n_factors=4, n_components=2):
    generator = torch.Generator().manual_seed(seed)
    P, A, a = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in [(n_components, n_factors), (n_factors, n_features), (n_factors,)]
    )
    return Polynomial(P, A, a, order)


def all_terms(polynomial):
    """From the oracle, without the constant, largest first."""
    plain = (polynomial.A.tolist(), polynomial.a.tolist(), polynomial.P.tolist())
    terms = oracles.interactions(*plain, polynomial.order)
    del terms[()]
    return sorted(terms.items(), key=lambda entry: -math.hypot(*entry[1]))


@pytest.mark.parametrize(("order", "n_features"), SIZES)
def test_the_largest_terms_are_those_of_brute_force(order, n_features):
    for seed in range(5):
        polynomial = draw(order, n_features, seed)
        expected = all_terms(polynomial)[:7]
        found = largest_terms(polynomial, 7, range(1, order + 1))
        assert found.terms == tuple(term for term, _ in expected)
        np.testing.assert_allclose(found.coefficients, [value for _, value in expected], rtol=1e-9)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_the_largest_terms_of_one_degree_are_those_of_brute_force(degree):
    polynomial = draw(4, 4, seed=degree)
    expected = [term for term, _ in all_terms(polynomial) if len(term) == degree][:5]
    assert largest_terms(polynomial, 5, [degree]).terms == tuple(expected)


def test_blocks_of_any_size_find_the_same(monkeypatch):
    polynomial = draw(4, 6)
    whole = largest_terms(polynomial, 20, range(1, 5))
    monkeypatch.setattr("hopefold.core.interactions.BLOCK", 6)
    assert largest_terms(polynomial, 20, range(1, 5)).terms == whole.terms


def test_there_are_no_more_terms_than_there_are():
    found = largest_terms(draw(2, 2), 100, [1, 2])
    assert sorted(found.terms) == [(0,), (0, 0), (0, 1), (1,), (1, 1)]


def test_the_terms_and_the_constant_add_up_to_the_polynomial():
    polynomial = draw(3, 4)
    x = torch.randn(5, 4, dtype=torch.float64)
    found = largest_terms(polynomial, 1_000, [1, 2, 3])
    total = monomials(x, found.terms) @ found.coefficients + polynomial.constant
    torch.testing.assert_close(total, polynomial.at(x))


def test_a_polynomial_in_other_units_has_the_same_values():
    polynomial = draw(3, 4)
    z, factor, offset = (torch.randn(*shape, dtype=torch.float64) for shape in [(5, 4), (4,), (4,)])
    expected = polynomial.at(z * factor + offset)
    torch.testing.assert_close(polynomial.in_units(factor, offset).at(z), expected)


def test_a_feature_that_no_weight_listens_to_is_in_no_term():
    polynomial = draw(3, 4)
    polynomial.A[:, 2] = 0
    assert not any(2 in term for term in largest_terms(polynomial, 100, [1, 2, 3]).terms)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_squared_slices_are_sums_over_all_entries(order):
    polynomial = draw(order, 3)
    plain = (polynomial.A.tolist(), polynomial.a.tolist(), polynomial.P.tolist())
    np.testing.assert_allclose(
        squared_slices(polynomial), oracles.squared_slices(*plain, order), rtol=1e-9
    )


def test_a_search_that_is_cut_short_says_among_how_many_features_it_is_exact():
    polynomial = draw(3, 8)
    found = largest_terms(polynomial, 5, [3], work=8 * math.comb(5, 3))
    assert found.searched == {3: 3}
    strongest = set(squared_slices(polynomial).argsort(descending=True)[:3].tolist())
    among = [t for t, _ in all_terms(polynomial) if len(t) == 3 and set(t) <= strongest]
    assert found.terms == tuple(among[:5])


def test_features_too_weak_to_matter_need_not_be_searched():
    polynomial = draw(3, 8)
    polynomial.A[:, 3:] *= 1e-6
    found = largest_terms(polynomial, 5, [3], work=8 * math.comb(5, 3))
    assert found.searched == {3: 8}
    assert found.terms == largest_terms(polynomial, 5, [3]).terms


def test_coefficients_of_given_terms_are_those_of_brute_force():
    polynomial = draw(4, 3)
    terms, expected = zip(*all_terms(polynomial), strict=True)
    np.testing.assert_allclose(coefficients(polynomial, terms), expected, rtol=1e-9)


def test_a_search_among_784_features_of_degree_three_is_quick_and_small():
    """In a child, whose memory is its own; the seconds are those of the processor."""
    code = (
        "import resource, torch\n"
        "from hopefold.core.interactions import Polynomial, largest_terms\n"
        "P, A, a = (torch.randn(*s, dtype=torch.float64) for s in [(2, 300), (300, 784), (300,)])\n"
        "found = largest_terms(Polynomial(P, A, a, 3), 20, [1, 2, 3])\n"
        "assert found.searched == {1: 784, 2: 784, 3: 784}\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime, used.ru_maxrss / 2**10)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    seconds, megabytes = map(float, done.stdout.split())
    assert seconds < 30
    assert megabytes < 1_024
