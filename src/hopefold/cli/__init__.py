"""The command line: one file a verb. Nothing heavy is imported before a verb is at work."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """What the command ``hopefold`` runs."""
    # Threads that wait for each other would spin: beside any other work that makes a fit many
    # times slower. Read when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal may not know every letter
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
