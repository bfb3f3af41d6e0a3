"""What a user sees while something takes long: on standard error, and moving only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mcrank.rankers.base import RoundEvent


def announce_compilation() -> None:
    """Say so, once, when Numba starts to compile a kernel instead of loading it from its cache."""
    from numba.core import event

    class Once(event.Listener):
        said = False

        def on_start(self, event: object) -> None:
            if not Once.said:
                Once.said = True
                click.echo("compiling kernels, first run only", err=True)

        def on_end(self, event: object) -> None:
            """Nothing to say."""

    event.register("numba:compile", Once())  # type: ignore[no-untyped-call]


@contextmanager
def training_progress(label: str) -> Iterator[Callable[[RoundEvent], None]]:
    """Yield the callback for a ranker's ``fit``; it draws a bar when standard error is a terminal."""
    if not sys.stderr.isatty():
        yield lambda event: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("round {task.completed}/{task.total}"),
        TextColumn("{task.fields[scores]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None, scores="")

        def update(event: RoundEvent) -> None:
            scores = "  ".join(f"{name} {value:.4f}" for name, value in event.scores.items())
            bar.update(task, completed=event.round, total=event.rounds, scores=scores)

        yield update
