"""RankBoost (Freund, Iyer, Schapire and Singer 2003): boosting of stumps on the exponential loss of pairs.

No pair is stored. The weight of a pair, exp(H_j - H_i) for grades y_i > y_j, is a product of something of i
and something of j, so that sums over grades give each row its pull

    π_i = Σ_{j below} exp(H_j - H_i) - Σ_{j above} exp(H_i - H_j)

in time proportional to the rows, and the pairs a stump orders well minus those it orders badly weigh the sum
of π over the rows above its threshold.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numba import types

from mcrank.arrays import IntArray, RowArray
from mcrank.boosting.cuts import BINNINGS
from mcrank.data.dataset import Dataset
from mcrank.kernels import kernel, step
from mcrank.kernels.fenwick import add_at, sum_upto
from mcrank.losses.boxes import LONG
from mcrank.losses.pairwise import PAIRS, PairArrays
from mcrank.options import Options, option
from mcrank.ranges import OneOf
from mcrank.rankers.base import Card, Trained
from mcrank.rankers.forests import ForestRanker
from mcrank.rankers.shared_options import choice_option, pair_weights_option, rounds_option, stopping_option
from mcrank.rounds import Callback
from mcrank.training.stumps import (
    NET,
    NOTHING,
    ROOTS,
    SIZE,
    Stump,
    StumpBoosting,
    boost_stumps,
    centre,
    sum_bins,
)

_RULES = {"r": NET, "abs": SIZE, "z": ROOTS}
# A stump that orders every pair well would have an infinite alpha: its r counts as this much below 1.
_PERFECT = 1.0 - 1e-9
_MANY = 1 << 22  # rows times grades of a query up to which the grades are gone through one by one
_F, _I = types.float64[::1], types.int64[::1]


class RankBoost(ForestRanker):
    """Boosting of stumps 1[x > threshold] on Σ exp(H_j - H_i) over the pairs with grades y_i > y_j.

    With W+ and W- the weight of the pairs a stump orders well and badly and Z that of all pairs, it takes the
    stump with the largest r = (W+ - W-)/Z (RankLib) or |r| (the paper's third method) with
    α = ½ ln((1 + r)/(1 - r)), or the one that makes the loss itself smallest, with
    α = ½ ln(W+/W-), smoothed.

    A pair weighs the product of the weights of its two rows, times the weight of its query. A missing value
    is below every threshold.

    Attributes
    ----------
    forest_ : Forest
        The stumps kept, as trees of two leaves.
    history_ : dict of list
        After each round: the measure on the validation data, and ``loss``, that of the training data as a
        share of the loss before the first round.

    Examples
    --------
    >>> import mcrank
    >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
    >>> ranker = mcrank.RankBoost(n_estimators=50).fit(train, valid=valid)
    >>> ranker.forest_.n_trees == ranker.best_round_
    True
    """

    name: ClassVar[str] = "rankboost"
    card: ClassVar[Card] = Card("pairwise", "exponential of pairs", "stumps", False)

    n_estimators: int = rounds_option(300, "rounds, each adding a stump")
    criterion: str = choice_option(
        "abs", tuple(_RULES), "which stump is best: largest r, largest |r|, or smallest loss after it"
    )
    pairs: str = pair_weights_option("all", " at the start")
    thresholds: int | None = option(
        default=None,
        low=1,
        high=65534,
        help="thresholds of equal distance a feature may be cut at, 10 in RankLib; None for all between bins",
    )
    max_bins: int = option(
        default=256, low=2, high=65536, search=OneOf(16, 64, 256), help="most bins of a feature"
    )
    binning: str = option(default="adaptive", choices=BINNINGS, help="how features are cut into bins")
    early_stopping_rounds: int | None = stopping_option()

    def _fit(self, data: Dataset, valid: Dataset | None, options: Options, callback: Callback) -> Trained:
        boosted = boost_stumps(_Exponential, data, valid, options, callback)
        return Trained(boosted.forest, boosted.rounds)


class _Exponential(StumpBoosting):
    """Boosting on the exponential loss of pairs."""

    def __init__(self, data: Dataset, options: dict[str, Any]) -> None:
        super().__init__(data, options)
        self.rule = _RULES[options["criterion"]]
        exact = self.rule == ROOTS
        self.total = self.binned.room() if exact else np.empty(0)
        self.by_bin = self._sort_bins(data) if exact else np.empty((0, 0), dtype=np.int32)
        self.levels = _levels(self.pairs) if exact else np.empty(0, dtype=np.int64)

    def _sort_bins(self, data: Dataset) -> RowArray:
        """Rows of every query by falling bin, for each feature."""
        queries = np.repeat(np.arange(data.n_queries), data.sizes)
        out = np.empty(self.binned.columns.shape, dtype=np.int32)
        for f, column in enumerate(self.binned.columns):
            out[f] = np.argsort((queries << 16) - column.astype(np.int64), kind="stable")
        return out

    def weigh(self) -> float:
        """Fill the pull of all pairs on every row; the loss is their weight."""
        return float(pull_rows(self.pairs, self.weight, self.scores, self.up, self.down, self.pull))

    def next(self) -> tuple[Stump, float] | None:
        """Return the best stump and its alpha, None when none helps."""
        binned = self.binned

        def fill(part: slice, places: IntArray) -> None:
            columns = binned.columns[part]
            sum_bins(columns, self.pull, places, self.net)
            if self.rule == ROOTS:
                by_bin, levels = self.by_bin[part], self.levels
                sum_separated(columns, by_bin, levels, self.pairs, self.up, self.down, places, self.total)

        binned.over_features(fill)
        stumps = binned.best(self.net, self.total, self.rule, 1)
        if not stumps or stumps[0].merit <= NOTHING * self.loss:
            return None
        return stumps[0], self._alpha(stumps[0])

    def _alpha(self, stump: Stump) -> float:
        if self.rule == ROOTS:
            return stump.step(self.loss)
        return float(np.arctanh(np.clip(stump.net / self.loss, -_PERFECT, _PERFECT)))


def _levels(layout: PairArrays) -> IntArray:
    """Place of each row's grade among the grades of its query, from the lowest, 0."""
    queries = np.repeat(np.arange(len(layout.starts)), layout.ends - layout.starts)
    order = (layout.starts[queries] + layout.order)[::-1]  # the last query first, grades rising
    first = np.r_[True, queries[order][1:] != queries[order][:-1]]
    step = np.r_[False, layout.worth[order][1:] != layout.worth[order][:-1]] & ~first
    count = np.cumsum(step)
    out = np.empty(len(order), dtype=np.int64)
    out[order] = count - np.repeat(count[first], np.diff(np.r_[np.flatnonzero(first), len(order)]))
    return out


@step()
def pull_far(order, worth, weight, scores, pull):  # type: ignore[no-untyped-def]
    """Pull on the rows of one query whose scores lie far apart; returns the weight of its pairs.

    A sum of exponentials is kept as ``total * exp(power)``, power being the largest so far.
    """
    # IN: order, worth, weight, scores (of the query)  OUT: pull (added to)
    n = len(order)
    mass = 0.0
    for side in range(2):  # better rows pull down from above, worse ones up from below
        sign = -1.0 if side == 0 else 1.0
        total, power = 0.0, -np.inf
        done = 0
        for k in range(n):
            i = order[k] if side == 0 else order[n - 1 - k]
            while True:  # rows of grades before this one
                j = order[done] if side == 0 else order[n - 1 - done]
                if worth[j] == worth[i]:
                    break
                own = sign * scores[j]
                if own > power:
                    total = total * np.exp(power - own) + weight[j]
                    power = own
                else:
                    total += weight[j] * np.exp(own - power)
                done += 1
            if total > 0.0:
                pair = weight[i] * total * np.exp(min(power - sign * scores[i], 600.0))
                pull[i] += sign * pair
                mass += pair if side == 1 else 0.0
    return mass


@kernel(types.float64(PAIRS, _F, _F, _F, _F, _F))
def pull_rows(pairs, weight, scores, up, down, pull):  # type: ignore[no-untyped-def]
    """Fill the pull of all pairs on every row, and return the weight of all pairs.

    Scores are centred in each query before they go into an exponential. Where they are too far apart even for
    that, the pairs of the query are taken one by one, and those of a long query by sums with an exponent of
    their own.
    """
    # IN: pairs, weight, scores  OUT: up (w exp(H)), down (w exp(-H)), centred; pull
    worth, order, starts, ends, factor, _ = pairs
    total = 0.0
    for q in range(len(starts)):
        s, n = starts[q], ends[q] - starts[q]
        width = centre(scores[s : s + n], up[s : s + n], pull[s : s + n])
        for i in range(s, s + n):
            down[i] = weight[i] / up[i]
            up[i] *= weight[i]
        if factor[q] == 0.0:
            continue
        mass = 0.0
        if width <= 600.0:
            above = 0.0  # Σ down of the higher grades
            waiting = 0.0  # of this grade, until it is done
            for k in range(n):
                i = s + order[s + k]
                if k > 0 and worth[i] != worth[s + order[s + k - 1]]:
                    above += waiting
                    waiting = 0.0
                pull[i] -= up[i] * above
                waiting += down[i]
            below = 0.0
            waiting = 0.0
            for k in range(n - 1, -1, -1):
                i = s + order[s + k]
                if k < n - 1 and worth[i] != worth[s + order[s + k + 1]]:
                    below += waiting
                    waiting = 0.0
                pull[i] += down[i] * below
                mass += down[i] * below
                waiting += up[i]
        elif n >= LONG:
            mass = pull_far(
                order[s : s + n], worth[s : s + n], weight[s : s + n], scores[s : s + n], pull[s : s + n]
            )
        else:
            for a in range(n):
                i = s + order[s + a]
                for b in range(a + 1, n):
                    j = s + order[s + b]
                    if worth[i] > worth[j]:
                        pair = weight[i] * weight[j] * np.exp(min(scores[j] - scores[i], 600.0))
                        pull[i] += pair
                        pull[j] -= pair
                        mass += pair
        for i in range(s, s + n):
            pull[i] *= factor[q]
        total += mass * factor[q]
    return total


@step()
def add_separated(column, rows, levels, factor, up, down, net, sums):  # type: ignore[no-untyped-def]
    """One query of `sum_separated` with many grades: sums over grades come from trees."""
    # IN: column, rows (by falling bin), levels, factor, up, down
    # OUT: net (zeros before: up and down of rows below the threshold minus those above, by grade), sums
    net_up, net_down = net[0], net[1]
    every = 0.0
    for i in rows:
        add_at(net_up, levels[i], up[i])
        add_at(net_down, levels[i], down[i])
        every += down[i]
    for i in rows:
        add_at(net_up, levels[i], -up[i])
        add_at(net_down, levels[i], -down[i])
        every -= down[i]
        change = down[i] * sum_upto(net_up, levels[i] - 1)
        change += up[i] * (every - sum_upto(net_down, levels[i]))
        add_at(net_up, levels[i], -up[i])
        add_at(net_down, levels[i], -down[i])
        every -= down[i]
        sums[column[i]] += factor * change


@kernel(types.void(types.uint16[:, ::1], types.int32[:, ::1], _I, PAIRS, _F, _F, _I, _F), allocates=True)
def sum_separated(columns, by_bin, levels, pairs, up, down, places, out):  # type: ignore[no-untyped-def]
    """Change of the weight of all pairs a threshold separates when it falls below each bin, by feature.

    A row that comes above the threshold is now apart from those below it and no longer from those above.
    """
    # IN: columns, by_bin, levels, pairs, up, down, places (one more than columns)  OUT: out
    _, _, starts, ends, factor, longest = pairs
    high_up, high_down = np.zeros((2, longest))
    low = np.zeros((2, longest))
    low_up, low_down = low[0], low[1]
    for f in range(len(columns)):
        sums = out[places[f] : places[f + 1]]
        sums[:] = 0.0
        for q in range(len(starts)):
            if factor[q] == 0.0:
                continue
            count = 0
            for i in range(starts[q], ends[q]):
                count = max(count, levels[i] + 1)
            for m in range(count):
                high_up[m] = high_down[m] = low_up[m] = low_down[m] = 0.0
            if (ends[q] - starts[q]) * count > _MANY:
                rows = by_bin[f, starts[q] : ends[q]]
                add_separated(columns[f], rows, levels, factor[q], up, down, low[:, :count], sums)
                continue
            for i in range(starts[q], ends[q]):
                low_up[levels[i]] += up[i]
                low_down[levels[i]] += down[i]
            for k in range(starts[q], ends[q]):
                i = by_bin[f, k]
                level = levels[i]
                low_up[level] -= up[i]
                low_down[level] -= down[i]
                change = 0.0
                for m in range(level):
                    change += down[i] * (low_up[m] - high_up[m])
                for m in range(level + 1, count):
                    change += up[i] * (low_down[m] - high_down[m])
                high_up[level] += up[i]
                high_down[level] += down[i]
                sums[columns[f, i]] += factor[q] * change
