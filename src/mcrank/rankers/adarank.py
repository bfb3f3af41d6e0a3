"""AdaRank (Xu and Li 2007): boosting of single features, with a weight for each query that grows where the
measure is low.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from mcrank.arrays import Array, FloatArray
from mcrank.data.dataset import Dataset
from mcrank.errors import MeasureError
from mcrank.metrics.prepared import PreparedMeasure
from mcrank.options import Options, option
from mcrank.ranges import OneOf
from mcrank.rankers.base import Card, Trained
from mcrank.rankers.linear import LinearRanker, scaling_of
from mcrank.rankers.shared_options import choice_option, rounds_option, stopping_option
from mcrank.rounds import Callback, Rounds
from mcrank.scorers.linear import Linear
from mcrank.scorers.scaling import SCALINGS, Scaling
from mcrank.training.one_feature import column, feature_values

# A ranking perfect on every query would have an infinite alpha: its mean counts as this much below 1.
_PERFECT = 1.0 - 1e-9


class AdaRank(LinearRanker):
    """Boosting of single features for a measure E: each round takes the feature with the best weighted mean.

    With weights P of the queries, a round takes the feature k with the largest ΣP E(k), adds it with
    α = ½ ln(ΣP(1 + E(k)) / ΣP(1 - E(k))), and weighs the queries anew by the measure of the sum f so far:
    P ∝ exp(-E(f)) as published, or P·exp(-α E(f)) as in RankLib (normalized here, which changes no choice
    and keeps P above zero). A measure beyond 1, such as DCG, is divided by the largest value any query can
    reach.

    A query without relevant rows has the same E whatever the ranking. Where a dialect says E = 0
    (``standard`` for empty queries, ``letor4`` also for short ones) it shrinks every α and takes the largest
    weight; where it says E = 1 (``yahoo``) it raises every α. The history shows it. A query that the dialect
    leaves out of its mean has no weight.

    A row without a feature takes its training mean; features constant in training are no candidates. Query
    weights multiply P; row weights have no meaning here.

    Attributes
    ----------
    history_ : dict of list
        After each round: the measure on the validation data; ``train``, that on the training data;
        ``feature`` (counted from 0) and ``alpha`` (negative where low values rank first); ``empty``,
        ``short``, ``rest``: share in P, when the feature was chosen, of the queries without a relevant row,
        of the others with fewer rows than the measure's cut-off, and of all others; ``postponed``: features
        enqueued.

    Examples
    --------
    >>> import mcrank
    >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
    >>> ranker = mcrank.AdaRank(n_estimators=20).fit(train, valid=valid)
    >>> sorted(ranker.history_)
    ['alpha', 'empty', 'feature', 'ndcg@10', 'postponed', 'rest', 'short', 'train']
    """

    name: ClassVar[str] = "adarank"
    card: ClassVar[Card] = Card("listwise", "exponential of the measure", "linear", True)

    scaling: str = option(default="none", choices=SCALINGS, help="how features are scaled; not, as published")
    n_estimators: int = rounds_option(500, "rounds, each adding a feature (T)")
    update: str = choice_option(
        "ranklib",
        ("paper", "ranklib"),
        "weights of queries: exp(-E) of the sum so far, or those before times exp(-alpha E)",
    )
    signs: bool = option(
        default=True, search=OneOf(False, True), help="whether features may also rank low values first"
    )
    tolerance: float | None = option(
        default=0.002,
        low=0,
        search=OneOf(0.002, None),
        help="stop when a round lowers the measure on the training data by more",
    )
    enqueue: bool = option(
        default=True,
        help="postpone a feature chosen twice in a row, and undo its round; postponed ones come last",
    )
    max_select: int | None = option(
        default=5,
        low=1,
        help="rounds in a row a feature may be chosen without changing the measure of any query; then it "
        "pauses until another changes it. None: stop at once",
    )
    early_stopping_rounds: int | None = stopping_option()

    def _fit(self, data: Dataset, valid: Dataset | None, options: Options, callback: Callback) -> Trained:
        scaling = scaling_of(data, options)
        kept = np.zeros(data.n_features)
        rounds = Rounds(
            valid, options["measure"], options["n_estimators"], callback, options["early_stopping_rounds"]
        )
        boosting = _Boosting(data, scaling, options)

        def after(weights: FloatArray, values: dict[str, float]) -> bool:
            nonlocal kept
            stop = rounds.after(None if valid is None else scaling.scores(valid.X, weights), **values)
            if rounds.improved:
                kept = weights.copy()
            return stop

        with rounds.until_interrupted():
            boosting.learn(after)
            if valid is None:
                kept = boosting.weights  # the last round may have been undone
        return Trained(Linear(kept, scaling), rounds)


After = Callable[[FloatArray, dict[str, float]], bool]


class _Boosting:
    """State of training: weights of queries, the sum so far, and which features may be chosen."""

    def __init__(self, data: Dataset, scaling: Scaling, options: dict[str, Any]) -> None:
        self.data, self.scaling, self.options = data, scaling, options
        self.prepared: PreparedMeasure = options["measure"].on(data)
        self.table = feature_values(data, self.prepared, scaling, options["signs"], options["n_jobs"])
        self.table = self.table.reshape(-1, data.n_queries)  # high values first of each feature, then low
        self._find_queries()
        self.free = np.tile(scaling.factor > 0.0, len(self.table) // data.n_features)
        self.queue: list[int] = []
        self.paused: list[int] = []
        self.scores = np.zeros(data.n_rows)
        self.weights = np.zeros(data.n_features)
        self.value = np.full(data.n_queries, np.nan)  # E of the sum so far
        self.train = -np.inf
        self.last, self.repeats = -1, 0
        self.left = options["n_estimators"]

    def _find_queries(self) -> None:
        """Which queries count, their first weights, and the kinds of queries the history tells apart."""
        data = self.data
        ideal = self.prepared.per_query(data.y)
        start = np.ones(data.n_queries) if data.query_weight is None else data.query_weight.copy()
        start[np.isnan(self.prepared.counted(ideal))] = 0.0
        if not start.any():
            raise MeasureError(
                f"{self.prepared.measure.name} has no value on the training data (no query counts); "
                "choose another measure or other data."
            )
        self.start = start / start.max()
        self.start /= self.start.sum()
        self.share = self.start.copy()
        self.scale = max(1.0, np.nanmax(ideal, initial=1.0), np.nanmax(self.table, initial=1.0))
        self.table = np.nan_to_num(self.table) / self.scale
        cut = self.prepared.measure.k or 0
        empty = self.prepared.arithmetic.empty
        self.kinds = {"empty": empty, "short": ~empty & (data.sizes < cut)}
        self.kinds["rest"] = ~(self.kinds["empty"] | self.kinds["short"])

    def learn(self, after: After) -> None:
        """Boost; what was postponed is given back, the last first, each time for as long as it helps."""
        stop = self._boost(after, self.options["enqueue"])
        while self.queue and not stop and self.left > 0:
            self.free[self.queue.pop()] = True
            stop = self._boost(after, False)

    def _boost(self, after: After, enqueue: bool) -> bool:
        """Add features until a rule ends it; True when training is to end altogether."""
        before = self._kept()
        self.last = -1
        while self.left > 0:
            self.left -= 1
            chosen = self._choose()
            if chosen < 0:
                return False
            if enqueue and chosen == self.last:
                # So strong a feature would be taken again and again: the others first.
                self.queue.append(chosen)
                self.free[chosen] = False
                self._restore(before)
                continue
            before = self._kept()
            told = self._add(chosen)
            if told is None:
                self._restore(before)
                return False
            if after(self.weights, told):
                return True
        return True

    def _choose(self) -> int:
        """The best candidate under the weights in force, -1 without one."""
        if not self.free.any():
            return -1
        return int(np.argmax(np.where(self.free, self.table @ self.share, -np.inf)))

    def _add(self, chosen: int) -> dict[str, float] | None:
        """Add a candidate to the sum and weigh the queries anew; None when a rule ends it here."""
        mean = float(np.clip(self.table[chosen] @ self.share, -_PERFECT, _PERFECT))
        alpha = 0.5 * np.log((1.0 + mean) / (1.0 - mean))
        sign, feature = (1.0, -1.0)[chosen // self.data.n_features], chosen % self.data.n_features
        self.weights[feature] += sign * alpha
        self.scores += sign * alpha * column(self.data, self.scaling, feature)
        raw = self.prepared.per_query(self.scores)
        train = self.prepared.mean_of(raw)
        value = np.nan_to_num(raw) / self.scale
        changed = not np.array_equal(value, self.value)
        told = {"train": train, "feature": float(feature), "alpha": sign * alpha}
        told |= {kind: float(self.share[those].sum()) for kind, those in self.kinds.items()}
        told["postponed"] = float(len(self.queue))
        tolerance = self.options["tolerance"]
        fell = tolerance is not None and train <= self.train - tolerance
        if alpha == 0.0 or fell or not self._may_repeat(chosen, changed):
            return None
        self.value, self.train, self.last = value, train, chosen
        self._weigh(alpha)
        return told

    def _may_repeat(self, chosen: int, changed: bool) -> bool:
        """Count choices of one feature that change nothing; False when that ends training."""
        if changed:
            self.free[self.paused] = True
            self.paused, self.repeats = [], 0
            return True
        if chosen != self.last:
            self.repeats = 0
            return True
        most = self.options["max_select"]
        self.repeats += 1
        if most is None:
            return False
        if self.repeats >= most:
            self.paused.append(chosen)
            self.free[chosen] = False
            self.repeats = 0
        return True

    def _weigh(self, alpha: float) -> None:
        if self.options["update"] == "paper":
            self.share = self.start * np.exp(-self.value)
        else:
            self.share = self.share * np.exp(-alpha * self.value)
        self.share /= self.share.sum()

    def _kept(self) -> tuple[Array | float, ...]:
        return self.scores.copy(), self.weights.copy(), self.share.copy(), self.value, self.train

    def _restore(self, kept: tuple[Any, ...]) -> None:
        self.scores, self.weights, self.share, self.value, self.train = kept
