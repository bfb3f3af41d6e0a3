"""A trial: one set of options, trained on all folds at once and measured on what each of them holds out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.data.folds import deal
from mcrank.errors import DataError, McrankError, MeasureError
from mcrank.metrics.measure import Measure
from mcrank.rankers.base import Ranker
from mcrank.rankers.few import silently
from mcrank.rankers.stored import measure_of
from mcrank.rounds import RoundEvent
from mcrank.tuning.lockstep import EVERY, Lockstep, Told
from mcrank.tuning.space import Space

if TYPE_CHECKING:
    from mcrank.scale.desk import Desk, Line

PATIENCE = 50  # rounds without a better pooled value, unless early_stopping_rounds says otherwise
_REACH = 5  # rounds on each side that a value is averaged over: single rounds are noise

State = Literal["complete", "pruned", "failed", "cut"]
Prune = Callable[[int, float], bool]


@dataclass(frozen=True)
class Trial:
    """What became of one set of options.

    Attributes
    ----------
    number : int
        Its place in the study.
    options : dict
        Values out of the ranges.
    state : {"complete", "pruned", "failed", "cut"}
        Pruned: stopped after few rounds for being behind others; cut: the time was over.
    value : float or None
        Best pooled held-out measure, averaged over neighbouring rounds.
    rounds : int
        The round it was reached at.
    reported : list of (int, float)
        Best value so far, at each meeting of the folds: what pruning goes by.
    curve : list of float
        Pooled held-out measure after each round.
    error : str
        Why it failed.
    """

    number: int
    options: Mapping[str, Any]
    state: State
    value: float | None = None
    rounds: int = 0
    reported: list[tuple[int, float]] = field(default_factory=list)
    curve: list[float] = field(default_factory=list)
    error: str = ""


def smoothed(curve: FloatArray) -> FloatArray:
    """Return the mean of each round and its neighbours, up to five on each side.

    Fewer of a curve so short that every round would have all the others as its neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.tuning.trial import smoothed
    >>> smoothed(np.array([0.1] * 6 + [0.7])).round(2).tolist()
    [0.1, 0.19, 0.19, 0.19, 0.19, 0.19, 0.2]
    >>> smoothed(np.array([0.1, 0.2, 0.3])).round(2).tolist()
    [0.15, 0.2, 0.25]
    """
    n = len(curve)
    reach = _REACH if n > _REACH + 1 else (n - 1) // 2
    sums = np.r_[0.0, np.cumsum(curve)]
    first, last = np.maximum(np.arange(n) - reach, 0), np.minimum(np.arange(n) + reach + 1, n)
    return np.asarray((sums[last] - sums[first]) / (last - first))


class Trials:
    """Runs trials on the folds of a data set, which are cut once, and so binned once for all trials.

    Parameters
    ----------
    data : Dataset
        What is cut into folds, by query.
    space : Space
        The ranker and what is varied.
    folds : int
        How many.
    seed : int
        Of the cut.
    n_jobs : int
        Threads; folds train at the same time as far as these go, and share out what is left.
    desk : Desk, optional
        Workers of a cluster to train folds on instead.
    """

    def __init__(
        self, data: Dataset, space: Space, folds: int, seed: int, n_jobs: int, desk: Desk | None = None
    ) -> None:
        self.data, self.space, self._desk = data, space, desk
        options = space.kind(**space.fixed).checked_options()
        self.measure: Measure = measure_of(options)
        if data.n_queries < 2 * folds:
            raise DataError(
                f"tune needs at least two queries for each of its {folds} folds, got {data.n_queries} that "
                "are not held out; give more data, fewer folds, or holdout=0."
            )
        part = deal(data, np.full(folds, 1.0 / folds), seed)
        self.parts = [(data.select(part != fold), data.select(part == fold)) for fold in range(folds)]
        self.weights = [counted_weight(self.measure, held) for _, held in self.parts]
        if min(self.weights) <= 0.0:
            raise DataError(
                f"{self.measure.name} has no value on the held-out queries of some fold (no query counts); "
                "give more data, fewer folds, or another measure."
            )
        self._slots = min(folds, n_jobs) if desk is None else folds
        self._threads = max(1, n_jobs // folds)
        self._patience = options.get("early_stopping_rounds") or PATIENCE

    def run(
        self,
        number: int,
        options: Mapping[str, Any],
        prune: Prune = lambda step, value: False,
        over: Callable[[], bool] = lambda: False,
        watch: Callable[[FloatArray], Any] = lambda curve: None,
    ) -> Trial:
        """Train on all folds and return what became of it; ``prune`` and ``over`` may end it."""
        reported: list[tuple[int, float]] = []
        pruned = False

        def judge(curve: FloatArray) -> bool:
            nonlocal pruned
            smooth = smoothed(curve)
            best = int(smooth.argmax())
            reported.append((len(curve), float(smooth[best])))
            pruned = prune(*reported[-1]) and len(curve) < self.space.most_rounds
            return pruned or len(curve) - best - 1 >= self._patience

        folds = Lockstep(self.weights, self._slots, judge, over)
        jobs = [lambda tell, fold=fold: self._train(fold, options, tell) for fold in range(len(self.parts))]
        try:
            folds.run(jobs, lambda: watch(folds.curve()))
        except McrankError as error:
            return Trial(number, options, "failed", error=str(error))
        curve = folds.curve()
        if not len(curve):
            return Trial(number, options, "cut")
        smooth = smoothed(curve)
        best = int(smooth.argmax())
        state: State = "cut" if folds.stopped else "pruned" if pruned else "complete"
        return Trial(number, options, state, float(smooth[best]), best + 1, reported, curve.tolist())

    def _train(self, fold: int, options: Mapping[str, Any], tell: Told) -> None:
        """Train on one fold, here or on a worker of a cluster."""
        run: dict[str, Any] = {"n_jobs": self._threads}
        if self.space.rounds is not None and "early_stopping_rounds" in self.space.kind.declared_options:
            run["early_stopping_rounds"] = None
        work = Fold(self.space.ranker(options, **run), self.space.rounds is not None, self.measure)
        if self._desk is None:
            work.train(self.parts[fold], tell)
        else:
            data = ("fold", fold), lambda: self.parts[fold]
            self._desk.run(fold, train_there, data, work, reply=lambda said: _tell_all(said, tell))


@dataclass(frozen=True)
class Fold:
    """What is trained on a fold, and what is measured there."""

    ranker: Ranker
    has_rounds: bool
    measure: Measure

    def train(self, parts: tuple[Dataset, Dataset], tell: Told) -> None:
        """Train; whoever has no rounds, or did none, tells of its one value."""
        train, held = parts
        if self.has_rounds:
            with silently():  # one part of the queries chooses nothing
                self.ranker.fit(train, valid=held, callback=tell)
            if self.ranker.n_rounds_ > 0:
                return
        else:
            self.ranker.fit(train)
        value = float(self.measure.on(held).mean(held.to_grouped(self.ranker.predict(held))))
        tell(RoundEvent(1, 1, {self.measure.name: value}, 0.0))


def train_there(line: Line, parts: tuple[Dataset, Dataset], work: Fold) -> None:
    """At a worker: train on a fold; what is measured is told where the folds meet, and at the end."""
    untold: list[list[Any]] = []

    def tell(event: RoundEvent) -> bool:
        untold.append([event.round, event.rounds, event.scores, event.seconds])
        if event.round % EVERY and event.round < event.rounds:
            return False
        events, untold[:] = list(untold), []
        return bool(line.ask(events))

    work.ranker.set_params(n_jobs=line.threads)
    work.train(parts, tell)
    if untold:
        line.ask(untold)


def _tell_all(said: list[list[Any]], tell: Told) -> bool:
    """Tell of rounds of a worker, all of them; return whether to stop."""
    answers = [tell(RoundEvent(*event)) for event in said]
    return any(answers)


def counted_weight(measure: Measure, data: Dataset) -> float:
    """Return the weight of the queries that count in the mean of a measure.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.tuning.trial import counted_weight
    >>> data = mcrank.Dataset([[0.0], [1.0], [2.0]], y=[0, 1, 1], qid=[1, 1, 2])
    >>> counted_weight(mcrank.NDCG(k=10), data)
    2.0
    """
    prepared = measure.on(data)
    counts = ~np.isnan(prepared.counted(np.zeros(data.n_queries)))
    return float(prepared.weights[counts].sum())


def query_values(measure: Measure, data: Dataset, scores: FloatArray) -> dict[Any, float]:
    """Return the value of each query that counts, by its id; where queries have weights, what each makes of
    the weighted mean (`PreparedMeasure.evened`), so that the plain mean of them is the measure.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.tuning.trial import query_values
    >>> data = mcrank.Dataset([[0.0], [1.0]], y=[0, 1], qid=["a", "a"])
    >>> query_values(mcrank.NDCG(k=10), data, [0.0, 1.0])
    {'a': 1.0}
    """
    prepared = measure.on(data)
    values = prepared.evened(prepared.per_query(data.to_grouped(np.asarray(scores))))
    found = {q: float(v) for q, v in zip(data.qids.tolist(), values.tolist(), strict=True) if v == v}
    if not found:
        raise MeasureError(f"{measure.name} has no value on the data held out (no query counts).")
    return found
