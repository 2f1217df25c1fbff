"""The paper's experiments, run again: plan → runs, each one JSON line → tables."""
