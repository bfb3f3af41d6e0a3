"""What a user sees while a page is made: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from mcrank.cli.volume import can_move, say

if TYPE_CHECKING:
    from mcrank.analysis.analysis import Step as AnalysisStep
    from mcrank.report.page import Step

_PATIENCE = 5.0  # seconds between two lines where there is no terminal; a small page says nothing


class PageProgress:
    """The callback of `write_report` and of `analyze`, used in a ``with`` block."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._said = time.monotonic()

    def __enter__(self) -> Self:
        self._exit = ExitStack()
        if can_move():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            columns = [
                TextColumn("page"),
                BarColumn(bar_width=30),
                TextColumn("{task.percentage:.0f}%"),
                TextColumn("{task.description}", markup=False),
            ]
            self._bar = self._exit.enter_context(
                Progress(*columns, console=Console(stderr=True), transient=True)
            )
            self._task = self._bar.add_task("", total=None)
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def __call__(self, step: Step | AnalysisStep) -> None:
        """Show what is being made."""
        if self._bar is not None:
            self._bar.update(self._task, completed=step.done, total=step.of, description=step.words)
        elif time.monotonic() - self._said > _PATIENCE:
            self._said = time.monotonic()
            say(f"page: {100 * step.done // step.of}%, {step.words}")
