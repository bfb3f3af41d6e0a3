"""What a user sees while a page is made: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mcrank.cli.progress import Moving, passing_bar
from mcrank.cli.volume import say

if TYPE_CHECKING:
    from mcrank.analysis.analysis import Step as AnalysisStep
    from mcrank.report.page import Step

_PATIENCE = 5.0  # seconds between two lines where there is no terminal; a small page says nothing


class PageProgress(Moving):
    """The callback of `write_report` and of `analyze`, used in a ``with`` block."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def _draw(self) -> Any:
        from rich.progress import BarColumn, TextColumn

        bar = passing_bar(
            TextColumn("page"),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:.0f}%"),
            TextColumn("{task.description}", markup=False),
        )
        self._task = bar.add_task("", total=None)
        return bar

    def __call__(self, step: Step | AnalysisStep) -> None:
        """Show what is being made."""
        if self._drawn is not None:
            self._drawn.update(self._task, completed=step.done, total=step.of, description=step.words)
        elif time.monotonic() - self._said > _PATIENCE:
            self._said = time.monotonic()
            say(f"page: {100 * step.done // step.of}%, {step.words}")
