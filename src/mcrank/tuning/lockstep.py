"""Folds that train side by side: they meet every few rounds, where all of them together are judged.

What is judged, the mean over the held-out queries of all folds after so many rounds, does not depend on which
fold was faster, nor on how many train at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.rounds import RoundEvent

EVERY = 10  # rounds between two meetings
_WAIT = 0.05  # seconds between two looks of the thread that watches

Told = Callable[[RoundEvent], bool]


class Lockstep:
    """Trains folds on threads and pools what they measure.

    Parameters
    ----------
    weights : sequence of float
        Weight of each fold in the pooled mean: of its held-out queries.
    slots : int
        Folds that may train at a time.
    judge : callable
        Told the pooled curve at each meeting; a true answer ends training.
    over : callable
        Asked after each round; a true answer ends training at once.

    Attributes
    ----------
    stopped : bool
        Whether ``over`` ended training.

    Examples
    --------
    >>> from mcrank.rounds import RoundEvent
    >>> from mcrank.tuning.lockstep import Lockstep
    >>> folds = Lockstep([1.0, 3.0], 2, judge=lambda curve: False)
    >>> def train(tell):
    ...     tell(RoundEvent(1, 1, {"ndcg@10": 0.5}, 0.0))
    >>> folds.run([train, train])
    >>> folds.curve().tolist()
    [0.5]
    """

    def __init__(
        self,
        weights: Sequence[float],
        slots: int,
        judge: Callable[[FloatArray], bool],
        over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.stopped = False
        self._weights = np.array(weights, dtype=np.float64)
        self._values: list[list[float]] = [[] for _ in weights]
        self._judge, self._over = judge, over
        self._slots = threading.Semaphore(slots)
        self._gate = threading.Condition()
        self._waiting: set[int] = set()
        self._done: set[int] = set()
        self._turn = 0
        self._ended = False
        self._failure: BaseException | None = None

    def run(self, jobs: Sequence[Callable[[Told], Any]], watch: Callable[[], Any] = lambda: None) -> None:
        """Run one job for each fold, which tells of its rounds; this thread calls ``watch`` meanwhile."""
        threads = [
            threading.Thread(target=self._work, args=(fold, job), daemon=True)
            for fold, job in enumerate(jobs)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(_WAIT)
                    watch()
        except BaseException:
            self._end(None)
            for thread in threads:
                thread.join()
            raise
        if self._failure is not None:
            raise self._failure

    def curve(self) -> FloatArray:
        """Return the pooled mean after each round that all folds have done.

        A fold that found nothing further to do stays as it is.
        """
        lengths = [len(values) for values in self._values]
        going = [n for fold, n in enumerate(lengths) if fold not in self._done]
        rounds = min(going) if going else max(lengths)
        if min(lengths) == 0:
            return np.empty(0)
        table = [values[:rounds] + values[-1:] * (rounds - len(values)) for values in self._values]
        pooled: FloatArray = self._weights @ np.array(table) / self._weights.sum()
        return pooled

    def _work(self, fold: int, job: Callable[[Told], Any]) -> None:
        with self._slots:
            try:
                job(lambda event: self._after(fold, event))
            except BaseException as error:  # raised again by the thread that started this one
                self._end(error)
        with self._gate:
            self._done.add(fold)
            self._meet()

    def _after(self, fold: int, event: RoundEvent) -> bool:
        self._values[fold] += event.scores.values()
        if self._over():
            self.stopped = True
            self._end(None)
        if self._ended or (event.round % EVERY and event.round < event.rounds):
            return self._ended
        self._slots.release()
        try:
            with self._gate:
                turn = self._turn
                self._waiting.add(fold)
                self._meet()
                self._gate.wait_for(lambda: turn != self._turn or self._ended)
        finally:
            self._slots.acquire()
        return self._ended

    def _meet(self) -> None:
        """Judge when nobody is under way any more; the gate is held."""
        if not self._waiting or len(self._waiting | self._done) < len(self._values) or self._ended:
            return
        try:
            self._ended = bool(self._judge(self.curve()))
        except BaseException as error:
            self._failure, self._ended = self._failure or error, True
        self._waiting.clear()
        self._turn += 1
        self._gate.notify_all()

    def _end(self, failure: BaseException | None) -> None:
        with self._gate:
            self._failure = self._failure or failure
            self._ended = True
            self._gate.notify_all()
