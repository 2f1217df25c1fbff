"""One layer beside two, on the same rows."""

from __future__ import annotations

from hopefold_bench.depth import depth_table
from hopefold_bench.methods import METHODS
from hopefold_bench.records import append, results_file


def test_without_runs_the_table_says_so(tmp_path):
    assert "| USPS, 2 layers | not run yet | not run yet | – | – | 0 |" in depth_table(tmp_path)


def test_one_layer_is_told_on_the_splits_that_two_have(tmp_path, record):
    runs = [record(split=split, wrong=range(split)) for split in range(3)]
    runs.append(record("S-HOPE 2 layers", split=1, wrong=(0, 1), model_bytes=5_000))
    for run in runs:
        append(results_file(tmp_path, "usps", quick=False), run.to_line())
    table = depth_table(tmp_path)
    assert "| USPS, 1 layer | 10.00 | 10.00 | 2 | – | 1 |" in table
    assert "| USPS, 2 layers | 20.00 | 20.00 | 2 | 5 | 1 |" in table
    assert "one split only" in table


def test_both_maps_of_mnist_are_learned_alike():
    one, two = (METHODS[f"S-HOPE {name}"].make("mnist", 0) for name in ("1 layer", "2 layers"))
    assert one.get_params() | {"n_units": (400, 400)} == two.get_params()
