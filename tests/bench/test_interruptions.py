"""A few of the faults that `make bench-faults` makes many times over."""

from __future__ import annotations

from hopefold.bench.faults import Outcome
from hopefold.bench.soaks.interruptions import killed_fits
from hopefold.bench.soaks.numbers import wild_numbers


def test_fits_that_are_killed_at_random_moments_end_with_the_same_bytes(tmp_path):
    outcome = killed_fits(4, tmp_path)
    assert outcome.tried >= 4
    assert outcome.broken == ()


def test_wild_numbers_make_no_wild_maps(tmp_path):
    assert wild_numbers(25, tmp_path) == Outcome(25)
