"""The verbs and their errors: one line and an exit status, never a traceback."""

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
from hopefold.cli.shown import without_controls
from hopefold.cli.verbs.compare import compare
from hopefold.cli.verbs.demo import demo
from hopefold.cli.verbs.evaluate import evaluate
from hopefold.cli.verbs.exemplars import exemplars
from hopefold.cli.verbs.export import export
from hopefold.cli.verbs.fit import INTERRUPTED, fit
from hopefold.cli.verbs.info import info
from hopefold.cli.verbs.interactions import interactions
from hopefold.cli.verbs.predict import predict
from hopefold.cli.verbs.report import report
from hopefold.cli.verbs.transform import transform

USAGE, PIPE_CLOSED, BUG = 2, 141, 1

#: Key in the context: whether the first argument is a verb.
VERB_FIRST = "hopefold.verb_first"

#: The environment variable that turns tracebacks on.
TRACEBACK = "HOPEFOLD_TRACEBACK"

OWN_WARNINGS = (
    errors.ChanceWarning,
    errors.InterruptedWarning,
    errors.TimeLimitWarning,
    errors.RareClassWarning,
    errors.NoValidationWarning,
    errors.SmallerStepWarning,
    errors.CheckpointWarning,
    errors.MarkerWarning,
    errors.RoundingWarning,
    errors.UncheckedWarning,
)


class Verbs(TyperGroup):
    """The group of all verbs; the command and the tests both call `main`."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run a verb and exit with its status."""
        extra["standalone_mode"] = False
        args = (sys.argv[1:] if args is None else list(args)) or ["--help"]
        with warnings.catch_warnings():
            _show_own_warnings()
            try:
                status = super().main(args, *rest, **extra)
                sys.stdout.flush()
                if status == INTERRUPTED:  # Typer has seen Ctrl-C
                    _print_stop()
            except Exception as error:
                if os.environ.get(TRACEBACK):
                    raise
                status = _print_error(error)
            except KeyboardInterrupt:
                status = _print_stop()
        _close_standard_output()
        sys.exit(status if isinstance(status, int) else 0)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options of the command itself; none of them comes after a verb."""
        ctx.meta[VERB_FIRST] = bool(args) and not args[0].startswith("-")
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the command itself: none if a verb comes first.

        Typer would import pydantic to validate their defaults, which takes longer than all else.
        """
        return [] if ctx.meta.get(VERB_FIRST) else super().get_params(ctx)

    def invoke(self, ctx: Any) -> Any:
        """Run a verb; keep the message of a fit that was stopped."""
        try:
            return super().invoke(ctx)
        except errors.Stopped as stopped:
            raise typer.Abort from stopped


app = typer.Typer(
    name="hopefold",
    cls=Verbs,
    rich_markup_mode=None,  # its boxes leave little space for text at 80 columns
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Supervised embedding and data compression: maps and exemplars (HOPE, S-HOPE).",
    epilog="hopefold VERB --help shows the options of a verb. Start with: hopefold demo",
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


def _print_error(error: Exception) -> int:
    """Print one line on standard error; return the exit status."""
    if isinstance(error, typer.Abort):
        return _print_stop(error.__cause__)
    if isinstance(error, BrokenPipeError):  # the reader has closed the pipe
        return PIPE_CLOSED
    if (message := _message_of(error)) is not None:
        if not getattr(error, "is_reported", False):  # another process has printed it
            _print_message(message)
        return USAGE
    _print_message(
        f"this is a bug ({type(error).__name__}: {error}); {TRACEBACK}=1 shows a traceback."
    )
    return BUG


def _message_of(error: Any) -> str | None:
    """Return the message for an error that is not a bug."""
    if hasattr(error, "format_message"):  # a usage error
        return str(error.format_message())
    if isinstance(error, errors.HopefoldError):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}."
    if isinstance(error, MemoryError):
        return "there is not enough memory for this: give fewer rows, or columns."
    return None


def _print_stop(why: BaseException | None = None) -> int:
    """Print that the command was stopped; a fit with a checkpoint says how to resume."""
    _print_once(
        str(why) if isinstance(why, errors.Stopped) else "stopped; nothing is left half-written."
    )
    return INTERRUPTED


def _close_standard_output() -> None:
    """Flush standard output, or redirect it, so that Python does not fail at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_message(text: str) -> None:
    print(f"hopefold: {without_controls(' '.join(text.split()))}", file=sys.stderr)


def _show_own_warnings() -> None:
    """Show our own warnings, one line each, and no warnings of other libraries."""
    warnings.simplefilter("ignore")
    for kind in OWN_WARNINGS:
        warnings.simplefilter("default", kind)
    warnings.showwarning = lambda message, *_, **__: _print_once(f"warning: {message}")


def _print_once(text: str) -> None:
    """Print a message from the first of several processes only."""
    distributed = sys.modules.get("hopefold.training.distributed")
    if distributed is None or distributed.current_process_group().is_first:
        _print_message(text)
