"""Which trial comes next, how far all of them are, and how long they will take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mcrank.experiments.trial import Trial

_PATIENCE = 0.1  # seconds between two calls of the callback while nothing is finished


@dataclass(frozen=True, eq=False)
class Task:
    """A trial to run, where its files go, and its fold by name."""

    trial: Trial
    fold: str
    target: str
    seconds: str

    @property
    def words(self) -> str:
        """What an error or a progress line calls it."""
        point = ", ".join(f"{name}={value}" for name, value in self.trial.point.items())
        return f"{self.trial.system} on {self.fold}" + (f" ({point})" if point else "")


@dataclass(frozen=True)
class Progress:
    """What the callback of `mcrank.compare` is told.

    Attributes
    ----------
    done, trials : int
        Trials finished (those of an earlier run included), and trials in all.
    running : tuple of str
        What is being trained, and its round.
    seconds : float
        Time since the comparison began.
    seconds_left : float or None
        About how long it will take; None before anything is known.
    """

    done: int
    trials: int
    running: tuple[str, ...]
    seconds: float
    seconds_left: float | None


class _Rounds:
    """How far a task is; rounds are timed from the first one told, as data are read and binned before it."""

    def __init__(self, since: float) -> None:
        self.since = since
        self.done = self.of = 0
        self._first: tuple[float, int] | None = None

    def note(self, now: float, done: int, of: int) -> None:
        self.done, self.of = done, of
        self._first = self._first or (now, done)

    def whole(self, now: float) -> float | None:
        """Seconds the task takes in all; None before a second round tells."""
        if self._first is None or self.done <= self._first[1]:
            return None
        then, before = self._first
        return (then - self.since) + (now - then) * (self.of - before) / (self.done - before)


class Schedule:
    """Tasks waiting, running and done.

    A worker stays with the fold it has while there are tasks of it: first those of systems not yet timed,
    then the longest. Then it goes where most is left to do for each worker. So no worker loads a fold twice,
    and two workers load the same one only where one helps the other out.
    """

    def __init__(
        self, tasks: Sequence[Task], done_before: int, callback: Callable[[Progress], Any] | None
    ) -> None:
        self._waiting = list(tasks)
        self._running: dict[Task, _Rounds] = {}
        self._took: dict[str, list[float]] = {}
        self._done = done_before
        self._trials = done_before + len(tasks)
        self._callback = callback
        self._began = time.monotonic()
        self._said = 0.0
        self._lock = threading.RLock()
        self.jobs = 1
        self.failure: Exception | None = None

    def take(self, fold: int | None = None) -> Task | None:
        """Return the next task for a worker that has ``fold``; None if there is none, or one has failed."""
        with self._lock:
            if self.failure is not None or not self._waiting:
                return None
            there = [task for task in self._waiting if task.trial.fold == fold]
            if not there:
                next_fold = self._busiest()
                there = [task for task in self._waiting if task.trial.fold == next_fold]
            started = {task.trial.system for task in self._running} | set(self._took)
            fresh = [task for task in there if task.trial.system not in started]
            task = fresh[0] if fresh else max(there, key=self._expected)  # the first of equals
            self._waiting.remove(task)
            self._running[task] = _Rounds(time.monotonic())
            return task

    def _busiest(self) -> int:
        """The fold with the most work waiting for each worker at it, one more counted."""
        work: dict[int, float] = {}
        for task in self._waiting:
            work[task.trial.fold] = work.get(task.trial.fold, 0.0) + (self._expected(task) or 1.0)
        at_work = [task.trial.fold for task in self._running]
        return max(work, key=lambda fold: work[fold] / (1 + at_work.count(fold)))

    def round(self, task: Task, done: int, of: int) -> None:
        """Note how far a task is."""
        with self._lock:
            self._running[task].note(time.monotonic(), done, of)

    def finished(self, task: Task, took: float) -> None:
        """Note that a task is done."""
        with self._lock:
            del self._running[task]
            self._took.setdefault(task.trial.system, []).append(took)
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
                f"{task.words}, round {at.done}/{at.of}" if at.of else task.words
                for task, at in self._running.items()
            )
            progress = Progress(self._done, self._trials, running, now - self._began, self._left())
        self._callback(progress)

    def _expected(self, task: Task) -> float:
        """Seconds a task will take: as others of its system did, else as all did."""
        known = self._took.get(task.trial.system) or [t for took in self._took.values() for t in took]
        return sum(known) / len(known) if known else 0.0

    def _left(self) -> float | None:
        now = time.monotonic()
        left = 0.0
        wholes = []  # of what is running, as far as rounds tell
        for task, at in self._running.items():
            whole = at.whole(now) or self._expected(task)
            if not whole:
                return None
            wholes.append(whole)
            left += max(0.0, whole - (now - at.since))
        if self._waiting and not self._took and not wholes:
            return None
        guess = sum(wholes) / len(wholes) if wholes else 0.0  # before anything is done
        return (left + sum(self._expected(task) or guess for task in self._waiting)) / self.jobs
