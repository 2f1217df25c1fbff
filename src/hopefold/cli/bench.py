"""``hopefold bench …``: the paper's experiments and the speed benches."""

from __future__ import annotations

import typer


def bench(context: typer.Context) -> None:
    """Run the paper and speed benches.

    run, tables, speed, ruler, profile, sweep, try, figures: hopefold bench --help tells more.
    """
    from hopefold.bench.__main__ import app

    arguments = ["--help" if one == "-h" else one for one in context.args] or ["--help"]
    status = app(args=arguments, prog_name="hopefold bench", standalone_mode=False)
    if status:
        raise typer.Exit(status)
