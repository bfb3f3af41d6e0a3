"""Running the cells of a comparison, in this process or in several, and telling how long it will take."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import mcrank
from mcrank import errors
from mcrank.errors import McrankError
from mcrank.experiments.fold_source import Source
from mcrank.experiments.trial import CellPlan
from mcrank.experiments.workers import FoldShelf, run_task
from mcrank.metrics.tools import DIALECTS

_PATIENCE = 0.1  # seconds between two calls of the callback while nothing is finished


@dataclass(frozen=True, eq=False)
class Task:
    """A cell to run, where its files go, and its fold by name."""

    plan: CellPlan
    fold: str
    target: str
    seconds: str

    @property
    def words(self) -> str:
        """What an error or a progress line calls it."""
        point = ", ".join(f"{name}={value}" for name, value in self.plan.point.items())
        return f"{self.plan.system} on {self.fold}" + (f" ({point})" if point else "")


@dataclass(frozen=True)
class Progress:
    """What the callback of `mcrank.compare` is told.

    Attributes
    ----------
    done, cells : int
        Cells finished (those of an earlier run included), and cells in all.
    running : tuple of str
        What is being trained, and its round.
    seconds : float
        Time since the comparison began.
    seconds_left : float or None
        About how long it will take; None before anything is known.
    """

    done: int
    cells: int
    running: tuple[str, ...]
    seconds: float
    seconds_left: float | None


class Ledger:
    """Tasks waiting, running and done. Cells of systems not yet timed come first, then the longest."""

    def __init__(
        self, tasks: Sequence[Task], done_before: int, callback: Callable[[Progress], Any] | None
    ) -> None:
        self._waiting = list(tasks)
        self._running: dict[Task, tuple[float, int, int]] = {}
        self._took: dict[str, list[float]] = {}
        self._done = done_before
        self._cells = done_before + len(tasks)
        self._callback = callback
        self._began = time.monotonic()
        self._said = 0.0
        self._lock = threading.RLock()
        self.jobs = 1
        self.failure: Exception | None = None

    def take(self) -> Task | None:
        """Return the next task; None when there is none, or when one has failed."""
        with self._lock:
            if self.failure is not None or not self._waiting:
                return None
            started = {task.plan.system for task in self._running} | set(self._took)
            fresh = [task for task in self._waiting if task.plan.system not in started]
            task = fresh[0] if fresh else max(self._waiting, key=self._expected)  # the first of equals
            self._waiting.remove(task)
            self._running[task] = (time.monotonic(), 0, 0)
            return task

    def round(self, task: Task, done: int, of: int) -> None:
        """Note how far a task is."""
        with self._lock:
            self._running[task] = (self._running[task][0], done, of)

    def finished(self, task: Task, took: float) -> None:
        """Note that a task is done."""
        with self._lock:
            del self._running[task]
            self._took.setdefault(task.plan.system, []).append(took)
            self._done += 1

    def failed(self, error: Exception) -> None:
        """Note the first failure; no further task is given out."""
        with self._lock:
            self.failure = self.failure or error

    def say(self) -> None:
        """Tell the callback where things stand, when it has not been told a moment ago."""
        with self._lock:
            now = time.monotonic()
            if self._callback is None or (self._running and now - self._said < _PATIENCE):
                return
            self._said = now
            running = tuple(
                f"{task.words}, round {done}/{of}" if of else task.words
                for task, (_, done, of) in self._running.items()
            )
            progress = Progress(self._done, self._cells, running, now - self._began, self._left())
        self._callback(progress)

    def _expected(self, task: Task) -> float:
        """Seconds a task will take: as others of its system did, else as all did."""
        known = self._took.get(task.plan.system) or [t for took in self._took.values() for t in took]
        return sum(known) / len(known) if known else 0.0

    def _left(self) -> float | None:
        now = time.monotonic()
        left = 0.0
        for task, (since, done, of) in self._running.items():
            whole = (now - since) * of / done if done else self._expected(task)
            if not whole:
                return None
            left += max(0.0, whole - (now - since))
        if self._waiting and not self._took:
            return None
        return (left + sum(map(self._expected, self._waiting))) / self.jobs


def run_tasks(ledger: Ledger, source: Source, count: int, n_jobs: int) -> None:
    """Run all tasks of a ledger, ``count`` of them, ``n_jobs`` at a time and each on one thread."""
    ledger.jobs = max(1, min(n_jobs, count))
    if ledger.jobs == 1 or not sys.executable:
        _run_here(ledger, source)
    else:
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory(prefix="mcrank-"))
            recipe = source.handed_over(folder)
            workers = [stack.enter_context(_worker(recipe)) for _ in range(ledger.jobs)]
            _run_there(ledger, workers)
    if ledger.failure is not None:
        raise ledger.failure


def _run_here(ledger: Ledger, source: Source) -> None:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    folds = FoldShelf(source.fold)
    # Sums of a BLAS with more threads may round otherwise.
    with threadpool_limits(limits=1), _ctrl_c_noted() as interrupted:
        while (task := ledger.take()) is not None:
            try:
                told = {"plan": task.plan.to_json(), "target": task.target, "seconds": task.seconds}
                took = run_task(told, folds, partial(_tell, ledger, task), interrupted)
            except McrankError as error:
                ledger.failed(_named(task, type(error), str(error)))
                return
            ledger.finished(task, took)
            ledger.say()


@contextmanager
def _ctrl_c_noted() -> Iterator[Callable[[], bool]]:
    """Whether there was a Ctrl-C, for rankers may take it for a wish to end early and say nothing."""
    noted = threading.Event()

    def on_ctrl_c(number: int, frame: FrameType | None) -> None:
        noted.set()
        raise KeyboardInterrupt

    here = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, on_ctrl_c) if here else None
    try:
        yield noted.is_set
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _tell(ledger: Ledger, task: Task, done: int, of: int) -> None:
    ledger.round(task, done, of)
    ledger.say()


def _run_there(ledger: Ledger, workers: Sequence[subprocess.Popen[str]]) -> None:
    """One thread for each worker, asking and listening. This thread tells the callback, and Ctrl-C reaches
    it.
    """
    threads = [threading.Thread(target=_converse, args=(ledger, worker), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    # After a failure what the other workers are at is lost, and done again next time.
    while ledger.failure is None and any(thread.is_alive() for thread in threads):
        threads[0].join(timeout=_PATIENCE)
        for thread in threads[1:]:
            thread.join(timeout=0.0)
        ledger.say()


def _converse(ledger: Ledger, worker: subprocess.Popen[str]) -> None:
    try:
        while (task := ledger.take()) is not None:
            ledger.finished(task, _ask(ledger, worker, task))
    except Exception as error:  # raised again by the thread that started this one
        ledger.failed(error)


def _ask(ledger: Ledger, worker: subprocess.Popen[str], task: Task) -> float:
    if worker.stdin is None or worker.stdout is None:
        raise McrankError("a worker process has no pipes.")
    told = {"plan": task.plan.to_json(), "target": task.target, "seconds": task.seconds}
    try:
        worker.stdin.write(json.dumps(told) + "\n")
        worker.stdin.flush()
        for line in worker.stdout:
            said = json.loads(line)
            if "took" in said:
                return float(said["took"])
            if "error" in said:
                raise _named(task, getattr(errors, said["kind"], McrankError), said["error"])
            ledger.round(task, said["round"], said["rounds"])
    except BrokenPipeError:
        pass
    try:
        code = worker.wait(timeout=5)
    except subprocess.TimeoutExpired:
        worker.kill()
        code = worker.wait()
    raise McrankError(
        f"{task.words}: its process ended with code {code}, perhaps for want of memory; what is finished is "
        "kept: run it again with fewer n_jobs."
    )


def _named(task: Task, kind: type[Any], words: str) -> McrankError:
    return kind(f"{task.words}: {words}") if issubclass(kind, McrankError) else McrankError(words)


@contextmanager
def _worker(recipe: dict[str, Any]) -> Iterator[subprocess.Popen[str]]:
    """A worker process that has been told where its data come from; ended when left."""
    one_thread = {
        f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM")
    }
    # Found wherever this process found it, and nothing else from the folder we happen to be in (-P).
    paths = [str(Path(mcrank.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "mcrank.experiments.workers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, **one_thread, "PYTHONPATH": os.pathsep.join(paths)},
    )
    try:
        begin = {"recipe": recipe, "dialects": [asdict(dialect) for dialect in DIALECTS.values()]}
        if process.stdin is not None:
            process.stdin.write(json.dumps(begin) + "\n")
            process.stdin.flush()
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what could not be delivered to a process that is gone
                if pipe is not None:
                    pipe.close()
