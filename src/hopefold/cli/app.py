"""The verbs, and what becomes of errors: one line and an exit status, never a traceback."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

import hopefold
from hopefold import errors
from hopefold.cli.compare import compare
from hopefold.cli.demo import demo
from hopefold.cli.evaluate import evaluate
from hopefold.cli.exemplars import exemplars
from hopefold.cli.export import export
from hopefold.cli.fit import fit
from hopefold.cli.info import info
from hopefold.cli.interactions import interactions
from hopefold.cli.predict import predict
from hopefold.cli.report import report
from hopefold.cli.shown import without_controls
from hopefold.cli.transform import transform

MISTAKE, INTERRUPTED, READER_GONE, BUG = 2, 130, 141, 1

#: Set it to see where an error comes from.
TRACEBACK = "HOPEFOLD_TRACEBACK"

OURS = (
    errors.ChanceWarning,
    errors.RareClassWarning,
    errors.NoValidationWarning,
    errors.SmallerStepWarning,
    errors.CheckpointWarning,
    errors.MarkerWarning,
    errors.RoundingWarning,
    errors.UncheckedWarning,
)


class Verbs(TyperGroup):
    """All verbs; every way in and every test comes through `main`."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run a verb and exit with its status."""
        extra["standalone_mode"] = False
        args = (sys.argv[1:] if args is None else list(args)) or ["--help"]
        with warnings.catch_warnings():
            _show_our_warnings()
            try:
                status = super().main(args, *rest, **extra)
                sys.stdout.flush()
                if status == INTERRUPTED:  # Typer has seen Ctrl-C
                    _tell_stop()
            except Exception as error:
                if os.environ.get(TRACEBACK):
                    raise
                status = _tell(error)
            except KeyboardInterrupt:
                status = _tell_stop()
        _let_go_of_standard_output()
        sys.exit(status if isinstance(status, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run a verb; what a fit says when it is stopped is not lost."""
        try:
            return super().invoke(ctx)
        except errors.Stopped as stopped:
            raise typer.Abort from stopped


app = typer.Typer(
    name="hopefold",
    cls=Verbs,
    rich_markup_mode=None,  # its columns leave no room for words at 80 characters
    context_settings={"help_option_names": ["-h", "--help"]},
    help="See labelled data, and keep only what matters of it: maps and exemplars (HOPE, S-HOPE).",
    epilog="hopefold VERB --help tells more of each. Start with: hopefold demo",
)


def _version(asked: bool) -> None:
    if asked:
        print(f"hopefold {hopefold.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Options of the command itself."""


VERBS = (
    *(demo, fit, transform, predict, exemplars, interactions),
    *(report, compare, evaluate, export, info),
)
for verb in VERBS:
    app.command()(verb)


def _tell(error: Exception) -> int:
    """One line on standard error, and the exit status."""
    if isinstance(error, typer.Abort):
        return _tell_stop(error.__cause__)
    if isinstance(error, BrokenPipeError):  # whoever reads has seen enough
        return READER_GONE
    if (mistake := _words_for(error)) is not None:
        if not getattr(error, "told", False):  # by another process
            _say(mistake)
        return MISTAKE
    _say(f"this is a bug ({type(error).__name__}: {error}); {TRACEBACK}=1 shows where it is.")
    return BUG


def _words_for(error: Any) -> str | None:
    """What to say of an error that is not ours to mend."""
    if hasattr(error, "format_message"):  # a mistake in what was typed
        return str(error.format_message())
    if isinstance(error, errors.HopefoldError):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}."
    if isinstance(error, MemoryError):
        return "there is not enough memory for this: give fewer rows, or columns."
    return None


def _tell_stop(why: BaseException | None = None) -> int:
    """A fit that has saved how far it came says how to go on."""
    _warn(str(why) if isinstance(why, errors.Stopped) else "stopped; nothing is left half-written.")
    return INTERRUPTED


def _let_go_of_standard_output() -> None:
    """What could not be written there is not tried once more at the end, with a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(text: str) -> None:
    print(f"hopefold: {without_controls(' '.join(text.split()))}", file=sys.stderr)


def _show_our_warnings() -> None:
    """One line each; those of other libraries are not for the user of a command."""
    warnings.simplefilter("ignore")
    for kind in OURS:
        warnings.simplefilter("default", kind)
    warnings.showwarning = lambda message, *_, **__: _warn(f"warning: {message}")


def _warn(text: str) -> None:
    """Of several processes, the first one speaks."""
    world = sys.modules.get("hopefold.training.distributed")
    if world is None or world.this_world().is_first:
        _say(text)
