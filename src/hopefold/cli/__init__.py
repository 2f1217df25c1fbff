"""The command line: one file a verb. Nothing heavy is imported before a verb is at work."""

from __future__ import annotations

import sys


def main() -> None:
    """What the command ``hopefold`` runs."""
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
