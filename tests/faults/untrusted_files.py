"""Untrusted model files: each gives a working model, or `load` raises a hopefold error.

The test runs in a process of its own. Its address space is limited after the imports, and an audit
hook records whether a file makes it open another file or start a program.
"""

from __future__ import annotations

import json
import random
import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from faults.forged_files import DAMAGE, forged
from faults.outcome import Outcome
from faults.processes import AuditHook, limit_memory, run_in_process
from hopefold.data.columns import Columns
from hopefold.data.tables import Table
from hopefold.errors import BrokenFile, HopefoldError
from hopefold.estimators.hope import HOPE
from hopefold.estimators.shope import SHOPE
from hopefold.persistence import model_files as files
from hopefold.specification import METHODS

#: Seconds within which a file must be loaded or refused.
TIME_LIMIT = 1.0

#: Audit events that no model file may cause.
FORBIDDEN = ("subprocess.", "os.", "socket.", "shutil.", "pickle.", "ctypes.", "compile", "exec")


def model_files(times: int, folder: Path) -> Outcome:
    """Forge and load this many files, in a process of its own."""
    return run_in_process(__name__, times, folder)


def main() -> None:
    """Print a JSON list of the broken cases."""
    import torch

    torch.set_num_threads(1)
    times, folder = int(sys.argv[1]), Path(sys.argv[2])
    for method in METHODS.values():
        import_module(method.module)
    originals = [Original(model, folder / "original.hope") for model in make_models()]
    limit_memory()
    warnings.simplefilter("ignore")
    target, rng = folder / "forged.hope", random.Random(0)
    hook = AuditHook(target, FORBIDDEN)
    sys.addaudithook(hook)
    broken = []
    for number in range(times):
        original, other = rng.choice(originals), rng.choice(originals)
        name, content = forged(original.content, other.content, rng)
        target.write_bytes(content)
        hook.seen.clear()
        start = time.perf_counter()
        problem = original.find_problem(target, unchanged=name in DAMAGE, hook=hook)
        seconds = time.perf_counter() - start
        if seconds > TIME_LIMIT:
            problem = f"it took {seconds:.1f} s"
        if problem or hook.seen:
            broken.append(f"{number} ({name}): {problem or hook.seen}"[:1_000])
    print(json.dumps(broken))


class Original:
    """A model, the content of its file, and its points for some rows."""

    def __init__(self, model: Any, path: Path) -> None:
        model.save(path)
        self.content = path.read_bytes()
        self.rows = np.random.RandomState(0).normal(size=(5, model.n_features_in_))
        self.points = use(files.load(path), self.rows)

    def find_problem(self, path: Path, *, unchanged: bool, hook: AuditHook) -> str | None:
        """None if the file is refused or gives a working model; else the broken promise.

        With ``unchanged``, a file that loads must give the original model.
        """
        try:
            with hook:
                model = files.load(path)
        except BrokenFile as error:
            cause = repr(error.__cause__)
            return cause if "allocate" in cause or len(str(error)) > 1_000 else None
        except BaseException as error:
            return f"load: {error!r}"
        try:
            rows = self.rows
            if model.n_features_in_ != rows.shape[1]:
                rows = np.zeros((5, model.n_features_in_))
            points = use(model, rows)
        except HopefoldError:
            return "it loads, but is not the same model" if unchanged else None
        except BaseException as error:
            return f"use: {error!r}"
        if unchanged and not np.array_equal(points, self.points):
            return "it loads, but is not the same model"
        return None


def use(model: Any, rows: Any) -> Any:
    """Use a model as people do, check that all results are finite, and return the points."""
    points = model.transform(Table(rows, None))
    model.predict(Table(rows, None))
    shares = model.predict_proba(Table(rows, None))
    files.size_of(model)
    assert np.isfinite(points).all()
    assert np.isfinite(shares).all()
    return points


def make_models() -> list[Any]:
    """Small models of every kind: with column names and fills, on pairs, quantized, deep."""
    random_state = np.random.RandomState(0)
    y = np.arange(40) % 3
    X = 4 * random_state.normal(size=(3, 6))[y] + random_state.normal(size=(40, 6))
    names = np.array(["a", "b=x", "b=y", "c", "ü", "=d()"], dtype=object)
    values = {"b": ("x", "y")}
    columns = Columns(("a", "b", "c", "ü", "=d()"), values, np.zeros(6), "kind", ("id",), (2, 3))
    table = Table(X, np.array(["ash", "birch", "cedar"])[y], names, columns=columns)
    quick: dict[str, Any] = {"max_epochs": 1, "random_state": 0, "device": "cpu"}
    small = {**quick, "n_factors": 4}
    weights = {"ash": 1.0, "birch": 2.0, "cedar": 1.0}
    deep = import_module("hopefold.baselines.deep_mcml").DeepMCML
    lda = import_module("hopefold.baselines.lda").LDA
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            SHOPE(**small, n_units=3, class_weight=weights).fit(table),
            SHOPE(**small, n_units=3, image_shape=(2, 3)).fit(X, y),
            HOPE(**small, exemplars=None).fit(X, 1.0 * y),
            SHOPE(**quick, max_bytes=6_000).fit(X, y),
            deep(**quick, hidden_layer_sizes=(5, 4), pretraining_epochs=0).fit(X, y == 1),
            lda().fit(X, y),
        ]


if __name__ == "__main__":
    main()
