"""``hopefold bench …``: the paper's experiments and the speed benches."""

from __future__ import annotations

import typer


def bench(context: typer.Context) -> None:
    """Run the paper and speed benches.

    run, tables, speed, ruler, sweep, try, figures: hopefold bench --help tells more.
    """
    from hopefold.bench.__main__ import app

    arguments = context.args or ["--help"]
    status = app(args=arguments, prog_name="hopefold bench", standalone_mode=False)
    if status:
        raise typer.Exit(status)
