"""What a user sees while something takes long: on standard error, and moving only on a terminal."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from contextlib import ExitStack
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from mcrank.cli.volume import can_move, detail, is_verbose, say

if TYPE_CHECKING:
    from mcrank.rounds import RoundEvent


@cache
def announce_compilation() -> None:
    """Say so, once, when Numba starts to compile a kernel instead of loading it from disk."""
    from numba.core import event
    from numba.core.caching import NullCache

    class Once(event.Listener):
        def on_start(self, event: Any) -> None:
            # Small helpers without a cache compile in every process, and in no time.
            if not isinstance(getattr(event.data["dispatcher"], "_cache", None), NullCache | None):
                say_compiling()

        def on_end(self, event: object) -> None:
            """Nothing to say."""

    event.register("numba:compile", Once())  # type: ignore[no-untyped-call]


@cache
def say_compiling() -> None:
    """Say, once, that kernels are compiled."""
    say(f"compiling kernels, {_how_often()}")


def _how_often() -> str:
    from mcrank.kept.folders import VARIABLE, writable

    if writable() is not None:
        return "first run only"
    return f"every time: there is no folder to keep them in. Name one in {VARIABLE}."


class TrainingProgress:
    """The callback for a ranker's ``fit``, used in a ``with`` block.

    It draws a bar when standard error is a terminal, or tells every round with --verbose, and turns a first
    Ctrl-C into "stop after this round", so that what has been learned can be saved; a second one does not
    wait for the round.

    Attributes
    ----------
    stopped : bool
        Whether Ctrl-C ended training.
    """

    def __init__(self, label: str) -> None:
        self.stopped = False
        self._label = label
        self._bar: Any = None

    def __enter__(self) -> Self:
        self._exit = ExitStack()
        before = signal.signal(signal.SIGINT, self._on_ctrl_c)
        self._exit.callback(signal.signal, signal.SIGINT, before)
        if can_move() and not is_verbose():
            self._bar = self._exit.enter_context(_bar())
            self._task = self._bar.add_task(self._label, total=None, scores="")
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def __call__(self, event: RoundEvent) -> bool:
        """Show a round; the answer is whether to stop."""
        scores = "  ".join(f"{name} {value:.4f}" for name, value in event.scores.items())
        scores = "  ".join(filter(None, (scores, event.note)))
        detail(f"{self._label} round {event.round}/{event.rounds}  {scores}".rstrip())
        if self._bar is not None:
            self._bar.update(self._task, completed=event.round, total=event.rounds, scores=scores)
        return self.stopped

    def _on_ctrl_c(self, number: int, frame: FrameType | None) -> None:
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True
        words = "stopping after this round; Ctrl-C again to stop at once"
        if self._bar is None:
            say(words)
        else:
            self._bar.console.print(words)  # above the bar, which is drawn again


def _bar() -> Any:
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    return passing_bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("round {task.completed}/{task.total}"),
        TextColumn("{task.fields[scores]}"),
        TimeRemainingColumn(),
    )


def passing_bar(*columns: Any) -> Any:
    """Return a bar on standard error that is wiped out when its ``with`` block ends."""
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*columns, console=Console(stderr=True), transient=True)


class Moving(ABC):
    """Base of callbacks that draw something on a terminal, used in a ``with`` block; elsewhere ``_drawn`` is
    None.
    """

    _drawn: Any = None

    def __enter__(self) -> Self:
        self._exit = ExitStack()
        if can_move():
            self._drawn = self._exit.enter_context(self._draw())
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    @abstractmethod
    def _draw(self) -> Any:
        """Return what is drawn, a context."""


def duration(seconds: float) -> str:
    """Seconds as people say them.

    Examples
    --------
    >>> from mcrank.cli.progress import duration
    >>> duration(42.3), duration(260), duration(7300)
    ('42 s', '4 min', '2 h 2 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
