"""One thread per test process, the digits, and a few small tables."""

from __future__ import annotations

import os
import signal

os.environ["SCIPY_ARRAY_API"] = "1"  # or one of scikit-learn's checks is skipped
os.environ.setdefault("OMP_NUM_THREADS", "1")  # also of BLAS; tests already run in parallel
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job: tests send it
    signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import train_test_split

from hopefold import SHOPE


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="session")
def digits():
    """X, X_test, y, y_test: 70/30, stratified, seed 0, X/16."""
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16, y, test_size=0.3, stratify=y, random_state=0)


@pytest.fixture(scope="session")
def digits_model(digits):
    X, _, y, _ = digits
    return SHOPE(random_state=0).fit(X, y)


@pytest.fixture(scope="session")
def three_blobs():
    """90 rows, 5 columns, 3 classes that are easy to tell apart."""
    random = np.random.RandomState(0)
    y = np.repeat([0, 1, 2], 30)
    centers = 4 * random.normal(size=(3, 5))
    return centers[y] + random.normal(size=(90, 5)), y


@pytest.fixture(scope="session")
def sparse_rows():
    """Makes a CSR array of the given shape and density."""

    def make(n_rows, n_columns, density):
        random = np.random.RandomState(0)
        values = random.rand(n_rows, n_columns)
        return sparse.csr_array(values * (random.rand(n_rows, n_columns) < density))

    return make
