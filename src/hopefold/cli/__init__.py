"""The command line: one file per verb. Nothing heavy is imported before a verb runs."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command ``hopefold``."""
    # Waiting threads would spin, which makes a fit many times slower on a busy machine. OpenMP
    # reads this when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal may not support every character
            stream.reconfigure(errors="replace")
    try:
        from hopefold.cli.app import app

        app()
    except ModuleNotFoundError as error:
        if str(error.name).startswith("hopefold"):
            raise
        print(
            f"hopefold: the command line needs {error.name}, which is not installed: "
            "pip install 'hopefold[cli]'.",
            file=sys.stderr,
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
