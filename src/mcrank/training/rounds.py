"""Rounds of a ranker with a loop of its own: the validation measure, the best round, and when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.boosting.boost import SAME, RoundEvent
from mcrank.data.dataset import Dataset
from mcrank.errors import MeasureError

FloatArray = npt.NDArray[np.float64]


class Rounds:
    """Keeps count of rounds (trees have their own in the boosting loop).

    Parameters
    ----------
    valid : Dataset or None
        Data held out.
    options : dict
        Checked options of a ranker, with the measure parsed.
    rounds : int
        Rounds asked for.
    callback : callable or None
        Told a `RoundEvent` after each round; a true answer ends training.
    patience : int or None
        Stop after so many rounds without a better validation measure.

    Attributes
    ----------
    n_rounds : int
        Rounds done.
    best_round : int
        Round with the best validation measure, the first of equals; without validation data the last.
    improved : bool
        Whether the last round is the best so far: the time to keep a copy of what it learned.
    history : dict of list
        Value of each measure after each round.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.training.rounds import Rounds
    >>> valid = mcrank.Dataset([[0.0], [1.0]], [0, 1], [1, 1])
    >>> rounds = Rounds(valid, {"measure": mcrank.NDCG(k=10)}, rounds=5, callback=None, patience=1)
    >>> rounds.after([0.0, 1.0]), rounds.after([1.0, 0.0])
    (False, True)
    >>> rounds.best_round, rounds.improved
    (1, False)
    """

    def __init__(
        self,
        valid: Dataset | None,
        options: dict[str, Any],
        rounds: int,
        callback: Callable[[RoundEvent], Any] | None,
        patience: int | None = None,
    ) -> None:
        self.n_rounds = 0
        self.best_round = 0
        self.improved = False
        self.history: dict[str, list[float]] = {}
        self._asked, self._callback, self._patience = rounds, callback, patience
        self._began = time.perf_counter()
        self._best = -np.inf
        self._name = options["measure"].name
        self._bound = None if valid is None else options["measure"].on(valid)

    def after(self, valid_scores: Any = None, **values: float) -> bool:
        """Take the scores of the validation rows (grouped order) after a round; True when it is time to stop.

        Further named ``values`` go into the history.
        """
        number = self.n_rounds + 1
        measured: dict[str, float] = {}
        if self._bound is None:
            self.improved = True
        else:
            value = self._measure(valid_scores)
            measured[self._name] = value
            self.improved = value > self._best + SAME
        if self.improved:
            self.best_round = number
            self._best = measured.get(self._name, self._best)
        for name, value in (measured | values).items():
            self.history.setdefault(name, []).append(value)
        self.n_rounds = number  # last: an interrupted measurement leaves the round before it
        event = RoundEvent(self.n_rounds, self._asked, measured, time.perf_counter() - self._began)
        stop = self._callback is not None and bool(self._callback(event))
        tired = self._patience is not None and self.n_rounds - self.best_round >= self._patience
        return stop or (self._bound is not None and tired)

    def _measure(self, scores: FloatArray) -> float:
        assert self._bound is not None
        value = float(self._bound.mean(scores))
        if np.isnan(value):
            raise MeasureError(
                f"{self._name} has no value on the validation data (no query counts); "
                "choose another measure or other data."
            )
        return value
