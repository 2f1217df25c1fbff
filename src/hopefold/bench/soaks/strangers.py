"""Model files from strangers: each loads to a model that works, or is refused by our own error.

In a process of its own, whose address space is limited after the imports, and which is watched: no
other file is opened, and no program is started.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from hopefold.bench.faults import Outcome
from hopefold.bench.soaks.forgery import DAMAGE, forged
from hopefold.data.columns import Columns
from hopefold.data.tables import Table
from hopefold.errors import BrokenFile, HopefoldError
from hopefold.estimators.hope import HOPE, SHOPE
from hopefold.persistence import model_files as files
from hopefold.specification import METHODS

#: Seconds that a file may take, and bytes of address space beside what imports take.
LONGEST, ROOM = 1.0, 512 * 2**20

#: What nothing in a model file may bring about.
FORBIDDEN = ("subprocess.", "os.", "socket.", "shutil.", "pickle.", "ctypes.", "compile", "exec")


def model_files(times: int, folder: Path) -> Outcome:
    """Forge so many files and load each, in a process of its own."""
    return run_alone(__name__, times, folder)


def run_alone(module: str, times: int, folder: Path) -> Outcome:
    """What a module prints that is run as a process: a list of what was broken."""
    command = [sys.executable, "-m", module, str(times), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return Outcome(times, (f"the process ended with {done.returncode}: {done.stderr[-500:]}",))
    return Outcome(times, tuple(json.loads(done.stdout)))


def main() -> None:
    """Print a JSON list of what was wrong."""
    import torch

    torch.set_num_threads(1)
    times, folder = int(sys.argv[1]), Path(sys.argv[2])
    for method in METHODS.values():
        method.load_class()
    originals = [Original(model, folder / "original.hope") for model in make_models()]
    limit_memory()
    warnings.simplefilter("ignore")
    target, chance = folder / "forged.hope", random.Random(0)
    watch = Watch(target)
    sys.addaudithook(watch)
    broken = []
    for number in range(times):
        original, other = chance.choice(originals), chance.choice(originals)
        name, content = forged(original.content, other.content, chance)
        target.write_bytes(content)
        watch.seen.clear()
        start = time.perf_counter()
        wrong = original.whats_wrong_with(target, same=name in DAMAGE, watch=watch)
        seconds = time.perf_counter() - start
        if seconds > LONGEST:
            wrong = f"it took {seconds:.1f} s"
        if wrong or watch.seen:
            broken.append(f"{number} ({name}): {wrong or watch.seen}"[:1_000])
    print(json.dumps(broken))


class Original:
    """A model, its file, and what it says of some rows."""

    def __init__(self, model: Any, path: Path) -> None:
        model.save(path)
        self.content = path.read_bytes()
        self.rows = np.random.RandomState(0).normal(size=(5, model.n_features_in_))
        self.points = use(files.load(path), self.rows)

    def whats_wrong_with(self, path: Path, *, same: bool, watch: Watch) -> str | None:
        """Nothing, if the file is refused, or gives a model that works."""
        try:
            with watch:
                model = files.load(path)
        except BrokenFile as error:
            deep = repr(error.__cause__)
            return deep if "allocate" in deep or len(str(error)) > 1_000 else None
        except BaseException as error:
            return f"load: {error!r}"
        try:
            rows = self.rows
            if model.n_features_in_ != rows.shape[1]:
                rows = np.zeros((5, model.n_features_in_))
            points = use(model, rows)
        except HopefoldError:
            return "it loads, and is no longer the same" if same else None
        except BaseException as error:
            return f"use: {error!r}"
        if same and not np.array_equal(points, self.points):
            return "it loads, and is no longer the same"
        return None


def use(model: Any, rows: Any) -> Any:
    """What people do with a model: its points, which are finite or refused."""
    points = model.transform(Table(rows, None))
    model.predict(Table(rows, None))
    shares = model.predict_proba(Table(rows, None))
    files.size_of(model)
    assert np.isfinite(points).all()
    assert np.isfinite(shares).all()
    return points


class Watch:
    """An audit hook: while it is on, it notes what a model file must not bring about."""

    def __init__(self, allowed: Path, forbidden: tuple[str, ...] = FORBIDDEN) -> None:
        self.allowed, self.forbidden = str(allowed), forbidden
        self.on, self.seen = False, list[str]()

    def __call__(self, event: str, details: tuple[Any, ...]) -> None:
        """Whatever the interpreter does goes through here."""
        if not self.on:
            return
        strange = event == "open" and str(details[0]) != self.allowed
        if strange or event.startswith(self.forbidden):
            self.seen.append(f"{event} {details[:1]}")

    def __enter__(self) -> None:
        self.on = True

    def __exit__(self, *_: object) -> None:
        self.on = False


def make_models() -> list[Any]:
    """Small models of every kind of file: with names, columns and fills, pairs, coarse, deep."""
    chance = np.random.RandomState(0)
    y = np.arange(40) % 3
    X = 4 * chance.normal(size=(3, 6))[y] + chance.normal(size=(40, 6))
    names = np.array(["a", "b=x", "b=y", "c", "ü", "=d()"], dtype=object)
    values = {"b": ("x", "y")}
    columns = Columns(("a", "b", "c", "ü", "=d()"), values, np.zeros(6), "kind", ("id",), (2, 3))
    table = Table(X, np.array(["ash", "birch", "cedar"])[y], names, columns=columns)
    quick: dict[str, Any] = {"max_epochs": 1, "random_state": 0, "device": "cpu"}
    small = {**quick, "n_factors": 4}
    weights = {"ash": 1.0, "birch": 2.0, "cedar": 1.0}
    deep = METHODS["DeepMCML"].load_class()
    lda = METHODS["LDA"].load_class()
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


def limit_memory() -> None:
    """From now on, no more address space than there is room for what is promised."""
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))


if __name__ == "__main__":
    main()
