"""A fit of a cross-fitting at a worker of a cluster: after each round it asks for the measure of all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mcrank.data.dataset import Dataset
from mcrank.options import Options
from mcrank.rankers.pool import Pool
from mcrank.rounds import SEAT, Rounds

if TYPE_CHECKING:
    from mcrank.rankers.base import Ranker, Trained
    from mcrank.scale.desk import Line


class FarSeat:
    """One of the trainings of a pool that is elsewhere, as its `Rounds` see it."""

    def __init__(self, line: Line, name: str) -> None:
        self._line, self.name, self.asked = line, name, 0
        self.stopped = False

    def mean(self, scores: Any) -> float:
        """Send the scores of the rows this training holds out; return the measure on those of all."""
        answer = self._line.ask([np.asarray(scores, dtype=np.float64).tobytes(), self.asked])
        if answer is None:
            raise KeyboardInterrupt
        value, self.stopped = answer
        return float(value)


def fit_there(
    line: Line, parts: tuple[Dataset, Dataset], twin: Ranker, options: Options
) -> tuple[Ranker, Trained | None]:
    """At a worker: fit a twin of the ranker; return it, and what was trained, None after an early Ctrl-C."""
    token = SEAT.set(FarSeat(line, options["measure"].name))
    try:
        trained = twin._fit(*parts, options | {"n_jobs": line.threads}, None)
    except KeyboardInterrupt:  # which was pressed elsewhere
        return twin, None
    finally:
        SEAT.reset(token)
    return twin, trained._replace(rounds=_plain(trained.rounds))


def _plain(rounds: Rounds) -> Rounds:
    """The same rounds, without those they were measured by."""
    found = Rounds(None, None, 0)
    for name in ("n_rounds", "best_round", "improved", "interrupted", "history", "last"):
        setattr(found, name, getattr(rounds, name))
    return found


def answer_seat(pool: Pool, number: int, said: list[Any]) -> list[Any] | None:
    """Have a pool measure what a training elsewhere sent; None after Ctrl-C."""
    scores, asked = said
    try:
        return [pool.meet(number, np.frombuffer(scores), asked), pool.stopped]
    except KeyboardInterrupt:
        return None
