"""Help is quick, loads nothing heavy, and says what the estimators declare."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from hopefold.cli import options
from hopefold.specification import METHODS

DONT_WRITE = "PYTHONDONTWRITEBYTECODE"
HOPEFOLD = (sys.executable, "-m", "hopefold")
VERBS = (
    *("demo", "fit", "transform", "predict", "exemplars", "interactions", "report"),
    *("compare", "evaluate", "export", "info"),
)


def cpu_seconds(command, cache):
    """Least CPU time of three runs, with byte code as an installed package has it."""
    environment = {name: value for name, value in os.environ.items() if name != DONT_WRITE}
    environment["PYTHONPYCACHEPREFIX"] = str(cache)
    seconds = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds[1:])  # the first run compiles


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"]], ids=" ".join)
def test_help_takes_less_than_0_4_seconds(arguments, tmp_path):
    """Or, on a slow or busy machine, less than twice as long as the import of Typer."""
    seconds = cpu_seconds([*HOPEFOLD, *arguments], tmp_path)
    if seconds >= 0.4:
        assert seconds < 2 * cpu_seconds([sys.executable, "-c", "import typer"], tmp_path)


def test_help_of_any_verb_loads_neither_torch_nor_scikit_learn():
    code = (
        "import sys\n"
        "from hopefold.cli import main\n"
        f"for arguments in [[], *([verb] for verb in {VERBS})]:\n"
        "    sys.argv = ['hopefold', *arguments, '--help']\n"
        "    try:\n        main()\n"
        "    except SystemExit as done:\n        assert done.code == 0, done.code\n"
        "heavy = {'torch', 'sklearn', 'numpy', 'scipy', 'pyarrow', 'matplotlib', 'dask'}\n"
        "heavy |= {'pydantic'}\n"
        "heavy &= {*sys.modules}\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_help_names_every_verb(run):
    shown = run("--help").stdout
    for verb in VERBS:
        assert f"\n  {verb} " in shown


def test_nothing_asked_is_help(run):
    assert run().stdout == run("--help").stdout


def test_every_parameter_of_every_method_is_an_option_with_prose(run):
    shown = " ".join(run("fit", "--help", env={"COLUMNS": "200"}).stdout.split())
    for name, (parameter, _) in options.all_parameters().items():
        assert f"--{name.replace('_', '-')} " in shown
        assert parameter.prose, name
        assert parameter.prose.split()[-1].strip('`".') in shown


def test_every_method_can_be_named_as_people_write_it():
    assert options.find_method("S-HOPE") == "SHOPE"
    assert {options.find_method(name) for name in options.methods()} == set(METHODS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("auto", "auto"),
        ("none", None),
        ("3", 3),
        ("1e-3", 0.001),
        ("28,28", (28, 28)),
        ("28x28", (28, 28)),
        ("500,500,2000", (500, 500, 2000)),
        ("a=2,b b=0.5", {"a": 2, "b b": 0.5}),
    ],
)
def test_what_is_typed_becomes_what_the_constructor_takes(text, value):
    assert options.parse(text) == value


def test_the_version_is_told(run):
    import hopefold

    assert run("--version").stdout == f"hopefold {hopefold.__version__}\n"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("hopefold comp", "compare"), ("hopefold fit --max-ep", "--max-epochs")],
)
def test_the_shell_completes_verbs_and_parameters(typed, offered):
    environment = {
        **os.environ,
        "_HOPEFOLD_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    code = "import sys; sys.argv = ['hopefold']; from hopefold.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert offered in done.stdout.split()


def test_the_shell_completes_methods():
    assert options.complete_method("deep") == ["deepmcml", "deepnca"]


def test_completion_can_be_installed(run):
    assert "_HOPEFOLD_COMPLETE" in run("--show-completion", env={"SHELL": "/bin/bash"}).output
