"""Memory: said before a fit starts, and kept to."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.datasets import load_iris

from hopefold import HOPE, SHOPE
from hopefold.errors import NotEnoughMemory
from hopefold.fitting import memory


def run(code, *arguments):
    """What code prints in a process of its own, on one thread."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (
            SHOPE(n_factors=10**9, n_units=600),
            r"lower n_factors \(now 1,000,000,000\) or n_units \(now 600\)",
        ),
        (HOPE(n_factors=10**10), r"lower n_factors \(now 10,000,000,000\)"),
        (SHOPE(n_units=10**9), "n_units"),
    ],
)
def test_a_map_that_cannot_fit_is_refused_with_its_bytes(model, remedy):
    with pytest.raises(
        NotEnoughMemory, match=rf"needs about [\d,.]+ GiB \([\d,]+ bytes\).*{remedy}"
    ):
        model.fit(*load_iris(return_X_y=True))


def test_pairs_that_cannot_fit_name_the_batch_size(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 10**6)
    X = np.random.RandomState(0).rand(1_000, 2)
    with pytest.raises(NotEnoughMemory, match=r"lower batch_size \(now 900\)"):
        SHOPE(exemplars=None, batch_size=900, n_factors=2, n_units=2).fit(X, np.arange(1_000) % 2)


def test_an_address_space_limit_is_seen():
    """Set after the imports, as a batch system would: the error says what to change."""
    code = """
        import resource
        from sklearn.datasets import load_iris
        from hopefold import SHOPE
        from hopefold.errors import NotEnoughMemory
        X, y = load_iris(return_X_y=True)
        SHOPE(max_epochs=1).fit(X, y)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, -1))
        SHOPE(max_epochs=1).fit(X, y)
        try:
            SHOPE(n_factors=100_000, n_units=1_000).fit(X, y)
        except NotEnoughMemory as error:
            print("refused")
    """
    assert run(code) == ["refused"]


@pytest.mark.parametrize("megabytes", [8, 90])
def test_rows_that_do_not_fit_below_a_limit_are_told_with_their_bytes(megabytes):
    """100 MB of rows, and too little for what is made of them: whichever library finds out."""
    code = """
        import resource, sys
        import numpy as np
        from sklearn.datasets import load_iris
        from hopefold import SHOPE
        from hopefold.errors import NotEnoughMemory
        SHOPE(max_epochs=1).fit(*load_iris(return_X_y=True))
        X = np.random.RandomState(0).rand(125_000, 100)
        y = np.arange(len(X)) % 3
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]) * 2**20, -1))
        try:
            SHOPE(max_epochs=1).fit(X, y)
            print("fitted")
        except NotEnoughMemory as error:
            words = str(error)
            assert "MiB" in words or "bytes" in words, words
            assert "batch_size" in words or "n_factors" in words, words
            print("refused")
    """
    assert run(code, megabytes) == ["refused"]


@pytest.fixture(scope="module")
def large_file(tmp_path_factory):
    """120 MB of rows, sorted by class."""
    random = np.random.RandomState(0)
    y = np.repeat(np.arange(3), 100_000)
    X = random.normal(size=(300_000, 100)).astype(np.float32)
    X[:, 0] += 6 * y
    path = tmp_path_factory.mktemp("large") / "rows.parquet"
    columns = {f"x{place}": column for place, column in enumerate(X.T)}
    parquet.write_table(pa.table({**columns, "y": y}), path, row_group_size=20_000)
    return path


def test_a_file_much_larger_than_the_buffer_is_learned_from_in_bounded_memory(large_file):
    """A buffer of 8 MB: what is taken besides must not grow with the rows."""
    code = """
        import resource, sys
        import pyarrow.parquet, pyarrow.dataset
        from sklearn.datasets import load_iris
        from hopefold import SHOPE
        from hopefold.data import disk
        disk.BUFFER, disk.CHUNK = 8 * 2**20, 2 * 2**20
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        settings = dict(n_factors=8, n_units=8, max_epochs=2, batch_size=1_000, adversarial=0)
        SHOPE(**settings).fit(*load_iris(return_X_y=True))
        before = peak()
        model = SHOPE(**settings, refit=False, random_state=0).fit(sys.argv[1], "y")
        fitted = peak()
        assert len(model.predict(sys.argv[1])) == 300_000
        print(fitted - before, peak() - before, model.validation_error_)
    """
    fit, both, error = run(code, large_file)
    assert int(fit) < 110  # the rows alone are 120
    assert int(both) < 120
    assert float(error) < 0.02
