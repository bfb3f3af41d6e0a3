"""`mcrank.learning_curve`: how much is gained by more queries, and how much by deeper judgments?

A part of the queries is held out, whole. Of the others, a ranker is trained on nested shares, and on all of
them with nested shares of each query's rows. Both cost judgments; which buys more is seen where both doubled
last. All is done again with other cuts, so that chance has a size.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from mcrank.arrays import FloatArray, IntArray
from mcrank.data.alignment import with_parts
from mcrank.data.dataset import Dataset
from mcrank.data.folds import split
from mcrank.data.read import read
from mcrank.errors import DataError, OptionError
from mcrank.options import checked
from mcrank.rankers.base import Ranker
from mcrank.rankers.few import silently
from mcrank.rankers.stored import measure_of
from mcrank.stats.two import interval_of
from mcrank.threads import check_jobs
from mcrank.tuning.power_law import Forecast, forecast
from mcrank.tuning.space import configured
from mcrank.tuning.trial import PATIENCE, query_values

SHARES = (0.125, 0.25, 0.5, 1.0)
_VALID = 0.2  # share of the training queries that choose the round
_LEAST = 5  # queries of the smallest share
_DRAWS = 2000


@dataclass(frozen=True)
class Point:
    """A ranker trained on a share of the queries and of each query's rows.

    Attributes
    ----------
    queries, rows : float
        Shares of the training queries, and of the rows of each.
    n_queries, n_rows : float
        How many those were, mean over the repeats.
    mean, low, high : float
        Measure on the held-out queries with its 95 % interval over queries and repeats.
    """

    queries: float
    rows: float
    n_queries: float
    n_rows: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Gain:
    """What the last share gained over the one before, with its 95 % interval over queries and repeats."""

    what: str
    gain: float
    low: float
    high: float


@dataclass(frozen=True)
class LearningCurve:
    """What `learning_curve` found.

    Attributes
    ----------
    ranker, measure : str
        What was trained, and how it was measured.
    points : list of Point
        Every share of queries with all rows, then every share of rows with all queries.
    gains : list of Gain
        Of the last share over the one before: more queries, and more rows of the same queries; and the
        first minus the second.
    forecast : Forecast or None
        What twice the queries would give, where the curve foretold its own last point; else None.
    forecast_words : str
        Why, in a sentence.
    held_out, repeats, seed : int
        Queries held out in each repeat, how many repeats, and their seed.
    """

    ranker: str
    measure: str
    points: list[Point]
    gains: list[Gain]
    forecast: Forecast | None
    forecast_words: str
    held_out: int
    repeats: int
    seed: int
    notes: list[str] = field(default_factory=list)

    @property
    def step(self) -> str:
        """What the last two shares are compared for: a doubling, or whatever it is between them."""
        return "last doubling" if self.before == 0.5 else f"step from a share of {self.before:g} to all"

    @property
    def before(self) -> float:
        """The share before the last, which is all."""
        return self.points[(len(self.points) + 1) // 2 - 2].queries

    @property
    def sentence(self) -> str:
        """Which buys more, and whether that is sure."""
        queries, rows, lead = self.gains
        first = (
            f"The {self.step} of the queries gained {queries.gain:+.4f} {self.measure} "
            f"[{queries.low:+.4f}, {queries.high:+.4f}], that of the rows of each query {rows.gain:+.4f} "
            f"[{rows.low:+.4f}, {rows.high:+.4f}]"
        )
        if lead.low > 0:
            words = "more queries buy more"
        elif lead.high < 0:
            words = "deeper judgments buy more"
        else:
            words = "which buys more cannot be told from this data"
        if queries.low <= 0 and rows.low <= 0:
            words += "; neither is shown to gain anything"
        return f"{first}: {words}. {self.forecast_words}"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "sentence": self.sentence}


def learning_curve(
    data: Dataset | str | os.PathLike[str],
    ranker: str | type[Ranker] | Ranker = "mcrank",
    *,
    shares: Sequence[float] = SHARES,
    holdout: float = 0.3,
    repeats: int = 3,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    callback: Callable[[int, int], Any] | None = None,
) -> LearningCurve:
    """Train on growing shares of the queries, and of each query's rows, and measure what each doubling buys.

    Within a share, a fifth of the queries chooses the round. Rows of a query are drawn at random: judgments
    that a pool or a first ranking chose would lose other rows than these. Held-out queries keep all rows.

    Parameters
    ----------
    data : Dataset or path
        Queries with grades.
    ranker : str, type or Ranker
        What to train: a name of `mcrank rankers`, a class, or a ranker that is not fitted.
    shares : sequence of float
        Rising to 1; the last two are compared, so half and all make it a doubling.
    holdout : float
        Share of the queries that is measured on, drawn anew in each repeat.
    repeats : int
        How often all is done, with other cuts.
    options : mapping, optional
        Options of the ranker.
    seed, n_jobs : int
        Seed of all cuts; threads.
    callback : callable, optional
        Told how many fits of how many are done.

    Examples
    --------
    >>> import mcrank
    >>> data = mcrank.make_artificial(60, 1, 1, docs_per_query=10, n_features=5, seed=1).train
    >>> found = mcrank.learning_curve(
    ...     data, "regression", shares=(0.5, 1.0), repeats=2, options={"n_estimators": 10}, n_jobs=1
    ... )
    >>> [(point.queries, point.rows) for point in found.points]
    [(0.5, 1.0), (1.0, 1.0), (1.0, 0.5)]
    """
    steps = _checked(shares, holdout, repeats, seed)
    kind, given = configured(ranker, options or {}, "learning_curve")
    whole = data if isinstance(data, Dataset) else read(data, n_jobs=n_jobs)
    least = int(np.ceil(max(_LEAST / (1 - holdout) / steps[0], 2 / holdout)))
    if whole.n_queries < least:
        raise DataError(
            f"learning_curve with a smallest share of {steps[0]:g} and {holdout:g} held out needs at least "
            f"{least} queries, got {whole.n_queries}; give more data, or shares that begin higher."
        )
    trainer = _Trainer(kind, given, check_jobs(n_jobs, "learning_curve"))
    plan = [(s, 1.0) for s in steps] + [(1.0, s) for s in steps[:-1]]
    found: dict[tuple[float, float], list[dict[Any, float]]] = {of: [] for of in plan}
    sizes: dict[tuple[float, float], list[tuple[int, int]]] = {of: [] for of in plan}
    held = 0
    for repeat in range(repeats):
        train, test = split(whole, 1.0 - holdout, holdout, seed=seed + repeat)
        held = test.n_queries
        cut = Nested(train, seed + repeat)
        for number, of in enumerate(plan):
            part = cut.part(*of)
            found[of].append(trainer.values(part, test, seed + repeat))
            sizes[of].append((part.n_queries, part.n_rows))
            if callback is not None:
                callback(repeat * len(plan) + number + 1, repeats * len(plan))
    points = [_point(of, found[of], sizes[of], seed) for of in plan]
    best, fewer, shallow = (found[of] for of in (plan[len(steps) - 1], plan[len(steps) - 2], plan[-1]))
    gains = [
        _gain("queries", best, fewer, seed),
        _gain("rows of each query", best, shallow, seed),
        _gain("queries over rows", shallow, fewer, seed),
    ]
    ahead, words = forecast([(p.n_queries, p.mean, p.low, p.high) for p in points[: len(steps)]])
    return LearningCurve(
        kind.name, trainer.measure.name, points, gains, ahead, words, held, repeats, seed, trainer.notes
    )


def _checked(shares: Any, holdout: Any, repeats: Any, seed: Any) -> tuple[float, ...]:
    try:
        steps = tuple(float(share) for share in shares)
    except (TypeError, ValueError):
        steps = ()
    rising = all(a < b for a, b in pairwise(steps))
    if len(steps) < 2 or not rising or steps[0] <= 0 or steps[-1] != 1.0:
        raise OptionError(
            f"shares of learning_curve must be at least two, rising from above 0 to 1, got {shares!r}."
        )
    checked(holdout, "holdout", "learning_curve", float, low=0.05, high=0.9)
    checked(repeats, "repeats", "learning_curve", low=1)
    checked(seed, "seed", "learning_curve", low=0)
    return steps


class Nested:
    """Shares of a data set in which a smaller one is always part of a larger one."""

    def __init__(self, data: Dataset, seed: int) -> None:
        stream = np.random.Generator(np.random.PCG64(seed))
        self._data = data
        self._queries = stream.permutation(data.n_queries)
        self._rows = stream.random(data.n_rows)

    def part(self, queries: float, rows: float) -> Dataset:
        """Return a share of the queries, and of the rows of each: two at least, where it has them."""
        n = max(_LEAST, round(queries * self._data.n_queries))
        chosen = np.sort(self._queries[:n])
        data = self._data.select(chosen)
        if rows >= 1.0:
            return data
        drawn = np.concatenate([self._rows[s:e] for s, e in self._bounds[chosen].tolist()])
        return _shallow(data, drawn, rows)

    @property
    def _bounds(self) -> IntArray:
        return np.column_stack((self._data.offsets[:-1], self._data.offsets[1:]))


def _shallow(data: Dataset, drawn: FloatArray, share: float) -> Dataset:
    """Keep a share of the rows of each query, those with the smallest numbers drawn."""
    kept = [
        s + np.sort(np.argsort(drawn[s:e], kind="stable")[: max(min(2, e - s), round(share * (e - s)))])
        for s, e in pairwise(data.offsets.tolist())
    ]
    rows = np.concatenate(kept)
    given = {name: getattr(data, name) for name in ("X", "y", "weight", "doc_ids")}
    of_rows = {name: values[rows] for name, values in given.items() if values is not None}
    offsets = np.r_[0, np.cumsum([len(one) for one in kept])].astype(np.int64)
    return with_parts(data, **of_rows, offsets=offsets, source_rows=None)


class _Trainer:
    """Trains and measures."""

    def __init__(self, kind: type[Ranker], options: Mapping[str, Any], n_jobs: int) -> None:
        self._kind, self._options, self._n_jobs = kind, dict(options), n_jobs
        self.measure = measure_of(kind(**options).checked_options())
        self.notes: list[str] = []
        if "early_stopping_rounds" in kind.declared_options:
            self._options = {"early_stopping_rounds": PATIENCE, **self._options}

    def values(self, data: Dataset, test: Dataset, seed: int) -> dict[Any, float]:
        """Values of the test queries by a ranker trained on the data; a part of it chooses the round."""
        train, valid = split(data, 1.0 - _VALID, _VALID, seed=seed)
        with silently():  # small data are what it is about
            ranker = self._kind(**{**self._options, "n_jobs": self._n_jobs}).fit(train, valid=valid)
        return query_values(self.measure, test, ranker.predict(test))


def _point(
    of: tuple[float, float], values: list[dict[Any, float]], sizes: list[tuple[int, int]], seed: int
) -> Point:
    queries, rows = np.mean(sizes, axis=0).tolist()
    mean, low, high = _interval(values, seed)
    return Point(*of, queries, rows, mean, low, high)


def _gain(what: str, first: list[dict[Any, float]], second: list[dict[Any, float]], seed: int) -> Gain:
    paired = [{q: a[q] - b[q] for q in a} for a, b in zip(first, second, strict=True)]
    return Gain(what, *_interval(paired, seed))


def _interval(values: list[dict[Any, float]], seed: int) -> tuple[float, float, float]:
    """Mean over repeats, with an interval over resampled queries, and repeats where there are several.

    A query that is held out in several repeats is one query: its values are no independent evidence.
    """
    means = [float(np.mean(list(one.values()))) for one in values]
    mean = float(np.mean(means))
    queries: dict[Any, list[float]] = {}
    for one in values:
        for query, value in one.items():
            queries.setdefault(query, []).append(value)
    per_query: FloatArray = np.array([np.mean(of) for of in queries.values()])
    span = interval_of(per_query, rounds=_DRAWS, seed=seed)
    half = (span.high - span.low) / 2
    if len(means) > 1:  # training on another draw of queries is chance too
        half = float(np.hypot(half, 1.96 * np.std(means, ddof=1) / np.sqrt(len(means))))
    return mean, mean - half, mean + half
