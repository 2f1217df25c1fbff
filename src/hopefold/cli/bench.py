"""``hopefold bench …``: the paper's experiments and the speed benches."""

from __future__ import annotations

import typer


def bench(context: typer.Context) -> None:
    """Run the paper and speed benches.

    run, tables, speed, ruler, sweep, try, figures: hopefold bench --help tells more.
    """
    from hopefold.bench.__main__ import app

    app(args=context.args, prog_name="hopefold bench", standalone_mode=False)
