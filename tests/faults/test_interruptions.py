"""Some cases of the stress tests that `make faults` runs in full."""

from __future__ import annotations

from faults.extreme_values import extreme_tables
from faults.interruptions import killed_fits
from faults.outcome import Outcome


def test_fits_that_are_killed_at_random_moments_end_with_the_same_bytes(tmp_path):
    outcome = killed_fits(4, tmp_path)
    assert outcome.tried >= 4
    assert outcome.broken == ()


def test_extreme_tables_give_finite_maps_or_errors(tmp_path):
    assert extreme_tables(25, tmp_path) == Outcome(25)
