"""The same answer: the same bits in another process, and nearly the same on other threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

#: How far two fits of some epochs may come apart, in shares of the map's range, by threads alone;
#: and how far apart a row's points may be, alone or among others, on one thread or two.
FITS, ROWS = 1e-3, 1e-6

#: What two threads find may depend on how the rows are dealt out, and is compared with one's own.
SCRIPT = """
import hashlib, json, numpy as np, torch
from sklearn.datasets import load_digits
from hopefold import HOPE, SHOPE

X, y = load_digits(return_X_y=True)
X, y, found = X[:500] / 16, y[:500], {}
for kind in (SHOPE, HOPE):
    maps, points = [], []
    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        model = kind(max_epochs=8, random_state=0).fit(X, y)
        maps.append(model.transform(X))
    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        points += [model.transform(X), np.vstack([model.transform([x]) for x in X[:50]])]
    size = np.ptp(maps[0])
    found[kind.__name__] = {
        "bits": hashlib.sha256(maps[1].tobytes()).hexdigest(),
        "fits": float(np.abs(maps[0] - maps[1]).max() / size),
        "rows": float(max(np.abs(some[:50] - points[0][:50]).max() for some in points) / size),
    }
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    """What two fresh processes find."""
    environment = os.environ | {"GOMP_SPINCOUNT": "0", "PYTHONHASHSEED": "random"}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    options = {"capture_output": True, "text": True, "env": environment}
    return [json.loads(subprocess.run(command, check=True, **options).stdout) for _ in range(2)]


@pytest.mark.parametrize("kind", ["SHOPE", "HOPE"])
def test_two_processes_with_as_many_threads_give_the_same_bits(found, kind):
    assert found[0][kind]["bits"] == found[1][kind]["bits"]


@pytest.mark.parametrize("kind", ["SHOPE", "HOPE"])
def test_a_fit_on_one_thread_or_two_gives_the_same_map(found, kind):
    assert found[0][kind]["fits"] <= FITS


@pytest.mark.parametrize("kind", ["SHOPE", "HOPE"])
def test_rows_one_by_one_or_all_at_once_on_any_thread_give_the_same_points(found, kind):
    assert found[0][kind]["rows"] <= ROWS
