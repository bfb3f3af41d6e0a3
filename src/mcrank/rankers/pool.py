"""Trainings in step: rows that each of them holds out are measured together after every round."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mcrank.arrays import IntArray
from mcrank.data.dataset import Dataset
from mcrank.errors import MeasureError
from mcrank.metrics.influence import in_mean
from mcrank.metrics.measure import Measure
from mcrank.rounds import SAME, SEAT, Callback, RoundEvent, Shown

_GLANCE = 0.2  # seconds between two looks at whether Ctrl-C was pressed


class Abandoned(Exception):
    """Another of the trainings that belong together has failed."""


class Pool:
    """Trainings whose held-out rows are measured together: one curve, one best round, one end for all.

    Each training is a thread that takes a `seat`; the `Rounds` it makes then meet the others after every
    round. No more than ``n_jobs`` compute at a time.

    Parameters
    ----------
    data : Dataset
        All rows.
    part : ndarray of int64
        Number of the training that holds out each row (grouped order).
    measure : Measure
        What is measured.
    callback : callable or None
        Told a `RoundEvent` after each round of all; a true answer ends training.
    n_jobs : int
        Threads that may compute at a time.

    Attributes
    ----------
    history : list of float
        The measure after each round.
    shown : Shown
        Values of all queries.
    interrupted : bool
        Whether Ctrl-C has ended all trainings.
    """

    def __init__(
        self, data: Dataset, part: IntArray, measure: Measure, callback: Callback, n_jobs: int
    ) -> None:
        self._prepared, self.name = measure.on(data), measure.name
        if np.isnan(self._prepared.mean(np.arange(data.n_rows))):
            raise MeasureError(
                f"{measure.name} has no value on the training data (no query counts); "
                "choose another measure or other data."
            )
        self.history: list[float] = []
        self.shown = Shown()
        self.interrupted = self.stopped = False
        self._rows = [np.flatnonzero(part == number) for number in range(int(part.max()) + 1)]
        self._scores = np.zeros(len(part))
        self._callback, self._began = callback, time.perf_counter()
        self._room, self._meeting = threading.Semaphore(n_jobs), threading.Condition()
        self._present, self._arrived, self._asked, self._failed = len(self._rows), 0, 0, False

    @contextmanager
    def seat(self, number: int) -> Iterator[None]:
        """Let this thread be the training of that number."""
        token = SEAT.set(_Seat(self, number))
        try:
            with self._room:
                yield
        except BaseException:
            self._failed = True
            raise
        finally:
            SEAT.reset(token)
            with self._meeting:
                self._present -= 1
                self._meeting.notify_all()

    def meet(self, number: int, scores: Any, asked: int) -> float:
        """Take the scores of a training's held-out rows after a round; return the measure on all rows."""
        self._scores[self._rows[number]] = scores
        self._room.release()
        try:
            with self._meeting:
                turn = len(self.history)
                self._arrived, self._asked = self._arrived + 1, asked
                self._meeting.notify_all()
                self._meeting.wait_for(lambda: len(self.history) > turn or self._failed)
        finally:
            self._room.acquire()
        if self._failed:
            raise Abandoned
        if self.interrupted:
            raise KeyboardInterrupt
        return self.history[turn]

    def preside(self) -> None:
        """Measure round after round, until all trainings have ended; Ctrl-C ends them after a round."""
        while self._present:
            try:
                with self._meeting:
                    self._meeting.wait_for(self._complete, _GLANCE)
                    if self._complete() and self._present and not self._failed:
                        self._close()
            except KeyboardInterrupt:
                self.interrupted = True
            except BaseException:
                with self._meeting:
                    self._failed = True
                    self._meeting.notify_all()
                raise

    def _complete(self) -> bool:
        return self._present == 0 or 0 < self._arrived >= self._present

    def _close(self) -> None:
        values = self._prepared.per_query(self._scores)
        value = float(self._prepared.mean_of(values))
        self.shown.take(in_mean(self._prepared, values), value > max(self.history, default=-np.inf) + SAME)
        seconds = time.perf_counter() - self._began
        event = RoundEvent(len(self.history) + 1, self._asked, {self.name: value}, seconds)
        if self._callback is not None and not self.interrupted and self._callback(event):
            self.stopped = True
        self._arrived = 0
        self.history.append(value)
        self._meeting.notify_all()


class _Seat:
    """One of the trainings of a pool, as its `Rounds` see it."""

    def __init__(self, pool: Pool, number: int) -> None:
        self._pool, self._number = pool, number
        self.name, self.asked = pool.name, 0

    @property
    def stopped(self) -> bool:
        return self._pool.stopped

    def mean(self, scores: Any) -> float:
        return self._pool.meet(self._number, scores, self.asked)
