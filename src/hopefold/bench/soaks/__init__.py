"""A module for each kind of trouble; `hopefold.bench.faults` has the list."""
