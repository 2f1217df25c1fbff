"""ARCHITECTURE.md is true: its tree, its paths, and the main path of a fit."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_digits

import hopefold
from hopefold import SHOPE

ROOT = Path(__file__).parents[1]
PACKAGE = Path(hopefold.__file__).parent
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, flags=re.M | re.S))

#: The main path of a fit, as the page has it: a file and a function, in order.
MAIN_PATH = [
    (file, function)
    for file, function in re.findall(r"`([\w/]+\.py):([\w.]+)`", SECTIONS["Main path of `fit`"])
]


def modules_of_the_tree():
    """Paths below src/hopefold, by indentation; what follows three spaces is prose."""
    tree = re.search(r"```\nsrc/hopefold/\n(.*?)^benchmarks/", SECTIONS["Tree"], flags=re.M | re.S)
    found, folders = set(), {0: ""}
    for line in tree[1].splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        names = re.split(r"\s{3,}", line.strip())[0].split()
        if names[0].endswith("/"):
            folders[depth] = folders[depth - 1] + names[0] if depth > 1 else names[0]
            continue
        folder = folders[depth - 1] if depth > 1 else ""
        found |= {f"{folder}{name}.py" for name in names}
    return found


def test_every_module_is_in_the_tree():
    there = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.name != "__init__.py" or path.parent == PACKAGE
    }
    assert modules_of_the_tree() == there


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "docs/decisions.md"])
def test_every_path_that_is_named_exists(page):
    named = re.findall(r"`([\w./]+(?:\.py|\.md|\.js|/))`", (ROOT / page).read_text())
    assert named
    for path in named:
        homes = (ROOT, PACKAGE, PACKAGE / "export", PACKAGE / "report/page")
        assert any((home / path).exists() for home in homes), path


def test_files_are_short():
    """About 350 lines; those written from the specification count without their docstrings."""
    long = {
        str(path.relative_to(ROOT)): n_lines
        for folder in ("src", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if (n_lines := len(path.read_text().splitlines())) > 365
    }
    assert not long


def calls_of_a_fit():
    """Files and functions of hopefold in the order of their first calls."""
    X, y = load_digits(return_X_y=True)
    first: dict[tuple[str, str], None] = {}

    def note(frame, event, _argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            file = str(Path(code.co_filename).relative_to(PACKAGE))
            first.setdefault((file, code.co_qualname))

    model = SHOPE(max_epochs=2, random_state=0)
    sys.setprofile(note)
    try:
        model.fit(X[:300], y[:300])
    finally:
        sys.setprofile(None)
    return list(first)


def test_a_fit_runs_along_the_main_path(capsys):
    called = calls_of_a_fit()
    order = [called.index(step) for step in MAIN_PATH]
    assert order == sorted(order)
    assert len(MAIN_PATH) == len(set(MAIN_PATH)) <= 40
    assert len({file for file, _ in MAIN_PATH}) <= 14
    functions = [one for one in called if not one[1].endswith(">")]  # no comprehensions, lambdas
    with capsys.disabled():
        files = {file for file, _ in functions}
        print(f"\na fit calls {len(functions)} functions of hopefold in {len(files)} files")
