"""A progress bar for a fit; silent unless ``verbose``."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


class Progress:
    """Epochs done, loss and held-out error on standard error; silent when not ``verbose``."""

    def __init__(self, title: str, n_epochs: int, *, verbose: bool) -> None:
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not verbose,
        )
        self._task = self._bar.add_task(title, total=n_epochs, state="")

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def stop_early(self) -> None:
        """Complete the bar of a run that has stopped early."""
        done = self._bar.tasks[self._task].completed
        self._bar.update(self._task, total=done)

    def advance(self, record: Mapping[str, float | int | str]) -> None:
        """Show the epoch that has just been completed."""
        state = f"loss {record['loss']:.4f}"
        if "validation_error" in record:
            state += f"  held-out error {record['validation_error']:.2%}"
        self._bar.update(self._task, advance=1, state=state)
