"""A worker process: told in JSON lines which cells to run, it answers in JSON lines.

Started as ``python -m mcrank.experiments.workers``, which, unlike a pool of `multiprocessing`, never runs the
caller's script again and ends by itself when its parent is gone: its standard input closes.

First it is told ``{"recipe": ..., "dialects": ...}``, then ``{"plan": ..., "target": ..., "seconds": ...}``
for each cell. It answers with some ``{"round": ..., "rounds": ...}``, then ``{"took": ...}`` or an error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from mcrank.errors import McrankError
from mcrank.experiments.fold_source import Parts, make_fold
from mcrank.experiments.trial import CellPlan, run_cell
from mcrank.metrics.dialect import Dialect
from mcrank.metrics.tools import define_dialect

_PATIENCE = 0.2  # seconds between two words on the rounds of a cell


class Rounds:
    """The callback of ``fit``: passes on how far training is, not too often."""

    def __init__(self, tell: Callable[[int, int], Any]) -> None:
        self._tell = tell
        self._last = 0.0

    def __call__(self, event: Any) -> bool:
        """Tell of a round; never stop."""
        now = time.monotonic()
        if now - self._last >= _PATIENCE:
            self._last = now
            self._tell(event.round, event.rounds)
        return False


class FoldShelf:
    """Keeps the fold used last, for the next cell is often of the same."""

    def __init__(self, make: Callable[[int], Parts]) -> None:
        self._make = make
        self._kept: tuple[int, Parts] | None = None

    def __getitem__(self, number: int) -> Parts:
        if self._kept is None or self._kept[0] != number:
            self._kept = None  # let go of the old one before the new one takes memory
            self._kept = (number, self._make(number))
        return self._kept[1]


def run_task(
    task: Mapping[str, Any],
    folds: FoldShelf,
    tell: Callable[[int, int], Any],
    interrupted: Callable[[], bool] = lambda: False,
) -> float:
    """Run the cell that a task describes; return the seconds it took."""
    plan = CellPlan(**task["plan"])
    target, seconds = Path(task["target"]), Path(task["seconds"])
    return run_cell(plan, folds[plan.fold], target, seconds, Rounds(tell), interrupted)


def main() -> None:
    """Answer the parent until it closes its end."""
    # Whatever a library prints must not get between our lines.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # Ctrl-C goes to the whole terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()

    def answer(**words: Any) -> None:
        print(json.dumps(words), file=answers, flush=True)

    begin = json.loads(lines.get())
    for switches in begin["dialects"]:
        define_dialect(Dialect(**switches))
    folds = FoldShelf(lambda number: make_fold(begin["recipe"], number))
    while True:
        task = json.loads(lines.get())
        try:
            answer(took=run_task(task, folds, lambda done, of: answer(round=done, rounds=of)))
        except McrankError as error:
            answer(error=str(error), kind=type(error).__name__)
        except MemoryError:
            answer(error="not enough memory", kind="MemoryError")
        except Exception as error:
            where = traceback.format_exc(limit=-3)
            answer(error=f"{type(error).__name__}: {error}\n{where}", kind="unexpected")


def _listen(lines: SimpleQueue[str]) -> None:
    """Read tasks; when the parent is gone there is nobody to work for, not even to finish the cell."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
