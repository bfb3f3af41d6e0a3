"""Rounds of training: the validation measure, the best round, when to stop, and what Ctrl-C leaves.

The one watch of all loops: boosting of trees has it, and so has every ranker with a loop of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.data.grades import Grades
from mcrank.errors import MeasureError, OptionError
from mcrank.metrics.influence import in_mean
from mcrank.metrics.measure import Measure
from mcrank.metrics.prepared import PreparedMeasure
from mcrank.sums import ALONE, Sums

# Values of a measure this near are equal: dialects that differ by a constant then choose the same round.
SAME = 1e-12


@dataclass(frozen=True)
class RoundEvent:
    """What a progress callback is told after each round.

    Attributes
    ----------
    round, rounds : int
        Rounds done, and rounds asked for.
    scores : dict
        Value of each measure on the validation data; empty without it.
    seconds : float
        Time since training began.
    note : str
        On a cluster, which worker the others wait for, if they do.
    """

    round: int
    rounds: int
    scores: dict[str, float]
    seconds: float
    note: str = ""


Callback = Callable[[RoundEvent], Any] | None


class Seat(Protocol):
    """A place among trainings that are measured together; see `mcrank.rankers.pool`."""

    name: str
    asked: int

    @property
    def stopped(self) -> bool:
        """Whether it is time for all of them to stop."""

    def mean(self, scores: Any) -> float:
        """Take the scores of the rows this training holds out; return the measure on those of all."""


SEAT: ContextVar[Seat | None] = ContextVar("seat", default=None)


class _Watch:
    """The mean of a measure on validation data, of which each of several places has some queries."""

    def __init__(self, valid: Dataset, measure: Measure, sums: Sums) -> None:
        self._own, self._sums = measure.on(valid), sums
        self.values = np.empty(0)  # of all queries, when they were measured last
        self._whole: PreparedMeasure = self._own
        if sums.size > 1:
            sizes = np.concatenate(sums.gather(valid.sizes))
            grades = np.concatenate(sums.gather(valid.y))
            weight = None
            if valid.query_weight is not None:
                weight = np.concatenate(sums.gather(valid.query_weight))
            # Which of them count, and how much: their ids do not matter.
            self._whole = measure.on(Grades(grades, np.repeat(np.arange(len(sizes)), sizes), None, weight))

    def mean(self, scores: Any) -> float:
        values = np.concatenate(self._sums.gather(self._own.per_query(scores)))
        self.values = in_mean(self._whole, values)
        return float(self._whole.mean_of(values))


class Shown:
    """Values of the queries held out in the first, the best and the last round: what could they show?"""

    _SURE = 2.8  # standard errors of a difference that a test finds in four of five cases, of many queries

    def __init__(self) -> None:
        self._first: FloatArray | None = None
        self._best: FloatArray | None = None
        self._last: FloatArray | None = None

    def take(self, values: FloatArray, improved: bool) -> None:
        """Take the values of the queries after a round, NaN for those that do not count."""
        self._last = values
        self._first = values if self._first is None else self._first
        self._best = values if improved else self._best

    @property
    def queries(self) -> int:
        """Queries that count; 0 where nothing was measured."""
        return 0 if self._last is None else int((~np.isnan(self._last)).sum())

    @property
    def smallest_difference(self) -> float | None:
        """Smallest difference to another round that a paired t test on these queries finds in four of five
        cases, nearly: by how much the best round differs from the last, or the first. None where it does not.

        Examples
        --------
        >>> import numpy as np
        >>> from mcrank.rounds import Shown
        >>> shown = Shown()
        >>> shown.take(np.zeros(20), True)
        >>> shown.take(np.tile([-0.1, 0.3], 10), True)
        >>> round(shown.smallest_difference, 2)  # `mcrank.stats.smallest_difference` says 0.14
        0.14
        """
        n = self.queries
        if self._best is None or n < 2:
            return None
        for other in (self._last, self._first):
            apart = self._best - other  # type: ignore[operator]
            spread = float(apart[~np.isnan(apart)].std(ddof=1))
            if spread > SAME:
                return self._SURE * spread * float(np.sqrt((n + 2) / (n - 1) / n))
        return None


class Rounds:
    """Keeps count of rounds.

    Parameters
    ----------
    valid : Dataset or None
        Data held out.
    measure : Measure or None
        What is measured on it; None only without such data.
    rounds : int
        Rounds asked for.
    callback : callable or None
        Told a `RoundEvent` after each round; a true answer ends training.
    patience : int or None
        Stop after so many rounds without a better validation measure.
    sums : Sums
        Who adds up, where each of several places has some queries of the validation data.

    Attributes
    ----------
    n_rounds : int
        Rounds done.
    best_round : int
        Round with the best validation measure, the first of equals; without validation data the last.
    improved : bool
        Whether the last round is the best so far: the time to keep a copy of what it learned.
    interrupted : bool
        Whether Ctrl-C ended training.
    history : dict of list
        Value of each measure after each round.
    last : dict
        What was measured after the last one.
    shown : Shown
        Values of the queries held out, where they were measured here.
    notes : list of str
        What whoever called `fit` should know.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.rounds import Rounds
    >>> valid = mcrank.Dataset([[0.0], [1.0]], [0, 1], [1, 1])
    >>> rounds = Rounds(valid, mcrank.NDCG(k=10), rounds=5, patience=1)
    >>> rounds.after([0.0, 1.0]), rounds.after([1.0, 0.0])
    (False, True)
    >>> rounds.best_round, rounds.improved
    (1, False)
    """

    def __init__(
        self,
        valid: Dataset | None,
        measure: Measure | None,
        rounds: int,
        callback: Callback = None,
        patience: int | None = None,
        sums: Sums = ALONE,
    ) -> None:
        self.n_rounds = 0
        self.best_round = 0
        self.improved = False
        self.interrupted = False
        self.history: dict[str, list[float]] = {}
        self._asked, self._callback, self._patience = rounds, callback, patience
        self._began = time.perf_counter()
        self._best = -np.inf
        self.last: dict[str, float] = {}
        self.shown, self.notes = Shown(), list[str]()
        self._watch: _Watch | Seat | None = None
        self._seat = SEAT.get()
        if self._seat is not None and valid is not None:
            self._seat.asked, self._watch, self._name = rounds, self._seat, self._seat.name
            return
        if valid is None or measure is None:
            return
        self._watch, self._name = _Watch(valid, measure, sums), measure.name
        # Any scores do: whether a query counts is not a matter of the ranking.
        if np.isnan(self._watch.mean(np.arange(valid.n_rows))):
            raise MeasureError(
                f"{measure.name} has no value on the validation data (no query counts); "
                "choose another measure or other data."
            )

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """Let Ctrl-C end a loop with the rounds already done; it is passed on if there are none."""
        try:
            yield
        except KeyboardInterrupt:
            if self.best_round == 0:
                raise
            self.interrupted = True
            for values in self.history.values():
                del values[self.n_rounds :]  # of the round under way

    def after(self, valid_scores: Any = None, **values: float) -> bool:
        """Take the scores of the validation rows (grouped order) after a round; True when it is time to stop.

        Further named ``values`` go into the history.
        """
        measured = self.replay(valid_scores, **values)
        event = RoundEvent(self.n_rounds, self._asked, measured, time.perf_counter() - self._began)
        stop = self._callback is not None and _stops(self._callback(event))
        stop |= self._seat is not None and self._seat.stopped
        tired = self._patience is not None and self.n_rounds - self.best_round >= self._patience
        return stop or (self._watch is not None and tired)

    def replay(self, valid_scores: Any = None, **values: float) -> dict[str, float]:
        """Take the scores after a round that was there before training began; return what was measured."""
        measured = {} if self._watch is None else {self._name: self._watch.mean(valid_scores)}
        self.tell(measured, **values)
        if isinstance(self._watch, _Watch):
            self.shown.take(self._watch.values, self.improved)
        return measured

    def tell(self, measured: dict[str, float], **values: float) -> None:
        """Take what was measured on validation data after a round, here or elsewhere."""
        number, best, self.improved = self.n_rounds + 1, self._best, not measured
        for value in measured.values():
            self.improved = value > best + SAME
            best = max(best, value)
        for name, value in (measured | values).items():
            self.history.setdefault(name, []).append(value)
        self.last = measured
        # Last, and in this order: an interruption before leaves the rounds before this one, whole.
        self.n_rounds = number
        if self.improved:
            self._best, self.best_round = best, number


def _stops(answer: Any) -> bool:
    """Whether what a callback returned asks for training to stop."""
    try:
        return bool(answer)
    except (TypeError, ValueError):  # an array, a frame, a missing value
        raise OptionError(
            f"the callback must return True to stop, False or None to go on, got {type(answer).__name__}."
        ) from None
